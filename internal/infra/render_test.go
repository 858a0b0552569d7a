package infra

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

var update = flag.Bool("update", false, "write what is rendered into testdata")

// testOptions are those of the golden cases.
var testOptions = Options{
	ControllerName:      "gatehouse.dev/controller",
	Image:               "registry.example/gatehouse:v1",
	PullPolicy:          corev1.PullIfNotPresent,
	ControllerNamespace: "gatehouse-system",
	ControllerService:   "gatehouse",
	XDSPort:             18000,
	APIPort:             18001,
	Authorities:         []byte("-----BEGIN CERTIFICATE-----\n"),
}

// TestRender renders the Gateway of each case. Of most cases only the objects are
// compared that the case is about: those of which the file has the output.
func TestRender(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			g := &Gateway{}
			if err := yaml.UnmarshalStrict(archive.Files[0].Data, g); err != nil {
				t.Fatal(err)
			}
			var p Plan
			outputs := 1
			if len(archive.Files) > 1 && archive.Files[1].Name == "plan" {
				outputs++
				if err := yaml.UnmarshalStrict(archive.Files[1].Data, &p); err != nil {
					t.Fatal(err)
				}
			}
			rendered := renderPlan(t, g, p)
			var kinds []string
			for i := range archive.Files[outputs:] {
				f := &archive.Files[i+outputs]
				if got := rendered[f.Name]; !bytes.Equal(got, f.Data) {
					if !*update {
						t.Errorf("%s (-want +got):\n%s", f.Name, cmp.Diff(string(f.Data), string(got)))
					}
					f.Data = got
				}
				kinds = append(kinds, f.Name)
			}
			if *update && len(kinds) > 0 {
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if again := renderPlan(t, g, p); !cmp.Equal(rendered, again) {
				t.Errorf("rendered twice, it differs:\n%s", cmp.Diff(rendered, again))
			}
		})
	}
}

// render gives the objects as YAML by kind, with "limits" before that of those which count
// requests; under "kinds" it lists them, and under "error" stands why there are none.
func render(t *testing.T, g *Gateway) map[string][]byte {
	t.Helper()
	return renderPlan(t, g, Plan{})
}

func renderPlan(t *testing.T, g *Gateway, p Plan) map[string][]byte {
	t.Helper()
	f, err := New(testOptions, g)
	var objects []*unstructured.Unstructured
	if err == nil {
		objects, err = f.Objects(p)
	}
	if err != nil {
		return map[string][]byte{"error": []byte(err.Error() + "\n")}
	}
	out := map[string][]byte{}
	var kinds strings.Builder
	for _, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		kind := o.GetObjectKind().GroupVersionKind().Kind
		if o.GetLabels()[nameLabel] == limitsName {
			kind = "limits " + kind
		}
		if testOptions.Places.OfRevision(o) && kind != "Deployment" {
			kind = "revision " + kind
		}
		fmt.Fprintln(&kinds, kind)
		out[kind] = text
	}
	out["kinds"] = []byte(kinds.String())
	return out
}

// What runs must not be replaced because a listener or an authority is.
func TestPodsOutliveChanges(t *testing.T) {
	g := &Gateway{Name: object.Name{Namespace: "team", Name: "web"}, Class: "gatehouse", Ports: []Port{{Port: 80, Target: 10080}}}
	before := render(t, g)["Deployment"]
	changed := *g
	changed.Ports = []Port{{Port: 443, Target: 10443}, {Port: 53, Target: 10053, UDP: true}}
	changed.Addresses = []string{"192.0.2.1"}
	defer func(o Options) { testOptions = o }(testOptions)
	testOptions.Authorities = []byte("others")
	if diff := cmp.Diff(string(before), string(render(t, &changed)["Deployment"])); diff != "" {
		t.Errorf("the Deployment changes (-before +after):\n%s", diff)
	}
}

// Names are fit for every kind, and no two fleets of a namespace share one.
func TestNames(t *testing.T) {
	names := map[string][2]string{}
	rapid.Check(t, func(t *rapid.T) {
		gateway := rapid.StringMatching(`[a-c0]([a-c.-]{0,3}[a-c0])?(x{50,240}y)?`).Draw(t, "gateway")
		class := rapid.StringMatching(`[a-c0]([a-c.-]{0,3}[a-c0])?(x{50,240}y)?`).Draw(t, "class")
		name := Name(object.Name{Namespace: "ns", Name: gateway}, class)
		if !isLabel(name) {
			t.Errorf("Name(%q, %q) = %q is no name for a Service", gateway, class, name)
		}
		pair := [2]string{gateway, class}
		limits := Places{}.LimitsName(object.Name{Namespace: "ns", Name: gateway}, class).Name
		if other, taken := names[limits]; !isLabel(limits) || taken && other != [2]string{"limits of " + gateway, class} {
			t.Errorf("LimitsName(%q, %q) = %q is no name for a Service, or another's", gateway, class, limits)
		}
		names[limits] = [2]string{"limits of " + gateway, class}
		if other, taken := names[name]; taken && other != pair {
			t.Errorf("%q is the name of the fleets of %q and %q", name, other, pair)
		}
		names[name] = pair
		for key, value := range Labels(object.Name{Namespace: "ns", Name: gateway}, class) {
			if len(value) > maxName || strings.Trim(value, "-._") != value {
				t.Errorf("label %s: %q is no value", key, value)
			}
		}
	})
}

// In a namespace for all fleets no two share a name, whatever their Gateways' namespaces are called, nor do parts of theirs;
// and a revision appended to a name is cut off none.
func TestNamesElsewhere(t *testing.T) {
	places := Places{Namespace: "fleets"}
	names := map[string]string{}
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-c0]([a-c-]{0,3}[a-c0])?(x{50}y)?`)
		gateway, class := object.Name{Namespace: word.Draw(t, "namespace"), Name: word.Draw(t, "gateway")}, word.Draw(t, "class")
		whole := gateway.String() + " " + class
		name := places.Name(gateway, class).Name
		for part, name := range map[string]string{
			"": name, "limits": places.LimitsName(gateway, class).Name, "preview": places.PreviewName(gateway, class).Name,
			"revision": revised(name, "r00000000"),
		} {
			if !isLabel(name) || !strings.HasPrefix(name, places.Name(gateway, class).Name) {
				t.Errorf("%q is no name for the %s of %s", name, part, whole)
			}
			if other, taken := names[name]; taken && other != part+" "+whole {
				t.Errorf("%q is the name of %s and %s %s", name, other, part, whole)
			}
			names[name] = part + " " + whole
		}
	})
	shared := object.SharedFleet("platform", "class")
	if a, b := places.Name(shared, "class"), places.Name(object.SharedFleet("other", "class"), "class"); a == b || !isLabel(a.Name) {
		t.Errorf("shared fleets of two namespaces are %s and %s", a, b)
	}
}

// Whose an object is follows from what it says only where fleets are: a tenant can have one say anything.
func TestGatewayOf(t *testing.T) {
	elsewhere := Places{Namespace: "fleets", Former: []string{"old"}}
	moving := Places{Namespace: "fleets", Former: []string{OfGateways}}
	for _, c := range []struct {
		places    Places
		namespace string
		gateway   string
		is        bool
	}{
		{Places{}, "shop", "shop/web", true},
		{Places{}, "team", "shop/web", false},
		{elsewhere, "fleets", "shop/web", true},
		{elsewhere, "old", "shop/web", true},
		{elsewhere, "shop", "shop/web", false},
		{elsewhere, "team", "shop/web", false},
		{elsewhere, "fleets", "fleets/web", true},
		{elsewhere, "fleets", "shop/web/x", false},
		{elsewhere, "fleets", "web", false},
		{moving, "shop", "shop/web", true},
		{moving, "team", "shop/web", false},
	} {
		o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
			Namespace: c.namespace, Name: "any",
			Labels: map[string]string{ManagedByLabel: ManagedBy}, Annotations: map[string]string{GatewayAnnotation: c.gateway},
		}}
		if of, is := c.places.GatewayOf(o); is != c.is || is && of.String() != c.gateway {
			t.Errorf("with %+v an object in %s that says %s is of %s, %t", c.places, c.namespace, c.gateway, of, is)
		}
	}
}

func isLabel(s string) bool {
	if len(s) > 63 || s[0] < 'a' || s[0] > 'z' || strings.HasSuffix(s, "-") {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// Names are kept across versions: whoever changes them orphans every fleet.
func TestNamesAreStable(t *testing.T) {
	long := strings.Repeat("long-", 50) + "end"
	for _, c := range []struct{ gateway, class, want string }{
		{"web", "gatehouse", "web-gatehouse"},
		{"web", "gatehouse-internal", "web-gatehouse-internal-9b76e6e6"},
		{"a-b", "c", "a-b-c"},
		{"a", "b-c", "a-b-c-b88f83c8"},
		{"web.example", "gatehouse", "web-example-gatehouse-f3a9a81b"},
		{"0web", "gatehouse", "gw-0web-gatehouse-dc1e8c78"},
		{long, "gatehouse", "long-long-long-long-long-long-long-long-long-long-long-87da95a6"},
	} {
		if got := Name(object.Name{Namespace: "ns", Name: c.gateway}, c.class); got != c.want {
			t.Errorf("Name(%q, %q) = %q, want %q", c.gateway, c.class, got, c.want)
		}
	}
}

func TestImage(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for _, c := range []struct{ image, over, want string }{
		{"r:5000/g:v1", `{}`, "r:5000/g:v1"},
		{"r:5000/g:v1", `{repository: other/g}`, "other/g:v1"},
		{"r:5000/g:v1", `{tag: v2}`, "r:5000/g:v2"},
		{"r:5000/g", `{tag: v2}`, "r:5000/g:v2"},
		{"g:v1@" + digest, `{repository: h}`, "h@" + digest},
		{"g@" + digest, `{tag: v2}`, "g:v2"},
		{"g:v1", `{digest: "` + digest + `"}`, "g@" + digest},
	} {
		g := &Gateway{}
		if err := yaml.UnmarshalStrict([]byte("settings: {container: {image: "+c.over+"}}"), g); err != nil {
			t.Fatal(err)
		}
		if got := imageOf(c.image, g.Settings.Container.Image); got != c.want {
			t.Errorf("%s with %s is %s, want %s", c.image, c.over, got, c.want)
		}
	}
}

// Who may edit a Gateway or its parameters can't say what objects are to the controller.
func TestReserved(t *testing.T) {
	const keys = `{gatehouse.dev/live: x, gatehouse.dev/verdict: x, gatehouse.dev/revision: x, applyset.kubernetes.io/part-of: x, mine: x}`
	g := &Gateway{}
	if err := yaml.UnmarshalStrict([]byte(`
name: {namespace: team, name: web}
class: gatehouse
ports: [{port: 80, target: 10080}]
limits: true
labels: `+keys+`
annotations: `+keys+`
settings:
  service: {labels: `+keys+`, annotations: `+keys+`}
  pod: {labels: `+keys+`}
  patches:
  - {target: {kind: Service}, value: {metadata: {labels: `+keys+`, annotations: `+keys+`}}}
  - {target: {kind: Deployment}, value: {metadata: {labels: `+keys+`, annotations: `+keys+`}}}
`), g); err != nil {
		t.Fatal(err)
	}
	f, err := New(testOptions, g)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := f.Objects(Plan{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		for _, has := range []map[string]string{o.GetLabels(), o.GetAnnotations()} {
			for _, key := range reserved {
				if has[key] == "x" {
					t.Errorf("%s %s has %s", o.GetKind(), o.GetName(), key)
				}
			}
			if has["mine"] != "x" {
				t.Errorf("%s %s has not what was given", o.GetKind(), o.GetName())
			}
		}
	}
}
