package infra

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/messagetest"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// repeated writes a list of n elements; %d in one is its number.
func repeated(element string, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.ReplaceAll(element, "%d", fmt.Sprint(i))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// renderPatched renders a Gateway with patches and a container whose environment has so many
// variables.
func renderPatched(t *testing.T, variables int, patches ...v1alpha1.Patch) error {
	t.Helper()
	_, err := Render(testOptions, patchedGateway(t, variables, patches...))
	return err
}

func patchedGateway(t *testing.T, variables int, patches ...v1alpha1.Patch) *Gateway {
	t.Helper()
	sidecar := corev1.Container{Name: "a"}
	if err := json.Unmarshal([]byte(repeated(`{"name": "v%d"}`, variables)), &sidecar.Env); err != nil {
		t.Fatal(err)
	}
	return &Gateway{
		Name: object.Name{Namespace: "team", Name: "web"}, Class: "gatehouse", Ports: []Port{{Port: 80, Target: 10080}},
		Settings: &v1alpha1.Settings{Pod: &v1alpha1.Pod{Containers: []corev1.Container{sidecar}}, Patches: patches},
	}
}

func patchOf(kind string, of v1alpha1.PatchType, value string) v1alpha1.Patch {
	return v1alpha1.Patch{Target: v1alpha1.PatchTarget{Kind: kind}, Type: of, Value: apiextensionsv1.JSON{Raw: []byte(value)}}
}

// TestPatchesAreBounded protects every replica of the controller from patches that cost
// it its memory or its time: whoever may write GatewayParameters could end them all. The
// worst of these took all memory that there is, or more than four minutes.
func TestPatchesAreBounded(t *testing.T) {
	const (
		json   = v1alpha1.JSONPatch
		merge  = v1alpha1.StrategicMerge
		double = `{"op": "copy", "from": "/metadata/annotations", "path": "/metadata/annotations/a%d"}`
		note   = `{"op": "add", "path": "/metadata/annotations/a%d", "value": "x"}`
	)
	long := `"` + strings.Repeat("x", 20<<10) + `"`
	sidecar := func(value string) string {
		return `{"spec": {"template": {"spec": {"containers": ` + value + `}}}}`
	}
	for _, c := range []struct {
		name      string
		variables int
		patches   []v1alpha1.Patch
		want      string
	}{
		{"an object copied into itself", 0, []v1alpha1.Patch{patchOf("Service", json, repeated(double, 40))},
			"patches[0]: all JSON patches up to this one have 40 copy operations, over the limit of 16"},
		{"few copies of much", 0, []v1alpha1.Patch{patchOf("Service", json, `[{"op": "add", "path": "/metadata/annotations/a", "value": `+long+`},`+
			repeated(double, 4)[1:])}, "patches[0] of the Service: operation 2: the object has "},
		{"copies of several patches", 0, []v1alpha1.Patch{patchOf("Service", json, repeated(double, 10)), patchOf("ConfigMap", json, repeated(double, 10))},
			"patches[1]: all JSON patches up to this one have 20 copy operations"},
		{"operations", 0, []v1alpha1.Patch{patchOf("Service", json, repeated(note, 60)), patchOf("Service", json, repeated(note, 60))},
			"patches[1]: all JSON patches up to this one have 120 operations, over the limit of 64"},
		{"text", 0, []v1alpha1.Patch{patchOf("Service", merge, `{"metadata": {"annotations": {"a": `+long+`}}}`), patchOf("Service", merge, `{"metadata": {"annotations": {"b": `+long+`}}}`)},
			"patches[1]: all patches up to this one have "},
		{"characters that JSON escapes", 0, []v1alpha1.Patch{patchOf("Service", json, `[{"op": "add", "path": "/metadata/annotations/a", "value": "`+strings.Repeat("<", 20<<10)+`"}]`)},
			"patches[0] of the Service: operation 0: the object has "},
		{"many merges of one list", 200, []v1alpha1.Patch{patchOf("Deployment", merge, sidecar(repeated(`{"name": "a", "env": []}`, 100)))},
			"patches[0]: all strategic merge patches up to this one have 201 lists and elements of lists, over the limit of 128"},
		{"a merge with a long list", 2000, []v1alpha1.Patch{patchOf("Deployment", merge, sidecar(`[{"name": "a", "env": []}]`))},
			"patches[0] of the Deployment: the object has a list of 2000 elements, over the limit of 256"},
		{"a large object", 5000, []v1alpha1.Patch{patchOf("Deployment", json, `[{"op": "add", "path": "/spec/minReadySeconds", "value": 1}]`)},
			"patches[0] of the Deployment: the object has "},
		{"what panicked", 0, []v1alpha1.Patch{patchOf("Service", json, `[{"op": "test", "path": ""}]`)},
			"patches[0]: operation 0 must have a path, and that of a field"},
		{"what can't be applied is not repeated", 0, []v1alpha1.Patch{patchOf("Service", json, `[{"op": "`+strings.Repeat("x", 20<<10)+`", "path": "/a"}]`)},
			"patches[0]: invalid operation "},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := renderPatched(t, c.variables, c.patches...)
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || len(err.Error()) > 1024 {
				t.Errorf("got %.300s, want %s", fmt.Sprint(err), c.want)
			}
		})
	}
	for name, patches := range map[string][]v1alpha1.Patch{
		"at the limits": {patchOf("Service", json, repeated(note, 32)), patchOf("Service", json, repeated(note, 32))},
		"copies":        {patchOf("Service", json, `[{"op": "copy", "from": "/metadata/annotations/gatehouse.dev~1class", "path": "/metadata/annotations/a"}]`)},
		"a merge":       {patchOf("Deployment", merge, sidecar(`[{"name": "a", "env": [{"name": "v7", "value": "x"}]}]`))},
	} {
		if err := renderPatched(t, 200, patches...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzPatch protects the controller from the libraries that apply what others have
// written: whatever a patch says, it is applied or refused.
func FuzzPatch(f *testing.F) {
	for _, value := range []string{
		`[{"op": "test", "path": ""}]`, `[{"op": "test", "path": "/spec"}]`, `[{"op": "move", "from": "/spec/ports/0", "path": "/spec/ports/-"}]`,
		`[{"op": "copy", "from": "", "path": "/a"}, {"op": "copy", "from": "", "path": "/a/a"}]`, `[{"op": "replace", "path": "/spec/ports/-1", "value": null}]`,
	} {
		f.Add(true, []byte(value))
	}
	for _, value := range []string{
		`{"spec": {"ports": [{"port": 80, "$patch": "delete"}]}}`, `{"spec": {"$setElementOrder/ports": [{"port": 80}], "$retainKeys": ["ports"]}}`,
		`{"metadata": {"$patch": "replace"}}`, `{"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}`, `{"spec": {"ports": [{"port": 80, "name": null}]}}`,
	} {
		f.Add(false, []byte(value))
	}
	f.Fuzz(func(t *testing.T, isJSON bool, value []byte) {
		of := v1alpha1.StrategicMerge
		if isJSON {
			of = v1alpha1.JSONPatch
		}
		gateway := patchedGateway(t, 3, patchOf("Service", of, string(value)), patchOf("Deployment", of, string(value)))
		objects, err := Render(testOptions, gateway)
		if err != nil {
			messagetest.Error(t, err, 1024)
			if !strings.HasPrefix(err.Error(), "patches[") {
				t.Fatalf("the error names no patch: %v", err)
			}
			return
		}
		again, err := Render(testOptions, gateway)
		if diff := cmp.Diff(objects, again); diff != "" || err != nil {
			t.Fatalf("rendered again, the objects are others (%v):\n%s", err, diff)
		}
		for _, o := range objects {
			text, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			if len(text) > 2*maxPatched || o.GetNamespace() != gateway.Name.Namespace {
				t.Fatalf("%d bytes in namespace %q", len(text), o.GetNamespace())
			}
			for label, value := range Labels(gateway.Name, gateway.Class) {
				if o.GetLabels()[label] != value {
					t.Fatalf("%T has the label %s=%q", o, label, o.GetLabels()[label])
				}
			}
		}
	})
}
