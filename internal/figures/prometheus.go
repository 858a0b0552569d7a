package figures

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

var (
	requestsDesc = prometheus.NewDesc("gatehouse_requests_total",
		"Requests that the proxies of a Gateway have answered, by route, rule, backend, class of the code, and Envoy's reason where it answered itself or something went wrong.",
		[]string{"gateway", "route_kind", "route_namespace", "route", "rule", "backend", "code_class", "reason"}, nil)
	latencyDesc = prometheus.NewDesc("gatehouse_request_duration_seconds",
		"Time from the first byte of a request to the last one of its answer, over all proxies of a Gateway.",
		[]string{"gateway", "route_kind", "route_namespace", "route"}, nil)
	leftOutDesc = prometheus.NewDesc("gatehouse_figures_left_out_total",
		"Requests that are counted under the route kind other only, since the Gateway has too many series.",
		[]string{"gateway"}, nil)
)

// Describe implements prometheus.Collector.
func (s *Sums) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{requestsDesc, latencyDesc, leftOutDesc} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (s *Sums) Collect(out chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, g := range s.gateways {
		g.collect(name, out)
	}
}

func (g *gateway) collect(name object.Name, out chan<- prometheus.Metric) {
	of := name.String()
	for r, c := range g.requests {
		out <- prometheus.MustNewConstMetric(requestsDesc, prometheus.CounterValue, float64(c.n),
			of, r.route.kind, r.route.namespace, r.route.name, r.rule, r.backend, r.class, r.reason)
	}
	for r, h := range g.latency {
		buckets := make(map[float64]uint64, len(h.bounds))
		var below uint64
		for i, bound := range h.bounds {
			below += h.buckets[i]
			buckets[bound/1000] = below
		}
		out <- prometheus.MustNewConstHistogram(latencyDesc, h.count, h.sum/1000, buckets, of, r.kind, r.namespace, r.name)
	}
	out <- prometheus.MustNewConstMetric(leftOutDesc, prometheus.CounterValue, float64(g.leftOut), of)
}
