package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
)

// tenantCollector exposes what namespaces have on the Gateways whose classes have quotas.
type tenantCollector struct{ pipeline *pipeline.Pipeline }

var (
	tenantLabels = []string{"gateway", "namespace", "state"}
	tenantHosts  = prometheus.NewDesc("gatehouse_namespace_hosts", "Hosts that the routes of a namespace have on a Gateway with quotas.", tenantLabels, nil)
	tenantRules  = prometheus.NewDesc("gatehouse_namespace_rules", "Matches of rules that a namespace has on all its hosts of a Gateway with quotas.", tenantLabels, nil)
)

func (c tenantCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- tenantHosts
	ch <- tenantRules
}

func (c tenantCollector) Collect(ch chan<- prometheus.Metric) {
	c.pipeline.Tenants(func(t pipeline.Tenant, u pipeline.Usage) {
		gauge := func(d *prometheus.Desc, state string, n int) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), t.Gateway.String(), t.Namespace, state)
		}
		gauge(tenantHosts, "served", u.ServedHosts)
		gauge(tenantHosts, "refused", u.Hosts-u.ServedHosts)
		gauge(tenantRules, "served", u.ServedRules)
		gauge(tenantRules, "refused", u.Rules-u.ServedRules)
	})
}
