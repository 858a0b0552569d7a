package topology

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// ServicePlace is a Service, or a ServiceImport, to which rules of a route on a listener send requests.
type ServicePlace struct {
	AttachmentKey
	Rule    string // empty for the rules without a name
	Service object.Key
}

// onServices declares what policies say together at the end of the paths to Services with policies of their own.
func onServices[P any, R policy.Asks[R]](g *Graph, in *Inherited[R], name string, a *policy.Attachments[P, policy.Rules[R]]) {
	in.Services = flow.Map(name+"-of-services", a.Targets(),
		func(c *flow.Ctx, key object.Key, _ struct{}, emit func(ServicePlace, *policy.Effective[R])) {
			if !kind.IsService(key.Kind) {
				return
			}
			own := a.On(c, key)
			for of, route := range flow.Select(c, g.byPolicyTarget, key).All() {
				rules := rulesTo(route, key)
				if len(rules) == 0 {
					continue
				}
				ofRoute, parents := a.On(c, of), g.Parents(c, of)
				for i, p := range parents {
					for _, at := range p.attached {
						if attachedBefore(parents[:i], at.Key) {
							continue
						}
						path := in.above(c, at.Key.Listener).on(ofRoute, of, "")
						for _, rule := range rules {
							to := path
							if rule != "" {
								to = to.on(ofRoute, of, rule)
							}
							emit(ServicePlace{at.Key, rule, key}, policy.Combine(to.on(own, key, "")))
						}
					}
				}
			}
		}, flow.Equal(same[R]))
	in.Outcomes.Also(flow.Map(name+"-outcomes-on-services", in.Services,
		func(_ *flow.Ctx, k ServicePlace, e *policy.Effective[R], emit func(PlaceKey, policy.Outcome)) {
			for _, o := range e.Outcomes() {
				if kind.IsService(o.Target.Kind) { // the others have their places
					emit(PlaceKey{o.Policy, k.Listener, k.Route, k.Rule, o.Target}, o)
				}
			}
		}, flow.Equal(policy.Outcome.Equal)))
}

// rulesTo are the names of a route's rules that send requests to a Service.
func rulesTo(r *Route, service object.Key) (names []string) {
	titles := RuleNames(r.Object)
	for i := range r.Rules {
		to := func(b BackendRef) bool { return b.Backend.Backend().Object == service }
		if slices.ContainsFunc(r.Rules[i].Backends, to) && !slices.Contains(names, titles[i]) {
			names = append(names, titles[i])
		}
	}
	return names
}
