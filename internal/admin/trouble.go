package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse/internal/view"
)

// troubleCollector exposes how many objects need a person, and why.
type troubleCollector struct{ counts func() map[view.Trouble]int }

var objectsInTrouble = prometheus.NewDesc("gatehouse_objects_need_attention",
	"Objects that are not in order, by the reason of the condition that says so.", []string{"kind", "reason"}, nil)

func (c troubleCollector) Describe(ch chan<- *prometheus.Desc) { ch <- objectsInTrouble }

func (c troubleCollector) Collect(ch chan<- prometheus.Metric) {
	for of, n := range c.counts() {
		ch <- prometheus.MustNewConstMetric(objectsInTrouble, prometheus.GaugeValue, float64(n), of.Kind, of.Reason)
	}
}
