package view

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
)

// TestAuthSummary protects those who are alerted: a policy that others override is as they
// have asked for, and needs nobody. What needs somebody on one Gateway is told although the
// policy waits, or is overridden, on another one.
func TestAuthSummary(t *testing.T) {
	accepted, by := condition.InheritedPolicyAccepted(), []string{"AuthPolicy infra/lock"}
	invalid := condition.AuthPolicyInvalid([]string{"spec.x is wrong"})
	on := func(programmed metav1.Condition) []metav1.Condition { return []metav1.Condition{accepted, programmed} }
	inForce, overridden := on(condition.PolicyProgrammed(nil)), on(condition.PolicyOverridden(by))
	partly, waits := on(condition.PolicyProgrammed(by)), on(condition.PolicyPending("infra/web", 0, 0, "", nil))
	partlyWaits := on(condition.PolicyPending("infra/web", 1, 2, "it is slow", by))
	const nobody = "nobody passes by clientCertificate on listener https, where certificates of clients are not verified: set spec.tls.frontend of the Gateway"
	const except = "The policy is in force, except where others take its place: AuthPolicy infra/lock"
	unverified := on(condition.PolicyUnverified(condition.PolicyProgrammed(nil), []string{"https"}))
	unverifiedWaits := on(condition.PolicyUnverified(condition.PolicyPending("infra/web", 0, 0, "", by), []string{"https"}))
	partial := condition.AuthPolicyPartial([]string{"line 2 is not name:hash"})
	broken := []metav1.Condition{invalid, condition.PolicyNotProgrammed(invalid)}
	lost := []metav1.Condition{condition.PolicyUnusable("no such target")}
	for name, test := range map[string]struct {
		ancestors     [][]metav1.Condition
		state         string // with proxies
		ok, attention bool
		alone         string // without
		message       string // without
	}{
		"in force":                {[][]metav1.Condition{inForce}, "Programmed", true, false, "Accepted", ""},
		"overridden":              {[][]metav1.Condition{overridden}, "Overridden", true, false, "Overridden", "Overridden by AuthPolicy infra/lock"},
		"overridden in part":      {[][]metav1.Condition{partly}, "Programmed", true, false, "Accepted", except},
		"waits":                   {[][]metav1.Condition{waits}, "Pending", false, false, "Accepted", ""},
		"waits in part":           {[][]metav1.Condition{partlyWaits}, "Pending", false, false, "Accepted", except},
		"unverified":              {[][]metav1.Condition{unverified}, "Programmed", true, false, "Accepted", nobody},
		"unverified, waits":       {[][]metav1.Condition{unverifiedWaits}, "Pending", false, false, "Accepted", except + "; " + nobody},
		"broken":                  {[][]metav1.Condition{broken}, "Invalid", false, true, "Invalid", invalid.Message},
		"but for an entry":        {[][]metav1.Condition{{partial, condition.PolicyProgrammed(nil)}}, "PartiallyInvalid", false, true, "PartiallyInvalid", partial.Message},
		"but for one, waits":      {[][]metav1.Condition{{partial, waits[1]}}, "Pending", false, false, "PartiallyInvalid", partial.Message},
		"waits, then overridden":  {[][]metav1.Condition{waits, overridden}, "Pending", false, false, "Overridden", "Gateway web-1: Overridden by AuthPolicy infra/lock"},
		"overridden, then broken": {[][]metav1.Condition{overridden, lost}, "Invalid", false, true, "Invalid", "Gateway web-1: no such target"},
		"in force, then unserved": {[][]metav1.Condition{inForce, on(condition.PolicyUnserved())}, "NoRoutes", true, false, "NoRoutes", "Gateway web-1: " + condition.PolicyUnserved().Message},
	} {
		s := &gwv1.PolicyStatus{}
		for i, conditions := range test.ancestors {
			ref := gwv1.ParentReference{Name: gwv1.ObjectName([]string{"web-0", "web-1"}[i])}
			s.Ancestors = append(s.Ancestors, gwv1.PolicyAncestorStatus{AncestorRef: ref, Conditions: conditions})
		}
		sum := summaryOf(kind.All.StatusOf(kind.AuthPolicy), s) // which alerts stand on
		if _, _, bad := sum.Trouble(); sum.State != test.state || sum.OK != test.ok || bad != test.attention {
			t.Errorf("%s: %+v, want %+v", name, sum, test)
		}
		it := Item{Status: s, kind: kind.All.Of(kind.AuthPolicy)}
		it.WithoutProxies()
		if it.Summary.State != test.alone || it.Summary.Message != test.message {
			t.Errorf("%s, without proxies: %+v, want %+v", name, it.Summary, test)
		}
	}
}
