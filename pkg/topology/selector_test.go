package topology_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/pkg/topology"
)

// byLabels are color policies that select routes by labels, "a=b,c=d", in an annotation.
func byLabels() topology.Kind[*ColorPolicy, string] {
	k := colors(false)
	k.Selectors = func(o *ColorPolicy) (out []topology.Selector) {
		of, labels, ok := strings.Cut(o.Annotations["for"], " ")
		if !ok {
			return nil
		}
		s := topology.Selector{Group: "gateway.networking.k8s.io", Kind: of, MatchLabels: map[string]string{}}
		for label := range strings.SplitSeq(labels, ",") {
			if name, value, ok := strings.Cut(label, "="); ok {
				s.MatchLabels[name] = value
			}
		}
		return append(out, s)
	}
	return k
}

// TestSelectors: what a policy selects by labels is among its targets, as long as it has them.
func TestSelectors(t *testing.T) {
	w := newWorld(t, false)
	w.Graph = topology.New(topology.Options{})
	w.colors = topology.AddPolicies(w.Graph, byLabels())
	labelled := func(name, labels string) string {
		return strings.Replace(route(name, "g1", ", rules: [{}]"), "metadata: {", "metadata: {labels: {"+labels+"}, ", 1)
	}
	policy := func(selects string) string {
		return fmt.Sprintf("kind: ColorPolicy\nmetadata: {name: p, annotations: {for: '%s'}}\nspec: {colors: {color: red}}", selects)
	}
	w.apply(t, class, gateway("g1", ""), labelled("r1", "a: b, c: d"), labelled("r2", "a: b"), labelled("r3", "a: c"))
	check := func(effective, told string) {
		t.Helper()
		if got := w.effective(); got != effective {
			t.Errorf("in force:\n%s\nwant\n%s", got, effective)
		}
		if got := w.told("p"); got != told {
			t.Errorf("told %q, want %q", got, told)
		}
	}
	w.apply(t, policy("HTTPRoute a=b"))
	check("g1 r1: color=red(p)\ng1 r2: color=red(p)\ng1 r3: ", "g1 Accepted")
	ch := w.apply(t, labelled("r3", "a: b"))
	check("g1 r1: color=red(p)\ng1 r2: color=red(p)\ng1 r3: color=red(p)", "g1 Accepted")
	if n := len(w.colors.Changes(ch)); n != 1 {
		t.Errorf("a label changes %d paths", n)
	}
	w.apply(t, labelled("r1", "c: d"), labelled("r2", ""))
	check("g1 r1: \ng1 r2: \ng1 r3: color=red(p)", "g1 Accepted")
	w.apply(t, policy("HTTPRoute a=b,c=d"))
	check("g1 r1: \ng1 r2: \ng1 r3: ", "ns TargetNotFound: No HTTPRoute of namespace ns has the labels a=b,c=d; label what the policy is for, or correct targetSelectors")
	w.apply(t, policy("HTTPRoute ,"))
	check("g1 r1: \ng1 r2: \ng1 r3: ", "ns Invalid: a selector of kind HTTPRoute has no labels, and selects nothing")
	w.apply(t, policy("Service a=b"))
	check("g1 r1: \ng1 r2: \ng1 r3: ", "ns Invalid: a selector can't select objects of kind Service")
}
