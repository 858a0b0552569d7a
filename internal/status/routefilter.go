package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// RouteFilter returns the conditions of a RouteFilter with problems in what it says.
func RouteFilter(f *topology.RouteFilter, problems []string) []metav1.Condition {
	accepted := condition.RouteFilterAccepted()
	switch {
	case f.Refused != nil:
		accepted = *f.Refused
	case len(problems) > 0:
		accepted = condition.RouteFilterInvalid(problems)
	}
	return observed(f.Object, accepted)
}
