package control

import (
	"cmp"
	"context"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/features"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/proxy"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
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
	Output       func(gateway string, line proxy.Line)
}

// static is the state of a Cluster that serves one Gateway. All of it is the loop's.
type static struct {
	Static
	controllerName string
	// all are the Gateways of the class, if the oldest is to be found.
	all    map[object.Name]*gwv1.Gateway
	chosen object.Name
	// others are further classes of the controllerName, if their status is ours to write.
	others map[string]*gwv1.GatewayClass
	// losers are the Gateways and classes whose status says that another one is served.
	losers map[object.Key]any
	fleet  *fleet
	stop   context.CancelFunc // the service of xDS, which a draining Envoy needs

	configured atomic.Bool // the proxy has its first configuration, or there is none
}

func newStatic(o Static, controllerName string) *static {
	return &static{
		Static: o, controllerName: controllerName, chosen: o.Gateway,
		all: map[object.Name]*gwv1.Gateway{}, others: map[string]*gwv1.GatewayClass{},
	}
}

// serveStatic prepares the Gateway's Envoy, which outlives the context of Run.
func (c *Cluster) serveStatic(o Static) {
	c.static = newStatic(o, c.config.ControllerName)
	serving, stop := context.WithCancel(context.Background())
	c.static.stop = stop
	c.static.fleet = newFleet(serving, fleetOptions{
		dir: filepath.Join(o.StateDir, "g"), server: c.server, binary: o.Envoy, concurrency: o.Concurrency,
		drain: o.DrainTimeout, log: c.opts.Logs.For("proxy"), output: o.Output,
	})
}

// staticPipeline returns the options of the pipeline behind `gatehouse static-mode`:
// listeners are where the Gateway says, at the pod's address.
func staticPipeline(controllerName string, experimental bool, address netip.Addr) Options {
	return Options{
		Addresses: []string{address.String()}, Mode: features.Pod,
		Topology: topology.Options{
			ControllerName: controllerName, Experimental: experimental, SystemAuthorities: proxy.Authorities(),
			LocalAddresses: localAddresses(), DefaultAddresses: []string{address.String()},
			CheckSettings: checkSettings, Settings: ClientOptions{}.settings(),
		},
	}
}

// run starts and stops Envoys as a commit says, in the loop.
func (s *static) run(p *Pipeline, c *flow.Commit) {
	for _, ch := range flow.Changes(c, p.fleets) {
		switch {
		case ch.Has && !ch.Had:
			s.fleet.start(ch.Key, p.settingsOf(ch.Key))
		case ch.Had && !ch.Has:
			s.fleet.stop(ch.Key)
		}
	}
}

// drain ends the Envoys; what they say at last is heard by nobody.
func (s *static) drain() {
	s.fleet.stopAll()
	s.stop()
}

// note tells whether every Gateway's proxy has been heard, for readiness. Before all
// is known, there may be a Gateway that is not.
func (s *static) note(c *Cluster) {
	ready := c.serves
	c.pipeline.engine.View(func(ctx *flow.Ctx) {
		for gateway := range flow.All(ctx, c.pipeline.fleets) {
			ready = ready && c.states.heard(gateway)
		}
	})
	if ready {
		s.configured.Store(true)
	}
}

// take leaves of a batch what concerns the Gateway: other Gateways and classes are
// other processes' business, and their routes look like those of nobody here.
func (s *static) take(b source.Batch) source.Batch {
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
func (s *static) passOver(class *gwv1.GatewayClass) {
	if s.ClassStatus && string(class.Spec.ControllerName) == s.controllerName {
		s.others[class.Name] = class
	} else {
		delete(s.others, class.Name)
	}
}

// choose makes the oldest Gateway of the class the one that is served.
func (s *static) choose(b *source.Batch, touched []object.Name) {
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

// conflicts adds the statuses of those that lose, as far as they change.
func (s *static) conflicts(statuses map[object.Key]any) {
	losers := map[object.Key]any{}
	for name, o := range s.all {
		if name != s.chosen {
			losers[gatewayKey(name)] = &gwv1.GatewayStatus{Conditions: lost(o, condition.GatewayConflict(s.chosen.String()))}
		}
	}
	for name, o := range s.others {
		key := object.Key{Kind: kind.GatewayClass, Name: object.Name{Name: name}}
		losers[key] = &gwv1.GatewayClassStatus{Conditions: lost(o, condition.ClassConflict())}
	}
	for k, status := range losers {
		if !reflect.DeepEqual(s.losers[k], status) {
			statuses[k] = status
		}
	}
	for k := range s.losers {
		if losers[k] == nil && k != gatewayKey(s.chosen) {
			statuses[k] = nil
		}
	}
	s.losers = losers
}

// lost is all that is said of an object that loses.
func lost(o client.Object, c metav1.Condition) []metav1.Condition {
	c.ObservedGeneration = o.GetGeneration()
	return []metav1.Condition{c}
}

// owns says whether an entry of a status is this process's, by what it refers to.
func (c *Cluster) owns(o client.Object, ref *gwv1.ParentReference) bool {
	name := object.Name{Namespace: o.GetNamespace(), Name: string(ref.Name)}
	if ref.Namespace != nil {
		name.Namespace = string(*ref.Namespace)
	}
	if ref.Kind != nil && *ref.Kind == "ListenerSet" {
		set, ok := c.source.Live(object.Key{Kind: kind.ListenerSet, Name: name}).(*gwv1.ListenerSet)
		if !ok {
			return false
		}
		gateway := set.Spec.ParentRef
		name = object.Name{Namespace: set.Namespace, Name: string(gateway.Name)}
		if gateway.Namespace != nil {
			name.Namespace = string(*gateway.Namespace)
		}
	}
	if one := c.opts.Static.Gateway; one != (object.Name{}) {
		return name == one
	}
	gateway, ok := c.source.Live(gatewayKey(name)).(*gwv1.Gateway)
	return !ok || string(gateway.Spec.GatewayClassName) == c.opts.Static.Class
}
