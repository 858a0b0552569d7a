package watch

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/pkg/topology"
)

// Network returns one object of each kind of the Gateway API's standard channel, and of the
// kinds that it refers to.
func Network() []client.Object {
	return []client.Object{
		&gwv1.GatewayClass{}, &gwv1.Gateway{}, &gwv1.ListenerSet{}, &gwv1.HTTPRoute{}, &gwv1.GRPCRoute{}, &gwv1.TLSRoute{},
		&gwv1.ReferenceGrant{}, &corev1.Namespace{}, &corev1.Service{},
	}
}

// Run keeps a graph up to date with the objects in a cache until ctx ends. Which kinds, kinds
// has an object of: those of [Network] and the policies'. changed is called after each
// update, one at a time; the first time when all that there was is in the graph. An error
// that it returns ends Run; one of a call that the end of ctx has cut short is none.
//
// The cache must be started, by its manager or by itself, and its scheme must have the
// kinds.
func Run(ctx context.Context, c cache.Cache, scheme *runtime.Scheme, g *topology.Graph, kinds []client.Object, changed func(context.Context, *topology.Changes) error) error {
	q := &queue{pending: map[topology.Node]client.Object{}, some: make(chan struct{}, 1)}
	var synced []toolscache.InformerSynced
	for _, o := range kinds {
		gvk, err := apiutil.GVKForObject(o, scheme)
		if err != nil {
			return err
		}
		informer, err := c.GetInformer(ctx, o)
		if err != nil {
			return fmt.Errorf("watch %s: %w", gvk.Kind, err)
		}
		of := topology.Node{Group: gvk.Group, Kind: gvk.Kind}
		handler, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { q.add(of, o, false) },
			UpdateFunc: func(_, o any) { q.add(of, o, false) },
			DeleteFunc: func(o any) { q.add(of, o, true) },
		})
		if err != nil {
			return fmt.Errorf("watch %s: %w", gvk.Kind, err)
		}
		defer func() { _ = informer.RemoveEventHandler(handler) }()
		synced = append(synced, handler.HasSynced)
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		return context.Cause(ctx)
	}
	for first := true; ; first = false {
		if !first {
			select {
			case <-ctx.Done():
				return nil
			case <-q.some:
			}
		}
		ch, err := q.apply(g)
		if err := errors.Join(err, ch.Err(), changed(ctx, ch)); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// queue is what has changed since the last update: of each object its newest state, nil for
// one that is gone.
type queue struct {
	mu      sync.Mutex
	pending map[topology.Node]client.Object
	some    chan struct{} // has a value while something is pending
}

func (q *queue) add(of topology.Node, o any, gone bool) {
	if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	object, ok := o.(client.Object)
	if !ok {
		return
	}
	of.Namespace, of.Name = object.GetNamespace(), object.GetName()
	if gone {
		object = nil
	}
	q.mu.Lock()
	q.pending[of] = object
	q.mu.Unlock()
	select {
	case q.some <- struct{}{}:
	default:
	}
}

// apply puts what is pending into the graph.
func (q *queue) apply(g *topology.Graph) (ch *topology.Changes, err error) {
	q.mu.Lock()
	batch := q.pending
	q.pending = map[topology.Node]client.Object{}
	q.mu.Unlock()
	ch = g.Update(func(tx *topology.Tx) {
		for n, o := range batch {
			if o == nil {
				tx.Delete(n)
			} else {
				err = errors.Join(err, tx.Set(o))
			}
		}
	})
	return ch, err
}
