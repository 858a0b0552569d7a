package figures

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	otlpcollectorv1 "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	otlpcommonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	otlpmetricsv1 "go.opentelemetry.io/proto/otlp/metrics/v1"

	"github.com/gatehouse-dev/gatehouse/internal/figures/names"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Bounds are how many combinations of labels are kept: of requests, and of routes. What comes beyond counts
// under the route kind Other: of its namespace where that has too many, else of none.
type Bounds struct{ Gateway, Namespace int }

// DefaultBounds leave half of a Gateway's series to other namespaces, whatever one of them does.
var DefaultBounds = Bounds{Gateway: 50_000, Namespace: 25_000}

// idle is after what time without a request a series goes: that of a route that is no more, most
// likely. One that comes again begins at zero, which Prometheus takes for a restart.
const idle = 24 * time.Hour

// The bounds of what a report may say: a proxy whose key was stolen fills no memory by it.
const (
	maxLabel   = 512 // bytes
	maxBuckets = 64
)

// Other stands for what is beyond the bound.
const Other = "other"

// Sums are what the proxies of all Gateways have counted.
type Sums struct {
	Bounds Bounds
	// Began is when counting began: a sum that is less than before has begun anew.
	Began time.Time

	mu       sync.Mutex
	gateways map[object.Name]*gateway
}

type gateway struct {
	bounds   Bounds
	requests map[requests]*count
	routes   map[route]*totals
	// of counts requests and routes by namespace.
	of      map[string]int
	leftOut uint64 // requests that count as Other
	tidied  time.Time
}

func newGateway(bounds Bounds) *gateway {
	return &gateway{bounds: bounds, requests: map[requests]*count{}, routes: map[route]*totals{}, of: map[string]int{}}
}

// route is a route in the nouns of the Gateway API; zero where a request has matched none.
type route struct{ kind, namespace, name string }

type requests struct {
	port    string // of the listener
	route   route
	rule    string // its name, or its index
	backend string
	class   string // 2xx
	wrong   string // one of errorTypes
}

// tags are what is said of a number that a proxy reports.
type tags struct {
	requests
	attempts uint64
}

// totals are what is counted by route only.
type totals struct {
	last           time.Time
	latency        histogram
	retries        uint64
	received, sent uint64 // bytes
}

type count struct {
	n    uint64
	last time.Time
}

type histogram struct {
	bounds  []float64 // of milliseconds
	buckets []uint64  // one more than bounds
	sum     float64
	count   uint64
}

// Take adds what a proxy of a Gateway has counted since its last report.
func (s *Sums) Take(of object.Name, report *otlpcollectorv1.ExportMetricsServiceRequest) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.gateways[of]
	if g == nil {
		if s.gateways == nil {
			s.gateways = map[object.Name]*gateway{}
		}
		g = newGateway(s.Bounds)
		s.gateways[of] = g
	}
	g.tidy(now)
	for _, r := range report.GetResourceMetrics() {
		for _, scope := range r.GetScopeMetrics() {
			for _, m := range scope.GetMetrics() {
				g.take(m, now)
			}
		}
	}
}

// Forget drops the sums of a Gateway that is gone.
func (s *Sums) Forget(of object.Name) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.gateways, of)
}

// tidy drops what no request has come for in a long time.
func (g *gateway) tidy(now time.Time) {
	if now.Sub(g.tidied) < idle/24 {
		return
	}
	g.tidied = now
	maps.DeleteFunc(g.requests, func(r requests, c *count) bool { return g.drop(r.route.namespace, now.Sub(c.last) > idle) })
	maps.DeleteFunc(g.routes, func(r route, t *totals) bool { return g.drop(r.namespace, now.Sub(t.last) > idle) })
}

// drop takes a series of a namespace off what is bounded, if it goes.
func (g *gateway) drop(namespace string, goes bool) bool {
	if !goes {
		return false
	}
	if g.of[namespace]--; g.of[namespace] == 0 {
		delete(g.of, namespace)
	}
	return true
}

// room reports whether there may be one more series of a route beside n of its kind. If not, it returns what
// stands for the route.
func (g *gateway) room(of route, n int) (instead route, ok bool) {
	switch {
	case n >= g.bounds.Gateway:
		return route{kind: Other}, false
	case g.of[of.namespace] >= 2*g.bounds.Namespace: // of requests and of routes
		return route{kind: Other, namespace: of.namespace}, false
	}
	return of, true
}

func (g *gateway) take(m *otlpmetricsv1.Metric, now time.Time) {
	const delta = otlpmetricsv1.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA
	name := strings.TrimPrefix(m.GetName(), names.Prefix+".")
	if m.GetSum().GetAggregationTemporality() == delta {
		for _, p := range m.GetSum().GetDataPoints() {
			if n := p.GetAsInt(); n > 0 {
				g.addSum(name, tagsOf(p.GetAttributes()), uint64(n), now)
			}
		}
	}
	if name != names.Latency || m.GetHistogram().GetAggregationTemporality() != delta {
		return
	}
	for _, p := range m.GetHistogram().GetDataPoints() {
		if n := len(p.GetExplicitBounds()); p.GetCount() > 0 && n <= maxBuckets && len(p.GetBucketCounts()) == n+1 {
			g.totals(tagsOf(p.GetAttributes()).route, now).latency.add(p)
		}
	}
}

func (g *gateway) addSum(name string, of tags, n uint64, now time.Time) {
	switch name {
	case names.Requests:
		g.addRequests(of.requests, n, now)
		if of.attempts > 1 {
			g.totals(of.route, now).retries += n * (of.attempts - 1)
		}
	case names.Received:
		g.totals(of.route, now).received += n
	case names.Sent:
		g.totals(of.route, now).sent += n
	}
}

func (g *gateway) addRequests(of requests, n uint64, now time.Time) {
	c := g.requests[of]
	if c == nil {
		if instead, ok := g.room(of.route, len(g.requests)); !ok {
			g.leftOut += n
			of = requests{route: instead, class: of.class}
			c = g.requests[of]
		}
	}
	if c == nil {
		c = &count{}
		g.requests[of] = c
		g.of[of.route.namespace]++
	}
	c.n += n
	c.last = now
}

// totals returns what is counted by route.
func (g *gateway) totals(of route, now time.Time) *totals {
	t := g.routes[of]
	if t == nil {
		of, _ = g.room(of, len(g.routes))
		t = g.routes[of]
	}
	if t == nil {
		t = &totals{}
		g.routes[of] = t
		g.of[of.namespace]++
	}
	t.last = now
	return t
}

func (h *histogram) add(p *otlpmetricsv1.HistogramDataPoint) {
	if !slices.Equal(h.bounds, p.GetExplicitBounds()) { // those before are another version's
		*h = histogram{bounds: p.GetExplicitBounds(), buckets: make([]uint64, len(p.GetBucketCounts()))}
	}
	for i, n := range p.GetBucketCounts() {
		h.buckets[i] += n
	}
	h.sum += p.GetSum()
	h.count += p.GetCount()
}

func tagsOf(attributes []*otlpcommonv1.KeyValue) (t tags) {
	for _, tag := range attributes {
		value := tag.GetValue().GetStringValue()
		value = strings.Clone(strings.ToValidUTF8(value[:min(len(value), maxLabel)], "?")) // else all of the report stays in memory
		switch tag.GetKey() {
		case names.Listener:
			t.port = parsePort(value)
		case names.Route:
			t.route, t.rule = parseRoute(value)
		case names.Backend:
			// The rest is for what differs between two uses of a backend.
			t.backend, _, _ = strings.Cut(given(value), "#")
		case names.Code:
			t.class = classOf(value)
		case names.Flags:
			t.wrong = errorType(value)
		case names.Attempts:
			t.attempts, _ = strconv.ParseUint(value, 10, 8) // "-" where there was none
		}
	}
	return t
}

// given is empty where Envoy has nothing to say.
func given(value string) string {
	if value == "-" {
		return ""
	}
	return value
}

// classOf returns 2xx for 200. A request without an answer has the class none.
func classOf(code string) string {
	if len(code) == 3 && code[0] >= '1' && code[0] <= '5' {
		return code[:1] + "xx"
	}
	return "none"
}

// parsePort reads the port off the name of a listener of Envoy's, such as http-80@0.0.0.0: that of the
// Gateway's listener, wherever a proxy listens. It is empty for other names.
func parsePort(listener string) string {
	name, _, _ := strings.Cut(listener, "@")
	port := name[strings.LastIndexByte(name, '-')+1:]
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return ""
	}
	return port
}

// parseRoute reads what envoy.RouteName writes: kind/namespace/name/rule/match, and the
// rule's name where it has one.
func parseRoute(name string) (r route, rule string) {
	parts := strings.SplitN(name, "/", 6)
	if len(parts) < 5 || parts[0] == Other {
		return route{}, ""
	}
	if rule = parts[3]; len(parts) == 6 {
		rule = parts[5]
	}
	return route{parts[0], parts[1], parts[2]}, rule
}
