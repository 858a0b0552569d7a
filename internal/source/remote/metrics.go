package remote

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// Collector has the metrics of what it returns: config servers, and clusters that are read.
type Collector func() []source.Remote

var (
	currentDesc = prometheus.NewDesc("gatehouse_remote_current", "1 while what is in force of a config server, or of a member cluster, is what it has, else 0.", []string{"remote"}, nil)
	ageDesc     = prometheus.NewDesc("gatehouse_remote_age_seconds", "How old what is in force of a config server, or of a member cluster, is; 0 while it is current.", []string{"remote"}, nil)
	objectsDesc = prometheus.NewDesc("gatehouse_remote_objects", "Objects that a config server has sent, or Services that a member cluster exports.", []string{"remote"}, nil)
)

// Describe is a prometheus.Collector's.
func (c Collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- currentDesc
	ch <- ageDesc
	ch <- objectsDesc
}

// Collect is a prometheus.Collector's.
func (c Collector) Collect(ch chan<- prometheus.Metric) {
	for _, st := range c() {
		current := 0.0
		if st.Current {
			current = 1
		}
		for desc, v := range map[*prometheus.Desc]float64{
			currentDesc: current, ageDesc: st.Age(time.Now()).Seconds(), objectsDesc: float64(st.Objects),
		} {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, st.Address)
		}
	}
}
