package proxy

import (
	"encoding/json"
	"strings"
	"testing"
)

func merged(t *testing.T, additions string) ([]byte, error) {
	t.Helper()
	return Bootstrap(BootstrapOptions{Gateway: ab, XDSSocket: "/x", AdminSocket: "/a", Additions: []byte(additions)})
}

// What may be added is what Envoy takes, next to ours.
func TestBootstrapAdditions(t *testing.T) {
	raw, err := merged(t, `
node:
  locality: {zone: z1}
  metadata: {camelCase: kept}
statsConfig:
  stats_matcher: {inclusion_list: {patterns: [{prefix: runtime.}]}}
stats_sinks:
- name: envoy.stat_sinks.statsd
  typed_config:
    "@type": type.googleapis.com/envoy.config.metrics.v3.StatsdSink
    address: {socket_address: {address: 127.0.0.1, port_value: 8125}}
statsFlushInterval: 7s
static_resources:
  clusters:
  - name: collector
    connect_timeout: 1s
deferred_stat_options: null
layered_runtime: {layers: [{name: mine, static_layer: {envoy.x: 1}}]}
`)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := validate(t, raw); err != nil {
		t.Errorf("Envoy refuses it: %v\n%s", err, out)
	}
	var b struct {
		Node struct {
			ID       string
			Locality struct{ Zone string }
			Metadata map[string]string
		}
		StaticResources struct{ Clusters []struct{ Name string } } `json:"static_resources"`
		StatsConfig     struct {
			Matcher struct {
				List struct{ Patterns []any } `json:"inclusion_list"`
			} `json:"stats_matcher"`
		} `json:"stats_config"`
		Deferred *struct{}              `json:"deferred_stat_options"`
		Runtime  struct{ Layers []any } `json:"layered_runtime"`
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		t.Fatal(err)
	}
	if b.Node.ID != "a/b" || b.Node.Locality.Zone != "z1" || b.Node.Metadata["camelCase"] != "kept" ||
		len(b.StaticResources.Clusters) != 3 || len(b.StatsConfig.Matcher.List.Patterns) != len(keptStats)+1 ||
		b.Deferred != nil || len(b.Runtime.Layers) != 2 {
		t.Errorf("merged: %s", raw)
	}
	same, err := merged(t, "{}")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := validate(t, same); err != nil {
		t.Errorf("Envoy refuses ours: %v\n%s", err, out)
	}
}

func TestBootstrapAdditionsRefused(t *testing.T) {
	for additions, want := range map[string]string{
		"admin: {}":                                   "the field admin is Gatehouse's",
		"admin: null":                                 "the field admin is Gatehouse's",
		"dynamicResources: {}":                        "the field dynamic_resources is Gatehouse's",
		"defaultConfigSource: {}":                     "the field default_config_source is Gatehouse's",
		"node: {id: b/a}":                             "the field node.id is Gatehouse's",
		"node: {cluster: null}":                       "the field node.cluster is Gatehouse's",
		"node: null":                                  "the field node has another type",
		"static_resources: null":                      "the field static_resources has another type",
		"staticResources: null":                       "the field static_resources has another type",
		"static_resources: {clusters: null}":          "the field clusters has another type",
		"static_resources: {clusters: [{name: xds}]}": "clusters[0]: the name xds is that of Gatehouse's own",
		"static_resources: {clusters: [{name: gatehouse-limits}]}":                      "clusters[0]: the name gatehouse-limits is that of Gatehouse's own",
		"static_resources: {clusters: [1]}":                                             "clusters[0] is no object",
		"{node: {locality: {}}, staticResources: {clusters: []}, static_resources: {}}": "there twice",
		"- a":     "no object",
		"a: b: c": "no object",
	} {
		if raw, err := merged(t, additions); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q\n%s", additions, err, want, raw)
		}
	}
}

func TestBootstrapBackendStats(t *testing.T) {
	for _, want := range []bool{false, true} {
		raw, err := Bootstrap(BootstrapOptions{Gateway: ab, XDSSocket: "/x", AdminSocket: "/a", BackendStats: want})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(raw), `"prefix": "cluster."`); got != want {
			t.Errorf("%t:\n%s", want, raw)
		}
		if out, err := validate(t, raw); err != nil {
			t.Errorf("Envoy refuses it: %v\n%s", err, out)
		}
	}
}
