package cluster

import (
	"context"
	"log/slog"
	"maps"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
)

// board is a ConfigMap in the controllers' namespace by which the leader of those who have one role tells those who have the
// other what it knows of Gateways, with a line for each of which there is something to say.
type board[V any] struct {
	client  client.Client
	name    object.Name
	purpose string
	log     *slog.Logger
}

const (
	boardKey = "gateways.json"
	maxBoard = 1 << 20 // what a ConfigMap takes: some thousand Gateways
	// boardPause is the time between two writes: changes come in crowds.
	boardPause = 200 * time.Millisecond
	// lookAgain is how often what is written is compared with what there is.
	lookAgain = time.Minute
)

// states are what those who make fleets say of them.
func (c *Cluster) states() board[infra.State] {
	return board[infra.State]{
		c.direct, object.Name{Namespace: c.opts.Self.Namespace, Name: c.config.Infrastructure.Service + "-fleets"},
		"What there is to say of the fleets of Gateways. Written by the controller that makes them, read by the one that writes statuses.", c.log,
	}
}

// asked is what the configuration asks of fleets.
func (c *Cluster) asked() board[infra.Asked] {
	return board[infra.Asked]{
		c.direct, object.Name{Namespace: c.opts.Self.Namespace, Name: c.config.Infrastructure.Service + "-asked"},
		"What the configuration of proxies asks of their fleets. Written by the controller that makes it, read by the one that makes fleets.", c.log,
	}
}

// read returns what is written; nil if nothing is.
func (b board[V]) read(ctx context.Context) (map[object.Name]V, error) {
	var o corev1.ConfigMap
	if err := b.client.Get(ctx, client.ObjectKey{Namespace: b.name.Namespace, Name: b.name.Name}, &o); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	all, err := object.ParseLines[V](o.Data[boardKey])
	if err != nil || all == nil {
		all = map[object.Name]V{} // what can't be understood is written anew
	}
	return all, nil
}

func (b board[V]) write(ctx context.Context, all map[object.Name]V) error {
	text, left, err := object.Lines(all, maxBoard)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		b.log.Warn("there is too much to say of some Gateways, and nothing is said of them", "object", "ConfigMap "+b.name.String(), "gateways", left)
	}
	o := corev1ac.ConfigMap(b.name.Name, b.name.Namespace).
		WithAnnotations(map[string]string{"kubernetes.io/description": b.purpose}).WithData(map[string]string{boardKey: text})
	return b.client.Apply(ctx, o, client.FieldOwner(infra.ManagedBy), client.ForceOwnership)
}

// poster writes a board while a replica leads. What an earlier leader has written of a Gateway stays until there is
// something newer to say of it, or the Gateway is gone.
type poster[V any] struct {
	gatewayReader[*infra.Gateway]
	board[V]
	// early, if not nil, lays over what there is to say what of an earlier leader's stays while patience lasts.
	early func(now *V, was V)
	news  chan struct{}

	mu    sync.Mutex
	said  map[object.Name]*V // nil for nothing
	there map[object.Name]bool
	whole bool // all Gateways are known
}

// newPoster returns a poster. of, if not nil, says what there is to say of a Gateway; without it, set does.
func newPoster[V any](b board[V], p *pipeline.Pipeline, of func(*infra.Gateway) V) *poster[V] {
	out := &poster[V]{board: b, news: make(chan struct{}, 1), said: map[object.Name]*V{}, there: map[object.Name]bool{}}
	out.gatewayReader = newGatewayReader(p.Unsettled, tableReader[object.Name, *infra.Gateway]{p.Infrastructure, func(name object.Name, g *infra.Gateway) {
		out.hold(g)
		if of != nil {
			out.set(name, new(of(g)))
		}
	}, out.gone}, out.hold)
	return out
}

// hold notes that there is a Gateway.
func (p *poster[V]) hold(g *infra.Gateway) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.there[g.Name] = true
}

func (p *poster[V]) gone(gateway object.Name) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.there, gateway)
	delete(p.said, gateway)
	p.signal()
}

// set says what there is to say of a Gateway; nil for nothing.
func (p *poster[V]) set(gateway object.Name, v *V) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said[gateway] = v
	p.signal()
}

func (p *poster[V]) complete() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.whole = true
	p.signal()
}

// signal has the changes written, once all Gateways are known. The caller holds the lock.
func (p *poster[V]) signal() {
	if p.whole {
		select {
		case p.news <- struct{}{}:
		default:
		}
	}
}

// again has what there is to say compared with what is written.
func (p *poster[V]) again() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signal()
}

func (p *poster[V]) changed(object.Key) {}

// run writes until ctx ends.
func (p *poster[V]) run(ctx context.Context) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	look := time.NewTicker(lookAgain)
	defer look.Stop()
	early := p.early
	var written map[object.Name]V // nil as long as it is not known
	for {
		select {
		case <-p.news:
		case <-late.C:
			early = nil
			p.again()
			continue
		case <-look.C: // somebody may have edited or deleted it
			written = nil
			p.again()
			continue
		case <-ctx.Done():
			return nil
		}
		pause, now, err := boardPause, written, error(nil)
		if written == nil {
			now, err = p.read(ctx)
		}
		if err == nil {
			now, err = p.update(ctx, now, early)
		}
		if err == nil {
			written = now
		} else if ctx.Err() == nil {
			p.log.Error("what is known of Gateways can't be told to the controllers of the other role; trying again",
				"object", "ConfigMap "+p.name.String(), "error", err, "in", termRetry)
			written, pause = nil, termRetry
			p.again()
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// update writes what there is to say unless it is written, and returns it; written is nil if there is no ConfigMap.
func (p *poster[V]) update(ctx context.Context, written map[object.Name]V, early func(now *V, was V)) (map[object.Name]V, error) {
	now := make(map[object.Name]V, len(written))
	maps.Copy(now, written)
	p.mu.Lock()
	for gateway, v := range p.said {
		if v == nil {
			delete(now, gateway)
			continue
		}
		next := *v
		if was, is := written[gateway]; is && early != nil {
			early(&next, was)
		}
		now[gateway] = next
	}
	maps.DeleteFunc(now, func(gateway object.Name, _ V) bool { return !p.there[gateway] })
	p.mu.Unlock()
	if written != nil && reflect.DeepEqual(now, written) {
		return now, nil
	}
	return now, p.write(ctx, now)
}

// follower takes in a board.
type follower[V any] struct {
	board[V]
	set  kubernetes.Interface
	take func(gateway object.Name, v *V) // nil for nothing more to say
	// known is what has been taken in, earlier too.
	known map[object.Name]V
}

// follow takes in the board until ctx ends. It calls read, unless that is nil, when it has taken in the first one that there is.
func (f *follower[V]) follow(ctx context.Context, read func()) {
	followConfigMap(ctx, f.set, f.name, func(data map[string]string) {
		all, err := object.ParseLines[V](data[boardKey])
		if err != nil {
			f.log.Error("what the controllers of the other role know of Gateways can't be understood; what is known stays",
				"object", "ConfigMap "+f.name.String(), "error", err)
			return
		}
		for gateway := range f.known {
			if _, is := all[gateway]; !is {
				f.take(gateway, nil)
			}
		}
		for gateway, v := range all {
			if was, known := f.known[gateway]; !known || !reflect.DeepEqual(was, v) {
				f.take(gateway, &v)
			}
		}
		f.known = all
		if read != nil {
			read()
			read = nil
		}
	})
}

// followConfigMap calls take with the data of a ConfigMap, and each time it changes, until ctx ends. That it is deleted
// changes nothing.
func followConfigMap(ctx context.Context, set kubernetes.Interface, name object.Name, take func(map[string]string)) {
	seen := func(o any) {
		if configMap, ok := o.(*corev1.ConfigMap); ok {
			take(configMap.Data)
		}
	}
	_, informer := toolscache.NewInformerWithOptions(toolscache.InformerOptions{
		ListerWatcher: toolscache.NewListWatchFromClient(set.CoreV1().RESTClient(), "configmaps", name.Namespace, fields.OneTermEqualSelector("metadata.name", name.Name)),
		ObjectType:    &corev1.ConfigMap{},
		Handler:       toolscache.ResourceEventHandlerFuncs{AddFunc: seen, UpdateFunc: func(_, o any) { seen(o) }},
	})
	informer.RunWithContext(ctx)
}

// followWork follows a board while a replica leads.
type followWork[V any] struct{ *follower[V] }

func (followWork[V]) begin(*flow.Engine)     {}
func (followWork[V]) committed(*flow.Commit) {}
func (followWork[V]) complete()              {}
func (followWork[V]) changed(object.Key)     {}

func (w followWork[V]) run(ctx context.Context) error {
	w.follow(ctx, nil)
	return nil
}
