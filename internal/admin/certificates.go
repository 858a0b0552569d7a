package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
)

// certificateCollector exposes when certificates of listeners expire.
type certificateCollector struct{ pipeline *pipeline.Pipeline }

var certificateExpiry = prometheus.NewDesc("gatehouse_certificate_expiry_timestamp_seconds",
	"When the first certificate of a listener expires.", []string{"gateway", "listener_set", "listener"}, nil)

func (c certificateCollector) Describe(ch chan<- *prometheus.Desc) { ch <- certificateExpiry }

func (c certificateCollector) Collect(ch chan<- prometheus.Metric) {
	for of, end := range c.pipeline.CertificateEnds {
		set := ""
		if !of.Set().IsZero() {
			set = of.Set().String()
		}
		ch <- prometheus.MustNewConstMetric(certificateExpiry, prometheus.GaugeValue, float64(end.Unix()), of.Gateway().String(), set, of.Name())
	}
}
