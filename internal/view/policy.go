package view

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	poolsv1 "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
)

// unused is the state of a policy that no Gateway is concerned with.
const unused = "Unused"

// policySummary says of a policy that it is accepted and in force, or why it is not: of the
// Gateways that it concerns, where most is amiss.
func policySummary(s *gwv1.PolicyStatus) Summary {
	if len(s.Ancestors) == 0 {
		return Summary{State: unused, OK: true, Message: "no route of a Gateway refers to what the policy targets"}
	}
	var out Summary
	for i, a := range s.Ancestors {
		sum := policyOn(a.Conditions)
		if sum.Message != "" && len(s.Ancestors) > 1 {
			sum.Message = kindOf(a.AncestorRef) + " " + string(a.AncestorRef.Name) + ": " + sum.Message
		}
		if i == 0 || amiss(sum) > amiss(out) {
			out = sum
		}
	}
	return out
}

// kindOf is the kind of an ancestor.
func kindOf(ref gwv1.ParentReference) string {
	if ref.Kind == nil {
		return kind.Gateway.Name()
	}
	return string(*ref.Kind)
}

// inheritedSummary says of a policy that is inherited that it is in force, or why it is not.
func inheritedSummary(s *gwv1.PolicyStatus) Summary {
	out := policySummary(s)
	if out.State == unused {
		out.Message = "nothing that a Gateway serves is among what the policy targets"
	}
	return out
}

// policyOn is policySummary for one Gateway. That others have taken the place of a policy, or
// that nothing is served that it could be for, is as somebody has asked for.
func policyOn(conditions []metav1.Condition) Summary {
	accepted := find(conditions, string(gwv1.PolicyConditionAccepted))
	programmed := find(conditions, string(condition.PolicyConditionProgrammed))
	if programmed == nil || accepted == nil || !condition.Good(*accepted) {
		return summarize(string(gwv1.PolicyConditionAccepted), conditions)
	}
	sum := Summary{State: programmed.Reason, Message: programmed.Message}
	switch gwv1.PolicyConditionReason(programmed.Reason) {
	case condition.PolicyReasonPending, condition.PolicyReasonServiceUnavailable, gwv1.PolicyReasonInvalid: // something else is needed
	case condition.PolicyReasonProgrammed:
		sum.OK, sum.Message = true, condition.PolicyNotes(*accepted)
		for _, note := range []string{condition.PolicyExceptions(*programmed), condition.PolicyUnverifiedNote(*programmed)} {
			if note != "" {
				sum.Message = strings.TrimPrefix(sum.Message+"; "+note, "; ")
			}
		}
		if accepted.Reason == string(condition.PolicyReasonPartiallyInvalid) {
			sum = Summary{State: accepted.Reason, Message: accepted.Message}
		}
	default:
		sum.OK = true
	}
	return sum
}

// amiss grades states: one with which something is wrong, one that waits, one that is not what
// the policy says, one that is.
func amiss(s Summary) int {
	switch {
	case !s.OK && s.State != pending:
		return 3
	case !s.OK:
		return 2
	case s.Message != "":
		return 1
	default:
		return 0
	}
}

// WithoutProxies has the summary say what all policies together make of a policy that is inherited,
// where there is no proxy that it could wait for.
func (it *Item) WithoutProxies() {
	told, ok := it.Status.(*gwv1.PolicyStatus)
	if !ok || !it.kind.Inherited {
		return
	}
	told = told.DeepCopy()
	for i := range told.Ancestors {
		for j, c := range told.Ancestors[i].Conditions {
			told.Ancestors[i].Conditions[j] = condition.PolicyAcknowledged(c)
		}
	}
	sum := inheritedSummary(told)
	if sum.State == string(condition.PolicyReasonProgrammed) {
		sum.State = string(gwv1.PolicyConditionAccepted)
	}
	it.Summary.State, it.Summary.OK, it.Summary.Message = sum.State, sum.OK, sum.Message
}

func poolSummary(s *poolsv1.InferencePoolStatus) Summary {
	if len(s.Parents) == 0 {
		return Summary{State: unused, OK: true, Message: "no route of a Gateway refers to the pool"}
	}
	// What is wrong with a pool is the same for all Gateways.
	return summarize("Accepted", s.Parents[0].Conditions)
}

func xBackendSummary(s *gwxv1alpha1.BackendStatus) Summary {
	if len(s.Ancestors) == 0 {
		return Summary{State: unused, OK: true, Message: "no route of a Gateway refers to the backend"}
	}
	// What is wrong with a backend is the same for all Gateways.
	return summarize("Accepted", s.Ancestors[0].Conditions)
}
