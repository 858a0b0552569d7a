package infra

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// ApplierOptions configure an Applier.
type ApplierOptions struct {
	Options // Authorities come by SetAuthorities
	// REST reaches the API server, to watch what belongs to fleets.
	REST *rest.Config
	// Client writes to the API server, and reads from it: not from a cache.
	Client client.Client
	// Namespaces are those that Gateways may be in; nil is all.
	Namespaces []string
	// Events gets Events at the Gateway about what is out of the ordinary; may be nil.
	Events     events.EventRecorder
	Log        *slog.Logger
	Registerer prometheus.Registerer // may be nil
	// OnState is called when the state of a Gateway's fleet changes. The state is nil
	// when there is no fleet any more. Several goroutines call it.
	OnState func(gateway object.Name, s *State)
}

// Applier makes fleets what they should be, and keeps them so. All methods but Run
// return at once and may be called at any time, by any goroutine.
type Applier struct {
	options Options // but Authorities
	rest    *rest.Config
	client  client.Client
	scope   []string
	events  events.EventRecorder
	log     *slog.Logger
	onState func(object.Name, *State)
	writes  *prometheus.CounterVec
	queue   workqueue.TypedRateLimitingInterface[object.Name]

	handoverPatience time.Duration

	mu          sync.Mutex
	wanted      map[object.Name]*Gateway
	deleted     map[object.Name]bool // Gateways that are to have no fleet; until they are Set again
	complete    bool
	authorities []byte
	cache       cache.Cache // while Run runs and what exists is known
	said        said
	settled     map[objectKey]string // see apply
	written     map[objectKey]string // see isWritten
	pods        map[object.Name]map[string]*corev1.Pod
}

// objectKey names an object of a fleet.
type objectKey struct {
	kind string
	object.Name
}

func keyOfObject(kind string, o client.Object) objectKey {
	return objectKey{kind, object.Name{Namespace: o.GetNamespace(), Name: o.GetName()}}
}

const (
	workers    = 4
	firstRetry = 200 * time.Millisecond
	lastRetry  = time.Minute
)

// New returns an Applier that does nothing until it runs.
func New(o ApplierOptions) (*Applier, error) {
	a := &Applier{
		options: o.Options, rest: o.REST, client: o.Client, scope: o.Namespaces, events: o.Events, log: o.Log, onState: o.OnState,
		wanted: map[object.Name]*Gateway{}, deleted: map[object.Name]bool{}, said: said{}, settled: map[objectKey]string{}, written: map[objectKey]string{}, pods: map[object.Name]map[string]*corev1.Pod{},
		authorities: o.Authorities, handoverPatience: handoverPatience,
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[object.Name](firstRetry, lastRetry)),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_infrastructure_writes_total",
			Help: "Writes of objects that belong to fleets, by kind, verb (apply or delete) and result (ok or error).",
		}, []string{"kind", "verb", "result"}),
	}
	if o.Registerer != nil {
		if err := o.Registerer.Register(a.writes); err != nil {
			return nil, fmt.Errorf("register metrics of fleets: %w", err)
		}
	}
	return a, nil
}

// Set says what a Gateway's fleet is made from. A Gateway that has got another class
// moves to a new fleet, and one that has no ports any more loses its fleet.
func (a *Applier) Set(g *Gateway) {
	a.mu.Lock()
	a.wanted[g.Name] = g
	delete(a.deleted, g.Name)
	a.mu.Unlock()
	a.queue.Add(g.Name)
}

// Hold says that it is not known what a Gateway's fleet is made from. What Set has said counts, or else what is there
// stays as it is.
func (a *Applier) Hold(g *Gateway) {
	a.mu.Lock()
	if a.wanted[g.Name] == nil {
		a.wanted[g.Name] = &Gateway{Name: g.Name, UID: g.UID, Class: g.Class, Held: true}
	}
	a.mu.Unlock()
	a.queue.Add(g.Name)
}

// Delete says that a Gateway is to have no fleet.
func (a *Applier) Delete(gateway object.Name) {
	a.mu.Lock()
	delete(a.wanted, gateway)
	a.deleted[gateway] = true
	a.mu.Unlock()
	a.queue.Add(gateway)
}

// Complete says that Set has been called for every Gateway: fleets of others are
// orphans.
func (a *Applier) Complete() {
	a.mu.Lock()
	first := !a.complete
	a.complete = true
	c := a.cache
	a.mu.Unlock()
	if first && c != nil {
		a.enqueueAll(context.Background(), c)
	}
}

// SetAuthorities says by which certificates, PEM, proxies know their controller.
// Nothing is applied before.
func (a *Applier) SetAuthorities(pem []byte) {
	a.mu.Lock()
	changed := !bytes.Equal(a.authorities, pem)
	a.authorities = bytes.Clone(pem)
	var all []object.Name
	for name := range a.wanted {
		all = append(all, name)
	}
	c, complete := a.cache, a.complete
	a.mu.Unlock()
	if !changed {
		return
	}
	for _, name := range all {
		a.queue.Add(name)
	}
	if !complete && c != nil {
		a.enqueueAll(context.Background(), c)
	}
}

// Run works until ctx ends. Only one controller may run at a time.
func (a *Applier) Run(ctx context.Context) error {
	c, err := newCache(a.rest, a.scope)
	if err != nil {
		return fmt.Errorf("watch fleets: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.Start(ctx) })
	group.Go(func() error {
		defer a.queue.ShutDown()
		if err := a.watch(ctx, c); err != nil || ctx.Err() != nil {
			return err
		}
		a.mu.Lock()
		a.cache = c
		complete := a.complete
		a.mu.Unlock()
		if complete {
			a.enqueueAll(ctx, c)
		}
		for range workers {
			group.Go(func() error {
				for a.next(ctx, c) {
				}
				return nil
			})
		}
		<-ctx.Done()
		return nil
	})
	return group.Wait()
}

// watch wakes Gateways when something of their fleets changes, and returns when
// what exists is known.
func (a *Applier) watch(ctx context.Context, c cache.Cache) error {
	wake := func(o any) {
		if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
			o = gone.Obj
		}
		if object, ok := o.(client.Object); ok {
			if gateway, ok := GatewayOf(object); ok {
				a.queue.Add(gateway)
			}
		}
	}
	handler := toolscache.ResourceEventHandlerFuncs{AddFunc: wake, UpdateFunc: func(_, o any) { wake(o) }, DeleteFunc: wake}
	for _, k := range kinds {
		informer, err := c.GetInformer(ctx, k.object)
		if err != nil {
			return fmt.Errorf("watch fleets: %w", err)
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watch fleets: %w", err)
		}
	}
	c.WaitForCacheSync(ctx) // false only when ctx ends
	return a.watchPods(ctx, c)
}

// enqueueAll wakes every Gateway that has something in the cache.
func (a *Applier) enqueueAll(ctx context.Context, c cache.Cache) {
	for _, k := range kinds {
		objects, err := list(ctx, c, k)
		if err != nil {
			a.log.Error("fleets of Gateways that are gone can't be looked for", "error", err)
			return
		}
		for _, o := range objects {
			if gateway, ok := GatewayOf(o); ok {
				a.queue.Add(gateway)
			}
		}
	}
}

// next works on one Gateway; false when there will be no more.
func (a *Applier) next(ctx context.Context, c cache.Cache) bool {
	gateway, quit := a.queue.Get()
	if quit {
		return false
	}
	defer a.queue.Done(gateway)
	err := a.sync(ctx, c, gateway)
	if err == nil || ctx.Err() != nil {
		a.queue.Forget(gateway)
		return true
	}
	a.queue.AddRateLimited(gateway)
	a.log.Warn("the fleet of a Gateway is not as it should be; trying again", "gateway", gateway.String(), "error", err)
	return true
}

// sync makes a Gateway's fleet what it should be.
func (a *Applier) sync(ctx context.Context, c cache.Cache, gateway object.Name) error {
	a.mu.Lock()
	g, deleted, complete := a.wanted[gateway], a.deleted[gateway], a.complete
	o := a.options
	o.Authorities = a.authorities
	a.mu.Unlock()
	switch {
	case g == nil && !deleted && !complete: // whether the Gateway exists is not known yet
		return a.renewAuthorities(ctx, c, gateway, o.Authorities)
	case g == nil || !g.Held && len(g.Ports) == 0:
		return a.remove(ctx, c, gateway, g != nil)
	case !g.Held && len(o.Authorities) == 0:
		return nil // SetAuthorities runs this again
	}
	move, err := a.moving(ctx, c, g)
	if err != nil {
		return err
	}
	state := State{}
	if move != nil {
		state.Serving = move.serving
		a.reportServing(gateway, move.serving)
	}
	if g.Held {
		// What counts stays as well, and what policies ask of it isn't known here.
		err := a.reportCounting(ctx, c, g, &state)
		a.report(gateway, state)
		return errors.Join(err, a.renewAuthorities(ctx, c, gateway, o.Authorities))
	}
	objects, err := Render(o, g)
	if err != nil {
		state.Problem = err.Error()
		err := a.reportCounting(ctx, c, g, &state)
		a.report(gateway, state)
		return err // else until the parameters change
	}
	applied, err := a.applyAll(ctx, c, g, objects)
	if len(applied) > 0 {
		a.log.Info("the fleet of a Gateway is applied", "gateway", gateway.String(), "kinds", applied)
	}
	workload, found := a.workload(ctx, c, objects)
	if found != nil {
		err = errors.Join(err, found)
	}
	if workload != nil {
		state.Waiting, state.Rollout = a.waiting(gateway, workload), a.rollout(gateway, workload)
	}
	if g.Limits {
		err = errors.Join(err, a.reportCounting(ctx, c, g, &state))
	}
	if pruned := a.prune(ctx, c, g, objects, workload != nil && ready(workload), move == nil); pruned != nil {
		err = errors.Join(err, pruned)
	}
	if err != nil && (lasting(err) || a.queue.NumRequeues(gateway) >= patience) {
		state.Problem = err.Error()
	}
	a.report(gateway, state)
	if move != nil && (move.arrived || move.handover) {
		err = errors.Join(err, a.leave(ctx, g, move))
	}
	return err
}

// patience is how many attempts may fail before people are told. Most failures pass by
// themselves.
const patience = 3
