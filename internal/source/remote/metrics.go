package remote

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Collector has the metrics of sources.
type Collector []*Source

var (
	currentDesc = prometheus.NewDesc("gatehouse_remote_current", "1 while what is in force of a config server is what it has, else 0.", []string{"remote"}, nil)
	ageDesc     = prometheus.NewDesc("gatehouse_remote_age_seconds", "How old what is in force of a config server is; 0 while it is current.", []string{"remote"}, nil)
	objectsDesc = prometheus.NewDesc("gatehouse_remote_objects", "Objects that a config server has sent.", []string{"remote"}, nil)
)

// Describe is a prometheus.Collector's.
func (c Collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- currentDesc
	ch <- ageDesc
	ch <- objectsDesc
}

// Collect is a prometheus.Collector's.
func (c Collector) Collect(ch chan<- prometheus.Metric) {
	for _, s := range c {
		st := s.State()
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
