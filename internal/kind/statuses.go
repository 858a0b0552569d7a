package kind

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	poolsv1 "sigs.k8s.io/gateway-api-inference-extension/api/v1"
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
	return Shared(of, 32, func(s *gwv1.RouteStatus) *[]gwv1.RouteParentStatus { return &s.Parents },
		func(e *gwv1.RouteParentStatus) EntryFields {
			return EntryFields{&e.ControllerName, &e.ParentRef, &e.Conditions}
		})
}

// policyStatus is the status of a kind of policies, which all have the same one.
func policyStatus[O Object](of func(O) *gwv1.PolicyStatus) *Status {
	return Shared(of, 16, func(s *gwv1.PolicyStatus) *[]gwv1.PolicyAncestorStatus { return &s.Ancestors },
		func(e *gwv1.PolicyAncestorStatus) EntryFields {
			return EntryFields{&e.ControllerName, &e.AncestorRef, &e.Conditions}
		})
}

func xBackendStatus() *Status {
	return Shared(func(o *gwxv1alpha1.XBackend) *gwxv1alpha1.BackendStatus { return &o.Status }, 32,
		func(s *gwxv1alpha1.BackendStatus) *[]gwxv1alpha1.BackendAncestorStatus { return &s.Ancestors },
		func(e *gwxv1alpha1.BackendAncestorStatus) EntryFields {
			return EntryFields{&e.ControllerName, &e.AncestorRef, &e.Conditions}
		})
}

// poolStatus is the status of InferencePools. Definitions before v1.2 of the extension have no name of a controller: it
// is empty in what is read then.
func poolStatus() *Status {
	return converted(func(o *poolsv1.InferencePool) *poolsv1.InferencePoolStatus { return &o.Status }, 32,
		func(s *poolsv1.InferencePoolStatus) *[]poolsv1.ParentStatus { return &s.Parents },
		func(e *poolsv1.ParentStatus) Entry {
			ref := gwv1.ParentReference{Name: gwv1.ObjectName(e.ParentRef.Name)}
			if g := e.ParentRef.Group; g != nil {
				ref.Group = new(gwv1.Group(*g))
			}
			if k := e.ParentRef.Kind; k != "" {
				ref.Kind = new(gwv1.Kind(k))
			}
			if ns := e.ParentRef.Namespace; ns != "" {
				ref.Namespace = new(gwv1.Namespace(ns))
			}
			return Entry{gwv1.GatewayController(e.ControllerName), ref, e.Conditions}
		},
		func(e Entry, to *poolsv1.ParentStatus) { *to = PoolParent(e) })
}

// PoolParent is an entry in the status of an InferencePool.
func PoolParent(e Entry) poolsv1.ParentStatus {
	out := poolsv1.ParentStatus{
		ControllerName: poolsv1.ControllerName(e.Controller), Conditions: e.Conditions,
		ParentRef: poolsv1.ParentReference{Name: poolsv1.ObjectName(e.Ref.Name)},
	}
	if g := e.Ref.Group; g != nil {
		out.ParentRef.Group = new(poolsv1.Group(*g))
	}
	if k := e.Ref.Kind; k != nil {
		out.ParentRef.Kind = poolsv1.Kind(*k)
	}
	if ns := e.Ref.Namespace; ns != nil {
		out.ParentRef.Namespace = poolsv1.Namespace(*ns)
	}
	return out
}
