package topology

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/policy/auth"
	"github.com/gatehouse-dev/gatehouse/internal/spelling"
)

// targetKind is what there is to know of a kind of objects that policies target.
type targetKind struct {
	// sections returns the names of an object's sections, of those that have one; false
	// where there is no such object.
	sections func(*Graph, *flow.Ctx, object.Key) ([]string, bool)
	// gateways yields the Gateways of ours that an object is a part of, or whose routes
	// refer to it; some of them several times.
	gateways func(*Graph, *flow.Ctx, object.Key, func(object.Name))
}

// targetKinds are the kinds of objects that policies may target.
var targetKinds = map[object.Kind]targetKind{
	kind.GatewayClass:  {sections: classSections, gateways: (*Graph).gatewaysOfClass},
	kind.Gateway:       {sections: gatewaySections, gateways: (*Graph).gatewayItself},
	kind.ListenerSet:   {sections: setSectionNames, gateways: (*Graph).gatewayOfSet},
	kind.HTTPRoute:     {sections: ruleNames, gateways: (*Graph).gatewaysOfRoute},
	kind.GRPCRoute:     {sections: ruleNames, gateways: (*Graph).gatewaysOfRoute},
	kind.TLSRoute:      {sections: ruleNames, gateways: (*Graph).gatewaysOfRoute},
	kind.TCPRoute:      {sections: ruleNames, gateways: (*Graph).gatewaysOfRoute},
	kind.UDPRoute:      {sections: ruleNames, gateways: (*Graph).gatewaysOfRoute},
	kind.Service:       {sections: servicePorts, gateways: (*Graph).gatewaysTo},
	kind.ServiceImport: {sections: importPorts, gateways: (*Graph).gatewaysTo},
	kind.XBackend:      {sections: xBackendSections, gateways: (*Graph).gatewaysTo},
	kind.InferencePool: {sections: poolSections, gateways: (*Graph).gatewaysTo},
	kind.RouteFilter:   {sections: routeFilterSections, gateways: (*Graph).gatewaysTo},
}

// missingTarget says that the target of a policy of a kind does not exist; nil where it does.
// Whole is whether the object is missing, and not just the section.
func (g *Graph) missingTarget(c *flow.Ctx, by object.Kind, t policy.Target) (why *metav1.Condition, whole bool) {
	var sections []string
	of, ok := targetKinds[t.Kind]
	if ok {
		sections, ok = of.sections(g, c, t.Key)
	}
	switch {
	case !ok:
		why, whole = new(condition.PolicyTargetMissing(g.missing(c, t.Key, nil))), true
	case t.Section != "" && !slices.Contains(sections, t.Section):
		near := ""
		if len(t.Section) > 2 { // of shorter names any other one is near
			near = spelling.Nearest(t.Section, slices.Values(sections))
		}
		why = new(condition.PolicySectionMissing(t.Key.String(), policy.SectionWord(t.Kind), t.Section, near, sections))
	default:
		return nil, false
	}
	return new(g.unguarded(by, *why)), whole
}

// unguarded adds to why the target of a policy of a kind is missing what follows from it.
func (g *Graph) unguarded(by object.Kind, why metav1.Condition) metav1.Condition {
	if d := g.in.kinds.Of(by); d != nil && d.Guards {
		return condition.Unguarded(why)
	}
	return why
}

// gatewaysOf yields the Gateways of ours that a target concerns.
func (g *Graph) gatewaysOf(c *flow.Ctx, t policy.Target, yield func(object.Name)) {
	if of, ok := targetKinds[t.Kind]; ok {
		of.gateways(g, c, t.Key, yield)
	}
}

func classSections(g *Graph, c *flow.Ctx, k object.Key) ([]string, bool) {
	_, ok := flow.Get(c, g.in.Classes, k.Name.Name)
	return nil, ok
}

func gatewaySections(g *Graph, c *flow.Ctx, k object.Key) ([]string, bool) {
	gw, ok := flow.Get(c, g.in.Gateways, k.Name)
	if !ok {
		return nil, false
	}
	return namesIn(gw.Spec.Listeners, func(l *gwv1.Listener) string { return string(l.Name) }), true
}

func setSectionNames(g *Graph, c *flow.Ctx, k object.Key) ([]string, bool) {
	set, ok := flow.Get(c, g.in.ListenerSets, k.Name)
	if !ok {
		return nil, false
	}
	return namesIn(set.Spec.Listeners, func(l *gwv1.ListenerEntry) string { return string(l.Name) }), true
}

func servicePorts(g *Graph, c *flow.Ctx, k object.Key) ([]string, bool) {
	s, ok := flow.Get(c, g.in.Services, k.Name)
	if !ok {
		return nil, false
	}
	return portNames(s.Spec.Ports), true
}

func importPorts(g *Graph, c *flow.Ctx, k object.Key) ([]string, bool) {
	i, ok := flow.Get(c, g.in.Imports, k.Name)
	if !ok {
		return nil, false
	}
	return portNames(portsOfImport(i)), true
}

func xBackendSections(g *Graph, c *flow.Ctx, k object.Key) ([]string, bool) {
	_, ok := flow.Get(c, g.in.XBackends, k.Name)
	return nil, ok
}

func ruleNames(g *Graph, c *flow.Ctx, k object.Key) ([]string, bool) {
	route, ok := flow.Get(c, g.in.Routes, k)
	if !ok {
		return nil, false
	}
	return slices.DeleteFunc(RuleNames(route), func(name string) bool { return name == "" }), true
}

// namesIn returns the names of sections, of those that have one.
func namesIn[T any](list []T, name func(*T) string) (names []string) {
	for i := range list {
		if n := name(&list[i]); n != "" {
			names = append(names, n)
		}
	}
	return names
}

func (g *Graph) gatewaysOfClass(c *flow.Ctx, k object.Key, yield func(object.Name)) {
	for name := range flow.Select(c, g.byClass, k.Name.Name).All() {
		yield(name)
	}
}

func (g *Graph) gatewayItself(c *flow.Ctx, k object.Key, yield func(object.Name)) {
	if _, ours := flow.Get(c, g.ours, k.Name); ours {
		yield(k.Name)
	}
}

func (g *Graph) gatewayOfSet(c *flow.Ctx, k object.Key, yield func(object.Name)) {
	if set, ours := flow.Get(c, g.ListenerSets, k.Name); ours && set.Accepted.Status == metav1.ConditionTrue {
		yield(set.Gateway)
	}
}

// gatewaysOfRoute yields the Gateways that a route names, also those that don't accept it: a policy
// for it has a status that says so.
func (g *Graph) gatewaysOfRoute(c *flow.Ctx, k object.Key, yield func(object.Name)) {
	for _, parent := range g.Parents(c, k) {
		if !parent.Gateway.IsZero() {
			yield(parent.Gateway)
		}
	}
}

func (g *Graph) gatewaysServing(c *flow.Ctx, k object.Key, yield func(object.Name)) {
	for _, parent := range g.Parents(c, k) {
		if parent.Accepted().Status == metav1.ConditionTrue {
			yield(parent.Gateway)
		}
	}
}

// gatewaysTo yields the Gateways with routes that refer to an object, and those that AuthPolicies
// concern which do.
func (g *Graph) gatewaysTo(c *flow.Ctx, k object.Key, yield func(object.Name)) {
	for route := range flow.Select(c, g.byPolicyTarget, k).All() {
		g.gatewaysServing(c, route, yield)
	}
	for _, p := range flow.Select(c, g.byAuthService, k).All() {
		for _, t := range p.Targets {
			switch t.Kind { // not by targetKinds, which refers to this
			case kind.Gateway:
				g.gatewayItself(c, t.Key, yield)
			case kind.ListenerSet:
				g.gatewayOfSet(c, t.Key, yield)
			default:
				g.gatewaysServing(c, t.Key, yield)
			}
		}
	}
}

// declareTargets orders what the Gateways of targets are found by.
func (g *Graph) declareTargets() {
	g.byClass = flow.NewIndex(g.owned,
		func(_ object.Name, gw *gwv1.Gateway, yield func(string)) { yield(string(gw.Spec.GatewayClassName)) }, object.Name.Compare)
	g.byPolicyTarget = flow.NewIndex(g.Routes,
		func(_ object.Key, r *Route, yield func(object.Key)) {
			for _, o := range r.PolicyTargets {
				yield(o)
			}
		}, object.Key.Compare)
	g.byAuthService = flow.NewIndex(g.AuthPolicies,
		func(_ object.Name, p *auth.Policy, yield func(object.Key)) {
			for _, o := range p.PolicyTargets {
				yield(o)
			}
		}, object.Name.Compare)
}
