package pipeline

import (
	"maps"
	"reflect"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	poolsv1 "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy/auth"
	"github.com/gatehouse-dev/gatehouse/internal/policy/limits"
	"github.com/gatehouse-dev/gatehouse/internal/policy/traffic"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/status"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// A table whose function fails, by a defect of ours, may lack a guard, or have the one before. Nobody
// knows what it would have said, so that of a Gateway that may depend on it nothing new is sent until it
// succeeds: proxies go on with what they have, and those that have nothing serve nothing. This is
// independent of which table it is, since what guards may hang on any: a route without its rules
// opens what stands behind it.

// Withheld returns whether what the proxies of a Gateway are told may depend on what stands failed; nil where nothing
// does. What can't be said to be of some Gateways is of all.
func (p *Pipeline) Withheld() func(gateway object.Name) bool { return p.failing(p.afterResources) }

// Unsettled is Withheld of what is made for a Gateway elsewhere too: of its fleet, and of what is kept.
func (p *Pipeline) Unsettled() func(gateway object.Name) bool {
	return p.failing(p.afterInfrastructure)
}

// Settled reports whether everything could be computed, statuses too.
func (p *Pipeline) Settled() bool { return len(p.Engine.Failing(p.Engine.Declared())) == 0 }

// failures are those of the tables before some places, after a transaction. Any goroutine may ask.
type failures struct {
	mu      sync.Mutex
	version uint64
	of      map[flow.Mark]func(gateway object.Name) bool
}

// failing returns which Gateways may depend on a failure of the tables before a place. That takes a look at all objects,
// once after each transaction as long as something fails.
func (p *Pipeline) failing(before flow.Mark) func(gateway object.Name) bool {
	failing := p.Engine.Failing(before)
	if len(failing) == 0 {
		return nil
	}
	known := &p.failures
	known.mu.Lock()
	defer known.mu.Unlock()
	if now := p.Engine.Version(); known.version != now {
		known.version, known.of = now, map[flow.Mark]func(object.Name) bool{}
	}
	if known.of[before] == nil {
		known.of[before] = p.dependents(failing)
	}
	return known.of[before]
}

// dependents returns the Gateways that may depend on failures.
func (p *Pipeline) dependents(failing []flow.Failure) func(gateway object.Name) bool {
	if len(p.Engine.Failing(p.Graph.PortsDecided)) > 0 {
		return func(object.Name) bool { return true } // whoever fails may have lost a port to another Gateway
	}
	var s suspects
	p.Engine.View(func(c *flow.Ctx) { s = p.suspects(c, failing) })
	return s.has
}

// TakeWithheld takes in, for statuses to say so, of which Gateways the proxies are told nothing new, and
// whether something waits. Before is what the last call took in.
func (p *Pipeline) TakeWithheld(tx *flow.Tx, before, now map[object.Name]bool) {
	for gateway := range before {
		if _, is := now[gateway]; !is {
			p.withheld.Delete(tx, gateway)
		}
	}
	for gateway, waits := range now {
		is := status.WithheldNext
		if waits {
			is = status.WithheldNewest
		}
		p.withheld.Set(tx, gateway, is)
	}
}

// suspects is what failures may be about.
type suspects struct {
	all        bool
	gateways   map[object.Name]bool
	sets       map[object.Name]bool
	routes     map[object.Key]bool
	namespaces map[string]bool // with all objects that are there
	referred   map[string]bool // with all objects that may refer to what is there
}

func (s *suspects) has(gateway object.Name) bool { return s.all || s.gateways[gateway] }

// suspects returns what failures may be about, down to the Gateways.
func (p *Pipeline) suspects(c *flow.Ctx, failing []flow.Failure) suspects {
	s := suspects{
		gateways: map[object.Name]bool{}, sets: map[object.Name]bool{}, routes: map[object.Key]bool{},
		namespaces: map[string]bool{}, referred: map[string]bool{},
	}
	for _, f := range failing {
		s.all = !p.suspect(c, &s, f) || s.all
	}
	p.follow(c, &s)
	p.followFleets(c, &s)
	return s
}

// followFleets notes the shared fleets that may serve the Gateways that are noted: those of the classes that
// they name, and any where a Gateway is gone, or goes on with a class that it had. The tables are not asked, which may be
// what fails; nor is a fleet of before a restart in them then, of which its Service tells.
func (p *Pipeline) followFleets(c *flow.Ctx, s *suspects) {
	shared := map[object.Name]string{}
	for fleet, gw := range flow.All(c, p.Graph.Fleets) {
		if gw.SharesFleet() {
			shared[fleet] = gw.Class
		}
	}
	if p.SharedFleets != nil {
		maps.Insert(shared, flow.All(c, p.SharedFleets))
	}
	for fleet, class := range shared {
		for name := range s.gateways {
			if p.mayBeOf(c, name, class) {
				s.gateways[fleet] = true
				break
			}
		}
	}
}

// mayBeOf reports whether a Gateway may be served as one of a class.
func (p *Pipeline) mayBeOf(c *flow.Ctx, gateway object.Name, class string) bool {
	o, ok := flow.Get(c, p.Inputs.Gateways, gateway)
	if !ok || string(o.Spec.GatewayClassName) == class {
		return true
	}
	_, exists := flow.Get(c, p.Inputs.Classes, string(o.Spec.GatewayClassName))
	return !exists
}

// suspect notes what a failure may be about; false for everything.
func (p *Pipeline) suspect(c *flow.Ctx, s *suspects, f flow.Failure) bool {
	if gateway, ok := gatewayOf(f.Key); ok {
		s.gateways[gateway] = true
		return true
	}
	switch k := f.Key.(type) {
	case ir.BackendKey:
		return s.refer(k.Backend().Object.Namespace)
	case object.Key:
		if k.Kind == kind.Service || k.Kind == kind.Secret || k.Kind == kind.ConfigMap {
			return s.refer(k.Namespace)
		}
		_, isRoute := flow.Get(c, p.Inputs.Routes, k)
		s.routes[k] = isRoute
		return isRoute
	case object.Name:
		if flow.FailedIn(p.Graph.Certificates, f) {
			return s.refer(k.Namespace)
		}
	}
	// The key does not say it, but the object does.
	switch v := f.Value.(type) {
	case *gwv1.Gateway:
		s.gateways[object.Name{Namespace: v.Namespace, Name: v.Name}] = true
	case *topology.Gateway:
		s.gateways[v.Name] = true
	case *gwv1.ListenerSet:
		s.sets[object.Name{Namespace: v.Namespace, Name: v.Name}] = true
	case *v1alpha1.AuthPolicy:
		s.namespaces[v.Namespace] = true // its targets are there
	case *v1alpha1.RateLimitPolicy:
		s.namespaces[v.Namespace] = true
	case *v1alpha1.TrafficPolicy:
		s.namespaces[v.Namespace] = true
	case *auth.Policy:
		s.namespaces[v.Name.Namespace] = true
	case *limits.Policy:
		s.namespaces[v.Name.Namespace] = true
	case *traffic.Policy:
		s.namespaces[v.Name.Namespace] = true
	case *gwv1.ReferenceGrant:
		s.permit(v)
	case *topology.BackendTLSPolicy:
		return s.refer(v.Object.Namespace)
	case *topology.BackendTrafficPolicy:
		return s.refer(v.Object.Namespace)
	case *gwv1.BackendTLSPolicy, *gwxv1alpha1.XBackendTrafficPolicy, *gwxv1alpha1.XBackend, *v1alpha1.RouteFilter, *discoveryv1.EndpointSlice,
		*poolsv1.InferencePool, *corev1.Pod:
		return s.refer(v.(source.Object).GetNamespace())
	default:
		return false
	}
	return true
}

// gatewayOf returns the Gateway or the fleet that a key names: keys of listeners, tables and hosts have a method for it, those of
// what is made for Gateways a field.
func gatewayOf(key any) (gateway object.Name, ok bool) {
	if k, is := key.(interface{ Fleet() object.Name }); is {
		return k.Fleet(), true
	}
	if k, is := key.(interface{ Gateway() object.Name }); is {
		return k.Gateway(), true
	}
	if v := reflect.ValueOf(key); v.Kind() == reflect.Struct {
		if field := v.FieldByName("Gateway"); field.IsValid() {
			gateway, ok = reflect.TypeAssert[object.Name](field)
		}
	}
	return gateway, ok
}

// refer notes what others refer to, such as a Service or a Secret, or policies of Services.
func (s *suspects) refer(namespace string) bool {
	s.referred[namespace] = true
	return namespace != ""
}

// permit notes the objects that a ReferenceGrant names.
func (s *suspects) permit(grant *gwv1.ReferenceGrant) {
	for _, from := range grant.Spec.From {
		s.namespaces[string(from.Namespace)] = true
	}
}

// follow notes the Gateways that what is noted belongs to, in one pass over the objects: those that ListenerSets and
// routes name, and those that they are attached to still, of which a part may be from before, and a part not.
func (p *Pipeline) follow(c *flow.Ctx, s *suspects) {
	for namespace := range s.referred {
		s.namespaces[namespace] = true
	}
	if len(s.referred) > 0 {
		for name, grant := range flow.All(c, p.Inputs.Grants) {
			if s.referred[name.Namespace] {
				s.permit(grant)
			}
		}
	}
	if s.all || len(s.namespaces)+len(s.sets)+len(s.routes) == 0 {
		return
	}
	byDefault := false // a route says of no Gateway that it is meant
	for k, o := range flow.All(c, p.Inputs.Routes) {
		if s.routes[k] || s.namespaces[k.Namespace] {
			p.followRoute(c, s, k, o)
			_, is := topology.DefaultScope(topology.UseDefaultGateways(o))
			byDefault = byDefault || is
		}
	}
	for at := range flow.All(c, p.Graph.Attachments) {
		if s.routes[at.Route] || s.namespaces[at.Route.Namespace] {
			s.gateways[at.Fleet()] = true
		}
	}
	for name, set := range flow.All(c, p.Inputs.ListenerSets) {
		if s.sets[name] || s.namespaces[name.Namespace] {
			s.gateways[topology.ParentOfSet(set)] = true
		}
	}
	for at := range flow.All(c, p.Graph.SetListeners) {
		if set := at.Set(); s.sets[set] || s.namespaces[set.Namespace] {
			s.gateways[at.Fleet()] = true
		}
	}
	for name, gateway := range flow.All(c, p.Inputs.Gateways) {
		if _, is := topology.DefaultScope(gateway.Spec.DefaultScope); is && byDefault || s.namespaces[name.Namespace] {
			s.gateways[name] = true
		}
	}
}

func (p *Pipeline) followRoute(c *flow.Ctx, s *suspects, k object.Key, o topology.RouteObject) {
	refs := topology.ParentRefs(o)
	for i := range refs {
		switch of, name := topology.ParentOf(k.Name, &refs[i]); object.KindOf(gwv1.GroupName, string(of)) {
		case kind.Gateway:
			s.gateways[name] = true
		case kind.ListenerSet:
			if set, ok := flow.Get(c, p.Inputs.ListenerSets, name); ok {
				s.gateways[topology.ParentOfSet(set)] = true
			}
		}
	}
}
