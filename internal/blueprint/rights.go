package blueprint

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// AggregateLabel is on the ClusterRoles whose rules the controller has for blueprints.
const AggregateLabel = "gatehouse.dev/aggregate-to-blueprints"

// Plural is the name by which rules of a ClusterRole most likely call a kind.
func Plural(kind schema.GroupVersionKind) string {
	if lower := strings.ToLower(kind.Kind); strings.HasSuffix(lower, "ay") || strings.HasSuffix(lower, "ey") {
		return lower + "s" // gateways, apikeys
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return plural.Resource
}
