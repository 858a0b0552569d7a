package fetch

import "github.com/prometheus/client_golang/prometheus"

// metrics count what happens. They name no URL: whoever may write policies decides those.
type metrics struct{ attempts *prometheus.CounterVec }

func newMetrics() metrics {
	return metrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gatehouse_key_set_fetches_total",
		Help: "Attempts to fetch the public keys of a token issuer, by result: ok or failed.",
	}, []string{"result"})}
}

var keySets = prometheus.NewDesc("gatehouse_key_sets",
	"Key sets of token issuers that AuthPolicies want: fresh, stale where the last attempt failed and earlier keys stay in force, missing where there are none.",
	[]string{"state"}, nil)

// stateCollector tells how many sets there are.
type stateCollector struct{ fetcher *Fetcher }

func (c stateCollector) Describe(ch chan<- *prometheus.Desc) { ch <- keySets }

func (c stateCollector) Collect(ch chan<- prometheus.Metric) {
	count := map[string]int{"fresh": 0, "stale": 0, "missing": 0}
	c.fetcher.mu.Lock()
	for _, s := range c.fetcher.sets {
		switch {
		case s.good.Keys == "":
			count["missing"]++
		case s.failing:
			count["stale"]++
		default:
			count["fresh"]++
		}
	}
	c.fetcher.mu.Unlock()
	for state, n := range count {
		ch <- prometheus.MustNewConstMetric(keySets, prometheus.GaugeValue, float64(n), state)
	}
}
