package configserver

import (
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	store              *store
	resources, removed prometheus.Counter
	refused, denied    prometheus.Counter
	clients, objects   *prometheus.Desc
}

func newMetrics(s *store) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return &metrics{
		store:     s,
		resources: counter("gatehouse_config_server_objects_sent_total", "Objects that clients were sent."),
		removed:   counter("gatehouse_config_server_removals_sent_total", "Removals of objects that clients were sent."),
		refused:   counter("gatehouse_config_server_refusals_total", "Responses that clients could not use all of."),
		denied:    counter("gatehouse_config_server_denied_total", "Clients that were not let in."),
		clients:   prometheus.NewDesc("gatehouse_config_server_clients", "Clients that are connected.", nil, nil),
		objects:   prometheus.NewDesc("gatehouse_config_server_objects", "Objects that are published.", []string{"kind"}, nil),
	}
}

func (m *metrics) sent(r *discoveryv3.DeltaDiscoveryResponse) {
	m.resources.Add(float64(len(r.GetResources())))
	m.removed.Add(float64(len(r.GetRemovedResources())))
}

// Collector has the metrics of a server.
func (s *Server) Collector() prometheus.Collector { return s.metrics }

// Describe is a prometheus.Collector's.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(m, ch) }

// Collect is a prometheus.Collector's.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range []prometheus.Counter{m.resources, m.removed, m.refused, m.denied} {
		c.Collect(ch)
	}
	ch <- prometheus.MustNewConstMetric(m.clients, prometheus.GaugeValue, float64(m.store.connected()))
	for kind, n := range m.store.count() {
		ch <- prometheus.MustNewConstMetric(m.objects, prometheus.GaugeValue, float64(n), kind.Name())
	}
}
