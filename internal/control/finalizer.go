package control

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// declareUsed declares which of our classes have a Gateway.
func (p *Pipeline) declareUsed() {
	named := flow.Keys("named-classes",
		func(_ object.Name, gw *gwv1.Gateway, yield func(string)) { yield(string(gw.Spec.GatewayClassName)) }, p.inputs.Gateways)
	p.used = flow.Map("used-classes", p.graph.Classes,
		func(c *flow.Ctx, name string, _ *topology.Class, emit func(string, bool)) {
			_, used := flow.Get(c, named, name)
			emit(name, used)
		}, flow.Equal(flow.Same[bool]))
	flow.Watch(p.used)
}

// finalizers keep GatewayClasses of ours that Gateways use from being deleted, while a
// replica leads: deleting a class, by uninstalling a chart for one, must not take away
// what serves. A deleted class goes on to count until its last Gateway goes.
type finalizers struct {
	client     client.Client
	live       func(object.Key) client.Object
	controller gwv1.GatewayController
	log        *slog.Logger
	queue      workqueue.TypedRateLimitingInterface[string]

	mu       sync.Mutex
	used     map[string]bool // by class
	complete bool

	written map[string]string // the version of a class that the last write was over; of run
}

func newFinalizers(c client.Client, live func(object.Key) client.Object, controllerName string, log *slog.Logger) *finalizers {
	return &finalizers{
		client: c, live: live, controller: gwv1.GatewayController(controllerName), log: log,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](200*time.Millisecond, 30*time.Second)),
		used:  map[string]bool{}, written: map[string]string{},
	}
}

// set says whether a class of ours is used.
func (f *finalizers) set(class string, used bool) {
	f.mu.Lock()
	f.used[class] = used
	f.mu.Unlock()
	f.queue.Add(class)
}

// changed says that a class's object is another than before, by whomever.
func (f *finalizers) changed(class string) { f.queue.Add(class) }

// finish says that all Gateways are known: a class that is not used may go.
func (f *finalizers) finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.complete = true
	for class := range f.used {
		f.queue.Add(class)
	}
}

// run writes until ctx ends.
func (f *finalizers) run(ctx context.Context) {
	defer context.AfterFunc(ctx, f.queue.ShutDown)()
	for {
		class, shutdown := f.queue.Get()
		if shutdown {
			return
		}
		err := f.write(ctx, class)
		switch {
		case err == nil || apierrors.IsNotFound(err):
			f.queue.Forget(class)
		case ctx.Err() == nil:
			if !apierrors.IsConflict(err) {
				f.log.Error("the finalizer of a GatewayClass can't be written; trying again", "object", "GatewayClass"+" "+class, "error", err)
			}
			f.queue.AddRateLimited(class)
		}
		f.queue.Done(class)
	}
}

// write adds the finalizer to a class, or takes it away, unless it is so already.
func (f *finalizers) write(ctx context.Context, class string) error {
	live, ok := f.live(object.Key{Kind: kind.GatewayClass, Name: object.Name{Name: class}}).(*gwv1.GatewayClass)
	f.mu.Lock()
	used, known := f.used[class]
	complete := f.complete
	f.mu.Unlock()
	switch {
	case !ok, !known, live.Spec.ControllerName != f.controller: // a file may define a class of the same name
		return nil
	case f.written[class] == live.ResourceVersion:
		return nil // the cache has not seen the write yet
	}
	has := slices.Contains(live.Finalizers, gwv1.GatewayClassFinalizerGatewaysExist)
	next := &gwv1.GatewayClass{ObjectMeta: *live.ObjectMeta.DeepCopy()}
	switch {
	case used && !has && live.DeletionTimestamp == nil: // the API takes none for what is deleted
		next.Finalizers = append(next.Finalizers, gwv1.GatewayClassFinalizerGatewaysExist)
	case !used && has && complete:
		next.Finalizers = slices.DeleteFunc(next.Finalizers, func(s string) bool { return s == gwv1.GatewayClassFinalizerGatewaysExist })
	default:
		return nil
	}
	before := &gwv1.GatewayClass{ObjectMeta: live.ObjectMeta}
	// Whoever else changes finalizers is not overwritten.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := f.client.Patch(ctx, next, patch, client.FieldOwner(infra.ManagedBy)); err != nil {
		return err
	}
	f.written[class] = live.ResourceVersion
	return nil
}
