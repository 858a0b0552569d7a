package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/view"
)

const foreignDir = "testdata/blueprint-import/"

// TestBlueprintImport renders an imported blueprint, and holds each object against what the Go template that it was
// makes of the same values.
func TestBlueprintImport(t *testing.T) {
	imported, problems, code := gatehouse("blueprint", "import", foreignDir+"foreign.yaml")
	if code != 0 {
		t.Fatalf("%d\n%s", code, problems)
	}
	at := filepath.Join(t.TempDir(), "imported.yaml")
	if err := os.WriteFile(at, []byte(imported), 0o600); err != nil {
		t.Fatal(err)
	}
	out, problems, code := gatehouse("blueprint", "render", at, foreignDir+"gateway.yaml", "--live", foreignDir+"live.yaml", "-o", "json")
	if code != 0 {
		t.Fatalf("%d\n%s\n%s", code, problems, imported)
	}
	var rendered []view.Rendered
	if err := json.Unmarshal([]byte(out), &rendered); err != nil {
		t.Fatal(err)
	}
	if len(rendered) != 1 || strings.Join(rendered[0].Addresses, " ") != "192.0.2.7 192.0.2.8" {
		t.Fatal("the addresses differ:", out)
	}
	got := map[string]any{}
	for _, o := range rendered[0].Objects {
		name, _, _ := strings.Cut(o.Place, " ")
		got[name] = o.Object
	}
	want := wantedOfTemplates(t)
	if len(got) != len(want) {
		t.Errorf("%d objects; the templates make %d", len(got), len(want))
	}
	for name, object := range want {
		if !reflect.DeepEqual(asJSON(t, got[name]), object) {
			t.Errorf("%s:\n%v\nthe template makes\n%v", name, asJSON(t, got[name]), object)
		}
	}
}

// wantedOfTemplates is what the Go templates make.
func wantedOfTemplates(t *testing.T) map[string]any {
	t.Helper()
	objects, err := readObjects(foreignDir + "gateway.yaml")
	if err != nil {
		t.Fatal(err)
	}
	live, err := readObjects(foreignDir + "live.yaml")
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := readObjects(foreignDir + "foreign.yaml")
	if err != nil {
		t.Fatal(err)
	}
	data := map[string]any{
		"Gateway": objects[0].Object, "HTTPRoute": objects[1].Object,
		"Values": map[string]any{
			"replicas": 2, "zone": "", "enabled": false, "tags": map[string]any{"team": "shop", "cost": "7"}, "limits": map[string]any{"most": 9},
			"subnets": []any{"a", "b"}, "text": "one: two", "region": "north", "owner": "platform",
		},
		"Hostnames": map[string]any{"Intersection": []string{"*.example.com"}, "Union": []string{"*.example.com", "cart.example.com"}},
		"Resources": map[string]any{"Balancer": []any{live[0].Object}},
	}
	toYAML := func(v any) string {
		text, _ := yaml.Marshal(v)
		return strings.TrimSuffix(string(text), "\n")
	}
	out := map[string]any{}
	for _, of := range []string{"gatewayTemplate", "httpRouteTemplate"} {
		texts, _, _ := unstructured.NestedStringMap(foreign[3].Object, "spec", of, "resourceTemplates")
		for name, text := range texts {
			var made bytes.Buffer
			tmpl := template.Must(template.New(name).Funcs(sprig.TxtFuncMap()).Funcs(template.FuncMap{"toYaml": toYAML}).Parse(text))
			if err := tmpl.Execute(&made, data); err != nil {
				t.Fatal(err)
			}
			var object any
			if err := yaml.Unmarshal(made.Bytes(), &object); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, &made)
			}
			if object != nil {
				out[id(name)] = object
			}
		}
	}
	return out
}

// asJSON is a value as JSON reads it.
func asJSON(t *testing.T, v any) (out any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestBlueprintImportByHand tells what has to be done by hand, with its line.
func TestBlueprintImportByHand(t *testing.T) {
	_, problems, code := gatehouse("blueprint", "import", foreignDir+"hard.yaml")
	for _, want := range []string{
		"values.default.tags is an empty list", "several: makes several objects",
		"variable: line 6: {{$name := .Gateway.metadata.name}}: there are no variables", "variable: line 7: {{with .Values.a}}",
		"variable: line 10: {{.Capabilities.x | upper}} reads .Capabilities, which isn't known", "variable: line 11: range can't be turned into a list here",
		"broken: template: template:1: missing value for if",
	} {
		if !strings.Contains(problems, want) {
			t.Errorf("%q isn't told:\n%s", want, problems)
		}
	}
	if code != 1 {
		t.Error("the exit code is", code)
	}
	if _, _, code := gatehouse("blueprint", "import", foreignDir+"gateway.yaml"); code != 1 {
		t.Error("nothing to import: the exit code is", code)
	}
}
