//go:build linux

package e2e

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// dashboardMetrics are what dashboards made for any Envoy ask for: those of Envoy Gateway for
// proxies and for clusters.
var dashboardMetrics = []string{
	"envoy_cluster_membership_degraded", "envoy_cluster_membership_excluded",
	"envoy_cluster_membership_healthy", "envoy_cluster_membership_total",
	"envoy_cluster_upstream_cx_active", "envoy_cluster_upstream_cx_rx_bytes_total",
	"envoy_cluster_upstream_cx_total", "envoy_cluster_upstream_cx_tx_bytes_total",
	"envoy_cluster_upstream_rq_time", "envoy_cluster_upstream_rq_total", "envoy_cluster_upstream_rq_xx",
	"envoy_http_downstream_cx_rx_bytes_total", "envoy_http_downstream_cx_total",
	"envoy_http_downstream_cx_tx_bytes_total", "envoy_http_downstream_rq_time", "envoy_http_downstream_rq_total",
	"envoy_listener_downstream_cx_active", "envoy_listener_ssl_certificate_expiration_unix_time_seconds",
	"envoy_server_live", "envoy_server_memory_allocated", "envoy_server_memory_heap_size", "envoy_server_uptime",
	"envoy_tcp_downstream_cx_rx_bytes_total", "envoy_tcp_downstream_cx_total", "envoy_tcp_downstream_cx_tx_bytes_total",
}

// TestMetricNames protects the names of Envoy's metrics: no address, port or hostname is in
// one of them, but in labels, so that one query serves all Gateways.
func TestMetricNames(t *testing.T) {
	t.Parallel()
	manifests := parametersFor("envoy: {bootstrap: {stats_config: {stats_matcher: {inclusion_list: {patterns: [{prefix: cluster.}]}}}}}")
	manifests["gateway.yaml"] = siteGateway(
		"{name: http, port: 80, protocol: HTTP}",
		"{name: any, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}",
		`{name: wild, port: 443, protocol: HTTPS, hostname: "*.shop.example", tls: {certificateRefs: [{name: cert}]}}`,
		"{name: one, port: 443, protocol: HTTPS, hostname: a.shop.example, tls: {certificateRefs: [{name: cert}]}}",
		"{name: tcp, port: 90, protocol: TCP}",
	) + "  infrastructure: {parametersRef: {group: gatehouse.dev, kind: GatewayParameters, name: edge}}\n"
	manifests["cert.yaml"] = mustSecret(t, "cert", "*.shop.example")
	manifests["tcp.yaml"] = `---
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: {name: tcp, namespace: ` + siteNamespace + `}
spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{name: v1, port: 8080}]}]}
`
	s := startSite(t, manifests, "--experimental", "--allow-unsafe-parameters")
	for _, host := range []string{"nobody.example", "a.shop.example", "b.shop.example"} {
		s.answers(t, "https://"+host+"/", 404)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(s.envoySays(t, "/stats/prometheus")))
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]map[string]bool{}
	foreign := regexp.MustCompile(`example|_\d+_\d+_|_(80|443|90)(_|$)|_site_`)
	for name, family := range families {
		if foreign.MatchString(name) {
			t.Errorf("%s says where it is from", name)
		}
		for _, m := range family.Metric {
			for _, l := range m.Label {
				if labels[l.GetName()] == nil {
					labels[l.GetName()] = map[string]bool{}
				}
				labels[l.GetName()][l.GetValue()] = true
			}
		}
	}
	for _, name := range dashboardMetrics {
		if families[name] == nil {
			t.Errorf("no %s", name)
		}
	}
	for name, values := range map[string][]string{
		"gateway":                        {siteNamespace + "/gw"},
		"envoy_http_conn_manager_prefix": {"http-80", "tls-443"},
		"envoy_tcp_prefix":               {"tcp-90"},
		"envoy_rds_route_config":         {"http-80", "tls-443-_", "tls-443-_.shop.example", "tls-443-a.shop.example"},
	} {
		for _, v := range values {
			if !labels[name][v] {
				t.Errorf("no %s=%s, but %v", name, v, slices.Sorted(maps.Keys(labels[name])))
			}
		}
	}
}
