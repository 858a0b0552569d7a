package condition

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// KindConflicted says that another policy of a kind takes precedence on a target.
func KindConflicted(kind, target, winner string) metav1.Condition {
	return no(gwv1.PolicyConditionAccepted, gwv1.PolicyReasonConflicted,
		fmt.Sprintf("%s %s targets %s too, and takes precedence; remove one of the two", kind, winner, target))
}

// policyReasonAffected is the reason of the condition that says what policies target (GEP-713).
const policyReasonAffected gwv1.PolicyConditionReason = "PolicyAffected"

// policyAffected is the type of the condition of what policies of a kind target.
func policyAffected(kind string) string { return "gatehouse.dev/" + kind + "Affected" }

// PolicyAffected says which policies of a kind target an object: by name those that whoever
// reads it may know, and how many others.
func PolicyAffected(kind string, names []string, others int) metav1.Condition {
	if n := len(names) - maxProblems; n > 0 {
		names = append(slices.Clone(names[:maxProblems]), fmt.Sprintf("%d more", n))
	}
	if others > 0 {
		names = append(slices.Clone(names), fmt.Sprintf("%d of other namespaces", others))
	}
	return yes(gwv1.PolicyConditionType(policyAffected(kind)), policyReasonAffected,
		fmt.Sprintf("Object affected by %s %s", kind, strings.Join(names, ", ")))
}

// PolicyTargetMissing says that the object that a policy targets does not exist.
func PolicyTargetMissing(m Missing) metav1.Condition {
	text := m.text("targetRefs")
	if m.At == "" && m.Elsewhere != "" { // where no policy reaches
		text = fmt.Sprintf("%s does not exist, but %s/%s does; a policy is for objects of its own namespace: correct metadata.namespace or targetRefs", m, m.Elsewhere, m.Name)
	}
	return no(gwv1.PolicyConditionAccepted, gwv1.PolicyReasonTargetNotFound, text)
}

// PolicySectionMissing says that an object has no section of that name; word is what its
// sections are called, names are those that it has, and near is the one that may be meant, empty
// for none.
func PolicySectionMissing(object, word, section, near string, names []string) metav1.Condition {
	have, correct := "its "+word+"s have no names", "; correct sectionName"
	if len(names) > 0 {
		have = "it has " + quoted(names)
	}
	if near != "" {
		correct = fmt.Sprintf("; did you mean %q? Correct sectionName", near)
	}
	return no(gwv1.PolicyConditionAccepted, gwv1.PolicyReasonTargetNotFound,
		fmt.Sprintf("%s has no %s named %q; %s%s", object, word, section, have, correct))
}

// SelectorWithoutLabels says of a selector, by its field, that it has no labels.
func SelectorWithoutLabels(field string) string {
	return field + ".matchLabels has no labels, and selects nothing; write those that what the policy is for has"
}

// TooManySelected says that a policy selects more than it may, and what becomes of the others.
func TooManySelected(selected, beyond int, others string) string {
	return fmt.Sprintf("spec.targetSelectors select %d objects, and a policy may select %d; %s: target what they are attached to, or write several policies", selected, selected-beyond, others)
}

// NothingSelected says that no object of a kind and namespace has some labels.
func NothingSelected(kind, namespace, labels string) string {
	if labels == "" {
		return fmt.Sprintf("a selector of %ss without matchLabels selects nothing", kind)
	}
	return fmt.Sprintf("no %s of namespace %s has the labels %s", kind, namespace, labels)
}

// PolicySelectsNothing says which selectors of a policy select nothing.
func PolicySelectsNothing(idle []string) metav1.Condition {
	text := strings.Join(idle, ", and ")
	return no(gwv1.PolicyConditionAccepted, gwv1.PolicyReasonTargetNotFound,
		strings.ToUpper(text[:1])+text[1:]+"; label what the policy is for, or correct targetSelectors")
}

// Unguarded is the condition of a policy without its target, where the policy says who may pass.
func Unguarded(missing metav1.Condition) metav1.Condition {
	missing.Message += "; what it was to guard is not guarded by it"
	return missing
}

// PolicyUnusable says why a policy can't be used.
func PolicyUnusable(why string) metav1.Condition {
	return no(gwv1.PolicyConditionAccepted, gwv1.PolicyReasonInvalid, why)
}
