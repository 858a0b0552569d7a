package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/parameters"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source/kube"
)

// memory is the ConfigMap that holds what is kept. It is in the namespace of the
// controllers: who may write parameters must not be able to write here, where no
// override of a class counts.
type memory struct {
	client client.Client
	name   object.Name
}

// memoryKey is the key of its data.
const memoryKey = "gateways.json"

func (c *Cluster) memory() memory {
	return memory{c.direct, object.Name{Namespace: c.opts.Self.Namespace, Name: c.config.Infrastructure.Service + "-settings"}}
}

// kindsKey is the key of the kinds of which there were objects.
const kindsKey = "kinds"

// remembered is the content of the ConfigMap.
type remembered struct {
	gateways string
	kinds    string // of which there were objects, sorted, with spaces between them
}

// read returns what is written; that nothing is, is no error.
func (m memory) read(ctx context.Context) (remembered, error) {
	var o corev1.ConfigMap
	err := m.client.Get(ctx, client.ObjectKey{Namespace: m.name.Namespace, Name: m.name.Name}, &o)
	return remembered{o.Data[memoryKey], o.Data[kindsKey]}, client.IgnoreNotFound(err)
}

func (m memory) write(ctx context.Context, r remembered) error {
	o := corev1ac.ConfigMap(m.name.Name, m.name.Namespace).
		WithAnnotations(map[string]string{"kubernetes.io/description": "What Gateways go on with while their GatewayParameters can't be used, and the kinds of which there are objects. " +
			"Written by the controller that leads, read by controllers that start."}).
		WithData(map[string]string{memoryKey: r.gateways, kindsKey: r.kinds})
	return m.client.Apply(ctx, o, client.FieldOwner(infra.ManagedBy), client.ForceOwnership)
}

// remember makes a pipeline that goes on with what earlier controllers have kept.
func (c *Cluster) remember(ctx context.Context, channel string) error {
	options := pipelineOptions(c.config, channel)
	options.Kinds, options.ControllerNamespace = c.kinds, c.opts.Self.Namespace
	options.FleetsAlone = !c.config.Has(configuration.RoleConfiguration)
	c.pipeline = pipeline.New(options)
	kept, err := c.memory().read(ctx)
	switch {
	case apierrors.IsForbidden(err):
		c.log.Error("settings that were kept may not be read: Gateways whose GatewayParameters can't be used go on with those of their class; apply the roles of this version", "error", err)
		return nil
	case err != nil:
		return fmt.Errorf("settings that were kept: %w", err)
	}
	c.expected = strings.Fields(kept.kinds)
	all, err := parameters.Decode(kept.gateways)
	if err != nil {
		c.log.Error("settings that were kept can't be understood: Gateways whose GatewayParameters can't be used go on with those of their class",
			"object", "ConfigMap "+c.memory().name.String(), "error", err)
	}
	c.pipeline.Seed(all)
	return nil
}

// keeper writes what is kept while a replica leads.
type keeper struct {
	gatewayReader[*parameters.Kept]
	memory
	log  *slog.Logger
	from *kube.Source
	news chan struct{} // there is something to write

	mu    sync.Mutex
	kinds map[object.Kind]bool // of which there are objects
	all   map[object.Name]*parameters.Kept
	whole bool // all that is to be kept has been set
}

func newKeeper(m memory, p *pipeline.Pipeline, from *kube.Source, log *slog.Logger) *keeper {
	k := &keeper{memory: m, log: log, from: from, news: make(chan struct{}, 1), all: map[object.Name]*parameters.Kept{}}
	k.gatewayReader = newGatewayReader(p.Unsettled, tableReader[object.Name, *parameters.Kept]{
		p.Kept, k.set, func(name object.Name) { k.set(name, nil) },
	}, func(*parameters.Kept) {})
	return k
}

// changed looks whether an object was the first of its kind, or the last.
func (k *keeper) changed(of object.Key) {
	used := k.from.Uses(of.Kind)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kinds[of.Kind] != used {
		k.signal()
	}
}

// set says what is to be kept of a Gateway; nil for nothing.
func (k *keeper) set(name object.Name, v *parameters.Kept) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if v == nil {
		delete(k.all, name)
	} else {
		k.all[name] = v
	}
	k.signal()
}

func (k *keeper) complete() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.whole = true
	k.signal()
}

// signal has the changes written, once all is known. The caller holds the lock.
func (k *keeper) signal() {
	if k.whole {
		select {
		case k.news <- struct{}{}:
		default:
		}
	}
}

// keepPause is the time between two writes: changes come in crowds.
const keepPause = time.Second

// run writes until ctx ends. What is written already is not written again.
func (k *keeper) run(ctx context.Context) error {
	var written *remembered // nil as long as it is not known
	for {
		select {
		case <-k.news:
		case <-ctx.Done():
			return nil
		}
		pause := keepPause
		now, err := k.update(ctx, written)
		if err == nil {
			written = &now
		} else if ctx.Err() == nil {
			k.log.Error("settings can't be kept: a controller that restarts may not know them; trying again",
				"object", "ConfigMap "+k.name.String(), "error", err, "in", termRetry)
			written, pause = nil, termRetry
			k.mu.Lock()
			k.signal()
			k.mu.Unlock()
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// update writes what is to be kept unless it is written, and returns it.
func (k *keeper) update(ctx context.Context, written *remembered) (remembered, error) {
	used := k.from.Used()
	k.mu.Lock()
	k.kinds = used
	all := maps.Clone(k.all)
	k.mu.Unlock()
	var names []string
	for of := range used {
		names = append(names, of.Name())
	}
	slices.Sort(names)
	now := remembered{kinds: strings.Join(names, " ")}
	var left []object.Name
	var err error
	if now.gateways, left, err = parameters.Encode(all, parameters.MaxKept); err != nil {
		return remembered{}, err
	}
	if written == nil {
		there, err := k.read(ctx)
		if err != nil {
			return remembered{}, err
		}
		written = &there
	}
	if now == *written {
		return now, nil
	}
	if len(left) > 0 {
		k.log.Warn("settings of some Gateways are too many to be kept: should their GatewayParameters be bad when the controller restarts, they go on with those of their class",
			"object", "ConfigMap "+k.name.String(), "gateways", left)
	}
	return now, k.write(ctx, now)
}
