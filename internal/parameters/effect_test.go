package parameters

import "testing"

// TestCheckFleetSettings protects fleets from what can't be put into effect.
func TestCheckFleetSettings(t *testing.T) {
	for text, good := range map[string]bool{
		"{}": true,
		"{deployment: {replicas: 2}, pod: {labels: {a: b}}}":                                                              true,
		"patches: [{target: {kind: Service}, value: {spec: {healthCheckNodePort: 32100}}}]":                               true,
		"patches: [{target: {kind: Service}, value: {spec: {nonesuch: 1}}}]":                                              false,
		"patches: [{target: {kind: Service}, type: JSONPatch, value: [{op: remove, path: /spec/nonesuch}]}]":              false,
		"patches: [{target: {kind: Service}, value: {metadata: {name: other}}}]":                                          false,
		"accessLog: [{text: '%NONESUCH%'}]":                                                                               false,
		"envoy: {bootstrap: {stats_config: {stats_tags: [{tag_name: x, fixed_value: z}]}}}":                               true,
		"envoy: {bootstrap: {dynamic_resources: {}}}":                                                                     false,
		"envoy: {bootstrap: {static_resources: {clusters: [{name: xds}]}}}":                                               false,
		"envoy: {bootstrap: {stats_sinks: [{name: x, typed_config: {'@type': type.googleapis.com/unknown.Type, a: 1}}]}}": true,
		"envoy: {bootstrap: {stats_flush_interval: soon}}":                                                                false,
	} {
		if errs := append(checkProxy(readSettings(t, text)), checkFleet(readSettings(t, text))...); (len(errs) == 0) != good {
			t.Errorf("%s: %v", text, errs)
		}
	}
}
