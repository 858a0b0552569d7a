package topology

import (
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// builtIn yields the Gateway API's own policies and those of Gatehouse, with their targets.
func (g *Graph) builtIn(c *flow.Ctx, yield func(policy, target Node)) {
	policy := func(kind string, name object.Name) Node { return gatewayAPI(kind, name.Namespace, name.Name) }
	for name, p := range flow.All(c, g.inputs.BackendTLSPolicies) {
		for _, t := range Targets(p.Spec.TargetRefs) {
			yield(policy("BackendTLSPolicy", name), t.in(name.Namespace))
		}
	}
	for name, p := range flow.All(c, g.graph.AuthPolicies) {
		for _, t := range p.Targets {
			yield(nodeOf(object.Key{Kind: kind.AuthPolicy, Name: name}, ""), nodeOf(t.Key, t.Section))
		}
	}
	for name, p := range flow.All(c, g.graph.RateLimitPolicies) {
		for _, t := range p.Targets {
			yield(nodeOf(object.Key{Kind: kind.RateLimitPolicy, Name: name}, ""), nodeOf(t.Key, t.Section))
		}
	}
	for name, p := range flow.All(c, g.graph.TrafficPolicies) {
		for _, t := range p.Targets {
			yield(nodeOf(object.Key{Kind: kind.TrafficPolicy, Name: name}, ""), nodeOf(t.Key, t.Section))
		}
	}
	for name, p := range flow.All(c, g.inputs.BackendTrafficPolicies) {
		for _, t := range p.Spec.TargetRefs {
			n := Node{Group: string(t.Group), Kind: string(t.Kind), Namespace: name.Namespace, Name: string(t.Name)}
			yield(Node{Group: "gateway.networking.x-k8s.io", Kind: "XBackendTrafficPolicy", Namespace: name.Namespace, Name: name.Name}, n)
		}
	}
}

// in returns the node of a target that a policy of a namespace has.
func (t Target) in(namespace string) Node {
	return Node{Group: t.Group, Kind: t.Kind, Namespace: namespace, Name: t.Name, Section: t.Section}
}
