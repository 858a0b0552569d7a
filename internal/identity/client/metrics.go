package client

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	requests *prometheus.CounterVec
	expiry   prometheus.Gauge
}

func newMetrics() *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_proxy_certificate_requests_total",
			Help: "Requests to the controller for a certificate, by result.",
		}, []string{"result"}),
		expiry: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "gatehouse_proxy_certificate_expiry_timestamp_seconds",
			Help: "When the certificate that the controller knows this proxy by ends.",
		}),
	}
	m.requests.WithLabelValues("issued")
	m.requests.WithLabelValues("failed")
	return m
}

func (m *metrics) all() []prometheus.Collector { return []prometheus.Collector{m.requests, m.expiry} }

func (m *metrics) asked(err error) {
	if err != nil {
		m.requests.WithLabelValues("failed").Inc()
	} else {
		m.requests.WithLabelValues("issued").Inc()
	}
}
