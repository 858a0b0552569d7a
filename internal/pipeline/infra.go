package pipeline

import (
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// fleetPort is a port of a Gateway's Service.
type fleetPort struct {
	Gateway object.Name
	infra.Port
}

// declareInfra declares the fleets that Gateways are to have, where they are
// provisioned.
func (p *Pipeline) declareInfra() {
	if !p.Options.Topology.Provisioned {
		return
	}
	// Listeners may be many, and change more often than the ports that they share. One
	// that waits for its certificate has its port: addresses take time too.
	ports := flow.Keys("fleet-ports",
		func(k topology.ListenerKey, l *topology.Listener, yield func(fleetPort)) {
			accepted, ok := condition.Find(l.Conditions, string(gwv1.ListenerConditionAccepted))
			if !ok || accepted.Status != metav1.ConditionTrue {
				return
			}
			at := fleetPort{k.Fleet(), infra.Port{Port: l.Port, Target: l.BindPort, UDP: l.Protocol == gwv1.UDPProtocolType}}
			yield(at)
			if l.HTTP3 {
				at.UDP = true
				yield(at)
			}
		}, p.Graph.Listeners, p.Graph.SetListeners)
	byGateway := flow.NewIndex(ports,
		func(k fleetPort, _ struct{}, yield func(object.Name)) { yield(k.Gateway) },
		func(a, b fleetPort) int { return infra.ComparePorts(a.Port, b.Port) })
	refusing := flow.Map("refusing-revisions", p.proxies,
		func(_ *flow.Ctx, gateway object.Name, said *answers, emit func(object.Name, map[string]string)) {
			if len(said.refusing) > 0 {
				emit(gateway, said.refusing)
			}
		}, flow.Equal(maps.Equal[map[string]string, map[string]string]))
	p.Infrastructure = flow.Map("infrastructure", p.Graph.Fleets,
		func(c *flow.Ctx, name object.Name, gw *topology.Gateway, emit func(object.Name, *infra.Gateway)) {
			g := &infra.Gateway{Name: name, UID: gw.Object.UID, Class: gw.Class}
			// A mistake in a Gateway that serves must not cost its address: what is there
			// stays until the mistake is mended.
			var asked infra.Asked
			if p.Options.FleetsAlone {
				asked = p.askedOfFleet(c, gw)
			} else if asked.Frozen = p.fleetIsHeld(c, gw); !asked.Frozen && !p.rendersDatapath(c, gw.Class) {
				for k := range flow.Select(c, byGateway, name).All() {
					asked.Ports = append(asked.Ports, k.Port)
				}
				_, asked.Limits = flow.Get(c, p.SharedLimits, name)
				asked.Refusing, _ = flow.Get(c, refusing, name)
			}
			if asked.Frozen {
				g.Frozen = true
				emit(name, g)
				return
			}
			if g.Ports = asked.Ports; len(g.Ports) == 0 {
				emit(name, g) // it is to have no fleet, which is more than that nothing is known
				return
			}
			if i := gw.Object.Spec.Infrastructure; i != nil {
				g.Labels, g.Annotations = texts(i.Labels), texts(i.Annotations)
			}
			g.Addresses, g.ExternalIPs = gw.Requested()
			g.Internal = isInternal(gw.Object)
			g.Settings = gw.Parameters
			g.Promote = gw.Object.Annotations[infra.PromoteAnnotation]
			g.Limits = asked.Limits
			if g.BlueGreen() {
				g.Refusing = asked.Refusing
			}
			emit(name, g)
		}, flow.Equal(func(a, b *infra.Gateway) bool { return reflect.DeepEqual(a, b) }))
	flow.Watch(p.Infrastructure)
}

// declareFleetServices orders the Services of fleets under their Gateways, and tells the
// topology under which class the newest fleet of a Gateway was made.
func (p *Pipeline) declareFleetServices() {
	p.fleetServices = flow.NewIndex(p.Inputs.Services,
		func(_ object.Name, s *corev1.Service, yield func(object.Name)) {
			if gateway, ok := p.Options.Places.OfFleet(s, p.Options.Topology.ControllerName); ok {
				yield(gateway)
			}
		}, object.Name.Compare)
	p.Inputs.FleetClasses = flow.Map("fleet-classes", p.Inputs.Gateways,
		func(c *flow.Ctx, name object.Name, gw *gwv1.Gateway, emit func(object.Name, string)) {
			var newest *corev1.Service
			for _, s := range flow.Select(c, p.fleetServices, name).All() {
				if infra.GatewayUID(s) != gw.UID || s.DeletionTimestamp != nil {
					continue // of an earlier Gateway of that name, or on its way out
				}
				if newest == nil || newest.CreationTimestamp.Before(&s.CreationTimestamp) {
					newest = s
				}
			}
			if newest != nil {
				emit(name, infra.ClassOf(newest))
			}
		}, flow.Equal(flow.Same[string]))
	flow.Watch(p.Inputs.FleetClasses)
	p.SharedFleets = flow.Group("shared-fleets", p.fleetServices,
		func(_ *flow.Ctx, fleet object.Name, _ flow.Members[object.Name, *corev1.Service]) (string, bool) {
			return fleet.SharedBy()
		},
		flow.Equal(flow.Same[string]))
	flow.Watch(p.SharedFleets)
}

// fleetIsHeld reports whether a Gateway's fleet is to stay as it is, whatever else the
// Gateway says: the Gateway is not accepted, for its class or its parameters among other
// causes, or its class isn't, or it is on its way out and takes the fleet along.
func (p *Pipeline) fleetIsHeld(c *flow.Ctx, gw *topology.Gateway) bool {
	if gw.Object.DeletionTimestamp != nil || gw.Accepted.Status != metav1.ConditionTrue {
		return true
	}
	class, ok := flow.Get(c, p.Graph.Classes, gw.Class)
	return ok && class.Accepted.Status != metav1.ConditionTrue
}

// askedOfFleet returns what the configuration asks of a Gateway's fleet, where somebody else makes it. As long as that is not known,
// the fleet stays as it is.
func (p *Pipeline) askedOfFleet(c *flow.Ctx, gw *topology.Gateway) infra.Asked {
	asked, known := flow.Get(c, p.asked, gw.Name)
	// Listeners are not for who reads none of what they refer to.
	refused := gw.Accepted.Status != metav1.ConditionTrue && gw.Accepted.Reason != string(gwv1.GatewayReasonListenersNotValid)
	asked.Frozen = asked.Frozen || !known || refused || gw.Object.DeletionTimestamp != nil
	return asked
}

// isInternal reports whether all that a Gateway asks for is to be reached from within
// the cluster, so that it must not be from outside (GEP-5093).
func isInternal(gw *gwv1.Gateway) bool {
	return len(gw.Spec.Addresses) > 0 && !slices.ContainsFunc(gw.Spec.Addresses, func(a gwv1.GatewaySpecAddress) bool {
		return a.Routability != gwv1.GatewayAddressRoutabilityCluster
	})
}

// texts turns a map of the API's types of strings into one of strings.
func texts[K, V ~string](m map[K]V) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[string(k)] = string(v)
	}
	return out
}

// SetAsked takes in what the configuration asks of a Gateway's fleet, where somebody else makes it; nil for nothing known.
func (p *Pipeline) SetAsked(tx *flow.Tx, gateway object.Name, asked *infra.Asked) {
	if asked == nil {
		p.asked.Delete(tx, gateway)
		return
	}
	p.asked.Set(tx, gateway, *asked)
}

// SetFleet takes in what is to be said of a Gateway's fleet; nil for none.
func (p *Pipeline) SetFleet(tx *flow.Tx, gateway object.Name, s *infra.State) {
	if s == nil || *s == (infra.State{}) {
		p.fleetStates.Delete(tx, gateway)
		return
	}
	p.fleetStates.Set(tx, gateway, *s)
}
