package local

import (
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// TestFleetSettings protects what parameters say of an Envoy of this machine.
func TestFleetSettings(t *testing.T) {
	f := &Fleet{Options: Options{Concurrency: 3, DrainTimeout: time.Minute}}
	gateway := object.Name{Namespace: "a", Name: "b"}
	usual := f.config(gateway, "/x", &v1alpha1.Settings{})
	if usual.Concurrency != 3 || usual.DrainTimeout != time.Minute || usual.LogLevel != "" || usual.Additions != nil || usual.BackendStats {
		t.Errorf("without parameters: %+v", usual)
	}
	own := f.config(gateway, "/x", readSettings(t, "{envoy: {concurrency: 0, logLevel: error, bootstrap: {a: 1}}, drain: {timeout: 0s}, metrics: {backends: true}}"))
	if own.Concurrency != 0 || own.DrainTimeout != time.Millisecond || own.LogLevel != "error" || string(own.Additions) != `{"a":1}` || !own.BackendStats {
		t.Errorf("with parameters: %+v", own)
	}
}

func readSettings(t *testing.T, text string) *v1alpha1.Settings {
	t.Helper()
	s := &v1alpha1.Settings{}
	if err := yaml.UnmarshalStrict([]byte(text), s); err != nil {
		t.Fatal(err)
	}
	return s
}
