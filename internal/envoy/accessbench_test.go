package envoy

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// BenchmarkAccess measures what it adds to a request that somebody asks who may pass, and that it is
// counted: the median of requests one by one over one connection, each kind in turns with none.
func BenchmarkAccess(b *testing.B) {
	id := newIssuer(b, "id")
	var office []netip.Prefix
	for i := range 100 {
		office = append(office, netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 51, 100, byte(i)}), 32))
	}
	office = append(office, netip.MustParsePrefix("127.0.0.0/8"))
	var limits []ir.RateLimit
	counted := func(whens ...string) *ir.RateLimits {
		var all []limited
		for _, when := range whens {
			l := limited{limitNamed(strconv.Itoa(len(limits)), 1_000_000_000), when}
			all, limits = append(all, l), append(limits, l.RateLimit)
		}
		return countedWhen(all...)
	}
	kinds := []struct {
		name   string
		access *ir.Access
		header http.Header
		limits *ir.RateLimits
	}{
		{"none", nil, nil, nil},
		{"jwt", &ir.Access{Authenticated: true, Tokens: []ir.TokenIssuer{id.trusted(b)}}, http.Header{"Authorization": {"Bearer " + id.token(b, nil)}}, nil},
		{"apikey", &ir.Access{Authenticated: true, Keys: []ir.APIKeys{apiKeys("k", map[string]string{"a": "a key as long as keys are"})}}, http.Header{"X-Api-Key": {"a key as long as keys are"}}, nil},
		{"basic", &ir.Access{Authenticated: true, Passwords: []ir.Passwords{passwordsOf(map[string]string{"a": "b"})}}, http.Header{"Authorization": {basic("a", "b")}}, nil},
		{"list", &ir.Access{Conditions: []ir.AccessCondition{{Allow: office, When: "true"}}}, nil, nil},
		{"tree", &ir.Access{Conditions: []ir.AccessCondition{{Allow: office}}}, nil, nil},
		{"limits", nil, nil, counted("", "", "", "")},
		{"limitswhen", nil, nil, counted("request.path != '/1'", "request.path != '/2'", "request.path != '/3'", "request.path != '/4'")},
	}
	backend := newBackend(b, "echo", ir.HTTP1, nil)
	var rules []*ir.Rule
	for _, k := range kinds {
		rules = append(rules, &ir.Rule{Match: prefix("/" + k.name), Filters: ir.Filters{Access: k.access, RateLimits: k.limits}, Backends: to(backend)})
	}
	s := plain(rulesOn("a.example", rules...), backend)
	s.limits = limits
	r := s.start(b)
	transport := &http.Transport{MaxIdleConnsPerHost: 1, Dial: func(string, string) (net.Conn, error) { return net.Dial("tcp", r.addrs["http-80"]) }} //nolint:staticcheck // no context to wait with
	defer transport.CloseIdleConnections()
	took := make([][]time.Duration, len(kinds))
	for b.Loop() {
		for i, k := range kinds {
			took[i] = append(took[i], timed(b, transport, "http://a.example/"+k.name, k.header))
		}
	}
	median := func(i int) time.Duration { slices.Sort(took[i]); return took[i][len(took[i])/2] }
	for i, k := range kinds[1:] {
		b.ReportMetric(float64(median(i+1)-median(0))/float64(time.Microsecond), "us-"+k.name)
	}
}

// timed is how long a request takes that is to be answered.
func timed(b *testing.B, transport *http.Transport, url string, header http.Header) time.Duration {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	if header != nil {
		req.Header = header
	}
	began := time.Now()
	res, err := transport.RoundTrip(req)
	if err != nil {
		b.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	took := time.Since(began)
	if _ = res.Body.Close(); res.StatusCode != http.StatusOK {
		b.Fatalf("%s: %d", url, res.StatusCode)
	}
	return took
}
