package view

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"
)

// conditions are the lists of conditions of an object, by where they stand in it.
type conditions map[string][]metav1.Condition

// conditionsOf lists a status's conditions by where they stand in it.
func conditionsOf(status any) conditions {
	switch s := status.(type) {
	case *gwv1.GatewayClassStatus:
		return classConditions(s)
	case *gwv1.GatewayStatus:
		return gatewayConditions(s)
	case *gwv1.ListenerSetStatus:
		return setConditions(s)
	case *gwv1.RouteStatus:
		return routeConditions(s)
	case *gwv1.PolicyStatus:
		return policyConditions(s)
	case *gwxv1alpha1.BackendStatus:
		return xBackendConditions(s)
	}
	return nil
}

// summaryOf boils a status down to what a table's row says of it.
func summaryOf(status any) Summary {
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
	}
	return Summary{}
}

func classConditions(s *gwv1.GatewayClassStatus) conditions {
	return conditions{"": s.Conditions}
}

func gatewayConditions(s *gwv1.GatewayStatus) conditions {
	out := conditions{"": s.Conditions}
	for i := range s.Listeners {
		out["listener "+string(s.Listeners[i].Name)] = s.Listeners[i].Conditions
	}
	return out
}

func setConditions(s *gwv1.ListenerSetStatus) conditions {
	out := conditions{"": s.Conditions}
	for i := range s.Listeners {
		out["listener "+string(s.Listeners[i].Name)] = s.Listeners[i].Conditions
	}
	return out
}

func routeConditions(s *gwv1.RouteStatus) conditions {
	out := conditions{}
	for i := range s.Parents {
		out[parentPath(s.Parents[i].ParentRef)] = s.Parents[i].Conditions
	}
	return out
}

// parentPath tells a route's parents apart.
func parentPath(ref gwv1.ParentReference) string {
	name := string(ref.Name)
	if ref.Namespace != nil {
		name = string(*ref.Namespace) + "/" + name
	}
	path := "parent " + name
	if ref.Kind != nil && *ref.Kind != "Gateway" {
		path = "parent " + string(*ref.Kind) + " " + name
	}
	if ref.SectionName != nil {
		path += "#" + string(*ref.SectionName)
	}
	if ref.Port != nil {
		path += ":" + strconv.Itoa(int(*ref.Port))
	}
	return path
}
