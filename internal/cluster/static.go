package cluster

import (
	"cmp"
	"context"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/features"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/local"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/proxy"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/kube"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// Static makes a Cluster serve one Gateway with an Envoy of its own: `gatehouse
// static-mode`. Other processes, with the same controllerName, may serve others.
type Static struct {
	// Class is the GatewayClass that counts.
	Class string
	// Gateway is the one that is served; zero for the oldest of the class.
	Gateway object.Name
	// ClassStatus says whether the status of the class is this process's to write.
	ClassStatus bool
	// Address is where listeners are: the pod's.
	Address netip.Addr
	// Envoy is run with these, see proxy.Config.
	Envoy        proxy.Binary
	Concurrency  int
	StateDir     string
	DrainTimeout time.Duration
	Output       func(gateway object.Name, line proxy.Line)
}

// composeStatic makes a Cluster serve one Gateway with a local Envoy.
func (c *Cluster) composeStatic(o Static, channel string) {
	options := pipeline.Local(c.config.ControllerName, proxy.Authorities(), []string{o.Address.String()}, &v1alpha1.Settings{})
	options.Topology.LocalAddresses = local.Addresses()
	options.Mode = features.Pod
	options.Topology.Experimental = channel == kube.Experimental
	options.Kinds = c.kinds
	if of := ingressOptions(c.config); of != nil {
		options.ConfigMaps = of.ConfigMaps
	}
	c.pipeline = pipeline.New(options)
	one := newOneGateway(o, c)
	c.selection = one
	c.proxies = &localProxies{
		Fleet: local.New(local.Options{
			Pipeline: c.pipeline, Server: c.server, StateDir: o.StateDir, Envoy: o.Envoy, Concurrency: o.Concurrency,
			DrainTimeout: o.DrainTimeout, Log: c.opts.Logs.For(configuration.LogProxy), Output: o.Output,
		}),
		cluster: c, served: one,
	}
}

// localProxies is where the proxies of `gatehouse static-mode` run: in this pod.
type localProxies struct {
	*local.Fleet
	cluster    *Cluster
	served     *oneGateway
	configured atomic.Bool // the proxy has its first configuration, or there is none
	withheld   atomic.Bool // what may be a part of that can't be computed
}

// Published notes for readiness whether every Gateway's proxy has been heard. Before all
// is known, there may be a Gateway that is not; so may there be while something can't be computed.
func (p *localProxies) Published() {
	if p.configured.Load() {
		return
	}
	c := p.cluster
	withheld := c.pipeline.Withheld()
	p.withheld.Store(withheld != nil && withheld(p.served.chosen))
	ready := c.serves && !p.withheld.Load()
	c.pipeline.Engine.View(func(ctx *flow.Ctx) {
		for gateway := range flow.All(ctx, c.pipeline.Fleets) {
			ready = ready && c.loop.States.Heard(gateway)
		}
	})
	if ready {
		p.configured.Store(true)
	}
}

func (p *localProxies) services() map[string]func(context.Context) error { return nil }

// work is nothing: statuses are all that is written.
func (p *localProxies) work(prometheus.Registerer) ([]work, error) { return nil, nil }

func (p *localProxies) ready() (bool, string) {
	switch {
	case p.configured.Load():
		return true, "" // the proxy goes on with what it has, whatever comes
	case p.withheld.Load():
		return false, "the proxy has no configuration: " + condition.NoteWithheld()
	default:
		return false, "the proxy has no configuration yet"
	}
}

func (p *localProxies) heard(object.Name, xds.State) {}

// ended deletes the Lease: each Gateway has one, and nobody else would, when the Gateway
// is gone.
func (p *localProxies) ended(ctx context.Context) { p.cluster.removeLease(ctx) }

// stop ends the Envoys; what they say at last is heard by nobody.
func (p *localProxies) stop() { p.StopAll() }

// oneGateway is the selection of a process that serves one Gateway of one class. All of
// it is the loop's.
type oneGateway struct {
	Static
	controllerName string
	live           func(object.Key) client.Object
	// all are the Gateways of the class, if the oldest is to be found.
	all    map[object.Name]*gwv1.Gateway
	chosen object.Name
	// others are further classes of the controllerName, if their status is ours to write.
	others map[string]*gwv1.GatewayClass
	// losers are the Gateways and classes whose status says that another one is served.
	losers map[object.Key]any
}

func newOneGateway(o Static, c *Cluster) *oneGateway {
	return &oneGateway{
		Static: o, controllerName: c.config.ControllerName, chosen: o.Gateway,
		live: func(k object.Key) client.Object { return c.source.Live(k) },
		all:  map[object.Name]*gwv1.Gateway{}, others: map[string]*gwv1.GatewayClass{},
	}
}

// take leaves of a batch what concerns the Gateway: other Gateways and classes are
// other processes' business, and their routes look like those of nobody here.
func (s *oneGateway) take(b source.Batch) source.Batch {
	elects := s.Gateway == object.Name{}
	var touched []object.Name // Gateways of the batch, if one is to be chosen
	kept := b.Set[:0:0]
	for _, o := range b.Set {
		switch o := o.(type) {
		case *gwv1.GatewayClass:
			if o.Name != s.Class {
				s.passOver(o)
				continue
			}
		case *gwv1.Gateway:
			name := object.Name{Namespace: o.Namespace, Name: o.Name}
			if elects {
				touched = append(touched, name)
				if string(o.Spec.GatewayClassName) == s.Class {
					s.all[name] = o
				} else {
					delete(s.all, name)
				}
				continue
			}
			if name != s.Gateway {
				continue
			}
		}
		kept = append(kept, o)
	}
	b.Set = kept
	for _, k := range b.Deleted {
		switch {
		case k.Kind == kind.GatewayClass:
			delete(s.others, k.Name.Name)
		case elects && k.Kind == kind.Gateway:
			delete(s.all, k.Name)
			touched = append(touched, k.Name)
		}
	}
	if len(touched) > 0 {
		s.choose(&b, touched)
	}
	return b
}

// passOver notes a class that is not served.
func (s *oneGateway) passOver(class *gwv1.GatewayClass) {
	if s.ClassStatus && string(class.Spec.ControllerName) == s.controllerName {
		s.others[class.Name] = class
	} else {
		delete(s.others, class.Name)
	}
}

// choose makes the oldest Gateway of the class the one that is served.
func (s *oneGateway) choose(b *source.Batch, touched []object.Name) {
	oldest := object.Name{}
	for name, o := range s.all {
		if oldest == (object.Name{}) || older(o, s.all[oldest]) < 0 {
			oldest = name
		}
	}
	if s.chosen != oldest {
		if s.chosen != (object.Name{}) && !slices.Contains(b.Deleted, gatewayKey(s.chosen)) {
			b.Deleted = append(b.Deleted, gatewayKey(s.chosen))
		}
		s.chosen = oldest
		touched = append(touched, oldest)
	}
	if o := s.all[oldest]; o != nil && slices.Contains(touched, oldest) {
		b.Set = append(b.Set, o)
	}
}

// older compares Gateways by age, then by name.
func older(a, b *gwv1.Gateway) int {
	return cmp.Or(
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name),
	)
}

func gatewayKey(name object.Name) object.Key {
	return object.Key{Kind: kind.Gateway, Name: name}
}

// statuses adds the statuses of those that lose, as far as they change.
func (s *oneGateway) statuses(changed map[object.Key]any) {
	losers := map[object.Key]any{}
	for name, o := range s.all {
		if name != s.chosen {
			losers[gatewayKey(name)] = &gwv1.GatewayStatus{Conditions: lost(o, condition.GatewayConflict(condition.Reader{Namespace: name.Namespace}.Name(s.chosen.Namespace, s.chosen.Name)))}
		}
	}
	for name, o := range s.others {
		key := object.Key{Kind: kind.GatewayClass, Name: object.Name{Name: name}}
		losers[key] = &gwv1.GatewayClassStatus{Conditions: lost(o, condition.ClassConflict())}
	}
	for k, status := range losers {
		if !reflect.DeepEqual(s.losers[k], status) {
			changed[k] = status
		}
	}
	for k := range s.losers {
		if losers[k] == nil && k != gatewayKey(s.chosen) {
			changed[k] = nil
		}
	}
	s.losers = losers
}

// lost is all that is said of an object that loses.
func lost(o client.Object, c metav1.Condition) []metav1.Condition {
	c.ObservedGeneration = o.GetGeneration()
	return []metav1.Condition{c}
}

func (s *oneGateway) passed(yield func(object.Key, any)) {
	for k, status := range s.losers {
		yield(k, status)
	}
}

// writes leaves the status of the class to the provisioner, where there is one.
func (s *oneGateway) writes(k object.Key) bool { return k.Kind != kind.GatewayClass || s.ClassStatus }

// owns says whether an entry of a status is this process's: others with its name may
// write into the statuses of routes.
func (s *oneGateway) owns() func(client.Object, *gwv1.ParentReference) bool {
	return func(o client.Object, ref *gwv1.ParentReference) bool {
		name := object.Name{Namespace: o.GetNamespace(), Name: string(ref.Name)}
		if ref.Namespace != nil {
			name.Namespace = string(*ref.Namespace)
		}
		if ref.Kind != nil && string(*ref.Kind) == kind.ListenerSet.Name() {
			set, ok := s.live(object.Key{Kind: kind.ListenerSet, Name: name}).(*gwv1.ListenerSet)
			if !ok {
				return false
			}
			name = topology.ParentOfSet(set)
		}
		if s.Gateway != (object.Name{}) {
			return name == s.Gateway
		}
		gateway, ok := s.live(gatewayKey(name)).(*gwv1.Gateway)
		return !ok || string(gateway.Spec.GatewayClassName) == s.Class
	}
}
