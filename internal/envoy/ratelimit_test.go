package envoy

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	localratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/local_ratelimit/v3"
	sharedlimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// limitNamed is a limit that no test sees refilled.
func limitNamed(name string, limit uint32, counters ...ir.Counter) ir.RateLimit {
	return ir.RateLimit{
		Key: ir.RateLimitKey{
			Policy: object.Name{Namespace: "default", Name: "p"}, Limit: name,
			On: object.Key{Kind: kind.Gateway, Name: object.Name{Namespace: "default", Name: "web"}},
		},
		Rates: []ir.Rate{{Limit: limit, Window: 24 * time.Hour}}, Counters: counters,
	}
}

// countedBy is how requests are counted for some limits.
func countedBy(limits ...ir.RateLimit) *ir.RateLimits {
	out := &ir.RateLimits{}
	for _, l := range limits {
		out.Counted = append(out.Counted, ir.Counted{Key: l.Key, Rates: len(l.Rates), Counters: l.Counters})
	}
	return out
}

// A limit holds for all that is counted together and for nothing else, and what a request does
// not have is counted as a value of its own.
func TestEnvoyRateLimits(t *testing.T) {
	b := newBackend(t, "echo", ir.HTTP1, nil)
	id := newIssuer(t, "id")
	anyone := &ir.Access{Tokens: []ir.TokenIssuer{id.trusted(t)}, Keys: []ir.APIKeys{apiKeys("keys", map[string]string{"alice": "secret", "bob": "other"})}}
	var limits []ir.RateLimit
	limited := func(path string, all ...ir.RateLimit) *ir.Rule {
		limits = append(limits, all...)
		return &ir.Rule{Match: prefix(path), Filters: ir.Filters{Access: anyone, RateLimits: countedBy(all...)}, Backends: to(b)}
	}
	twice := func(name string, c ir.Counter) ir.RateLimit { return limitNamed(name, 2, c) }
	rates := limitNamed("rates", 5)
	rates.Rates = append(rates.Rates, ir.Rate{Limit: 2, Window: time.Hour})
	host := limitNamed("host", 3)
	targets := [2]ir.RateLimit{twice("targets", ir.Counter{Of: ir.RequestHeader, Header: "x-tenant"}), twice("targets", ir.Counter{Of: ir.RequestHeader, Header: "x-tenant"})}
	targets[1].Key.On.Name.Name = "other"
	direct := limited("/direct", limitNamed("direct", 1))
	direct.Backends, direct.Status = nil, http.StatusTeapot
	rules := rulesOn("a.example",
		limited("/all", limitNamed("all", 2)),
		limited("/both", limitNamed("both-all", 3), twice("both-header", ir.Counter{Of: ir.RequestHeader, Header: "x-tenant"})),
		limited("/header", twice("header", ir.Counter{Of: ir.RequestHeader, Header: "x-tenant"})),
		limited("/claim", twice("claim", ir.Counter{Of: ir.TokenClaim, Claim: []string{"realm", "tenant"}})),
		limited("/client", twice("client", ir.Counter{Of: ir.ClientName})),
		limited("/address", twice("address", ir.Counter{Of: ir.ClientAddress})),
		limited("/path", twice("path", ir.Counter{Of: ir.RequestPath})),
		limited("/method", twice("method", ir.Counter{Of: ir.RequestMethod})),
		limited("/host", twice("by-host", ir.Counter{Of: ir.RequestHost})),
		limited("/pair", limitNamed("pair", 2, ir.Counter{Of: ir.RequestHeader, Header: "x-tenant"}, ir.Counter{Of: ir.RequestMethod})),
		limited("/rates", rates), limited("/target/a", targets[0]), limited("/target/b", targets[1]), direct,
		&ir.Rule{Match: prefix("/free"), Filters: ir.Filters{RateLimits: &ir.RateLimits{}}, Backends: to(b)},
		&ir.Rule{Match: prefix("/"), Backends: to(b)},
	)
	limits = append(limits, host)
	rules[0].Filters = &ir.Filters{RateLimits: countedBy(host)}
	s := plain(rules, b)
	s.limits = limits
	r := s.start(t)

	tenant := func(name ...string) http.Header { return http.Header{"X-Tenant": name} }
	token := func(claims map[string]any) http.Header {
		return http.Header{"Authorization": {"Bearer " + id.token(t, claims)}}
	}
	of := func(tenant any) http.Header { return token(map[string]any{"realm": map[string]any{"tenant": tenant}}) }
	key := func(k string) http.Header { return http.Header{"X-Api-Key": {k}} }
	long := strings.Repeat("q", longestValue)
	for _, c := range []struct {
		what   string
		path   string
		header http.Header
		passed int // of three
	}{
		{"what all have together", "/all", nil, 2},
		{"a limit of a rule is no limit of its host", "/free", nil, 3},
		{"an answer without a backend", "/direct", nil, 0},
		{"a tenant", "/header", tenant("a"), 2},
		{"another tenant", "/header", tenant("b"), 2},
		{"no tenant", "/header", nil, 2},
		{"an empty tenant is none", "/header", tenant(""), 0},
		{"a tenant with a long name", "/header", tenant(long + "1"), 2},
		{"another whose name begins likewise", "/header", tenant(long + "2"), 0},
		{"the first of two limits", "/both", tenant("a"), 2},
		{"the second of two limits", "/both", tenant("b"), 1},
		{"a claim", "/claim", of("a"), 2},
		{"another claim", "/claim", of("b"), 2},
		{"a claim that is a number", "/claim", of(5), 2},
		{"a claim that is another number", "/claim", of(6), 2},
		{"a claim that is a list", "/claim", of([]string{"a", "b"}), 2},
		{"a token without the claim", "/claim", token(nil), 2},
		{"no token", "/claim", nil, 0}, // as without the claim
		{"a token that is none", "/claim", http.Header{"Authorization": {"Bearer a.b.c"}}, 0},
		{"a key", "/client", key("secret"), 2},
		{"another key", "/client", key("other"), 2},
		{"no key", "/client", nil, 2},
		{"a wrong key", "/client", key("wrong"), 0},
		{"an address", "/address", nil, 2},
		{"an address by hearsay", "/address", http.Header{"X-Forwarded-For": {"192.0.2.1"}}, 0},
		{"a path", "/path/a", nil, 2},
		{"another path", "/path/b", nil, 2},
		{"a path with a query", "/path/a?b=c", nil, 0},
		{"a path in another spelling", "/path/x/../a", nil, 0},
		{"a method", "/method", nil, 2},
		{"a host", "/host", nil, 2},
		{"a host in capitals", "/host", http.Header{"Host": {"A.EXAMPLE"}}, 0},
		{"a host with a port", "/host", http.Header{"Host": {"a.example:81"}}, 0},
		{"a pair", "/pair", tenant("a"), 2},
		{"half a pair", "/pair", nil, 2},
		{"a target of a policy", "/target/a", tenant("a"), 2},
		{"another target", "/target/b", tenant("a"), 2},
		{"another tenant of it", "/target/b", tenant("b"), 2},
		{"the lower of two rates", "/rates", nil, 2},
		{"a limit of the host", "/", nil, 3},
		{"the host, once more", "/more", tenant("a"), 0},
	} {
		passed := 0
		for range 3 {
			a := r.asked(t, "GET", c.path, c.header)
			switch {
			case a.StatusCode == http.StatusOK:
				passed++
			case a.StatusCode == http.StatusTooManyRequests:
				if a.Header.Get("Retry-After") == "" || a.Header.Get("X-Ratelimit-Remaining") != "0" {
					t.Errorf("%s: 429 with %v", c.what, a.Header)
				}
			case a.StatusCode != http.StatusTeapot:
				t.Errorf("%s is answered %d", c.what, a.StatusCode)
			}
		}
		if passed != c.passed {
			t.Errorf("%s: %d of 3 passed, want %d", c.what, passed, c.passed)
		}
	}
	if a := r.asked(t, "POST", "/method", nil); a.StatusCode != http.StatusOK {
		t.Errorf("another method is answered %d", a.StatusCode)
	}
}

// asked sends one request to a.example, or to the host among the headers.
func (r *running) asked(t testing.TB, method, path string, header http.Header) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+r.addrs["http-80"]+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "a.example"
	for name, values := range header {
		if name == "Host" {
			req.Host = values[0]
		} else {
			req.Header[name] = values
		}
	}
	a, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, a.Body)
	_ = a.Body.Close()
	return a
}

// Counts of values that clients choose take bounded memory, however many and however long they
// are.
func TestEnvoyCountsAreBounded(t *testing.T) {
	slow.Skip(t)
	b := newBackend(t, "echo", ir.HTTP1, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	l := limitNamed("tenants", 10, ir.Counter{Of: ir.RequestHeader, Header: "x-tenant"})
	s := plain(rulesOn("a.example", &ir.Rule{Match: prefix("/"), Filters: ir.Filters{RateLimits: countedBy(l)}, Backends: to(b)}), b)
	s.limits = []ir.RateLimit{l}
	const counts = 1000 // instead of maxCounts, which take a while
	s.adjust = func(m *hcmv3.HttpConnectionManager) { boundCounts(t, m, counts) }
	r := s.start(t)
	next := 0
	values := func(n int) {
		t.Helper()
		for range n {
			next++
			if a := r.asked(t, "GET", "/", http.Header{"X-Tenant": {fmt.Sprintf("%07d%s", next, strings.Repeat("x", 2000))}}); a.StatusCode != http.StatusOK {
				t.Fatalf("value %d is answered %d", next, a.StatusCode)
			}
		}
	}
	empty := r.allocated(t)
	values(counts)
	full := r.allocated(t)
	values(5 * counts)
	// Without a bound they take some 900 bytes each.
	if grown := r.allocated(t) - full; grown > 5*counts*300 {
		t.Errorf("%d more values have taken %d bytes, of %d", 5*counts, grown, full)
	} else {
		t.Logf("%d values take %d bytes, and five times as many more %d", counts, full-empty, grown)
	}
}

// boundCounts has the filters that count keep so many counts at most. That there is another bound
// otherwise is what it checks first.
func boundCounts(t testing.TB, m *hcmv3.HttpConnectionManager, most uint32) {
	t.Helper()
	for _, f := range m.HttpFilters {
		c := &localratelimitv3.LocalRateLimit{}
		if !f.GetTypedConfig().MessageIs(c) {
			continue
		}
		if err := f.GetTypedConfig().UnmarshalTo(c); err != nil {
			t.Fatal(err)
		}
		if len(c.Descriptors) > 0 && c.MaxDynamicDescriptors.GetValue() != maxCounts {
			t.Fatalf("filter %s keeps %d counts", f.Name, c.MaxDynamicDescriptors.GetValue())
		}
		c.MaxDynamicDescriptors = wrapperspb.UInt32(most)
		if err := f.GetTypedConfig().MarshalFrom(c); err != nil {
			t.Fatal(err)
		}
	}
}

// allocated is how many bytes Envoy has.
func (r *running) allocated(t testing.TB) int {
	t.Helper()
	resp, err := r.admin.Get("http://admin/memory")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), `"allocated": "`)
	n := 0
	if _, err := fmt.Sscanf(rest, "%d", &n); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return n
}

// Every connection manager has the filters that count from the start, behind who may pass and
// before a service is asked, and others in front of who may pass: the first limit changes no listener.
func TestEveryConnectionManagerCounts(t *testing.T) {
	plaintext := plain(nil).listeners[0]
	withTLS := *plaintext
	withTLS.Chains = []ir.Chain{{Table: "https-443", TLS: &ir.TLS{Certificates: []ir.SecretKey{ir.NamedSecret("default/tls")}}}}
	for _, l := range []*ir.Listener{plaintext, &withTLS} {
		r, errs := Listener(l.Name, l)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		for _, chain := range decode(t, r, &listenerv3.Listener{}).FilterChains {
			m := &hcmv3.HttpConnectionManager{}
			if err := chain.Filters[0].GetTypedConfig().UnmarshalTo(m); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, f := range m.HttpFilters {
				names = append(names, f.Name)
			}
			want := []string{corsFilter, preroutingSlot, earlyWhen}
			counting := func(first, n int) {
				for slot := first; slot < first+n; slot++ {
					want = append(want, RateLimitFilter(slot))
				}
			}
			counting(lateSlots, earlySlots)
			want = append(want, "gatehouse.limits.early.shared", "gatehouse.limits.early.shared.closed", bodySizeSlot.name, accessSlot, limitsWhen)
			counting(0, lateSlots)
			want = append(want, "gatehouse.limits.shared", "gatehouse.limits.shared.closed", usageSlot, authFilters[0].Name)
			if at := slices.Index(names, corsFilter); !slices.Equal(names[at:at+len(want)], want) {
				t.Errorf("%s: the filters are %v", l.Name, names)
			}
			for _, f := range m.HttpFilters {
				if IsRateLimitFilter(f.Name) && (!f.Disabled || f.GetConfigDiscovery().GetDefaultConfig() == nil) {
					t.Errorf("%s: %s is enabled, or has nothing to begin with", l.Name, f.Name)
				}
			}
		}
	}
}

// The counts of a filter are shared out, so that its memory has a bound whatever limits there are.
func TestCountsAreShared(t *testing.T) {
	one := limitNamed("a", 1, ir.Counter{Of: ir.ClientAddress})
	for n, want := range map[int]int{1: maxCounts, 2: maxCounts, 4: allCounts / 4, 100: leastCounts} {
		var limits []ir.RateLimit
		for i := range n {
			limits = append(limits, limitNamed(strconv.Itoa(i), 1, one.Counters...))
		}
		if got := countsOfEach(limits); got != want {
			t.Errorf("%d limits have %d counts each, want %d", n, got, want)
		}
	}
	one.Rates = append(one.Rates, one.Rates[0], one.Rates[0])
	other := one
	other.Key.On.Name.Name = "other"
	if got := countsOfEach([]ir.RateLimit{one, other}); got != allCounts/3 {
		t.Errorf("three rates for two targets have %d counts each", got)
	}
	one = limitNamed("a", 1, ir.Counter{Of: ir.ClientAddress})
	if got := countsOfEach([]ir.RateLimit{one, limitNamed("b", 1), limitNamed("c", 1), limitNamed("d", 1)}); got != maxCounts {
		t.Errorf("limits without counters take counts of others, which have %d", got)
	}
}

// Limits of routes are spread over filters by their namespaces, so that a tenant's edit gives
// nobody a fresh start with those of the platform, which have a filter of their own.
func TestLimitsAreSpread(t *testing.T) {
	counts := map[int]int{}
	for i := range 1000 {
		k := limitNamed("a", 1).Key
		if slot := RateLimitSlot(k); slot != 0 {
			t.Fatalf("a limit of a Gateway is in filter %d", slot)
		}
		k.Policy.Namespace, k.On.Kind = fmt.Sprintf("tenant-%d", i), kind.HTTPRoute
		counts[RateLimitSlot(k)]++
	}
	if counts[0] > 0 {
		t.Errorf("%d limits of routes are where those of Gateways are", counts[0])
	}
	for slot := 1; slot < lateSlots; slot++ {
		if counts[slot] < 1000/lateSlots/2 {
			t.Errorf("filter %d has %d of 1000 limits", slot, counts[slot])
		}
	}
	early := limitNamed("a", 1).Key
	early.Early = true
	tenant := early
	tenant.On.Kind = kind.HTTPRoute
	if got := []int{RateLimitSlot(early), RateLimitSlot(tenant)}; !slices.Equal(got, []int{lateSlots, lateSlots + 1}) {
		t.Errorf("limits before authentication are in the filters %v", got)
	}
}

// All limits of a level by which proxies count together are judged by one call, so that none is charged
// for what another one refuses. It fails closed where any of them does.
func TestSharedLimitsAreOneCall(t *testing.T) {
	shared := func(deny ...bool) *ir.RateLimits {
		out := countedBy(limitNamed("local", 1))
		for i, d := range deny {
			c := countedBy(limitNamed(strconv.Itoa(i), 1)).Counted[0]
			c.Global = &ir.GlobalLimit{Rates: []ir.Rate{{Limit: 1, Window: time.Hour}}, Deny: d}
			out.Counted = append(out.Counted, c)
		}
		return out
	}
	early := func(l *ir.RateLimits, i int) *ir.RateLimits {
		l.Counted[i].Key.Early = true
		return l
	}
	for _, c := range []struct {
		limits *ir.RateLimits
		calls  [4]int // descriptions in the open filter before authentication and in the closed one, and in those behind it
	}{
		{shared(), [4]int{}},
		{shared(false, false), [4]int{2: 2}},
		{shared(true), [4]int{3: 1}},
		{shared(false, true), [4]int{3: 2}},
		{early(shared(false, true), 1), [4]int{0: 1, 3: 1}},
		{early(shared(false, true), 2), [4]int{1: 1, 2: 1}},
	} {
		for i, f := range sharedFilters {
			packed, err := f.config(c.limits, "a.example")
			if err != nil {
				t.Fatal(err)
			}
			m := &sharedlimitv3.RateLimitPerRoute{}
			if packed != nil {
				if err := packed.UnmarshalTo(m); err != nil {
					t.Fatal(err)
				}
			}
			if got := len(m.RateLimits); got != c.calls[i] || (got > 0) != f.isAsked(c.limits) {
				t.Errorf("%s: %d descriptions, want %d", f.name, got, c.calls[i])
			}
		}
	}
}
