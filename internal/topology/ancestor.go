package topology

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// Ancestor is a Gateway that a policy has an effect on, or would have if it could
// be used.
type Ancestor struct {
	Gateway  object.Name
	Fleet    object.Name // that serves it
	Accepted metav1.Condition
}

// PolicyTarget is what a policy is for.
type PolicyTarget = policy.Target

// PolicyReach is all that a policy is for, with what selects it.
type PolicyReach = policy.Reach

// PolicySelector is what selects some of it by labels.
type PolicySelector = policy.Selector

// MissingTarget is a target of a policy that does not exist, or the namespace in which it selects
// nothing. There is no Gateway that could be told of it.
type MissingTarget struct {
	Target   policy.Target
	Accepted metav1.Condition
}

// MissingTargets returns what a policy of a kind targets and does not exist.
func (g *Graph) MissingTargets(c *flow.Ctx, by object.Kind, reach *policy.Reach) (missing []MissingTarget) {
	for _, t := range reach.Named() {
		if why, whole := g.missingTarget(c, by, t); whole {
			missing = append(missing, MissingTarget{t, *why})
		}
	}
	var idle []string
	in := policy.Target{Key: object.Key{Kind: kind.Namespace}}
	for _, s := range reach.Selections {
		if s.Count == 0 {
			in.Name.Name = s.Namespace
			idle = append(idle, nothingSelected(s.Selector))
		}
	}
	if len(idle) > 0 {
		missing = append(missing, MissingTarget{in, g.unguarded(by, condition.PolicySelectsNothing(idle))})
	}
	return missing
}

// nothingSelected says of a selector that it selects nothing.
func nothingSelected(s policy.Selector) string {
	return condition.NothingSelected(s.Kind.Name(), s.Namespace, s.String())
}

// Lost yields why targets of a policy of a kind do not exist, whole or a section of them, and
// which selectors select nothing.
func (g *Graph) Lost(c *flow.Ctx, by object.Kind, reach *policy.Reach, yield func(metav1.Condition)) {
	for i := range reach.Targets {
		if why := g.missingOf(c, by, reach, i); why != nil {
			yield(*why)
		}
	}
	for _, s := range reach.Selections {
		if s.Count == 0 {
			yield(g.unguarded(by, condition.PolicySelectsNothing([]string{nothingSelected(s.Selector)})))
		}
	}
}

// missingOf says that a target of a policy of a kind does not exist; nil where it does. An object
// that is selected does: nobody who asks has to be woken by each edit of it.
func (g *Graph) missingOf(c *flow.Ctx, by object.Kind, reach *policy.Reach, i int) *metav1.Condition {
	t := reach.Targets[i]
	if t.Section == "" && i >= len(reach.Named()) {
		return nil
	}
	why, _ := g.missingTarget(c, by, t)
	return why
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
		func(c *flow.Ctx, p P, i int) *metav1.Condition {
			n := k.Node(p)
			if missing := g.missingOf(c, k.Kind, &n.Reach, i); missing != nil {
				return missing
			}
			return a.Judge(c, p, n.Targets[i])
		})
}

// declareAncestors checks objects by what they target, one after the other; accepted is the condition of those
// that nothing is wrong with. Where several targets are of one Gateway, the first that
// something is wrong with counts.
func declareAncestors[P any](
	g *Graph, table string, policies flow.Table[object.Name, P], accepted metav1.Condition,
	targets func(P) []policy.Target, check func(*flow.Ctx, P, int) *metav1.Condition,
) flow.Table[object.Name, []Ancestor] {
	return flow.Map(table, policies,
		func(c *flow.Ctx, k object.Name, p P, emit func(object.Name, []Ancestor)) {
			refusals := map[object.Name]*metav1.Condition{} // by Gateway; nil for none
			for i, t := range targets(p) {
				problem := check(c, p, i)
				g.gatewaysOf(c, t, func(gateway object.Name) {
					if refusals[gateway] == nil {
						refusals[gateway] = problem
					}
				})
			}
			out := make([]Ancestor, 0, len(refusals))
			for gateway, problem := range refusals {
				a := Ancestor{gateway, g.FleetOf(c, gateway), accepted}
				if problem != nil {
					a.Accepted = *problem
				}
				out = append(out, a)
			}
			slices.SortFunc(out, func(a, b Ancestor) int { return a.Gateway.Compare(b.Gateway) })
			emit(k, out)
		}, flow.Equal(slices.Equal[[]Ancestor]))
}
