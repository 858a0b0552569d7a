package envoy

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// A guard is another one when it is told something else, and the same wherever it stands among
// routes that have nothing to do with it.
func TestGuardOfHost(t *testing.T) {
	rule := func(path string, who *ir.Access) *ir.Rule {
		return &ir.Rule{Match: ir.Match{Path: ir.PathMatch{Kind: ir.PathPrefix, Value: path}}, Status: 404, Filters: ir.Filters{Access: who}}
	}
	guard := func(rules ...*ir.Rule) Guard {
		t.Helper()
		part, errs := HostPart(&ir.Host{Domain: "a.example", Rules: rules})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		return part.Guard
	}
	keys := &ir.Access{Authenticated: true, Keys: []ir.APIKeys{{Name: "robots"}}}
	nobody := &ir.Access{Conditions: []ir.AccessCondition{{Name: "nobody", Never: true}}}
	open, one := guard(rule("/", nil)), guard(rule("/a", keys), rule("/", nil))
	switch {
	case open != 0:
		t.Error("a host that everybody may use has a guard")
	case one == 0:
		t.Error("a host with a guard has none")
	case one != guard(rule("/b", nil), rule("/a", keys), rule("/", nil)):
		t.Error("a route without a guard makes it another one")
	case one == guard(rule("/a", nobody), rule("/", nil)), one == guard(rule("/a", keys), rule("/", nobody)):
		t.Error("another guard is the same")
	}
}
