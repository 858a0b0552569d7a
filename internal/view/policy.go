package view

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
)

// unused is the state of a policy that no Gateway is concerned with.
const unused = "Unused"

func policySummary(s *gwv1.PolicyStatus) Summary {
	if len(s.Ancestors) == 0 {
		return Summary{State: unused, OK: true, Message: "no route of a Gateway refers to what the policy targets"}
	}
	for _, a := range s.Ancestors {
		sum := summarize("Accepted", a.Conditions)
		if sum.OK {
			continue
		}
		if len(s.Ancestors) > 1 {
			sum.Message = kindOf(a.AncestorRef) + " " + string(a.AncestorRef.Name) + ": " + sum.Message
		}
		return sum
	}
	return Summary{State: "Accepted", OK: true}
}

// kindOf is the kind of an ancestor.
func kindOf(ref gwv1.ParentReference) string {
	if ref.Kind == nil {
		return kind.Gateway.Name()
	}
	return string(*ref.Kind)
}

// inheritedSummary says of a policy that it is in force, or why it is not.
func inheritedSummary(s *gwv1.PolicyStatus) Summary {
	if len(s.Ancestors) == 0 {
		return Summary{State: unused, OK: true, Message: "nothing that a Gateway serves is among what the policy targets"}
	}
	out := policySummary(s)
	if !out.OK {
		return out
	}
	for _, a := range s.Ancestors {
		if programmed := summarize(string(condition.PolicyConditionProgrammed), a.Conditions); !programmed.OK {
			switch gwv1.PolicyConditionReason(programmed.State) {
			case condition.PolicyReasonPending, gwv1.PolicyReasonInvalid: // something else is needed
			default:
				programmed.OK = true // it is as somebody has asked for
			}
			return programmed
		}
	}
	out = Summary{State: "Programmed", OK: true}
	for _, a := range s.Ancestors {
		if accepted, ok := condition.Find(a.Conditions, string(gwv1.PolicyConditionAccepted)); ok && out.Message == "" {
			out.Message = condition.PolicyNotes(accepted)
		}
	}
	return out
}

func xBackendSummary(s *gwxv1alpha1.BackendStatus) Summary {
	if len(s.Ancestors) == 0 {
		return Summary{State: unused, OK: true, Message: "no route of a Gateway refers to the backend"}
	}
	// What is wrong with a backend is the same for all Gateways.
	return summarize("Accepted", s.Ancestors[0].Conditions)
}
