package topology

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// RouteObject is the object of a route: *gwv1.HTTPRoute, GRPCRoute, TLSRoute,
// TCPRoute or UDPRoute. What follows reads what all kinds have.
type RouteObject interface{ metav1.Object }

// common returns the part of a route's spec that all kinds share.
func common(o RouteObject) *gwv1.CommonRouteSpec {
	switch o := o.(type) {
	case *gwv1.HTTPRoute:
		return &o.Spec.CommonRouteSpec
	case *gwv1.GRPCRoute:
		return &o.Spec.CommonRouteSpec
	case *gwv1.TLSRoute:
		return &o.Spec.CommonRouteSpec
	case *gwv1.TCPRoute:
		return &o.Spec.CommonRouteSpec
	case *gwv1.UDPRoute:
		return &o.Spec.CommonRouteSpec
	}
	return &gwv1.CommonRouteSpec{}
}

// ParentRefs returns a route's spec.parentRefs.
func ParentRefs(o RouteObject) []gwv1.ParentReference { return common(o).ParentRefs }

// UseDefaultGateways returns a route's spec.useDefaultGateways.
func UseDefaultGateways(o RouteObject) gwv1.GatewayDefaultScope { return common(o).UseDefaultGateways }

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

// RuleNames returns the names of a route's rules, one for one; empty for rules without one.
func RuleNames(o RouteObject) []string { return AppendRuleNames(nil, o) }

// AppendRuleNames appends what RuleNames returns.
func AppendRuleNames(to []string, o RouteObject) []string {
	switch o := o.(type) {
	case *gwv1.HTTPRoute:
		return appendNames(to, o.Spec.Rules, func(r *gwv1.HTTPRouteRule) *gwv1.SectionName { return r.Name })
	case *gwv1.GRPCRoute:
		return appendNames(to, o.Spec.Rules, func(r *gwv1.GRPCRouteRule) *gwv1.SectionName { return r.Name })
	case *gwv1.TLSRoute:
		return appendNames(to, o.Spec.Rules, func(r *gwv1.TLSRouteRule) *gwv1.SectionName { return r.Name })
	case *gwv1.TCPRoute:
		return appendNames(to, o.Spec.Rules, func(r *gwv1.TCPRouteRule) *gwv1.SectionName { return r.Name })
	case *gwv1.UDPRoute:
		return appendNames(to, o.Spec.Rules, func(r *gwv1.UDPRouteRule) *gwv1.SectionName { return r.Name })
	}
	return to
}

func appendNames[T any](to []string, list []T, name func(*T) *gwv1.SectionName) []string {
	to = slices.Grow(to, len(list))
	for i := range list {
		to = append(to, string(valueOr(name(&list[i]), "")))
	}
	return to
}

// BackendRefOf returns a reference of a rule to a backend; nil where there is none.
func BackendRefOf(o RouteObject, rule, i int) *gwv1.BackendObjectReference {
	switch o := o.(type) {
	case *gwv1.HTTPRoute:
		return &o.Spec.Rules[rule].BackendRefs[i].BackendObjectReference
	case *gwv1.GRPCRoute:
		return &o.Spec.Rules[rule].BackendRefs[i].BackendObjectReference
	case *gwv1.TLSRoute:
		return &o.Spec.Rules[rule].BackendRefs[i].BackendObjectReference
	case *gwv1.TCPRoute:
		return &o.Spec.Rules[rule].BackendRefs[i].BackendObjectReference
	case *gwv1.UDPRoute:
		return &o.Spec.Rules[rule].BackendRefs[i].BackendObjectReference
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
