package figures

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	otlpcollectorv1 "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	otlpcommonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	otlpmetricsv1 "go.opentelemetry.io/proto/otlp/metrics/v1"

	"github.com/gatehouse-dev/gatehouse/internal/figures/names"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// maxSeries bounds the combinations of labels that are kept of a Gateway: requests and
// routes each.
const maxSeries = 50_000

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

// Sums are what the proxies of all Gateways have counted. The zero value is ready.
type Sums struct {
	// Began is when counting began: a sum that is less than before has begun anew.
	Began time.Time

	mu       sync.Mutex
	gateways map[object.Name]*gateway
}

type gateway struct {
	requests map[requests]*count
	latency  map[route]*histogram
	leftOut  uint64 // requests that count as Other
	tidied   time.Time
}

// route is a route in the nouns of the Gateway API; zero where a request has matched none.
type route struct{ kind, namespace, name string }

type requests struct {
	route   route
	rule    string // its name, or its index
	backend string
	class   string // 2xx
	reason  string // Envoy's response flags
}

type count struct {
	n    uint64
	last time.Time
}

type histogram struct {
	last    time.Time
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
		g = &gateway{requests: map[requests]*count{}, latency: map[route]*histogram{}}
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
	maps.DeleteFunc(g.requests, func(_ requests, c *count) bool { return now.Sub(c.last) > idle })
	maps.DeleteFunc(g.latency, func(_ route, h *histogram) bool { return now.Sub(h.last) > idle })
}

func (g *gateway) take(m *otlpmetricsv1.Metric, now time.Time) {
	const delta = otlpmetricsv1.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA
	switch strings.TrimPrefix(m.GetName(), names.Prefix+".") {
	case names.Requests:
		if m.GetSum().GetAggregationTemporality() != delta {
			return
		}
		for _, p := range m.GetSum().GetDataPoints() {
			if n := p.GetAsInt(); n > 0 {
				g.addRequests(requestsOf(p.GetAttributes()), uint64(n), now)
			}
		}
	case names.Latency:
		if m.GetHistogram().GetAggregationTemporality() != delta {
			return
		}
		for _, p := range m.GetHistogram().GetDataPoints() {
			if n := len(p.GetExplicitBounds()); p.GetCount() > 0 && n <= maxBuckets && len(p.GetBucketCounts()) == n+1 {
				g.addLatency(requestsOf(p.GetAttributes()).route, p, now)
			}
		}
	}
}

func (g *gateway) addRequests(of requests, n uint64, now time.Time) {
	if _, known := g.requests[of]; !known && len(g.requests) >= maxSeries {
		g.leftOut += n
		of = requests{route: route{kind: Other}, class: of.class}
	}
	c := g.requests[of]
	if c == nil {
		c = &count{}
		g.requests[of] = c
	}
	c.n += n
	c.last = now
}

func (g *gateway) addLatency(of route, p *otlpmetricsv1.HistogramDataPoint, now time.Time) {
	if g.latency[of] == nil && len(g.latency) >= maxSeries {
		of = route{kind: Other}
	}
	h := g.latency[of]
	if h == nil || !slices.Equal(h.bounds, p.GetExplicitBounds()) { // other bounds are another version's
		h = &histogram{bounds: p.GetExplicitBounds(), buckets: make([]uint64, len(p.GetBucketCounts()))}
		g.latency[of] = h
	}
	for i, n := range p.GetBucketCounts() {
		h.buckets[i] += n
	}
	h.last = now
	h.sum += p.GetSum()
	h.count += p.GetCount()
}

func requestsOf(tags []*otlpcommonv1.KeyValue) (r requests) {
	for _, tag := range tags {
		value := tag.GetValue().GetStringValue()
		value = strings.ToValidUTF8(value[:min(len(value), maxLabel)], "?")
		switch tag.GetKey() {
		case names.Route:
			r.route, r.rule = parseRoute(value)
		case names.Backend:
			// The rest is for what differs between two uses of a backend.
			r.backend, _, _ = strings.Cut(given(value), "#")
		case names.Code:
			r.class = classOf(value)
		case names.Reason:
			r.reason = given(value)
		}
	}
	return r
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

// parseRoute reads what envoy.RouteName writes: kind/namespace/name/rule/match, and the
// rule's name where it has one.
func parseRoute(name string) (r route, rule string) {
	parts := strings.SplitN(name, "/", 6)
	if len(parts) < 5 {
		return route{}, ""
	}
	if rule = parts[3]; len(parts) == 6 {
		rule = parts[5]
	}
	return route{parts[0], parts[1], parts[2]}, rule
}
