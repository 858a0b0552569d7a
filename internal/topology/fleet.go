package topology

import (
	"cmp"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// declareSharing names the shared fleets of Gateways that are on one, apart from all else that parameters say.
func (g *Graph) declareSharing() flow.Table[object.Name, object.Name] {
	return flow.Map("topology-sharing", g.parameters,
		func(_ *flow.Ctx, gateway object.Name, p *gatewayParameters, emit func(object.Name, object.Name)) {
			if !p.fleet.IsZero() {
				emit(gateway, p.fleet)
			}
		}, flow.Equal(flow.Same[object.Name]))
}

// FleetOf names the fleet that serves a Gateway.
func (g *Graph) FleetOf(c *flow.Ctx, gateway object.Name) object.Name {
	if fleet, shares := flow.Get(c, g.sharing, gateway); shares {
		return fleet
	}
	return gateway
}

// SharesFleet reports whether a node stands for a fleet that Gateways share, or for one of these.
func (g *Gateway) SharesFleet() bool { return isShared(g.Fleet) }

// OnSharedFleet returns the fleet that a Gateway shares with others, and the class whose fleet that is; zero for
// a Gateway with a fleet to itself.
func (g *Gateway) OnSharedFleet() (fleet object.Name, class string) {
	if class, shared := g.Fleet.SharedBy(); shared {
		return g.Fleet, class
	}
	return object.Name{}, ""
}

func isShared(fleet object.Name) bool {
	_, shared := fleet.SharedBy()
	return shared
}

// declareFleets declares the fleets by what is said to their proxies as a whole: a fleet of one
// Gateway is that Gateway, and of a shared one its class says all.
func (g *Graph) declareFleets() flow.Table[object.Name, *Gateway] {
	byFleet := flow.NewIndex(g.Gateways, func(_ object.Name, gw *Gateway, yield func(object.Name)) { yield(gw.Fleet) }, object.Name.Compare)
	return flow.Group("topology-fleets", byFleet,
		func(_ *flow.Ctx, fleet object.Name, members flow.Members[object.Name, *Gateway]) (*Gateway, bool) {
			name, speaks := members.At(0)
			if name == fleet {
				return speaks, true
			}
			// One that isn't accepted may have other parameters than its class's of today.
			for _, gw := range members.All() {
				if condition.Good(gw.Accepted) {
					speaks = gw
					break
				}
				if gw.Served() && !speaks.Served() {
					speaks = gw
				}
			}
			return &Gateway{
				Name: fleet, Fleet: fleet, Class: speaks.Class, Parameters: speaks.Parameters, Allow: speaks.Allow,
				Accepted: speaks.Accepted, Frozen: speaks.Frozen, Provisioned: speaks.Provisioned,
				Object: &gwv1.Gateway{
					ObjectMeta: metav1.ObjectMeta{Namespace: fleet.Namespace, Name: fleet.Name},
					Spec:       gwv1.GatewaySpec{GatewayClassName: gwv1.ObjectName(speaks.Class)},
				},
			}, true
		}, flow.Equal(func(a, b *Gateway) bool {
			return a == b || a.SharesFleet() && b.SharesFleet() && a.Accepted == b.Accepted && a.Frozen == b.Frozen && a.Class == b.Class &&
				reflect.DeepEqual(a.Parameters, b.Parameters) && reflect.DeepEqual(a.Allow, b.Allow)
		}))
}

// drafts drafts a Gateway's listeners as those of the fleet that serves them. On a shared one, its
// namespace is bound by the class's rules as those of ListenerSets are.
func (g *Graph) drafts(c *flow.Ctx, gw *gwv1.Gateway, fleet object.Name, e edge) []*draft {
	drafts := draftListeners(gw, g.options, e)
	gateway := name(gw.Namespace, gw.Name)
	if fleet == gateway {
		return drafts
	}
	rules, _ := flow.Get(c, g.hostnameRules, gateway)
	may := g.hostnamesFor(c, rules, fleet, gw.Namespace)
	over, isOver := flow.Get(c, g.membersOverQuota, gateway)
	for _, d := range drafts {
		d.Key = d.Key.on(fleet)
		d.bar(may)
		switch {
		case isOver:
			d.Barred = true
			d.refuse(over)
		case may.limited && d.family != unserved && !d.family.named(): // it would take the port from all hostnames
			d.Barred = true
			d.refuse(condition.ListenerHostnameNotAllowed("", gw.Namespace, gateway.String(), may.hostnames))
		}
	}
	return drafts
}

// resolveFleetConflicts marks the listeners of a Gateway that are in conflict with those of an
// older Gateway of its fleet.
func (g *Graph) resolveFleetConflicts(c *flow.Ctx, fleet object.Name, drafts []*draft) {
	if !isShared(fleet) {
		return
	}
	for _, d := range drafts {
		if d.family == unserved || d.Barred || d.conflicted() {
			continue
		}
		g.resolveConflict(c, d)
		if d.family == encrypted && d.valid() && len(d.overlaps.Listeners) == 0 {
			d.overlaps.Fleet = g.overlapsWith(c, d, false)
		}
	}
}

// ofWholeFleet returns the fields with which a Gateway asks for something that all Gateways of a
// shared fleet would get.
func ofWholeFleet(gw *gwv1.Gateway) (fields []string) {
	for _, f := range [...]struct {
		name  string
		isSet bool
	}{
		{"spec.addresses", len(gw.Spec.Addresses) > 0},
		{"spec.allowedListeners", gw.Spec.AllowedListeners != nil},
		{"spec.infrastructure", gw.Spec.Infrastructure != nil && !reflect.ValueOf(*gw.Spec.Infrastructure).IsZero()},
		{"spec.tls", gw.Spec.TLS != nil},
	} {
		if f.isSet {
			fields = append(fields, f.name)
		}
	}
	return fields
}

// refusesMember says why a Gateway can't be on the fleet that its class's Gateways share; nil
// where it can, or where it has a fleet to itself. It keeps its hosts from the others all the same,
// unless it is one too many: a mistake must not hand them to a wildcard of another Gateway.
func (g *Graph) refusesMember(c *flow.Ctx, fleet object.Name, gw *gwv1.Gateway) *metav1.Condition {
	if !isShared(fleet) {
		return nil
	}
	if over, ok := flow.Get(c, g.membersOverQuota, name(gw.Namespace, gw.Name)); ok {
		return &over
	}
	if fields := ofWholeFleet(gw); len(fields) > 0 {
		return new(condition.GatewayOnSharedFleet(string(gw.Spec.GatewayClassName), fields))
	}
	return nil
}

// comparePlace orders listeners that share ports by the Gateways that have them.
func (p precedence) comparePlace(o precedence) int {
	return cmp.Or(cmp.Compare(p.created, o.created), p.key.Gateway().Compare(o.key.Gateway()), p.key.Set().Compare(o.key.Set()))
}
