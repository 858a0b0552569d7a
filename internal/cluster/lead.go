package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/status/writer"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// term is what a replica does while it leads.
type term struct {
	statuses *writer.Writer // nil where others write statuses
	work     []work
	orphans  *orphans // nil in `gatehouse static-mode`, and without statuses; one of work
	complete bool     // all Gateways are known
	told     bool     // all statuses that there are have been handed to statuses
	listed   bool     // and these are all that there are to be
	metrics  *prometheus.Registry
	since    time.Time
	// delayed are statuses that wait for proxies to be heard, see patience.
	delayed map[object.Key]any
}

// holder is how a replica signs the Lease: its name and where others reach it.
func (r Replica) holder() string { return r.Name + "_" + r.IP }

// address returns where the holder of a Lease is reached.
func address(holder string) (ip string, ok bool) {
	i := strings.LastIndexByte(holder, '_')
	return holder[i+1:], i >= 0
}

// elect leads whenever the Lease is ours, until ctx ends.
func (c *Cluster) elect(ctx context.Context) error {
	le := c.opts.Config.LeaderElection
	if le.Disabled {
		c.lead(ctx, func(ctx context.Context) (context.Context, context.CancelFunc, error) {
			return ctx, func() {}, ctx.Err()
		})
		return ctx.Err()
	}
	name := c.config.Lease()
	lease := newLease(&resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: c.opts.Self.Namespace, Name: name},
		Client:     c.set.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: c.opts.Self.holder()},
	}, le.RenewDeadline.Duration)
	for ctx.Err() == nil {
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lease, Name: name,
			LeaseDuration: le.LeaseDuration.Duration, RenewDeadline: le.RenewDeadline.Duration, RetryPeriod: le.RetryPeriod.Duration,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) { c.lead(ctx, lease.ours) },
				OnStoppedLeading: func() {},
				OnNewLeader:      c.follow,
			},
		})
		if err != nil {
			return fmt.Errorf("leader election: %w", err)
		}
		elector.Run(ctx)
	}
	c.turn.Lock() // the last term has ended
	defer c.turn.Unlock()
	releasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), le.RetryPeriod.Duration)
	defer cancel()
	if err := lease.release(releasing); err != nil {
		c.log.Warn("the lease is not released; another replica leads when it has run out", "error", err)
	}
	c.proxies.ended(context.WithoutCancel(ctx))
	return ctx.Err()
}

// follow notes who leads.
func (c *Cluster) follow(holder string) {
	if holder == c.opts.Self.holder() {
		c.leader.Store(nil)
	} else if ip, ok := address(holder); ok {
		c.log.Info("following: another replica leads; what is written and what needs attention is in its log", "leader", holder)
		c.leader.Store(&ip)
	}
}

// lead writes status and infrastructure until ctx ends, as long as nobody else may; ours
// returns a context that ends then. The election does not wait for it, so that a term
// may begin before the last one has ended: it waits here.
func (c *Cluster) lead(ctx context.Context, ours func(context.Context) (context.Context, context.CancelFunc, error)) {
	c.turn.Lock()
	defer c.turn.Unlock()
	select {
	case <-c.published: // before, nothing is known that could be written
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return
	}
	// Whoever holds the Lease must write: nobody else does.
	for {
		held, cancel, err := ours(ctx)
		if err != nil {
			return
		}
		err = c.claim.whileOurs(held, func(ctx context.Context) error {
			c.log.Info("leading: this replica writes status and infrastructure from now on, as far as its roles go", "roles", c.config.Roles)
			defer c.log.Info("leading ended")
			return c.serve(ctx)
		})
		lost := held.Err() != nil
		cancel()
		if err != nil && !lost {
			c.log.Error("status and infrastructure can't be written; trying again", "error", err, "in", termRetry)
			select {
			case <-time.After(termRetry):
			case <-ctx.Done():
			}
		}
	}
}

// termRetry is how long a leader that could not begin waits.
const termRetry = 5 * time.Second

// serve is a term.
func (c *Cluster) serve(ctx context.Context) error {
	t, err := c.newTerm()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if t.statuses != nil {
		group.Go(func() error { return t.statuses.Run(ctx) })
	}
	for _, w := range t.work {
		group.Go(func() error { return w.run(ctx) })
	}
	group.Go(func() error {
		c.loop.Call(ctx, func() { c.begin(t) })
		select {
		case <-time.After(patience):
			c.loop.Call(ctx, c.writeDelayed)
		case <-ctx.Done():
		}
		return nil
	})
	err = group.Wait()
	c.leads.Store(nil)
	c.loop.Call(c.running, func() { c.term = nil; c.endReports() })
	return err
}

// newTerm prepares those who write.
func (c *Cluster) newTerm() (*term, error) {
	t := &term{metrics: prometheus.NewRegistry(), since: time.Now(), delayed: map[object.Key]any{}}
	var err error
	if t.work, err = c.proxies.work(t.metrics); err != nil || !c.config.Has(configuration.RoleConfiguration) {
		return t, err
	}
	t.statuses = writer.New(writer.Options{
		Client: c.direct, Live: c.source.Live, Kinds: c.kinds, Owns: c.selection.owns(),
		ControllerName: c.config.ControllerName, FieldOwner: statusManager(c.config.ControllerName),
		Events: c.recorder, Log: c.opts.Logs.For(configuration.LogStatus), Registerer: t.metrics,
	})
	t.work = append(t.work, newForeignPolicies(c.pipeline, c.recorder))
	if of := ingressOptions(c.config); of != nil {
		t.work = append(t.work, newIngressEvents(c), newIngressAddresses(c, *of))
	}
	if c.opts.Static != nil {
		return t, nil
	}
	t.orphans = newOrphans(c, t.statuses)
	t.work = append(t.work, t.orphans)
	return t, nil
}

// begin hands a term all that there is; the loop runs it.
func (c *Cluster) begin(t *term) {
	c.term = t
	c.leads.Store(t)
	for of, n := range c.troubled.Counts() {
		c.log.Warn("objects need attention; `gatehouse status` shows them", "kind", of.Kind, "reason", of.Reason, "objects", n)
	}
	for _, w := range t.work {
		w.begin(c.pipeline.Engine)
	}
	if !c.loop.Waits() { // else what there is has not been published
		c.tellAll(t)
	}
	c.settle()
}

// tellAll has all statuses written. Until it has been called, a term writes none.
func (c *Cluster) tellAll(t *term) {
	t.told = true
	if t.statuses == nil {
		return
	}
	c.pipeline.Engine.View(func(ctx *flow.Ctx) {
		for _, table := range c.pipeline.Statuses {
			table.All(ctx, c.write)
		}
	})
	c.selection.passed(c.write)
	c.beginShadows()
}

// settle lets those go on who need to know everything, when everything is known:
// who serves proxies, and who removes fleets of Gateways that don't exist. While
// objects are held back for the version of the cluster's definitions, it isn't; nor is it
// for those who remove, statuses too, while something can't be computed. The loop runs it.
func (c *Cluster) settle() {
	if t := c.term; t != nil && t.statuses != nil && t.told && !t.listed && c.pipeline.Settled() {
		t.listed = true
		t.statuses.Complete(slices.Values(c.pipeline.Objects()))
	}
	select {
	case <-c.published:
	default:
		return
	}
	if c.pipeline.VersionRefused() || c.loop.Waits() {
		return
	}
	if !c.serves {
		c.serves = true
		close(c.usable)
		c.proxies.Published() // readiness depends on it
	}
	if t := c.term; t != nil && !t.complete && c.pipeline.Unsettled() == nil {
		t.complete = true
		for _, w := range t.work {
			w.complete()
		}
	}
}

// write has a status written, unless it is one that silence would make false.
func (c *Cluster) write(k object.Key, status any) {
	t := c.term
	if t == nil || t.statuses == nil {
		return
	}
	owner := c.loop.Owner(k)
	c.reporters.Report(owner, k, status) // the other replicas don't know of all proxies
	if owner >= 0 && owner != c.clusterSource() {
		return // the object that is used is in a file, or of a config server
	}
	if !c.selection.writes(k) {
		return
	}
	if status == nil && t.orphans.has(k) {
		return // they decide
	}
	if status != nil && c.tooEarly(k) {
		t.delayed[k] = status
		return
	}
	delete(t.delayed, k)
	t.statuses.Set(k, status)
}

// tooEarly reports whether a status speaks of proxies that may just not have come
// back yet: as it is, it says Programmed. Or of objects of a blueprint that nobody has looked at yet.
func (c *Cluster) tooEarly(k object.Key) bool {
	if time.Since(c.term.since) > patience {
		return false
	}
	var conditions []metav1.Condition
	var gateway object.Name
	switch o := c.source.Live(k).(type) {
	case *gwv1.Gateway:
		conditions, gateway = o.Status.Conditions, object.Name{Namespace: o.Namespace, Name: o.Name}
		if c.pipeline.ChildrenUnseen(gateway) {
			return true
		}
	case *gwv1.ListenerSet:
		conditions, gateway = o.Status.Conditions, topology.ParentOfSet(o)
	default:
		d := c.kinds.Of(k.Kind)
		if o == nil || d == nil || !d.Inherited {
			return false
		}
		s, ok := d.Status.Of(o).(*gwv1.PolicyStatus)
		return ok && s != nil && c.policyTooEarly(k.Namespace, s)
	}
	return meta.IsStatusConditionTrue(conditions, string(gwv1.GatewayConditionProgrammed)) && !c.loop.States.Heard(gateway)
}

// policyTooEarly is tooEarly of the status of a policy in a namespace.
func (c *Cluster) policyTooEarly(namespace string, s *gwv1.PolicyStatus) bool {
	return slices.ContainsFunc(s.Ancestors, func(a gwv1.PolicyAncestorStatus) bool {
		gateway := object.Name{Namespace: namespace, Name: string(a.AncestorRef.Name)}
		if a.AncestorRef.Namespace != nil {
			gateway.Namespace = string(*a.AncestorRef.Namespace)
		}
		return meta.IsStatusConditionTrue(a.Conditions, string(condition.PolicyConditionProgrammed)) && !c.loop.States.Heard(gateway)
	})
}

// changed notes that a live object changed, by whomever.
func (c *Cluster) changed(k object.Key) {
	if t := c.leads.Load(); t != nil {
		if t.statuses != nil {
			t.statuses.Changed(k)
		}
		for _, w := range t.work {
			w.changed(k)
		}
	}
}

// writeDelayed has written what has waited, unless it is still too early for it.
func (c *Cluster) writeDelayed() {
	if c.term == nil {
		return
	}
	for k, status := range c.term.delayed {
		c.write(k, status)
	}
}

// patience is how long a leader that has just begun waits for the proxies to
// connect, to it or to other replicas, before it takes their silence for an
// answer: a restart must not turn every Gateway's Programmed off and on.
const patience = 15 * time.Second
