package view

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// pending is the state of what only waits for a proxy. It is neither good nor bad.
const pending = "Pending"

// Trouble says what is wrong with an object, its listeners included. What only
// waits for a proxy is not wrong.
func (s Summary) Trouble() (reason, message string, bad bool) {
	// A listener that has something to say is nearer to the cause than the Gateway,
	// whose own condition only counts.
	for _, l := range s.Listeners {
		if l.OK || l.State == pending || l.Message == "" || bad && l.State == condition.ReasonWaiting {
			continue
		}
		if reason, message, bad = l.State, "listener "+l.Name+": "+l.Message, true; reason != condition.ReasonWaiting {
			return reason, message, true
		}
	}
	if bad {
		return reason, message, true
	}
	if !s.OK && s.State != pending {
		return s.State, s.Message, true
	}
	if s.RefusedEdit != "" { // what is in force of it may yet wait for a proxy
		return refusedEdit, s.Message, true
	}
	return "", "", false
}

// Settled reports whether nothing is wrong and nothing waits.
func (s Summary) Settled() bool {
	for _, l := range s.Listeners {
		if !l.OK {
			return false
		}
	}
	return s.OK
}

// summarize boils conditions down to one word: the name of the good state where
// all is well, else the reason of the first thing that is not.
func summarize(good string, list []metav1.Condition) Summary {
	if c := find(list, good); c == nil {
		return Summary{State: pending}
	}
	for _, c := range list {
		if !condition.Good(c) {
			return Summary{State: c.Reason, Message: c.Message}
		}
	}
	return Summary{State: good, OK: true}
}

func classSummary(s *gwv1.GatewayClassStatus) Summary {
	out := summarize("Accepted", s.Conditions)
	if accepted := find(s.Conditions, "Accepted"); out.OK && accepted != nil {
		out.Message = condition.DeletedClass(*accepted)
	}
	return out
}

// gatewaySummary tells what the status alone tells: where the listeners are is
// not in it.
func gatewaySummary(s *gwv1.GatewayStatus) Summary {
	out := summarize("Programmed", s.Conditions)
	if programmed := find(s.Conditions, out.State); out.OK && programmed != nil {
		out.Message = condition.GatewayNotes(*programmed)
	}
	accepted := find(s.Conditions, string(gwv1.GatewayConditionAccepted))
	if out.OK && accepted != nil {
		if note := condition.DeletedClass(*accepted); note != "" {
			out.Message = strings.TrimPrefix(out.Message+"; "+note, "; ")
		}
	}
	// Unless it is they that are at fault, the listeners of a Gateway that is not
	// accepted only repeat why.
	refused := accepted != nil && accepted.Status != metav1.ConditionTrue &&
		accepted.Reason != string(gwv1.GatewayReasonListenersNotValid)
	for _, l := range s.Listeners {
		row := listenerSummary(string(l.Name), l.AttachedRoutes, l.Conditions)
		if refused {
			row.State, row.OK, row.Message = out.State, false, ""
		}
		out.Listeners = append(out.Listeners, row)
	}
	return out
}

// setSummary is gatewaySummary for a ListenerSet, whose own trouble is that of its
// Gateway or of its listeners.
func setSummary(s *gwv1.ListenerSetStatus) Summary {
	out := summarize("Programmed", s.Conditions)
	for _, l := range s.Listeners {
		out.Listeners = append(out.Listeners, listenerSummary(string(l.Name), l.AttachedRoutes, l.Conditions))
	}
	return out
}

func listenerSummary(name string, routes int32, list []metav1.Condition) ListenerRow {
	sum := summarize("Programmed", list)
	row := ListenerRow{Name: name, Routes: routes, State: sum.State, OK: sum.OK, Message: sum.Message}
	if resolved := find(list, string(gwv1.ListenerConditionResolvedRefs)); resolved != nil {
		row.Notes = condition.ListenerNotes(*resolved)
	}
	return row
}

func routeSummary(s *gwv1.RouteStatus) Summary {
	for _, parent := range s.Parents {
		sum := summarize("Accepted", parent.Conditions)
		if sum.OK {
			continue
		}
		if len(s.Parents) > 1 {
			sum.Message = parentName(parent.ParentRef) + ": " + sum.Message
		}
		return sum
	}
	out := Summary{State: "Accepted", OK: true}
	for _, parent := range s.Parents {
		if accepted := find(parent.Conditions, "Accepted"); accepted != nil && out.Message == "" {
			out.Message = condition.RouteNotes(*accepted)
		}
	}
	return out
}

// parentName names a parent in messages.
func parentName(ref gwv1.ParentReference) string {
	if ref.Kind != nil && string(*ref.Kind) != kind.Gateway.Name() {
		return "parent " + string(*ref.Kind) + " " + string(ref.Name)
	}
	return "parent " + string(ref.Name)
}

// sample returns a path that a route takes, for a person to try, and whether the
// answer will be a redirect. Only HTTPRoutes have one. It is empty where every rule asks
// for more than a path, is guarded, or leads nowhere. open says of a rule's name whether
// AuthPolicies let everybody pass.
func sample(o topology.RouteObject, open func(rule *gwv1.SectionName) bool) (path string, redirect bool) {
	r, ok := o.(*gwv1.HTTPRoute)
	if !ok {
		return "", false
	}
	for _, rule := range r.Spec.Rules {
		filtered := func(by gwv1.HTTPRouteFilterType) bool {
			return slices.ContainsFunc(rule.Filters, func(f gwv1.HTTPRouteFilter) bool { return f.Type == by })
		}
		redirect := filtered(gwv1.HTTPRouteFilterRequestRedirect)
		if filtered(gwv1.HTTPRouteFilterExternalAuth) || !redirect && !leads(rule.BackendRefs, func(r gwv1.HTTPBackendRef) *int32 { return r.Weight }) {
			continue
		}
		if path, ok := plainPath(rule.Matches); ok && open(rule.Name) {
			return path, redirect
		}
	}
	return "", false
}

// leads reports whether one of the backends gets requests.
func leads[R any](refs []R, weight func(R) *int32) bool {
	return slices.ContainsFunc(refs, func(r R) bool {
		w := weight(r)
		return w == nil || *w > 0
	})
}

// sampleCall returns a method that a person can call of a GRPCRoute. It is empty where it takes
// every call, since few servers list theirs, where metadata or expressions decide, where every
// rule is guarded or leads nowhere, and for other kinds. open is as of sample.
func sampleCall(o topology.RouteObject, open func(rule *gwv1.SectionName) bool) string {
	r, ok := o.(*gwv1.GRPCRoute)
	if !ok {
		return ""
	}
	for _, rule := range r.Spec.Rules {
		guarded := slices.ContainsFunc(rule.Filters, func(f gwv1.GRPCRouteFilter) bool { return f.Type == gwv1.GRPCRouteFilterExtensionRef })
		if guarded || !open(rule.Name) || !leads(rule.BackendRefs, func(r gwv1.GRPCBackendRef) *int32 { return r.Weight }) {
			continue
		}
		for _, m := range rule.Matches {
			if len(m.Headers) == 0 && m.Method != nil && (m.Method.Type == nil || *m.Method.Type == gwv1.GRPCMethodMatchExact) {
				return callOf(m.Method)
			}
		}
	}
	return ""
}

// callOf names a method; what the match leaves open is for the person to fill in.
func callOf(m *gwv1.GRPCMethodMatch) string {
	service, method := "SERVICE", "METHOD"
	if m.Service != nil && *m.Service != "" {
		service = *m.Service
	}
	if m.Method != nil && *m.Method != "" {
		method = *m.Method
	}
	return service + "/" + method
}

// plainPath returns a path that is enough to match one of the matches.
func plainPath(matches []gwv1.HTTPRouteMatch) (string, bool) {
	if len(matches) == 0 {
		return "/", true
	}
	for _, m := range matches {
		plain := len(m.Headers) == 0 && len(m.QueryParams) == 0 && m.Method == nil
		if !plain || m.Path != nil && m.Path.Type != nil && *m.Path.Type == gwv1.PathMatchRegularExpression {
			continue
		}
		if m.Path == nil || m.Path.Value == nil {
			return "/", true
		}
		return *m.Path.Value, true
	}
	return "", false
}
