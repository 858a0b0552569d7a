package view

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	poolsv1 "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
)

// conditions are the lists of conditions of an object, by where they stand in it.
type conditions map[string][]metav1.Condition

// conditionsOf lists a status's conditions by where they stand in it.
func conditionsOf(s *kind.Status, status any) conditions { return maps.Collect(s.Conditions(status)) }

// summaryOf boils a status down to what a table's row says of it.
func summaryOf(s *kind.Status, status any) Summary {
	switch s := status.(type) {
	case *gwv1.GatewayClassStatus:
		return classSummary(s)
	case *gwv1.GatewayStatus:
		return gatewaySummary(s)
	case *gwv1.ListenerSetStatus:
		return setSummary(s)
	case *gwv1.RouteStatus:
		return routeSummary(s)
	case *gwv1.PolicyStatus:
		return policySummary(s)
	case *gwxv1alpha1.BackendStatus:
		return xBackendSummary(s)
	case *poolsv1.InferencePoolStatus:
		return poolSummary(s)
	}
	for _, list := range s.Conditions(status) { // those of the whole object
		return summarize("Accepted", list)
	}
	return Summary{}
}
