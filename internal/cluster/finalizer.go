package cluster

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

	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
)

// finalizers keep GatewayClasses of ours that Gateways use from being deleted, while a
// replica leads: deleting a class, by uninstalling a chart for one, must not take away
// what serves. A deleted class goes on to count until its last Gateway goes.
type finalizers struct {
	tableReader[string, bool]
	client     client.Client
	live       func(object.Key) client.Object
	controller gwv1.GatewayController
	log        *slog.Logger
	queue      workqueue.TypedRateLimitingInterface[string]

	mu    sync.Mutex
	used  map[string]bool // by class
	whole bool            // all Gateways are known

	written map[string]string // the version of a class that the last write was over; of run
}

func newFinalizers(c client.Client, live func(object.Key) client.Object, p *pipeline.Pipeline, controllerName string, log *slog.Logger) *finalizers {
	f := &finalizers{
		client: c, live: live, controller: gwv1.GatewayController(controllerName), log: log,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](200*time.Millisecond, 30*time.Second)),
		used:  map[string]bool{}, written: map[string]string{},
	}
	f.tableReader = tableReader[string, bool]{p.UsedClasses, f.set, func(class string) { f.set(class, false) }}
	return f
}

// set says whether a class of ours is used.
func (f *finalizers) set(class string, used bool) {
	f.mu.Lock()
	f.used[class] = used
	f.mu.Unlock()
	f.queue.Add(class)
}

func (f *finalizers) changed(k object.Key) {
	if k.Kind == kind.GatewayClass {
		f.queue.Add(k.Name.Name)
	}
}

func (f *finalizers) complete() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.whole = true
	for class := range f.used {
		f.queue.Add(class)
	}
}

// run writes until ctx ends.
func (f *finalizers) run(ctx context.Context) error {
	defer context.AfterFunc(ctx, f.queue.ShutDown)()
	for {
		class, shutdown := f.queue.Get()
		if shutdown {
			return nil
		}
		err := f.write(ctx, class)
		switch {
		case err == nil || apierrors.IsNotFound(err):
			f.queue.Forget(class)
		case ctx.Err() == nil:
			if !apierrors.IsConflict(err) {
				f.log.Error("the finalizer of a GatewayClass can't be written; trying again", "object", "GatewayClass "+class, "error", err)
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
	whole := f.whole
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
	case !used && has && whole:
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
