package ratelimit

import (
	"strings"
	"sync"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus"
)

// How many limits have series of their own. All others are counted together.
const (
	maxNames   = 1000
	otherNames = "other"
)

type metrics struct {
	passed, refused, malformed, failures prometheus.Counter
	charges, charged                     prometheus.Counter
	over, shadowed                       *byLimit
	seconds                              prometheus.Histogram
	collectors                           []prometheus.Collector
}

func newMetrics(gateway string, store Store) *metrics {
	labels := prometheus.Labels{"gateway": gateway}
	checks := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gatehouse_limits_checks_total", ConstLabels: labels,
		Help: "Requests that were judged, by result: passed, refused, malformed, or failed for want of a store.",
	}, []string{"result"})
	m := &metrics{
		passed:    checks.WithLabelValues("passed"),
		refused:   checks.WithLabelValues("refused"),
		malformed: checks.WithLabelValues("malformed"),
		failures:  checks.WithLabelValues("failed"),
		charges: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatehouse_limits_charges_total", ConstLabels: labels,
			Help: "Requests that did nothing but charge what was used already.",
		}),
		charged: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatehouse_limits_charged_hits_total", ConstLabels: labels,
			Help: "Hits that were charged so.",
		}),
		over: newByLimit(prometheus.CounterOpts{
			Name: "gatehouse_limits_over_total", ConstLabels: labels,
			Help: "Requests beyond an enforced limit, by limit. One can be beyond several.",
		}),
		shadowed: newByLimit(prometheus.CounterOpts{
			Name: "gatehouse_limits_shadowed_total", ConstLabels: labels,
			Help: "Requests that a limit would have refused if it were not shadowed, by limit.",
		}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "gatehouse_limits_check_seconds", ConstLabels: labels,
			Help:    "Time to judge a request, without its transport.",
			Buckets: []float64{5e-6, 1e-5, 2.5e-5, 1e-4, 2.5e-4, .001, .0025, .01, .025, .1, .25, 1},
		}),
	}
	m.collectors = []prometheus.Collector{checks, m.charges, m.charged, m.over.counters, m.shadowed.counters, m.seconds}
	if c, ok := store.(interface {
		collectors(prometheus.Labels) []prometheus.Collector
	}); ok {
		m.collectors = append(m.collectors, c.collectors(labels)...)
	}
	return m
}

// count counts a request that was judged.
func (m *metrics) count(req *ratelimitv3.RateLimitRequest, b *buffer, refused bool, took time.Duration) {
	m.seconds.Observe(took.Seconds())
	charges := 0
	for i := range b.hits {
		if b.hits[i].Mode == Charged {
			charges++
			m.charged.Add(float64(b.hits[i].N))
		}
	}
	switch {
	case charges == len(b.hits):
		m.charges.Inc()
		return
	case refused:
		m.refused.Inc()
	default:
		m.passed.Inc()
	}
	for i := range b.hits {
		if !b.verdicts[i].Over {
			continue
		}
		name := req.GetDescriptors()[i].GetEntries()[0].GetValue()
		if b.hits[i].Mode == Shadowed {
			m.shadowed.inc(name)
		} else {
			m.over.inc(name)
		}
	}
}

// byLimit is a counter with a bounded number of series.
type byLimit struct {
	counters *prometheus.CounterVec

	mu     sync.Mutex
	series map[string]prometheus.Counter
}

func newByLimit(o prometheus.CounterOpts) *byLimit {
	return &byLimit{counters: prometheus.NewCounterVec(o, []string{"limit"}), series: map[string]prometheus.Counter{}}
}

func (l *byLimit) inc(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name = strings.ToValidUTF8(name, "?") // a label has to be
	if _, ok := l.series[name]; !ok && len(l.series) >= maxNames {
		name = otherNames
	}
	c, ok := l.series[name]
	if !ok {
		c = l.counters.WithLabelValues(name)
		l.series[name] = c
	}
	c.Inc()
}

// Describe is part of prometheus.Collector.
func (s *Server) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range s.metrics.collectors {
		c.Describe(ch)
	}
}

// Collect is part of prometheus.Collector: whoever runs the server registers it, and
// unregisters it when the Gateway is gone.
func (s *Server) Collect(ch chan<- prometheus.Metric) {
	for _, c := range s.metrics.collectors {
		c.Collect(ch)
	}
}

// collectors returns what there is to tell of the counts in memory.
func (m *Memory) collectors(labels prometheus.Labels) []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "gatehouse_limits_counts", ConstLabels: labels,
			Help: "Counts held in memory.",
		}, func() float64 {
			n, _ := m.size()
			return float64(n)
		}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "gatehouse_limits_evicted_total", ConstLabels: labels,
			Help: "Counts that were given up before their window ended, for want of room.",
		}, func() float64 {
			_, evicted := m.size()
			return float64(evicted)
		}),
	}
}
