package status_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/status"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// TestPolicy says that a policy has an entry for each Gateway, as many as the API
// takes, dated by the policy's generation, and that what a Gateway's proxy refuses is
// told in that Gateway's entry alone.
func TestPolicy(t *testing.T) {
	in := status.PolicyInput{
		ControllerName: "gatehouse.dev/controller",
		Node: &topology.BackendTLSPolicy{
			Object:       &gwv1.BackendTLSPolicy{ObjectMeta: metav1.ObjectMeta{Generation: 7}},
			ResolvedRefs: condition.PolicyResolvedRefs(),
		},
		Refused: func(gateway object.Name) (status.Rejection, bool) {
			return status.Rejection{Message: "no such file"}, gateway.Name == "gw-01"
		},
	}
	if got := status.Policy(in); got.Ancestors == nil || len(got.Ancestors) != 0 {
		t.Errorf("without Gateways the ancestors are %v", got.Ancestors)
	}
	for i := range 20 {
		gateway := object.Name{Namespace: "infra", Name: fmt.Sprintf("gw-%02d", i)}
		in.Ancestors = append(in.Ancestors, topology.Ancestor{Gateway: gateway, Fleet: gateway, Accepted: condition.PolicyAccepted()})
	}
	got := status.Policy(in).Ancestors
	if len(got) != 16 {
		t.Fatalf("%d entries", len(got))
	}
	good := short([]metav1.Condition{condition.PolicyAccepted(), condition.PolicyResolvedRefs()})
	bad := short([]metav1.Condition{condition.PolicyAccepted(), condition.PolicyAuthoritiesRefused("no such file", false)})
	for i, want := range []string{good, bad, good} {
		if text := short(got[i].Conditions); text != want {
			t.Errorf("entry %d says %q, want %q", i, text, want)
		}
		if g := got[i].Conditions[0].ObservedGeneration; g != 7 {
			t.Errorf("entry %d is of generation %d", i, g)
		}
	}
}
