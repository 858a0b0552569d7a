package envoy

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// Many ranges are what they say, whether Envoy has them as a tree or as a list.
func TestEnvoyAccessByManyAddresses(t *testing.T) {
	b := newBackend(t, "echo", ir.HTTP1, nil)
	random := rand.New(rand.NewPCG(29, 0)) //nolint:gosec // no secret
	address := func() netip.Addr {         // few bits of each family vary, so that ranges are in each other
		if random.IntN(2) == 0 {
			return netip.AddrFrom4([4]byte{10, byte(random.IntN(2)), byte(random.IntN(4) << 6), byte(random.IntN(256))})
		}
		var a [16]byte
		a[0], a[1], a[7], a[15] = 0x20, 0x01, byte(random.IntN(4)<<6), byte(random.IntN(256))
		return netip.AddrFrom16(a)
	}
	ranges := func(n int) (all []netip.Prefix) {
		for range n {
			a := address()
			all = append(all, netip.PrefixFrom(a, a.BitLen()-random.IntN(16)).Masked())
		}
		return all
	}
	conditions := []ir.AccessCondition{
		{Allow: ranges(40)}, {Deny: ranges(40)}, {Allow: ranges(60), Deny: ranges(30)},
		{Allow: append(ranges(20), netip.MustParsePrefix("0.0.0.0/0")), Deny: ranges(3)},
		{Allow: append(ranges(20), netip.MustParsePrefix("::/0"))},
		{Allow: ranges(2), Deny: append(ranges(20), netip.MustParsePrefix("10.0.0.0/8"))},
		{Allow: ranges(40), Methods: []string{"GET"}},
	}
	var rules []*ir.Rule
	for i, c := range conditions {
		for kind, when := range map[string]string{"tree": "", "list": "true"} {
			c := c
			c.Name, c.When = "c", when
			if inTree(&c) != (kind == "tree") {
				t.Fatal("not as a ", kind)
			}
			rules = append(rules, &ir.Rule{Match: prefix(fmt.Sprintf("/%s/%d", kind, i)), Filters: ir.Filters{Access: &ir.Access{Conditions: []ir.AccessCondition{c}}}, Backends: to(b)})
		}
	}
	s := plain(rulesOn("a.example", rules...), b)
	s.listeners[0].Client.TrustedHops = 1
	r := s.start(t)
	in := func(ranges []netip.Prefix, a netip.Addr) bool {
		return slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Contains(a) })
	}
	passed := 0
	for n := range 60 {
		a := address()
		if n == 0 {
			a = netip.MustParseAddr("192.0.2.1")
		}
		for i, c := range conditions {
			want := http.StatusForbidden
			if !in(c.Deny, a) && (len(c.Allow) == 0 || in(c.Allow, a)) {
				want = http.StatusOK
				passed++
			}
			for _, kind := range []string{"tree", "list"} {
				got := r.do(t, "GET", fmt.Sprintf("http://a.example/%s/%d", kind, i), http.Header{"X-Forwarded-For": {a.String()}}, nil)
				if got.Status != want {
					t.Errorf("%s %d: %s: %d, want %d", kind, i, a, got.Status, want)
				}
			}
		}
	}
	if got := r.do(t, "POST", "http://a.example/tree/6", http.Header{"X-Forwarded-For": {conditions[6].Allow[0].Addr().String()}}, nil); got.Status != http.StatusForbidden {
		t.Errorf("what else the rule asks for: %d", got.Status)
	}
	// A client may write an IPv4 address as an IPv6 one; both have the same answer.
	for _, kind := range []string{"tree", "list"} {
		mapped := "::ffff:" + conditions[1].Deny[slices.IndexFunc(conditions[1].Deny, func(p netip.Prefix) bool { return p.Addr().Is4() })].Addr().String()
		if got := r.do(t, "GET", "http://a.example/"+kind+"/1", http.Header{"X-Forwarded-For": {mapped}}, nil); got.Status != http.StatusForbidden {
			t.Errorf("%s: %s: %d", kind, mapped, got.Status)
		}
	}
	if passed == 0 {
		t.Error("nobody passed")
	}
}
