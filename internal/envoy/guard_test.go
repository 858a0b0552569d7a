package envoy

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// A version of a host may stand in for another one where no request passes by it that the other
// would stop: what is told of each route counts, and where the route stands.
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
	login := &ir.Access{Authenticated: true, Login: &ir.Login{}}
	within := func(around *ir.Access, rules ...*ir.Rule) Guard {
		t.Helper()
		h := &ir.Host{Domain: "a.example", Around: &ir.Filters{Access: around}, Sessions: around.Login != nil, Rules: rules}
		part, errs := HostPart(h)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		return part.Guard
	}
	exempt := func() Guard { return within(keys, rule("/a", &ir.Access{}), rule("/", nil)) }
	a, b, all := rule("/a", nil), rule("/b", nil), rule("/", nil)
	guarded := func(r *ir.Rule, who *ir.Access) *ir.Rule { return rule(r.Match.Path.Value, who) }
	if g := guard(a, all); g != nil {
		t.Errorf("a host that everybody may use has the guard %v", g)
	}
	for name, c := range map[string]struct {
		before, now Guard
		kept        bool
	}{
		"nobody is to be stopped any more":                   {guard(guarded(a, keys), all), guard(a, all), true},
		"a guard is new":                                     {guard(a, all), guard(guarded(a, keys), all), false},
		"a route is no longer exempt from what is around it": {exempt(), guard(a, all), false},
		"a route is no longer exempt from a login":           {within(login, guarded(a, &ir.Access{}), all), within(login, a, all), false},
		"a route is exempt from what is around it":           {guard(a, all), exempt(), false},
		"a route is exempt as before":                        {exempt(), exempt(), true},
		"there was nothing":                                  {nil, guard(guarded(a, keys)), false},
		"another route changes":                              {guard(guarded(a, keys), b, all), guard(guarded(a, keys), rule("/c", nil), all), true},
		"an open route is new, and the first":                {guard(guarded(a, keys), all), guard(b, guarded(a, keys), all), true},
		"an open route goes":                                 {guard(guarded(a, keys), b), guard(guarded(a, keys)), true},
		"an open route goes, and another takes it":           {guard(a, guarded(all, keys)), guard(guarded(all, keys)), false},
		"another guard":                                      {guard(guarded(a, keys), all), guard(guarded(a, nobody), all), false},
		"one more guarded route":                             {guard(guarded(a, keys), all), guard(guarded(a, keys), guarded(all, nobody)), false},
		"a guard moves to another route":                     {guard(guarded(a, keys), b), guard(a, guarded(b, keys)), false},
		"guards change places":                               {guard(guarded(a, keys), guarded(b, nobody)), guard(guarded(a, nobody), guarded(b, keys)), false},
		"a guarded route comes before an open one":           {guard(all, guarded(a, keys)), guard(guarded(a, keys), all), false},
		"an open route comes before a guarded one":           {guard(guarded(a, keys), all), guard(all, guarded(a, keys)), true},
		"a guarded route is new, and the last":               {guard(guarded(a, keys), b), guard(guarded(a, keys), b, guarded(rule("/c", nil), nobody)), true},
		"a guarded route is new, and the first":              {guard(guarded(a, keys), b), guard(guarded(rule("/c", nil), nobody), guarded(a, keys), b), false},
		"one guard everywhere, in another order":             {guard(guarded(a, keys), guarded(b, keys)), guard(guarded(b, keys), guarded(a, keys)), true},
	} {
		if got := c.now.KeptBy(c.before); got != c.kept {
			t.Errorf("%s: kept %t, want %t", name, got, c.kept)
		}
	}
}
