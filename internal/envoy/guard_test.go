package envoy

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

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
	within := func(outer *ir.Access, rules ...*ir.Rule) Guard {
		t.Helper()
		part, errs := HostPart(&ir.Host{
			Domain: "a.example", Around: &ir.Filters{Access: outer}, Sessions: outer.Login != nil, Rules: rules,
		})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		return part.Guard
	}
	around := func(who *ir.Access) Guard {
		t.Helper()
		table, err := BundledRouteTable("t", AroundTables(&ir.Filters{Access: who}, false), nil)
		if err != nil {
			t.Fatal(err)
		}
		return table.Guard()
	}
	a, b, all := rule("/a", nil), rule("/b", nil), rule("/", nil)
	guarded := func(r *ir.Rule, who *ir.Access) *ir.Rule { return rule(r.Match.Path.Value, who) }
	exempt := within(keys, rule("/a", &ir.Access{}), all)
	own := within(keys, guarded(a, nobody), all)
	if g := guard(a, all); g != nil {
		t.Errorf("a host that everybody may use has the guard %v", g)
	}
	for name, c := range map[string]struct {
		before, now Guard
		around      Guard // of the table that the new one is in
		kept        bool
	}{
		"nobody is to be stopped any more":                      {guard(guarded(a, keys), all), guard(a, all), nil, true},
		"a guard is new":                                        {guard(a, all), guard(guarded(a, keys), all), nil, false},
		"a route is no longer exempt from what is around it":    {exempt, guard(a, all), around(keys), false},
		"a route is no longer exempt from a login":              {within(login, guarded(a, &ir.Access{}), all), within(login, a, all), around(keys), false},
		"a route is exempt from what is around it":              {guard(a, all), exempt, around(keys), false},
		"a route is exempt as before":                           {exempt, exempt, around(keys), true},
		"there was nothing":                                     {nil, guard(guarded(a, keys)), nil, false},
		"another route changes":                                 {guard(guarded(a, keys), b, all), guard(guarded(a, keys), rule("/c", nil), all), nil, true},
		"an open route is new, and the first":                   {guard(guarded(a, keys), all), guard(b, guarded(a, keys), all), nil, true},
		"an open route goes":                                    {guard(guarded(a, keys), b), guard(guarded(a, keys)), nil, true},
		"an open route goes, and another takes it":              {guard(a, guarded(all, keys)), guard(guarded(all, keys)), nil, false},
		"another guard":                                         {guard(guarded(a, keys), all), guard(guarded(a, nobody), all), nil, false},
		"one more guarded route":                                {guard(guarded(a, keys), all), guard(guarded(a, keys), guarded(all, nobody)), nil, false},
		"a guard moves to another route":                        {guard(guarded(a, keys), b), guard(a, guarded(b, keys)), nil, false},
		"guards change places":                                  {guard(guarded(a, keys), guarded(b, nobody)), guard(guarded(a, nobody), guarded(b, keys)), nil, false},
		"a guarded route comes before an open one":              {guard(all, guarded(a, keys)), guard(guarded(a, keys), all), nil, false},
		"an open route comes before a guarded one":              {guard(guarded(a, keys), all), guard(all, guarded(a, keys)), nil, true},
		"a guarded route is new, and the last":                  {guard(guarded(a, keys), b), guard(guarded(a, keys), b, guarded(rule("/c", nil), nobody)), nil, true},
		"a guarded route is new, and the first":                 {guard(guarded(a, keys), b), guard(guarded(rule("/c", nil), nobody), guarded(a, keys), b), nil, false},
		"one guard everywhere, in another order":                {guard(guarded(a, keys), guarded(b, keys)), guard(guarded(b, keys), guarded(a, keys)), nil, true},
		"a route was exempt from what no longer is around it":   {exempt, guard(a, all), nil, true},
		"a route has no longer a guard in place of the table's": {own, guard(a, all), around(keys), false},
		"nor does the new table have one":                       {own, guard(a, all), nil, true},
		"the table's guard is new, in place of a route's":       {guard(guarded(a, nobody), all), guard(a, all), around(keys), false},
		"a route's guard stays, in place of the table's":        {own, own, around(keys), true},
		"the table's guard is all that there is":                {guard(a, all), guard(a, all), around(keys), true},
		"a rule is broken":                                      {guard(a, all), guard(Closed(a), all), nil, false},
		"a guarded rule is broken":                              {guard(guarded(a, keys), all), guard(Closed(a), all), nil, false},
		"a new rule is broken":                                  {guard(all), guard(Closed(a), all), nil, false},
		"a new rule is broken, behind all others":               {guard(guarded(a, keys), all), guard(guarded(a, keys), all, Closed(b)), nil, true},
		"a rule is broken as before":                            {guard(Closed(a), all), guard(Closed(a), all), nil, true},
		"another rule is edited beside one that is broken":      {guard(Closed(a), all), guard(Closed(a), b, all), nil, true},
		"a rule is mended":                                      {guard(Closed(a), all), guard(a, all), nil, true},
		"a rule is mended in a table that has a guard":          {guard(Closed(a), all), guard(a, all), around(keys), true},
		"a rule is mended and guarded":                          {guard(Closed(a), all), guard(guarded(a, keys), all), nil, true},
	} {
		if got := c.now.KeptBy(c.before, c.around); got != c.kept {
			t.Errorf("%s: kept %t, want %t", name, got, c.kept)
		}
	}
}

// Whatever a request matches, and whichever guards let it pass: one that passes by a version that
// may stand in passes by the other one too, where that has a route for it. And a version may stand
// in if that is so.
func TestGuardLetsPassNoMore(t *testing.T) {
	guard := rapid.Custom(func(t *rapid.T) (g Guard) {
		for _, match := range rapid.Permutation([]uint64{11, 12, 13}).Draw(t, "order")[:rapid.IntRange(1, 3).Draw(t, "routes")] {
			g = append(g, GuardedRoute{Match: match, By: rapid.SampledFrom([]uint64{0, closed, 5, 6}).Draw(t, "by")})
		}
		return g
	})
	rapid.Check(t, func(t *rapid.T) {
		before, now := guard.Draw(t, "before"), guard.Draw(t, "now")
		around := rapid.SampledFrom([]Guard{nil, {{By: 5}}, {{By: 7}}}).Draw(t, "around")
		more := false
		for request := range 1 << 3 { // which matches it has
			for pass := range 1 << 3 { // which of 5, 6 and 7 let it pass
				passes := func(g Guard) (passes, found bool) {
					i := slices.IndexFunc(g, func(r GuardedRoute) bool { return request&(1<<(r.Match-11)) != 0 })
					if i < 0 {
						return false, false
					}
					by := g[i].By
					if by == 0 && around != nil {
						by = around[0].By
					}
					return by == 0 || by != closed && pass&(1<<(by-5)) != 0, true
				}
				old, _ := passes(before)
				if is, found := passes(now); old && found && !is {
					more = true
				}
			}
		}
		if kept := now.KeptBy(before, around); kept && more {
			t.Fatal("requests pass")
		} else if !kept && !more && !slices.ContainsFunc(slices.Concat(before, now), func(r GuardedRoute) bool { return around != nil && r.By == around[0].By }) {
			t.Fatal("it may stand in") // but what is said around a host is not compared with what it says itself
		}
	})
}

// A version of a listener may stand in for another one where that asks its clients for the same
// certificates, or for none.
func TestGuardOfListener(t *testing.T) {
	guard := func(c *ir.Clients) Guard {
		t.Helper()
		r, errs := Listener("tls-443", &ir.Listener{
			Name: "tls-443", TLS: true, Port: 443, BindPort: 443, Addresses: []string{"127.0.0.1"},
			Chains: []ir.Chain{{Table: "t", TLS: &ir.TLS{Certificates: []ir.SecretKey{ir.NamedSecret("own")}, Clients: c}}},
		})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		return r.Guard()
	}
	ours, theirs := ir.NamedSecret("ours"), ir.NamedSecret("theirs")
	none, some, other := guard(nil), guard(&ir.Clients{Authorities: ours}), guard(&ir.Clients{Authorities: theirs})
	fallback := guard(&ir.Clients{Authorities: ours, Fallback: true})
	for name, c := range map[string]struct {
		before, now Guard
		kept        bool
	}{
		"as before":                 {some, some, true},
		"none are asked for":        {none, none, true},
		"they are asked for":        {none, some, false},
		"no longer":                 {some, none, true},
		"by another authority":      {other, some, false},
		"they are no longer needed": {some, fallback, false},
		"they are needed":           {fallback, some, false},
	} {
		if got := c.now.KeptBy(c.before, nil); got != c.kept {
			t.Errorf("%s: kept %t, want %t", name, got, c.kept)
		}
	}
}
