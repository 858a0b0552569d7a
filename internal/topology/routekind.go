package topology

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// RouteObject is the object of a route: *gwv1.HTTPRoute, GRPCRoute, TLSRoute,
// TCPRoute or UDPRoute. What follows reads what all kinds have.
type RouteObject interface{ metav1.Object }

// ParentRefs returns a route's spec.parentRefs.
func ParentRefs(o RouteObject) []gwv1.ParentReference {
	switch o := o.(type) {
	case *gwv1.HTTPRoute:
		return o.Spec.ParentRefs
	case *gwv1.GRPCRoute:
		return o.Spec.ParentRefs
	case *gwv1.TLSRoute:
		return o.Spec.ParentRefs
	case *gwv1.TCPRoute:
		return o.Spec.ParentRefs
	case *gwv1.UDPRoute:
		return o.Spec.ParentRefs
	}
	return nil
}

// UseDefaultGateways returns a route's spec.useDefaultGateways.
func UseDefaultGateways(o RouteObject) gwv1.GatewayDefaultScope {
	switch o := o.(type) {
	case *gwv1.HTTPRoute:
		return o.Spec.UseDefaultGateways
	case *gwv1.GRPCRoute:
		return o.Spec.UseDefaultGateways
	case *gwv1.TLSRoute:
		return o.Spec.UseDefaultGateways
	case *gwv1.TCPRoute:
		return o.Spec.UseDefaultGateways
	case *gwv1.UDPRoute:
		return o.Spec.UseDefaultGateways
	}
	return ""
}

// Hostnames returns a route's spec.hostnames; none for kinds that have no such
// field.
func Hostnames(o RouteObject) []gwv1.Hostname {
	switch o := o.(type) {
	case *gwv1.HTTPRoute:
		return o.Spec.Hostnames
	case *gwv1.GRPCRoute:
		return o.Spec.Hostnames
	case *gwv1.TLSRoute:
		return o.Spec.Hostnames
	}
	return nil
}

// RuleCount returns how many rules a route has.
func RuleCount(o RouteObject) int {
	switch o := o.(type) {
	case *gwv1.HTTPRoute:
		return len(o.Spec.Rules)
	case *gwv1.GRPCRoute:
		return len(o.Spec.Rules)
	case *gwv1.TLSRoute:
		return len(o.Spec.Rules)
	case *gwv1.TCPRoute:
		return len(o.Spec.Rules)
	case *gwv1.UDPRoute:
		return len(o.Spec.Rules)
	}
	return 0
}
