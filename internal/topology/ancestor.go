package topology

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// Ancestor is a Gateway that a policy has an effect on, or would have if it could
// be used.
type Ancestor struct {
	Gateway  object.Name
	Accepted metav1.Condition
}

// PolicyTarget is what a policy is for.
type PolicyTarget = policy.Target

// MissingTarget is a target of a policy that does not exist. There is no Gateway that could
// be told of it.
type MissingTarget struct {
	Target   policy.Target
	Accepted metav1.Condition
}

// MissingTargets returns those targets of a policy of a kind that do not exist.
func (g *Graph) MissingTargets(c *flow.Ctx, by object.Kind, targets []policy.Target) (missing []MissingTarget) {
	for _, t := range targets {
		if why, whole := g.missingTarget(c, by, t); whole {
			missing = append(missing, MissingTarget{t, *why})
		}
	}
	return missing
}

// Lost yields why targets of a policy of a kind do not exist, whole or a section of them.
func (g *Graph) Lost(c *flow.Ctx, by object.Kind, targets []policy.Target, yield func(metav1.Condition)) {
	for _, t := range targets {
		if why, _ := g.missingTarget(c, by, t); why != nil {
			yield(*why)
		}
	}
}

// Ancestors declares, for every policy of a kind, the Gateways that it concerns, sorted.
// One that no Gateway of ours is concerned with has none. It is called once the graph is
// declared.
func Ancestors[P any, S policy.Asks[S]](
	g *Graph, table string, policies flow.Table[object.Name, P], a *policy.Attachments[P, S],
) flow.Table[object.Name, []Ancestor] {
	k := a.Kind()
	return declareAncestors(g, table, policies, k.Accepted,
		func(p P) []policy.Target { return k.Node(p).Targets },
		func(c *flow.Ctx, p P, t policy.Target) *metav1.Condition {
			if missing, _ := g.missingTarget(c, k.Kind, t); missing != nil {
				return missing
			}
			return a.Judge(c, p, t)
		})
}

// declareAncestors checks objects by what they target; accepted is the condition of those
// that nothing is wrong with. Where several targets are of one Gateway, the first that
// something is wrong with counts.
func declareAncestors[P any](
	g *Graph, table string, policies flow.Table[object.Name, P], accepted metav1.Condition,
	targets func(P) []policy.Target, check func(*flow.Ctx, P, policy.Target) *metav1.Condition,
) flow.Table[object.Name, []Ancestor] {
	return flow.Map(table, policies,
		func(c *flow.Ctx, k object.Name, p P, emit func(object.Name, []Ancestor)) {
			refusals := map[object.Name]*metav1.Condition{} // by Gateway; nil for none
			for _, t := range targets(p) {
				problem := check(c, p, t)
				g.gatewaysOf(c, t, func(gateway object.Name) {
					if refusals[gateway] == nil {
						refusals[gateway] = problem
					}
				})
			}
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
