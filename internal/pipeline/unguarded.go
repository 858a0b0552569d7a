package pipeline

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy/auth"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// declareUnguarded declares what is told first of AuthPolicies whose targets don't exist: what
// they were to guard may be open. Where there are other controllers it may be theirs.
func (p *Pipeline) declareUnguarded() {
	p.unguarded = flow.Map("auth-policies-without-target", p.Graph.AuthPolicies,
		func(c *flow.Ctx, k object.Name, node *auth.Policy, emit func(object.Name, []source.Problem)) {
			if p.Options.Topology.ImplicitClass == "" {
				return
			}
			var problems []source.Problem
			p.Graph.Lost(c, kind.AuthPolicy, &node.Reach, func(why metav1.Condition) {
				problems = append(problems, source.Problem{
					Key: object.Key{Kind: kind.AuthPolicy, Name: k}, Reason: source.Unknown, Message: why.Message,
				})
			})
			if len(problems) > 0 {
				emit(k, problems)
			}
		}, flow.Equal(func(a, b []source.Problem) bool { return slices.EqualFunc(a, b, source.Problem.Equal) }))
}
