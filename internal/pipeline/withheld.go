package pipeline

import (
	discoveryv1 "k8s.io/api/discovery/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/status"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// A table whose function fails, by a defect of ours, may lack a guard, or have the one before. Nobody
// knows what it would have said, so that of a Gateway that may depend on it nothing new is sent until it
// succeeds: proxies go on with what they have, and those that have nothing serve nothing. This is
// independent of which table it is, since what guards may hang on any: a route without its rules
// opens what stands behind it.

// Withheld returns whether a Gateway may depend on what stands failed; nil where nothing does. What
// can't be said to be of some Gateways is of all.
func (p *Pipeline) Withheld() func(gateway object.Name) bool {
	failing := p.Engine.Failing(p.sent)
	if len(failing) == 0 {
		return nil
	}
	of, all := map[object.Name]bool{}, false
	p.Engine.View(func(c *flow.Ctx) {
		for _, f := range failing {
			all = !p.dependents(c, f, func(gateway object.Name) { of[gateway] = true }) || all
		}
	})
	return func(gateway object.Name) bool { return all || of[gateway] }
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

// dependents yields the Gateways that may depend on a failure; false for all.
func (p *Pipeline) dependents(c *flow.Ctx, f flow.Failure, yield func(object.Name)) bool {
	switch k := f.Key.(type) {
	case interface{ Gateway() object.Name }: // of listeners, tables and hosts
		yield(k.Gateway())
	case topology.AttachmentKey:
		yield(k.Listener.Gateway())
	case bundleKey:
		yield(k.table.Gateway())
	case piece:
		yield(k.table.Gateway())
	case PortKey:
		yield(k.Gateway)
	case ResourceKey:
		yield(k.Gateway)
	case ListenerAddress:
		yield(k.Gateway)
	case BackendKey:
		yield(k.Gateway)
	case LimitSlot:
		yield(k.Gateway)
	case SecretKey:
		yield(k.Gateway)
	case ir.BackendKey:
		return p.gatewaysReferringTo(c, k.Backend().Object.Namespace, yield)
	case object.Key:
		switch k.Kind {
		case kind.Service, kind.Secret, kind.ConfigMap:
			return p.gatewaysReferringTo(c, k.Namespace, yield)
		}
		if _, ok := flow.Get(c, p.Inputs.Routes, k); !ok {
			return false
		}
		return p.gatewaysOfRoutes(c, func(route object.Key) bool { return route == k }, yield)
	case object.Name:
		if flow.FailedIn(p.Graph.Certificates, f) {
			return p.gatewaysReferringTo(c, k.Namespace, yield)
		}
		return p.dependentsOfValue(c, f, yield)
	default:
		return p.dependentsOfValue(c, f, yield)
	}
	return true
}

// dependentsOfValue yields them where the key does not say it, but the object does.
func (p *Pipeline) dependentsOfValue(c *flow.Ctx, f flow.Failure, yield func(object.Name)) bool {
	switch v := f.Value.(type) {
	case *gwv1.Gateway:
		yield(object.Name{Namespace: v.Namespace, Name: v.Name})
	case *topology.Gateway:
		yield(v.Name)
	case *gwv1.ListenerSet:
		p.gatewaysOfSets(c, func(set object.Name) bool { return set == object.Name{Namespace: v.Namespace, Name: v.Name} }, yield)
	case *v1alpha1.AuthPolicy:
		return p.gatewaysOfNamespace(c, v.Namespace, yield)
	case *v1alpha1.RateLimitPolicy:
		return p.gatewaysOfNamespace(c, v.Namespace, yield)
	case *topology.AuthPolicy:
		return p.gatewaysOfNamespace(c, v.Name.Namespace, yield)
	case *topology.RateLimitPolicy:
		return p.gatewaysOfNamespace(c, v.Name.Namespace, yield)
	case *gwv1.ReferenceGrant:
		return p.gatewaysOfGrant(c, v, yield)
	case *topology.BackendTLSPolicy:
		return p.gatewaysReferringTo(c, v.Object.Namespace, yield)
	case *topology.TrafficPolicy:
		return p.gatewaysReferringTo(c, v.Object.Namespace, yield)
	case *gwv1.BackendTLSPolicy, *gwxv1alpha1.XBackendTrafficPolicy, *gwxv1alpha1.XBackend, *discoveryv1.EndpointSlice:
		return p.gatewaysReferringTo(c, v.(source.Object).GetNamespace(), yield)
	default:
		return false
	}
	return true
}

// gatewaysReferringTo yields the Gateways that may depend on what others refer to, such as a Service or a Secret,
// and on policies of Services: those that may depend on the objects that may refer to what is in its namespace.
func (p *Pipeline) gatewaysReferringTo(c *flow.Ctx, namespace string, yield func(object.Name)) bool {
	certain := namespace != "" && p.gatewaysOfNamespace(c, namespace, yield)
	for name, grant := range flow.All(c, p.Inputs.Grants) {
		if name.Namespace == namespace {
			certain = p.gatewaysOfGrant(c, grant, yield) && certain
		}
	}
	return certain
}

// gatewaysOfGrant yields those that may depend on the objects that a ReferenceGrant names.
func (p *Pipeline) gatewaysOfGrant(c *flow.Ctx, grant *gwv1.ReferenceGrant, yield func(object.Name)) bool {
	certain := true
	for _, from := range grant.Spec.From {
		certain = p.gatewaysOfNamespace(c, string(from.Namespace), yield) && certain
	}
	return certain
}

// gatewaysOfNamespace yields the Gateways that may depend on the objects of a namespace: a policy's targets are in
// its own. They are those that are there, and those that ListenerSets and routes from there belong to.
func (p *Pipeline) gatewaysOfNamespace(c *flow.Ctx, namespace string, yield func(object.Name)) bool {
	for gateway := range flow.All(c, p.Inputs.Gateways) {
		if gateway.Namespace == namespace {
			yield(gateway)
		}
	}
	p.gatewaysOfSets(c, func(set object.Name) bool { return set.Namespace == namespace }, yield)
	return p.gatewaysOfRoutes(c, func(route object.Key) bool { return route.Namespace == namespace }, yield)
}

// gatewaysOfSets yields the Gateways that ListenerSets name, and those that have listeners of them still.
func (p *Pipeline) gatewaysOfSets(c *flow.Ctx, which func(object.Name) bool, yield func(object.Name)) {
	for name, set := range flow.All(c, p.Inputs.ListenerSets) {
		if which(name) {
			yield(topology.ParentOfSet(set))
		}
	}
	for at := range flow.All(c, p.Graph.SetListeners) {
		if which(at.Set()) {
			yield(at.Gateway())
		}
	}
}

// gatewaysOfRoutes yields the Gateways that routes name, and those that they are attached to still: of
// these too a part may be from before, and a part not. It returns false where others say which
// Gateways are meant.
func (p *Pipeline) gatewaysOfRoutes(c *flow.Ctx, which func(object.Key) bool, yield func(object.Name)) bool {
	for k, o := range flow.All(c, p.Inputs.Routes) {
		if !which(k) {
			continue
		}
		if topology.UseDefaultGateways(o) != "" {
			return false
		}
		p.parentsOfRoute(c, k, o, yield)
	}
	for at := range flow.All(c, p.Graph.Attachments) {
		if which(at.Route) {
			yield(at.Listener.Gateway())
		}
	}
	return true
}

func (p *Pipeline) parentsOfRoute(c *flow.Ctx, k object.Key, o topology.RouteObject, yield func(object.Name)) {
	refs := topology.ParentRefs(o)
	for i := range refs {
		switch of, name := topology.ParentOf(k.Name, &refs[i]); object.KindOf(gwv1.GroupName, string(of)) {
		case kind.Gateway:
			yield(name)
		case kind.ListenerSet:
			if set, ok := flow.Get(c, p.Inputs.ListenerSets, name); ok {
				yield(topology.ParentOfSet(set))
			}
		}
	}
}
