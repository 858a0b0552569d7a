package control

import (
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

func readSettings(t *testing.T, text string) *v1alpha1.Settings {
	t.Helper()
	s := &v1alpha1.Settings{}
	if err := yaml.UnmarshalStrict([]byte(text), s); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFleetSettings protects what parameters say of an Envoy of this machine.
func TestFleetSettings(t *testing.T) {
	f := &fleet{fleetOptions: fleetOptions{concurrency: 3, drain: time.Minute}}
	gateway := object.Name{Namespace: "a", Name: "b"}
	usual := f.config(gateway, "/x", &v1alpha1.Settings{})
	if usual.Concurrency != 3 || usual.DrainTimeout != time.Minute || usual.LogLevel != "" || usual.Additions != nil {
		t.Errorf("without parameters: %+v", usual)
	}
	own := f.config(gateway, "/x", readSettings(t, "{envoy: {concurrency: 0, logLevel: error, bootstrap: {a: 1}}, drain: {timeout: 0s}}"))
	if own.Concurrency != 0 || own.DrainTimeout != time.Millisecond || own.LogLevel != "error" || string(own.Additions) != `{"a":1}` {
		t.Errorf("with parameters: %+v", own)
	}
}

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
		if errs := checkFleetSettings(readSettings(t, text)); (len(errs) == 0) != good {
			t.Errorf("%s: %v", text, errs)
		}
	}
}
