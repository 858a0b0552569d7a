package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// PolicyInput is what the status of a BackendTLSPolicy follows from.
type PolicyInput struct {
	ControllerName string
	Node           *topology.BackendTLSPolicy
	Ancestors      []topology.Ancestor
	// Refused returns what a Gateway's proxies say against the policy's authorities;
	// nil where there is nothing to refuse.
	Refused func(gateway object.Name) (Rejection, bool)
}

// maxAncestors is the API's limit.
const maxAncestors = 16

// Policy is the status of a BackendTLSPolicy: our entries in it, one for each
// Gateway that it concerns.
func Policy(in PolicyInput) gwv1.PolicyStatus {
	return ancestors(in.ControllerName, in.Node.Object, in.Ancestors, func(a topology.Ancestor) []metav1.Condition {
		conditions := []metav1.Condition{a.Accepted, in.Node.ResolvedRefs}
		if in.Refused != nil {
			if r, ok := in.Refused(a.Fleet); ok {
				conditions[1] = condition.PolicyAuthoritiesRefused(r.Message, r.KeepsOld)
			}
		}
		return conditions
	})
}

// BackendTrafficPolicy is the status of an XBackendTrafficPolicy, likewise.
func BackendTrafficPolicy(controllerName string, node *topology.BackendTrafficPolicy, list []topology.Ancestor) gwv1.PolicyStatus {
	return ancestors(controllerName, node.Object, list, func(a topology.Ancestor) []metav1.Condition {
		return []metav1.Condition{a.Accepted}
	})
}

// InheritedInput is what the status of a policy that is inherited follows from.
type InheritedInput struct {
	ControllerName string
	Object         metav1.Object
	Ancestors      []topology.Ancestor
	Missing        []topology.MissingTarget
	// Programmed says of a Gateway how much of the policy is in force there.
	Programmed func(topology.Ancestor) metav1.Condition
}

// InheritedPolicy is the status of such a policy, likewise, with an entry for each target that
// does not exist, and one for the namespace if a selector selects nothing there.
func InheritedPolicy(in InheritedInput) gwv1.PolicyStatus {
	out := ancestors(in.ControllerName, in.Object, in.Ancestors, func(a topology.Ancestor) []metav1.Condition {
		return []metav1.Condition{a.Accepted, in.Programmed(a)}
	})
	for _, m := range in.Missing[:min(len(in.Missing), maxAncestors-len(out.Ancestors))] {
		ref := gwv1.ParentReference{
			Group: new(gwv1.Group(m.Target.Kind.Group())), Kind: new(gwv1.Kind(m.Target.Kind.Name())),
			Name: gwv1.ObjectName(m.Target.Name.Name),
		}
		if m.Target.Namespace != "" {
			ref.Namespace = new(gwv1.Namespace(m.Target.Namespace))
		}
		if m.Target.Section != "" {
			ref.SectionName = new(gwv1.SectionName(m.Target.Section))
		}
		out.Ancestors = append(out.Ancestors, gwv1.PolicyAncestorStatus{
			AncestorRef: ref, ControllerName: gwv1.GatewayController(in.ControllerName), Conditions: observed(in.Object, m.Accepted),
		})
	}
	return out
}

func ancestors(controllerName string, o metav1.Object, list []topology.Ancestor, conditions func(topology.Ancestor) []metav1.Condition) gwv1.PolicyStatus {
	out := gwv1.PolicyStatus{Ancestors: []gwv1.PolicyAncestorStatus{}}
	for _, a := range list[:min(len(list), maxAncestors)] {
		out.Ancestors = append(out.Ancestors, gwv1.PolicyAncestorStatus{
			AncestorRef:    gatewayRef(a.Gateway),
			ControllerName: gwv1.GatewayController(controllerName),
			Conditions:     observed(o, conditions(a)...),
		})
	}
	return out
}

// gatewayRef is how a status names a Gateway.
func gatewayRef(gateway object.Name) gwv1.ParentReference {
	return gwv1.ParentReference{
		Group: new(gwv1.Group(gwv1.GroupName)), Kind: new(gwv1.Kind(kind.Gateway.Name())),
		Namespace: new(gwv1.Namespace(gateway.Namespace)), Name: gwv1.ObjectName(gateway.Name),
	}
}
