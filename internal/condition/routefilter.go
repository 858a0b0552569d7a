package condition

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// ReasonInvalidFilter is the reason of a route's ResolvedRefs where a filter that it refers to is missing or
// can't be used.
const ReasonInvalidFilter gwv1.RouteConditionReason = "InvalidFilter"

// RouteFilterAccepted says that a RouteFilter can be used.
func RouteFilterAccepted() metav1.Condition {
	return yes(gwv1.RouteConditionAccepted, gwv1.RouteReasonAccepted, "The filter is valid")
}

// RouteFilterInvalid says what is wrong with a RouteFilter.
func RouteFilterInvalid(problems []string) metav1.Condition {
	return no(gwv1.RouteConditionAccepted, gwv1.RouteConditionReason("Invalid"),
		strings.Join(problems, "; ")+". Rules with this filter answer with an error")
}

// ConfigMapMissing says that a ConfigMap does not exist.
func ConfigMapMissing(field, name string) string {
	return fmt.Sprintf("%s names ConfigMap %s, which does not exist", field, name)
}

// ConfigMapWithout says that a ConfigMap hasn't got an entry, and which it has.
func ConfigMapWithout(field, name, key string, has []string) string {
	return fmt.Sprintf("%s names ConfigMap %s, which has no entry %q%s", field, name, key, Have(has))
}

// FilterNotFound says that a RouteFilter does not exist. Requests must not pass by a filter that can't be found.
func FilterNotFound(field, name string) metav1.Condition {
	return unresolved(ReasonInvalidFilter, field,
		fmt.Sprintf("RouteFilter %s does not exist; create it or correct the reference. The rule answers with an error until then", name))
}

// FilterRefused says that a RouteFilter can't be used, for the reason that its own Accepted condition gives.
func FilterRefused(field, name, why string) metav1.Condition {
	return unresolved(ReasonInvalidFilter, field, fmt.Sprintf("RouteFilter %s can't be used: %s", name, why))
}

// FilterNotFor says that a part of a RouteFilter can't be used by routes of a kind.
func FilterNotFor(field, name, part, kind string) metav1.Condition {
	return unresolved(ReasonInvalidFilter, field, fmt.Sprintf("RouteFilter %s has %s, which is not for a %s", name, part, kind))
}
