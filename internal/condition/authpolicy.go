package condition

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// PolicyConditionProgrammed is the type of the condition that says whether a policy is in
// force (GEP-713).
const PolicyConditionProgrammed gwv1.PolicyConditionType = "Programmed"

// The reasons of a policy's Programmed condition (GEP-713).
const (
	PolicyReasonProgrammed gwv1.PolicyConditionReason = "Programmed"
	PolicyReasonOverridden gwv1.PolicyConditionReason = "Overridden"
	PolicyReasonPending    gwv1.PolicyConditionReason = "Pending"
	PolicyReasonNoRoutes   gwv1.PolicyConditionReason = "NoRoutes"
	// PolicyReasonServiceUnavailable is of a policy that proxies have, and that what they ask can't enforce now.
	PolicyReasonServiceUnavailable gwv1.PolicyConditionReason = "ServiceUnavailable"
)

// PolicyReasonPartiallyInvalid is the reason of the Accepted condition of a policy that is in force
// but for entries of its Secrets.
const PolicyReasonPartiallyInvalid gwv1.PolicyConditionReason = "PartiallyInvalid"

// maxProblems is how many problems of a policy a condition tells.
const maxProblems = 8

// AuthPolicyInvalid says what is wrong with an AuthPolicy. What of it is broken, a rule or an
// entry of a Secret, lets nobody pass.
func AuthPolicyInvalid(problems []string) metav1.Condition {
	return no(gwv1.PolicyConditionAccepted, gwv1.PolicyReasonInvalid, joined(problems)+". By a rule or an entry that is broken nobody passes; the others are in force")
}

// AuthPolicyPartial says which entries of its Secrets are broken, of a policy that is in force
// but for them.
func AuthPolicyPartial(entries []string) metav1.Condition {
	return yes(gwv1.PolicyConditionAccepted, PolicyReasonPartiallyInvalid, "The policy is in force, but for entries by which nobody passes: "+joined(entries))
}

// AuthPolicyWithoutPaths has the condition of an AuthPolicy that is in force say of which paths of its
// login others have.
func AuthPolicyWithoutPaths(accepted metav1.Condition, taken []string) metav1.Condition {
	accepted.Reason = string(PolicyReasonPartiallyInvalid)
	return Noted(accepted, taken...)
}

// AuthPolicyEmpty is AuthPolicyInvalid of a policy without rules.
func AuthPolicyEmpty(problems []string) metav1.Condition {
	return no(gwv1.PolicyConditionAccepted, gwv1.PolicyReasonInvalid, joined(problems)+". Until it has some, nobody passes where it is for")
}

// joined are problems in one sentence, the first of them where there are many.
func joined(problems []string) string { return upTo(maxProblems, problems, "; ", "; and %d more") }

// InheritedTargetKind says of a field that a policy of a kind can't be for objects of another kind.
func InheritedTargetKind(policy, field, kind string) string {
	return fmt.Sprintf("%s is a %s; %s is for a Gateway, a ListenerSet, an HTTPRoute or a GRPCRoute", field, kind, withArticle(policy))
}

// withArticle puts an indefinite article before the name of a kind.
func withArticle(kind string) string {
	if strings.ContainsRune("AEIO", rune(kind[0])) {
		return "an " + kind
	}
	return "a " + kind
}

// KeySetNotFetched says that the keys of an issuer never could be fetched.
func KeySetNotFetched(field, why string) string {
	return field + ": the keys of the issuer can't be fetched, and none are known: " + why
}

// NoLogin says that the configuration of an issuer, at a URL, doesn't say how people log in.
func NoLogin(field, url string) string {
	return field + ".issuer: " + url + " names no authorization_endpoint, or no token_endpoint that can be used, so that nobody can log in; a host of the cluster needs backendRef"
}

// TakenPath says who has a path of a login on a host, for NoteCallbackTaken and NoteLogoutTaken.
func TakenPath(host, by string) string { return by + " has it on " + host }

// NoteCallbackTaken says where others have the path by which people come back from the issuer.
func NoteCallbackTaken(field, path string, where []string) string {
	return takenPath(field+".callbackPath", path, where, "nobody can log in there by this policy; choose another path, and register it with the provider")
}

// NoteLogoutTaken says where others have the path by which people log out.
func NoteLogoutTaken(field, path string, where []string) string {
	return takenPath(field+".logoutPath", path, where, "nobody can log out there of what this policy guards; choose another path")
}

func takenPath(field, path string, where []string, so string) string {
	return fmt.Sprintf("%s: %s is taken: %s, so that %s", field, path, upTo(maxProblems, where, ", ", " and so on at %d more"), so)
}

// NoteKeySetKept says that the keys of an issuer can't be fetched anew, and since is when those
// in force were.
func NoteKeySetKept(field, why string, since time.Time) string {
	return field + ": the keys of the issuer can't be fetched anew: " + why + ". Those of " + since.UTC().Format(time.RFC3339) + keySetKept
}

// keySetKept is a part of messages by which Events are told.
const keySetKept = " stay in force"

// PolicyNotes is what an Accepted condition of a policy says beside that all is well; empty
// for nothing, and where not all is well.
func PolicyNotes(c metav1.Condition) string {
	notes, _ := strings.CutPrefix(c.Message, InheritedPolicyAccepted().Message+"; ")
	if notes == c.Message {
		return ""
	}
	return notes
}

// PolicyAwaiting says what a policy waits for. Overridden is as in PolicyProgrammed.
func PolicyAwaiting(what string, overridden []string) metav1.Condition {
	return no(PolicyConditionProgrammed, PolicyReasonPending, what+somewhere(overridden))
}

// PolicyServiceUnavailable says that a policy is not enforced as it says, since nobody answers whom proxies ask.
// Overridden is as in PolicyProgrammed.
func PolicyServiceUnavailable(why string, overridden []string) metav1.Condition {
	return no(PolicyConditionProgrammed, PolicyReasonServiceUnavailable, why+somewhere(overridden))
}

// ServiceUnready says that there is nobody to ask who may pass, so that nobody does.
func ServiceUnready(field, service string) string {
	return field + ": " + service + " has no endpoint that is ready, so that nobody passes whom it would be asked about"
}

// ServiceUnreadyOpen is ServiceUnready where requests pass by failureMode.
func ServiceUnreadyOpen(field, service string) string {
	return field + ": " + service + " has no endpoint that is ready, so that requests pass without it, by failureMode Open"
}

// ServicesUnready joins what ServiceUnready says of several; empty for none.
func ServicesUnready(services []string) string { return joined(services) }

// Fetching says that keys are being fetched; empty where none are.
func Fetching(urls []string) string {
	if len(urls) == 0 {
		return ""
	}
	return "Nobody passes by tokens whose keys are being fetched: " + strings.Join(urls[:min(len(urls), maxProblems)], ", ")
}

// Have lists what there is instead of what was asked for, for the end of a sentence.
func Have(names []string) string {
	switch {
	case len(names) == 0:
		return "; it is empty"
	case len(names) > maxProblems:
		return fmt.Sprintf("; it has %d others", len(names))
	}
	return "; it has " + quoted(names)
}

// InheritedPolicyAccepted says that a policy that is inherited is valid. Whether it is in force is
// for its Programmed condition to say.
func InheritedPolicyAccepted() metav1.Condition {
	return yes(gwv1.PolicyConditionAccepted, gwv1.PolicyReasonAccepted, "The policy is valid")
}

// PolicyProgrammed says that a policy is in force; overridden are who has taken the place of
// some of its rules, or of all of them somewhere. Somebody has chosen so: it is no fault.
func PolicyProgrammed(overridden []string) metav1.Condition {
	if len(overridden) == 0 {
		return yes(PolicyConditionProgrammed, PolicyReasonProgrammed, "All rules of the policy are in force")
	}
	return yes(PolicyConditionProgrammed, PolicyReasonProgrammed, exceptBy+strings.Join(overridden, ", "))
}

// exceptBy begins what PolicyProgrammed says of a policy that others override somewhere.
const exceptBy = "The policy is in force, except where others take its place: "

// PolicyExceptions is what PolicyProgrammed says of who overrides a policy somewhere; empty for
// nobody.
func PolicyExceptions(programmed metav1.Condition) string {
	if !strings.HasPrefix(programmed.Message, exceptBy) {
		return ""
	}
	message, _, _ := strings.Cut(programmed.Message, unverified)
	return message
}

// PolicyUnverified adds to what is said of a policy that nobody has a certificate on some
// listeners, since they verify none.
func PolicyUnverified(programmed metav1.Condition, listeners []string) metav1.Condition {
	if len(listeners) == 0 {
		return programmed
	}
	slices.Sort(listeners)
	listeners = slices.Compact(listeners)
	programmed.Message += unverified + strings.Join(listeners, ", ") +
		", where certificates of clients are not verified: set spec.tls.frontend of the Gateway"
	return programmed
}

// unverified begins what PolicyUnverified adds.
const unverified = "; nobody passes by clientCertificate on listener "

// PolicyUnverifiedNote is what PolicyUnverified has added to a condition; empty for nothing.
func PolicyUnverifiedNote(programmed metav1.Condition) string {
	if at := strings.Index(programmed.Message, unverified); at >= 0 {
		return strings.TrimPrefix(programmed.Message[at:], "; ")
	}
	return ""
}

// PolicyOverridden says who has taken the place of all that a policy says.
func PolicyOverridden(by []string) metav1.Condition {
	return no(PolicyConditionProgrammed, PolicyReasonOverridden, "Overridden by "+strings.Join(by, ", "))
}

// PolicyUnserved says that nothing is served that a policy could be for.
func PolicyUnserved() metav1.Condition {
	return no(PolicyConditionProgrammed, PolicyReasonNoRoutes, "No listener and no route is served that the policy could be for; if its target is a route, the route's status says why")
}

// PolicyPending says that not all proxies of a Gateway have what a policy says: how many of
// how many don't, and why not where that is known. Of none is where no proxy has answered.
// Overridden is as in PolicyProgrammed.
func PolicyPending(gateway string, behind, of int, why string, overridden []string) metav1.Condition {
	message := fmt.Sprintf("Waiting for a proxy of Gateway %s", gateway)
	if of > 0 {
		message = fmt.Sprintf("Waiting for proxies of Gateway %s: %d of %d have not acknowledged the policy", gateway, behind, of)
	}
	if why != "" {
		message += "; " + why
	}
	return no(PolicyConditionProgrammed, PolicyReasonPending, message+somewhere(overridden))
}

// overriddenSomewhere is a part of what PolicyPending says, before who has overridden.
const overriddenSomewhere = "; overridden somewhere by "

// somewhere says who has overridden a policy somewhere; nothing where nobody has.
func somewhere(overridden []string) string {
	if len(overridden) == 0 {
		return ""
	}
	return overriddenSomewhere + strings.Join(overridden, ", ")
}

// PolicyAcknowledged is a condition of a policy as it will be when no proxy is waited for any
// more.
func PolicyAcknowledged(c metav1.Condition) metav1.Condition {
	if c.Type != string(PolicyConditionProgrammed) || c.Reason != string(PolicyReasonPending) {
		return c
	}
	note := PolicyUnverifiedNote(c)
	message := c.Message
	if note != "" {
		note = "; " + note
		message = strings.TrimSuffix(message, note)
	}
	out := PolicyProgrammed(nil)
	if at := strings.LastIndex(message, overriddenSomewhere); at >= 0 {
		out = PolicyProgrammed([]string{message[at+len(overriddenSomewhere):]})
	}
	out.Message += note
	return out
}

// PolicyRefused says that a proxy refuses the configuration that has the policy.
func PolicyRefused(envoy string, keepsOld bool) metav1.Condition {
	return no(PolicyConditionProgrammed, gwv1.PolicyReasonInvalid,
		refusal(Refusal{Subject: "what the policy is for", Envoy: envoy, KeepsOld: keepsOld}))
}

// PolicyNotProgrammed says that a policy is not in force as it is. Its rules that can be used
// may be.
func PolicyNotProgrammed(accepted metav1.Condition) metav1.Condition {
	return no(PolicyConditionProgrammed, gwv1.PolicyConditionReason(accepted.Reason), "The policy is not accepted: "+accepted.Message)
}
