package pipeline_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// affectedBy are the messages of the condition, on the Gateway, its listener and the routes.
func affectedBy(p *pipeline.Pipeline) (out []string) {
	find := func(where string, all []metav1.Condition) {
		for _, c := range all {
			if c.Type == "gatehouse.dev/AuthPolicyAffected" {
				out = append(out, fmt.Sprintf("%s: %s %s %s", where, c.Status, c.Reason, c.Message))
			}
		}
	}
	p.Engine.View(func(c *flow.Ctx) {
		gw, _ := flow.Get(c, p.GatewayStatus, web)
		find("gateway", gw.Conditions)
		find("listener", gw.Listeners[0].Conditions)
		for i := range 3 {
			name := fmt.Sprintf("r%d", i)
			if s, ok := flow.Get(c, p.RouteStatus, object.Key{Kind: kind.HTTPRoute, Name: object.Name{Namespace: "a", Name: name}}); ok {
				find(name, s.Parents[0].Conditions)
			}
		}
	})
	return out
}

// Whoever looks at a route sees that a policy is for it, and which; what is only below a target
// is not written for it, or one policy would be thousands of writes.
func TestTargetsSayThatPoliciesAffectThem(t *testing.T) {
	p := guardedPipeline(3)
	for _, step := range []struct{ kind, name, section, want string }{
		{"Gateway", "web", "", "[gateway: True PolicyAffected Object affected by AuthPolicy a/office]"},
		{"Gateway", "web", "http", "[listener: True PolicyAffected Object affected by AuthPolicy a/office]"},
		{"HTTPRoute", "r1", "", "[r1: True PolicyAffected Object affected by AuthPolicy a/office]"},
		{"HTTPRoute", "r7", "", "[]"},
	} {
		o := officePolicy(step.kind, step.name, 1)
		if step.section != "" {
			o.Spec.TargetRefs[0].SectionName = new(gwv1.SectionName(step.section))
		}
		commit := p.Apply(source.Batch{Set: []source.Object{o}})
		if got := fmt.Sprint(affectedBy(p)); got != step.want {
			t.Errorf("for %s %s: %s, want %s", step.kind, step.name, got, step.want)
		}
		if n := len(flow.Changes(commit, p.RouteStatus)); n > 1 {
			t.Errorf("for %s %s the statuses of %d routes have changed", step.kind, step.name, n)
		}
	}
	p.Apply(source.Batch{Set: []source.Object{officePolicy("HTTPRoute", "r1", 1)}})
	p.Apply(source.Batch{Deleted: []object.Key{{Kind: kind.AuthPolicy, Name: object.Name{Namespace: "a", Name: "office"}}}})
	if got := affectedBy(p); len(got) > 0 {
		t.Errorf("without the policy it is said: %v", got)
	}
}
