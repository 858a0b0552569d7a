package figures

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

var (
	routeLabels  = []string{"gateway", "route_kind", "route_namespace", "route"}
	requestsDesc = prometheus.NewDesc("gatehouse_requests_total",
		"Requests that the proxies of a Gateway have answered, by the listener's port, route, rule, backend, class of the code, and what went wrong.",
		[]string{"gateway", "server_port", "route_kind", "route_namespace", "route", "rule", "backend", "code_class", "error_type"}, nil)
	latencyDesc = prometheus.NewDesc("gatehouse_request_duration_seconds",
		"Time from the first byte of a request to the last one of its answer, over all proxies of a Gateway.", routeLabels, nil)
	retriesDesc = prometheus.NewDesc("gatehouse_retries_total",
		"Attempts at backends beyond the first one of each request. A route has the series once there was one.", routeLabels, nil)
	receivedDesc = prometheus.NewDesc("gatehouse_request_bytes_total",
		"Bytes of requests' bodies. Counted where parameters have metrics.bytes.", routeLabels, nil)
	sentDesc = prometheus.NewDesc("gatehouse_response_bytes_total",
		"Bytes of answers' bodies. Counted where parameters have metrics.bytes.", routeLabels, nil)
	lastDesc = prometheus.NewDesc("gatehouse_request_last_timestamp_seconds",
		"When a proxy has reported a request last, in seconds since 1970: up to 5 seconds after its answer.", routeLabels, nil)
	leftOutDesc = prometheus.NewDesc("gatehouse_figures_left_out_total",
		"Requests that are counted under the route kind other only, since the Gateway or the namespace has too many series.",
		[]string{"gateway"}, nil)
)

// Describe implements prometheus.Collector.
func (s *Sums) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{requestsDesc, latencyDesc, retriesDesc, receivedDesc, sentDesc, lastDesc, leftOutDesc} {
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
			of, r.port, r.route.kind, r.route.namespace, r.route.name, r.rule, r.backend, r.class, r.wrong)
	}
	for r, t := range g.routes {
		labels := []string{of, r.kind, r.namespace, r.name}
		if h := &t.latency; h.count > 0 {
			buckets := make(map[float64]uint64, len(h.bounds))
			var below uint64
			for i, bound := range h.bounds {
				below += h.buckets[i]
				buckets[bound/1000] = below
			}
			out <- prometheus.MustNewConstHistogram(latencyDesc, h.count, h.sum/1000, buckets, labels...)
		}
		out <- prometheus.MustNewConstMetric(lastDesc, prometheus.GaugeValue, float64(t.last.UnixMilli())/1000, labels...)
		for _, c := range []struct {
			desc *prometheus.Desc
			n    uint64
		}{{retriesDesc, t.retries}, {receivedDesc, t.received}, {sentDesc, t.sent}} {
			if c.n > 0 {
				out <- prometheus.MustNewConstMetric(c.desc, prometheus.CounterValue, float64(c.n), labels...)
			}
		}
	}
	out <- prometheus.MustNewConstMetric(leftOutDesc, prometheus.CounterValue, float64(g.leftOut), of)
}
