package topology

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Ancestor is a Gateway that a policy has an effect on, or would have if it could
// be used: one with a route to a Service that the policy targets.
type Ancestor struct {
	Gateway  object.Name
	Accepted metav1.Condition
}

// declareAncestors judges every policy for each Gateway. A policy that no Gateway
// of ours is concerned with has no ancestors.
func (g *Graph) declareAncestors() {
	byService := g.routesByGoverned(kind.Service)
	g.Ancestors = ancestors(g, "topology-policy-ancestors", g.BackendTLSPolicies, byService,
		func(p *BackendTLSPolicy, yield func(policyTarget)) { serviceTargets(p.Object, yield) }, g.targetProblem, condition.PolicyAccepted())
	g.TrafficAncestors = ancestors(g, "topology-traffic-policy-ancestors", g.TrafficPolicies, byService,
		trafficTargets, g.trafficProblem, condition.PolicyAccepted())
}

// routesByGoverned orders the routes under the objects of a kind that they refer to.
func (g *Graph) routesByGoverned(of object.Kind) *flow.Index[object.Name, object.Key, *Route] {
	return flow.NewIndex(g.Routes,
		func(_ object.Key, r *Route, yield func(object.Name)) {
			for _, o := range r.Governed {
				if o.Kind == of {
					yield(o.Name)
				}
			}
		}, object.Key.Compare)
}

// ancestors judges the objects of a kind by what they target; accepted is the
// condition of those that nothing is wrong with.
func ancestors[P any](g *Graph, table string, policies flow.Table[object.Name, P], byService *flow.Index[object.Name, object.Key, *Route],
	targets func(P, func(policyTarget)), judge func(*flow.Ctx, P, policyTarget) *metav1.Condition, accepted metav1.Condition,
) flow.Table[object.Name, []Ancestor] {
	return flow.Map(table, policies,
		func(c *flow.Ctx, k object.Name, p P, emit func(object.Name, []Ancestor)) {
			refusals := map[object.Name]*metav1.Condition{} // by Gateway; nil for none
			targets(p, func(t policyTarget) {
				problem := judge(c, p, t)
				for route := range flow.Select(c, byService, t.service).All() {
					parents := g.Parents(c, route)
					for _, parent := range parents {
						if parent.Accepted.Status == metav1.ConditionTrue && refusals[parent.Gateway] == nil {
							refusals[parent.Gateway] = problem
						}
					}
				}
			})
			out := make([]Ancestor, 0, len(refusals))
			for gateway, problem := range refusals {
				a := Ancestor{gateway, accepted}
				if problem != nil {
					a.Accepted = *problem
				}
				out = append(out, a)
			}
			slices.SortFunc(out, func(a, b Ancestor) int { return a.Gateway.Compare(b.Gateway) })
			emit(k, out)
		}, flow.Equal(slices.Equal[[]Ancestor]))
}

// targetProblem says why a policy has no effect on one of its targets; nil where it
// has.
func (g *Graph) targetProblem(c *flow.Ctx, p *BackendTLSPolicy, t policyTarget) *metav1.Condition {
	service, ok := flow.Get(c, g.in.Services, t.service)
	if !ok {
		problem := condition.PolicyTargetMissing(t.service.String())
		return &problem
	}
	if t.section != "" && !slices.ContainsFunc(service.Spec.Ports, func(port corev1.ServicePort) bool { return port.Name == t.section }) {
		problem := condition.PolicySectionMissing(t.service.String(), t.section, portNames(service))
		return &problem
	}
	if p.Refused != nil {
		return p.Refused
	}
	if all, ok := flow.Get(c, g.policies, t.service); ok {
		if winner := all.of(t.section); winner != nil && winner.Name != p.Name {
			problem := condition.PolicyConflicted(t.String(), winner.Name.String())
			return &problem
		}
	}
	return nil
}

// String names the target in messages.
func (t policyTarget) String() string {
	if t.section == "" {
		return "Service " + t.service.String()
	}
	return "port " + t.section + " of Service " + t.service.String()
}

func portNames(s *corev1.Service) (names []string) {
	for i := range s.Spec.Ports {
		if n := s.Spec.Ports[i].Name; n != "" {
			names = append(names, n)
		}
	}
	return names
}
