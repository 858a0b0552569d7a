// Package dashboards tests the chart's dashboards for Grafana. It is a module of its own, since Prometheus's
// parser is needed nowhere else.
package dashboards
