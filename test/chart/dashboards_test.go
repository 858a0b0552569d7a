package chart

import (
	"bytes"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestDashboards protects that each dashboard comes to Grafana as it is in the chart, and only where it is wanted.
func TestDashboards(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(chart + "/dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no dashboards", err)
	}
	if bytes.Contains(render(t, "--set", withoutCRDs), []byte("grafana")) {
		t.Error("dashboards are installed unasked")
	}
	found := map[string]string{}
	manifest := render(t, "--set", withoutCRDs, "--set", "grafanaDashboards.create=true", "--set", "grafanaDashboards.annotations.grafana_folder=Gatehouse")
	valid(t, manifest)
	for doc := range bytes.SplitSeq(manifest, []byte("\n---\n")) {
		var c corev1.ConfigMap
		if err := yaml.Unmarshal(doc, &c); err != nil {
			t.Fatal(err)
		}
		if c.Kind != "ConfigMap" || c.Labels["grafana_dashboard"] != "1" {
			continue
		}
		if c.Annotations["grafana_folder"] != "Gatehouse" {
			t.Errorf("%s has no folder", c.Name)
		}
		maps.Copy(found, c.Data)
	}
	for _, file := range files {
		got := found["gatehouse-"+filepath.Base(file)]
		if want := string(read(t, file)); strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("%s comes to Grafana as %.100q", file, got)
		}
	}
	if len(found) != len(files) {
		t.Errorf("%d dashboards of %d", len(found), len(files))
	}
}
