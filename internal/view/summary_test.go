package view

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
)

// TestSampleCall protects the commands to try: what they ask gets through.
func TestSampleCall(t *testing.T) {
	named := func(service, method string) gwv1.GRPCRouteMatch {
		return gwv1.GRPCRouteMatch{Method: &gwv1.GRPCMethodMatch{Service: &service, Method: &method}}
	}
	regex := named("a.*", "b.*")
	regex.Method.Type = new(gwv1.GRPCMethodMatchRegularExpression)
	withHeader := gwv1.GRPCRouteMatch{Headers: []gwv1.GRPCHeaderMatch{{Name: "a", Value: "b"}}}
	for name, test := range map[string]struct {
		matches []gwv1.GRPCRouteMatch
		want    string
	}{
		"no matches":    {nil, ""},
		"everything":    {[]gwv1.GRPCRouteMatch{{}, named("a.A", "Get")}, "a.A/Get"},
		"a method":      {[]gwv1.GRPCRouteMatch{withHeader, regex, named("a.A", "Get"), named("b.B", "Get")}, "a.A/Get"},
		"a service":     {[]gwv1.GRPCRouteMatch{named("a.A", "")}, "a.A/METHOD"},
		"a method only": {[]gwv1.GRPCRouteMatch{named("", "Get")}, "SERVICE/Get"},
		"nothing plain": {[]gwv1.GRPCRouteMatch{withHeader, regex}, ""},
	} {
		r := &gwv1.GRPCRoute{Spec: gwv1.GRPCRouteSpec{Rules: []gwv1.GRPCRouteRule{{Matches: test.matches, BackendRefs: make([]gwv1.GRPCBackendRef, 1)}}}}
		if got := sampleCall(r, unguarded); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	if got := sampleCall(&gwv1.HTTPRoute{}, unguarded); got != "" {
		t.Errorf("an HTTPRoute has the call %q", got)
	}
}

// unguarded says that AuthPolicies guard no rule but those of a name.
func unguarded(rule *gwv1.SectionName) bool { return rule == nil }

// What a person is told to try works: no path that is guarded, that leads nowhere, or that
// asks for a header as well.
func TestSampleIsAnswered(t *testing.T) {
	rule := func(path string, weight int32, filters ...gwv1.HTTPRouteFilterType) gwv1.HTTPRouteRule {
		out := gwv1.HTTPRouteRule{Matches: []gwv1.HTTPRouteMatch{{Path: &gwv1.HTTPPathMatch{Value: &path}}}}
		out.BackendRefs = []gwv1.HTTPBackendRef{{BackendRef: gwv1.BackendRef{Weight: &weight}}}
		for _, f := range filters {
			out.Filters = append(out.Filters, gwv1.HTTPRouteFilter{Type: f})
		}
		return out
	}
	guarded, idle, open := rule("/admin", 1, gwv1.HTTPRouteFilterExternalAuth), rule("/idle", 0), rule("/open", 1)
	moved := gwv1.HTTPRouteRule{Filters: []gwv1.HTTPRouteFilter{{Type: gwv1.HTTPRouteFilterRequestRedirect}}}
	withPolicy := rule("/policy", 1)
	withPolicy.Name = new(gwv1.SectionName("policy"))
	withHeader := rule("/header", 1)
	withHeader.Matches[0].Headers = []gwv1.HTTPHeaderMatch{{Name: "a", Value: "b"}}
	for name, test := range map[string]struct {
		rules    []gwv1.HTTPRouteRule
		path     string
		redirect bool
	}{
		"the first that answers": {[]gwv1.HTTPRouteRule{guarded, idle, withHeader, withPolicy, open}, "/open", false},
		"a redirect":             {[]gwv1.HTTPRouteRule{moved}, "/", true},
		"none":                   {[]gwv1.HTTPRouteRule{guarded, idle, withHeader, withPolicy}, "", false},
	} {
		path, redirect := sample(&gwv1.HTTPRoute{Spec: gwv1.HTTPRouteSpec{Rules: test.rules}}, unguarded)
		if path != test.path || redirect != test.redirect {
			t.Errorf("%s: %q, %v; want %q, %v", name, path, redirect, test.path, test.redirect)
		}
	}
}

// A call that a person is told to try is answered, too: by no rule that is guarded or leads
// nowhere.
func TestSampleCallIsAnswered(t *testing.T) {
	rule := func(service string, weight int32, filters ...gwv1.GRPCRouteFilter) gwv1.GRPCRouteRule {
		out := gwv1.GRPCRouteRule{Filters: filters, BackendRefs: []gwv1.GRPCBackendRef{{BackendRef: gwv1.BackendRef{Weight: &weight}}}}
		if service != "" {
			out.Matches = []gwv1.GRPCRouteMatch{{Method: &gwv1.GRPCMethodMatch{Service: &service}}}
		}
		return out
	}
	guard := gwv1.GRPCRouteFilter{Type: gwv1.GRPCRouteFilterExtensionRef}
	for name, test := range map[string]struct {
		rules []gwv1.GRPCRouteRule
		call  string
	}{
		"the first that answers": {[]gwv1.GRPCRouteRule{rule("admin", 1, guard), rule("idle", 0), rule("open", 1)}, "open/METHOD"},
		"a method before any":    {[]gwv1.GRPCRouteRule{rule("", 1), rule("open", 1)}, "open/METHOD"},
		"every call":             {[]gwv1.GRPCRouteRule{rule("", 1)}, ""},
		"none":                   {[]gwv1.GRPCRouteRule{rule("", 1, guard), rule("", 0), {}}, ""},
	} {
		if call := sampleCall(&gwv1.GRPCRoute{Spec: gwv1.GRPCRouteSpec{Rules: test.rules}}, unguarded); call != test.call {
			t.Errorf("%s: %q, want %q", name, call, test.call)
		}
	}
}

// TestGatewayNotes protects whoever changed the pods of a fleet: the old ones serve, and
// the row says that the new ones don't come.
func TestGatewayNotes(t *testing.T) {
	rollout := condition.NoteRollout(1, 2, "Pod default/web can't be scheduled: 0/3 nodes are available")
	behind := condition.NoteBehind(1, 3, "Pod default/web-1 has not answered the newest clusters; see its log")
	for _, test := range []struct {
		programmed metav1.Condition
		message    string
	}{
		{condition.GatewayProgrammed(), ""},
		{condition.Noted(condition.GatewayProgrammed(), rollout), rollout},
		{condition.Noted(condition.GatewayProgrammed(), behind), behind},
	} {
		s := &gwv1.GatewayStatus{Conditions: []metav1.Condition{condition.GatewayAccepted(), test.programmed}}
		if sum := gatewaySummary(s); !sum.OK || sum.State != "Programmed" || sum.Message != test.message {
			t.Errorf("%+v, want %q", sum, test.message)
		}
	}
}

// TestDeletedClassIsShown protects whoever installs again while a class is being deleted:
// it serves, and the rows of class and Gateway say that it will go.
func TestDeletedClassIsShown(t *testing.T) {
	note := condition.NoteClassDeleted("web")
	class := classSummary(&gwv1.GatewayClassStatus{Conditions: []metav1.Condition{condition.Noted(condition.ClassAccepted(), note)}})
	if !class.OK || class.Message != note {
		t.Errorf("%+v, want %q", class, note)
	}
	gateway := gatewaySummary(&gwv1.GatewayStatus{Conditions: []metav1.Condition{condition.Noted(condition.GatewayAccepted(), note), condition.GatewayProgrammed()}})
	if !gateway.OK || gateway.Message != note {
		t.Errorf("%+v, want %q", gateway, note)
	}
}

// TestPolicyNotes protects whoever looks why a new key of an issuer is not taken: the policy is
// in force with the old ones, and the row says so.
func TestPolicyNotes(t *testing.T) {
	note := condition.NoteKeySetKept("spec.authentication[a].jwt", "https://id.example/keys answered 503 (text/plain)", time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC))
	for _, test := range []struct {
		accepted metav1.Condition
		message  string
	}{
		{condition.InheritedPolicyAccepted(), ""},
		{condition.Noted(condition.InheritedPolicyAccepted(), note), note},
	} {
		s := &gwv1.PolicyStatus{Ancestors: []gwv1.PolicyAncestorStatus{{Conditions: []metav1.Condition{test.accepted, condition.PolicyProgrammed(nil)}}}}
		if sum := inheritedSummary(s); !sum.OK || sum.State != "Programmed" || sum.Message != test.message {
			t.Errorf("%+v, want %q", sum, test.message)
		}
	}
}

// TestListenerNotes protects whoever has to renew a certificate: nothing is wrong with its
// listener yet, and the row says when it will be.
func TestListenerNotes(t *testing.T) {
	end := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	expires := condition.NoteCertificateExpires("default/web", end)
	others := condition.NoteCertificateNames("a.example", []string{"b.example"})
	missing := condition.Noted(condition.ListenerCertificateMissing(condition.Missing{Kind: "Secret", Namespace: "default", Name: "web"}), condition.NoteCertificateKept(end, end.Add(-time.Hour)))
	for _, test := range []struct {
		resolved       metav1.Condition
		ok             bool
		message, notes string
	}{
		{condition.ListenerResolvedRefs(), true, "", ""},
		{condition.Noted(condition.ListenerResolvedRefs(), others, expires), true, "", others + "; " + expires},
		{condition.ListenerNotResolved([]metav1.Condition{missing}), false, missing.Message, ""},
	} {
		status := &gwv1.GatewayStatus{Listeners: []gwv1.ListenerStatus{{
			Name: "https", Conditions: []metav1.Condition{condition.ListenerAccepted(), test.resolved, condition.ListenerProgrammed()},
		}}}
		row := gatewaySummary(status).Listeners[0]
		if row.OK != test.ok || row.Message != test.message || row.Notes != test.notes {
			t.Errorf("%+v, want %+v", row, test)
		}
	}
}
