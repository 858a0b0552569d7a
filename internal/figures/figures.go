package figures

import (
	"slices"
	"strings"
	"sync"

	otlpcollectorv1 "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	otlpcommonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	otlpmetricsv1 "go.opentelemetry.io/proto/otlp/metrics/v1"

	"github.com/gatehouse-dev/gatehouse/internal/figures/names"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// maxSeries bounds the combinations of labels that are kept of a Gateway: requests and
// routes each.
const maxSeries = 50_000

// Other stands for what is beyond the bound.
const Other = "other"

// Sums are what the proxies of all Gateways have counted. The zero value is ready.
type Sums struct {
	mu       sync.Mutex
	gateways map[object.Name]*gateway
}

type gateway struct {
	requests map[requests]uint64
	latency  map[route]*histogram
	leftOut  uint64 // requests that count as Other
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

type histogram struct {
	bounds  []float64 // of milliseconds
	buckets []uint64  // one more than bounds
	sum     float64
	count   uint64
}

// Take adds what a proxy of a Gateway has counted since its last report.
func (s *Sums) Take(of object.Name, report *otlpcollectorv1.ExportMetricsServiceRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.gateways[of]
	if g == nil {
		if s.gateways == nil {
			s.gateways = map[object.Name]*gateway{}
		}
		g = &gateway{requests: map[requests]uint64{}, latency: map[route]*histogram{}}
		s.gateways[of] = g
	}
	for _, r := range report.GetResourceMetrics() {
		for _, scope := range r.GetScopeMetrics() {
			for _, m := range scope.GetMetrics() {
				g.take(m)
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

func (g *gateway) take(m *otlpmetricsv1.Metric) {
	const delta = otlpmetricsv1.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA
	switch strings.TrimPrefix(m.GetName(), names.Prefix+".") {
	case names.Requests:
		if m.GetSum().GetAggregationTemporality() != delta {
			return
		}
		for _, p := range m.GetSum().GetDataPoints() {
			if n := p.GetAsInt(); n > 0 {
				g.addRequests(requestsOf(p.GetAttributes()), uint64(n))
			}
		}
	case names.Latency:
		if m.GetHistogram().GetAggregationTemporality() != delta {
			return
		}
		for _, p := range m.GetHistogram().GetDataPoints() {
			if p.GetCount() > 0 && len(p.GetBucketCounts()) == len(p.GetExplicitBounds())+1 {
				g.addLatency(requestsOf(p.GetAttributes()).route, p)
			}
		}
	}
}

func (g *gateway) addRequests(of requests, n uint64) {
	if _, known := g.requests[of]; !known && len(g.requests) >= maxSeries {
		g.leftOut += n
		of = requests{route: route{kind: Other}, class: of.class}
	}
	g.requests[of] += n
}

func (g *gateway) addLatency(of route, p *otlpmetricsv1.HistogramDataPoint) {
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
	h.sum += p.GetSum()
	h.count += p.GetCount()
}

func requestsOf(tags []*otlpcommonv1.KeyValue) (r requests) {
	for _, tag := range tags {
		value := strings.ToValidUTF8(tag.GetValue().GetStringValue(), "?")
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
