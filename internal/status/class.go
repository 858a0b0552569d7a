package status

import (
	"slices"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// Class is the status of a GatewayClass; empty for a class without an object.
// Features are those that the class supports, sorted by name.
func Class(c *topology.Class, features ...gwv1.SupportedFeature) gwv1.GatewayClassStatus {
	if c.Object == nil {
		return gwv1.GatewayClassStatus{}
	}
	conditions := []metav1.Condition{c.Accepted}
	if c.SupportedVersion.Type != "" {
		conditions = append(conditions, c.SupportedVersion)
	}
	return gwv1.GatewayClassStatus{
		Conditions:        observed(c.Object, conditions...),
		SupportedFeatures: features,
	}
}

// observed dates conditions with the generation of the object that they are about. Nearly
// all objects say the same, that all is well: they share what was said of another one a
// moment ago, so nobody may write to what is returned.
func observed(o metav1.Object, conditions ...metav1.Condition) []metav1.Condition {
	out := make([]metav1.Condition, len(conditions))
	for i, c := range conditions {
		c.ObservedGeneration = o.GetGeneration()
		out[i] = c
	}
	last := &said[uint64(o.GetGeneration())%uint64(len(said))] //nolint:gosec // any index will do
	if earlier := last.Load(); earlier != nil && slices.Equal(*earlier, out) {
		return *earlier
	}
	last.Store(&out)
	return out
}

// said are the conditions that observed has returned last, by generation.
var said [64]atomic.Pointer[[]metav1.Condition]
