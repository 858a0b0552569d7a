package writer

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"
)

// statusOf returns a pointer to the status within an object; nil for a kind that has
// none to write.
func statusOf(o client.Object) any {
	switch o := o.(type) {
	case *gwv1.GatewayClass:
		return &o.Status
	case *gwv1.Gateway:
		return &o.Status
	case *gwv1.ListenerSet:
		return &o.Status
	case *gwv1.HTTPRoute:
		return &o.Status.RouteStatus
	case *gwv1.GRPCRoute:
		return &o.Status.RouteStatus
	case *gwv1.TLSRoute:
		return &o.Status.RouteStatus
	case *gwv1.TCPRoute:
		return &o.Status.RouteStatus
	case *gwv1.UDPRoute:
		return &o.Status.RouteStatus
	case *gwv1.BackendTLSPolicy:
		return &o.Status
	case *gwxv1alpha1.XBackendTrafficPolicy:
		return &o.Status
	case *gwxv1alpha1.XBackend:
		return &o.Status
	default:
		return nil
	}
}

// nameOf returns an empty object of the same kind and name.
func nameOf(o client.Object) client.Object {
	out := reflect.New(reflect.TypeOf(o).Elem()).Interface().(client.Object)
	out.SetNamespace(o.GetNamespace())
	out.SetName(o.GetName())
	return out
}

// conditionLists calls yield with every list of conditions in a status, and with what
// it is about: the same for the same thing in two statuses.
func conditionLists(status any, yield func(about any, list []metav1.Condition)) {
	switch s := status.(type) {
	case *gwv1.GatewayClassStatus:
		yield(nil, s.Conditions)
	case *gwv1.GatewayStatus:
		yield(nil, s.Conditions)
		for i := range s.Listeners {
			yield(s.Listeners[i].Name, s.Listeners[i].Conditions)
		}
	case *gwv1.ListenerSetStatus:
		yield(nil, s.Conditions)
		for i := range s.Listeners {
			yield(s.Listeners[i].Name, s.Listeners[i].Conditions)
		}
	case *gwv1.RouteStatus:
		for i := range s.Parents {
			yield(i, s.Parents[i].Conditions)
		}
	case *gwv1.PolicyStatus:
		for i := range s.Ancestors {
			yield(i, s.Ancestors[i].Conditions)
		}
	case *gwxv1alpha1.BackendStatus:
		for i := range s.Ancestors {
			yield(i, s.Ancestors[i].Conditions)
		}
	}
}

// generationOf returns the generation of the object that a status was computed from;
// 0 for a status that doesn't say.
func generationOf(status any) int64 {
	var out int64
	conditionLists(status, func(_ any, list []metav1.Condition) {
		for i := range list {
			out = max(out, list[i].ObservedGeneration)
		}
	})
	return out
}
