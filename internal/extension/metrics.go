package extension

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	answers *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	away    *prometheus.GaugeVec
}

// What became of a question.
const (
	unchanged = "unchanged"
	changed   = "changed"
	refused   = "refused" // the answer is an error, or can't be taken
	silent    = "silent"
)

func newMetrics(list []Options) *metrics {
	m := &metrics{
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_extension_answers_total",
			Help: "Questions to extension servers, by hook and by what became of them: changed, unchanged, refused (an error, or an answer that can't be taken) or silent.",
		}, []string{"extension", "hook", "result"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "gatehouse_extension_call_seconds",
			Help:    "Time that an extension server took to answer a call.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"extension"}),
		away: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "gatehouse_extension_away",
			Help: "1 while an extension server doesn't answer, else 0.",
		}, []string{"extension"}),
	}
	for _, o := range list { // a rate or an alert needs the series to start with 0
		m.away.WithLabelValues(o.Name)
		for _, hook := range o.Hooks {
			for _, result := range []string{unchanged, changed, refused, silent} {
				m.answers.WithLabelValues(o.Name, string(hook), result)
			}
		}
	}
	return m
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.answers, m.seconds, m.away}
}
