package apply

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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/figures"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// FleetsOptions configure Fleets.
type FleetsOptions struct {
	infra.Options // Authorities come by SetAuthorities
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
	OnState func(gateway object.Name, s *infra.State)
}

// Fleets make fleets what they should be, and keep them so. All methods but Run
// return at once and may be called at any time, by any goroutine.
type Fleets struct {
	options infra.Options // but Authorities
	*writer
	rest    *rest.Config
	scope   []string
	events  events.EventRecorder
	onState func(object.Name, *infra.State)
	queue   *gatewayQueue

	handoverPatience time.Duration

	mu          sync.Mutex
	wanted      map[object.Name]*infra.Gateway
	deleted     map[object.Name]bool // Gateways that are to have no fleet; until they are Set again
	complete    bool
	authorities []byte
	cache       cache.Cache // while Run runs and what exists is known
	said        said
	pods        map[object.Name]map[object.Name]*corev1.Pod // of Gateways, by their names
	comparisons map[object.Name]*comparison

	// answers reads what a proxy has answered, every so often.
	answers   func(context.Context, *corev1.Pod) (figures.Answers, error)
	readEvery time.Duration
}

// NewFleets returns Fleets that do nothing until they run.
func NewFleets(o FleetsOptions) (*Fleets, error) {
	w, err := newWriter(o.Client, o.Log, infra.ManagedBy, prometheus.CounterOpts{
		Name: "gatehouse_infrastructure_writes_total",
		Help: "Writes of objects that belong to fleets, by kind, verb (apply or delete) and result (ok or error).",
	}, o.Registerer)
	if err != nil {
		return nil, err
	}
	w.asCached = typed
	return &Fleets{
		options: o.Options, writer: w, rest: o.REST, scope: o.Namespaces, events: o.Events, onState: o.OnState,
		wanted: map[object.Name]*infra.Gateway{}, deleted: map[object.Name]bool{}, said: said{}, pods: map[object.Name]map[object.Name]*corev1.Pod{},
		authorities: o.Authorities, handoverPatience: handoverPatience,
		comparisons: map[object.Name]*comparison{}, answers: readAnswers, readEvery: readEvery,
		queue: newGatewayQueue(o.Log, "the fleet of a Gateway is not as it should be; trying again"),
	}, nil
}

// Set says what a Gateway's fleet is made from. A Gateway that has got another class
// moves to a new fleet, and one that has no ports any more loses its fleet.
func (f *Fleets) Set(g *infra.Gateway) {
	f.mu.Lock()
	f.wanted[g.Name] = g
	delete(f.deleted, g.Name)
	f.mu.Unlock()
	f.queue.Add(g.Name)
}

// Hold says that it is not known what a Gateway's fleet is made from. What Set has said counts, or else what is there
// stays as it is.
func (f *Fleets) Hold(g *infra.Gateway) {
	f.mu.Lock()
	if f.wanted[g.Name] == nil {
		f.wanted[g.Name] = &infra.Gateway{Name: g.Name, UID: g.UID, Class: g.Class, Frozen: true}
	}
	f.mu.Unlock()
	f.queue.Add(g.Name)
}

// Delete says that a Gateway is to have no fleet.
func (f *Fleets) Delete(gateway object.Name) {
	f.mu.Lock()
	delete(f.wanted, gateway)
	f.deleted[gateway] = true
	f.mu.Unlock()
	f.queue.Add(gateway)
}

// Complete says that Set has been called for every Gateway: fleets of others are
// orphans.
func (f *Fleets) Complete() {
	f.mu.Lock()
	first := !f.complete
	f.complete = true
	c := f.cache
	f.mu.Unlock()
	if first && c != nil {
		f.enqueueAll(context.Background(), c)
	}
}

// SetAuthorities says by which certificates, PEM, proxies know their controller.
// Nothing is applied before.
func (f *Fleets) SetAuthorities(pem []byte) {
	f.mu.Lock()
	changed := !bytes.Equal(f.authorities, pem)
	f.authorities = bytes.Clone(pem)
	var all []object.Name
	for name := range f.wanted {
		all = append(all, name)
	}
	c, complete := f.cache, f.complete
	f.mu.Unlock()
	if !changed {
		return
	}
	for _, name := range all {
		f.queue.Add(name)
	}
	if !complete && c != nil {
		f.enqueueAll(context.Background(), c)
	}
}

// Run works until ctx ends. Only one controller may run at a time.
func (f *Fleets) Run(ctx context.Context) error {
	c, err := newCache(ctx, f.rest, f.options.Places, f.options.Places.Watched(f.scope))
	if err != nil {
		return fmt.Errorf("watch fleets: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.Start(ctx) })
	group.Go(func() error {
		defer f.queue.ShutDown()
		if err := f.watch(ctx, c); err != nil || ctx.Err() != nil {
			return err
		}
		f.mu.Lock()
		f.cache = c
		complete := f.complete
		f.mu.Unlock()
		if complete {
			f.enqueueAll(ctx, c)
		}
		f.queue.start(ctx, group, func(ctx context.Context, gateway object.Name) error { return f.sync(ctx, c, gateway) })
		<-ctx.Done()
		return nil
	})
	return group.Wait()
}

// watch wakes Gateways when something of their fleets changes, and returns when
// what exists is known.
func (f *Fleets) watch(ctx context.Context, c cache.Cache) error {
	wake := func(o any) {
		if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
			o = gone.Obj
		}
		if object, ok := o.(client.Object); ok {
			if gateway, ok := f.options.Places.GatewayOf(object); ok {
				f.queue.Add(gateway)
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
	return f.watchPods(ctx, c)
}

// enqueueAll wakes every Gateway that has something in the cache.
func (f *Fleets) enqueueAll(ctx context.Context, c cache.Cache) {
	for _, k := range kinds {
		objects, err := list(ctx, c, k)
		if err != nil {
			f.log.Error("fleets of Gateways that are gone can't be looked for", "error", err)
			return
		}
		for _, o := range objects {
			if gateway, ok := f.options.Places.GatewayOf(o); ok {
				f.queue.Add(gateway)
			}
		}
	}
}

// sync makes a Gateway's fleet what it should be.
func (f *Fleets) sync(ctx context.Context, c cache.Cache, gateway object.Name) error {
	f.mu.Lock()
	g, deleted, complete := f.wanted[gateway], f.deleted[gateway], f.complete
	o := f.options
	o.Authorities = f.authorities
	f.mu.Unlock()
	switch {
	case g == nil && !deleted && !complete: // whether the Gateway exists is not known yet
		return f.renewAuthorities(ctx, c, gateway, o.Authorities)
	case g == nil || !g.Frozen && len(g.Ports) == 0:
		return f.remove(ctx, c, gateway, g != nil)
	case !g.Frozen && len(o.Authorities) == 0:
		return nil // SetAuthorities runs this again
	}
	move, err := f.moving(ctx, c, g)
	if err != nil {
		return err
	}
	state := infra.State{Step: f.lastStep(gateway)} // for as long as nothing else is known
	if move != nil {
		state.Serving = move.serving
		f.reportServing(gateway, move.serving)
	}
	if g.Frozen {
		// What counts stays as well, and what policies ask of it isn't known here.
		err := f.reportCounting(ctx, c, g, &state)
		f.report(gateway, state)
		return errors.Join(err, f.renewAuthorities(ctx, c, gateway, o.Authorities))
	}
	fleet, err := infra.New(o, g)
	var objects []*unstructured.Unstructured
	var at *pair
	if err == nil {
		if at, err = f.pair(ctx, c, g, fleet); err != nil {
			return err
		}
		objects, err = fleet.Objects(at.plan)
	}
	if err != nil {
		state.Problem = err.Error()
		err := f.reportCounting(ctx, c, g, &state)
		f.report(gateway, state)
		return err // else until the parameters change
	}
	applied, err := f.applyAll(ctx, c, g, objects)
	if len(applied) > 0 {
		f.log.Info("the fleet of a Gateway is applied", "gateway", gateway.String(), "kinds", applied)
	}
	workload, found := f.workload(ctx, c, objects)
	if found != nil {
		err = errors.Join(err, found)
	}
	if at.beside() {
		err = errors.Join(err, f.scale(ctx, at), f.renewAuthorities(ctx, c, gateway, o.Authorities))
	}
	err = errors.Join(err, f.compare(ctx, g, at))
	state.Step = f.step(g, at)
	// Proxies that wait beside those that serve cost these nothing.
	if serving := workload; serving != nil {
		if at.beside() {
			serving = at.live
		}
		state.Waiting = f.waiting(gateway, serving)
		if g.BlueGreen() {
			state.Rollout = f.rollout(gateway, serving)
		} else {
			state.Rollout = f.rollout(gateway, workload)
		}
	}
	if g.Limits {
		err = errors.Join(err, f.reportCounting(ctx, c, g, &state))
	}
	if pruned := f.prune(ctx, c, g, objects, at, workload != nil && ready(workload), move == nil); pruned != nil {
		err = errors.Join(err, pruned)
	}
	if err != nil && (lasting(err) || f.queue.NumRequeues(gateway) >= patience) {
		state.Problem = err.Error()
	}
	f.report(gateway, state)
	if move != nil && (move.arrived || move.handover) {
		err = errors.Join(err, f.leave(ctx, g, move))
	}
	return err
}

// patience is how many attempts may fail before people are told. Most failures pass by
// themselves.
const patience = 3
