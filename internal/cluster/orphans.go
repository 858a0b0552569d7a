package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/status"
	"github.com/gatehouse-dev/gatehouse/internal/status/writer"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// orphans answer ListenerSets whose Gateway is gone, while a replica leads. Nothing in
// their specs says whose they are, so exactly those are answered whose Accepted condition
// this controller wrote, by what the API server remembers. It costs two requests for each
// such set, once.
type orphans struct {
	tableReader[object.Name, topology.OrphanSet]
	client   client.Client
	live     func(object.Key) client.Object
	manager  string
	statuses *writer.Writer
	count    func(object.Key, any) // what is answered
	log      *slog.Logger
	queue    workqueue.TypedRateLimitingInterface[object.Name]

	mu    sync.Mutex
	sets  map[object.Name]topology.OrphanSet
	whole bool // all Gateways are known
}

func newOrphans(c *Cluster, statuses *writer.Writer) *orphans {
	o := &orphans{
		client: c.direct, live: c.source.Live, manager: statusManager(c.config.ControllerName), statuses: statuses, count: c.countOne, log: c.log,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[object.Name](200*time.Millisecond, 30*time.Second)),
		sets:  map[object.Name]topology.OrphanSet{},
	}
	o.tableReader = tableReader[object.Name, topology.OrphanSet]{c.pipeline.Graph.OrphanSets, o.set, o.gone}
	return o
}

// has reports whether what is written into an object is for the orphans to decide.
func (o *orphans) has(k object.Key) bool {
	if o == nil || k.Kind != kind.ListenerSet {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ok := o.sets[k.Name]
	return ok
}

func (o *orphans) set(name object.Name, set topology.OrphanSet) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sets[name] = set
	if o.whole {
		o.queue.Add(name)
	}
}

// gone notes that a set has a Gateway, or doesn't exist. If the Gateway is ours, its
// status follows.
func (o *orphans) gone(name object.Name) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.sets, name)
	o.say(name, nil)
}

// say has an answer written, and counted. The caller holds the lock.
func (o *orphans) say(name object.Name, answer any) {
	o.statuses.Set(setKey(name), answer)
	o.count(setKey(name), answer)
}

func setKey(name object.Name) object.Key { return object.Key{Kind: kind.ListenerSet, Name: name} }

func (o *orphans) complete() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.whole = true
	for name := range o.sets {
		o.queue.Add(name)
	}
}

func (o *orphans) changed(object.Key) {}

// run answers until ctx ends.
func (o *orphans) run(ctx context.Context) error {
	defer context.AfterFunc(ctx, o.queue.ShutDown)()
	defer o.end()
	for {
		name, shutdown := o.queue.Get()
		if shutdown {
			return nil
		}
		switch err := o.answer(ctx, name); {
		case err == nil:
			o.queue.Forget(name)
		case ctx.Err() == nil:
			o.log.Warn("whose a ListenerSet without a Gateway is can't be found out; trying again", "object", setKey(name).String(), "error", err)
			o.queue.AddRateLimited(name)
		}
		o.queue.Done(name)
	}
}

// end has nothing counted any more: what becomes of the sets is for the next leader to see.
func (o *orphans) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name := range o.sets {
		o.count(setKey(name), nil)
	}
}

// answer says in a set that its Gateway doesn't exist, if that is so and the set ours.
func (o *orphans) answer(ctx context.Context, name object.Name) error {
	o.mu.Lock()
	set, ok := o.sets[name]
	o.mu.Unlock()
	if !ok {
		return nil
	}
	// That it is not known may just mean that its namespace isn't read.
	switch gateway, err := o.metadata(ctx, kind.Gateway, set.Gateway); {
	case gateway != nil, apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return err
	}
	was, err := o.metadata(ctx, kind.ListenerSet, name)
	if was == nil {
		return err
	}
	var answer any // none where the set is somebody else's
	if wroteCondition(was, o.manager, string(gwv1.ListenerSetConditionAccepted)) {
		object, ok := o.live(setKey(name)).(*gwv1.ListenerSet)
		if !ok {
			return nil // it has just been deleted
		}
		s := status.ListenerSet(status.ListenerSetInput{Node: &topology.ListenerSet{
			Name: name, Object: object, Gateway: set.Gateway, Accepted: condition.ListenerSetNoGateway(condition.Missing{
				Kind: kind.Gateway.Name(), Namespace: set.Gateway.Namespace, Name: set.Gateway.Name,
			}),
		}})
		answer = &s
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sets[name] == set {
		o.say(name, answer)
	}
	return nil
}

// metadata asks the API server for what it keeps of an object; nil where there is none. It
// lists, for which the right to watch suffices.
func (o *orphans) metadata(ctx context.Context, of object.Kind, name object.Name) (*metav1.PartialObjectMetadata, error) {
	d := kind.All.Of(of)
	list := &metav1.PartialObjectMetadataList{TypeMeta: d.TypeMeta(d.Versions[0].Name)}
	err := o.client.List(ctx, list, client.InNamespace(name.Namespace), client.MatchingFields{metav1.ObjectNameField: name.Name})
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s %s: %w", of.Name(), name, err)
	case len(list.Items) == 0:
		return nil, nil
	}
	return &list.Items[0], nil
}
