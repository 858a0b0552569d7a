package condition

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// patched is the type of the condition of a Gateway whose parameters have patches for Envoy.
const patched = "gatehouse.dev/Patched"

// The reasons of that condition.
const (
	reasonPatched    gwv1.GatewayConditionReason = "Patched"
	reasonNotPatched gwv1.GatewayConditionReason = "PatchesWithoutEffect"
)

// GatewayPatched says that all patches for Envoy are in force, or which are not and why.
func GatewayPatched(wrong []string) metav1.Condition {
	if len(wrong) == 0 {
		return yes(gwv1.GatewayConditionType(patched), reasonPatched, "All patches of spec.envoy.patches are in force")
	}
	return no(gwv1.GatewayConditionType(patched), reasonNotPatched,
		few(wrong)+". What a patch is for and can't be applied to is served without it")
}

// few joins what is wrong, up to maxProblems.
func few(wrong []string) string {
	if n := len(wrong) - maxProblems; n > 0 {
		wrong = append(slices.Clone(wrong[:maxProblems]), fmt.Sprintf("%d more", n))
	}
	return strings.Join(wrong, "; ")
}
