package xds

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	sessions    prometheus.Gauge
	pushes      *prometheus.CounterVec
	bytes       *prometheus.CounterVec
	assembled   prometheus.Counter
	nacks       *prometheus.CounterVec
	refused     *prometheus.CounterVec
	quarantined *prometheus.GaugeVec
	lag         *prometheus.HistogramVec
}

func newMetrics(types []resourceType) *metrics {
	byType := []string{"type"}
	m := &metrics{
		sessions: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "gatehouse_xds_sessions",
			Help: "Connected proxies.",
		}),
		pushes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_xds_pushes_total",
			Help: "Responses sent to proxies, by resource type.",
		}, byType),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_xds_pushed_bytes_total",
			Help: "Bytes of the responses sent to proxies, by resource type.",
		}, byType),
		assembled: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatehouse_xds_assembled_total",
			Help: "Route tables put together from their hosts to be sent. One that several proxies are sent counts once.",
		}),
		nacks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_xds_nacks_total",
			Help: "Responses that proxies refused, by resource type.",
		}, byType),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_xds_refused_total",
			Help: "Proxies that were refused or cut off, by reason.",
		}, []string{"reason"}),
		quarantined: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "gatehouse_xds_quarantined_resources",
			Help: "Resources of which a wanted version is held back because a proxy refused it.",
		}, byType),
		lag: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "gatehouse_xds_push_lag_seconds",
			Help:    "Time from a commit to a proxy's acknowledgement.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 15, 60},
		}, byType),
	}
	// A rate or an alert needs the series to start with 0.
	for i := range types {
		name := types[i].name
		m.pushes.WithLabelValues(name)
		m.bytes.WithLabelValues(name)
		m.nacks.WithLabelValues(name)
		m.quarantined.WithLabelValues(name)
	}
	return m
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.sessions, m.pushes, m.bytes, m.assembled, m.nacks, m.refused, m.quarantined, m.lag}
}
