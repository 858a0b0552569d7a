package kind

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"
)

// visitor is called with lists of conditions.
type visitor = func(place string, list *[]metav1.Condition)

func classStatus() *Status {
	return Whole(func(o *gwv1.GatewayClass) *gwv1.GatewayClassStatus { return &o.Status },
		func(s *gwv1.GatewayClassStatus, yield visitor) { yield("", &s.Conditions) })
}

func gatewayStatus() *Status {
	s := Whole(func(o *gwv1.Gateway) *gwv1.GatewayStatus { return &o.Status },
		func(s *gwv1.GatewayStatus, yield visitor) {
			yield("", &s.Conditions)
			for i := range s.Listeners {
				yield(listenerPlace(s.Listeners[i].Name), &s.Listeners[i].Conditions)
			}
		})
	s.Initial = waiting()
	return s
}

func listenerSetStatus() *Status {
	s := Whole(func(o *gwv1.ListenerSet) *gwv1.ListenerSetStatus { return &o.Status },
		func(s *gwv1.ListenerSetStatus, yield visitor) {
			yield("", &s.Conditions)
			for i := range s.Listeners {
				yield(listenerPlace(s.Listeners[i].Name), &s.Listeners[i].Conditions)
			}
		})
	s.Initial = waiting()
	return s
}

func listenerPlace(name gwv1.SectionName) string { return "listener " + string(name) }

// waiting are the initial conditions of Gateways and ListenerSets.
func waiting() []metav1.Condition {
	unknown := func(name gwv1.GatewayConditionType) metav1.Condition {
		return metav1.Condition{
			Type: string(name), Status: metav1.ConditionUnknown,
			Reason: string(gwv1.GatewayReasonPending), Message: "Waiting for controller",
		}
	}
	return []metav1.Condition{unknown(gwv1.GatewayConditionAccepted), unknown(gwv1.GatewayConditionProgrammed)}
}

// routeStatus is the status of a kind of routes, which all have the same one.
func routeStatus[O Object](of func(O) *gwv1.RouteStatus) *Status {
	return Shared(of, 32,
		func(s *gwv1.RouteStatus) []Entry {
			out := make([]Entry, len(s.Parents))
			for i, p := range s.Parents {
				out[i] = Entry{p.ControllerName, p.ParentRef, p.Conditions}
			}
			return out
		},
		func(list []Entry) *gwv1.RouteStatus {
			s := &gwv1.RouteStatus{Parents: make([]gwv1.RouteParentStatus, len(list))}
			for i, e := range list {
				s.Parents[i] = gwv1.RouteParentStatus{ControllerName: e.Controller, ParentRef: e.Ref, Conditions: e.Conditions}
			}
			return s
		})
}

// policyStatus is the status of a kind of policies, which all have the same one.
func policyStatus[O Object](of func(O) *gwv1.PolicyStatus) *Status {
	return Shared(of, 16,
		func(s *gwv1.PolicyStatus) []Entry {
			out := make([]Entry, len(s.Ancestors))
			for i, a := range s.Ancestors {
				out[i] = Entry{a.ControllerName, a.AncestorRef, a.Conditions}
			}
			return out
		},
		func(list []Entry) *gwv1.PolicyStatus {
			s := &gwv1.PolicyStatus{Ancestors: make([]gwv1.PolicyAncestorStatus, len(list))}
			for i, e := range list {
				s.Ancestors[i] = gwv1.PolicyAncestorStatus{ControllerName: e.Controller, AncestorRef: e.Ref, Conditions: e.Conditions}
			}
			return s
		})
}

func xBackendStatus() *Status {
	return Shared(func(o *gwxv1alpha1.XBackend) *gwxv1alpha1.BackendStatus { return &o.Status }, 32,
		func(s *gwxv1alpha1.BackendStatus) []Entry {
			out := make([]Entry, len(s.Ancestors))
			for i, a := range s.Ancestors {
				out[i] = Entry{a.ControllerName, a.AncestorRef, a.Conditions}
			}
			return out
		},
		func(list []Entry) *gwxv1alpha1.BackendStatus {
			s := &gwxv1alpha1.BackendStatus{Ancestors: make([]gwxv1alpha1.BackendAncestorStatus, len(list))}
			for i, e := range list {
				s.Ancestors[i] = gwxv1alpha1.BackendAncestorStatus{ControllerName: e.Controller, AncestorRef: e.Ref, Conditions: e.Conditions}
			}
			return s
		})
}
