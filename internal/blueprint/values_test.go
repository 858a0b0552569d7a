package blueprint

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

func named(name string) object.Key { return object.Key{Name: object.Name{Name: name}} }

func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestValuesPrecedence is the golden data of the controller that had blueprints first: what
// thirteen values come to, that its six levels say differently.
func TestValuesPrecedence(t *testing.T) {
	layer := func(origin, defaults, overrides string) Layer {
		return Layer{Origin: named(origin), Defaults: parsed(t, defaults), Overrides: parsed(t, overrides)}
	}
	all := []string{"v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10"}
	say := func(origin string, which ...string) string {
		var b strings.Builder
		for _, v := range which {
			b.WriteString(v + ": " + origin + "\n")
		}
		return b.String()
	}
	got := Merge([]Layer{
		layer("blueprint", say("blueprint", all...)+"nested: {a: blueprint, b: blueprint, c: blueprint}\n", say("blueprint", "v1")+"nested: {a: blueprint-override}\n"),
		layer("class", say("class", "v1", "v2", "v3", "v4", "v5"), say("class", "v1", "v2")),
		layer("class-namespace", say("class-namespace", "v9"), say("class-namespace", "v10")),
		layer("class-in-namespace", say("class-in-namespace", "v3", "v6"), say("class-in-namespace", "v3")),
		layer("gateway-namespace", say("gateway-namespace", "v9"), ""),
		layer("gateway", say("gateway", "v7"), say("gateway", "v1", "v2", "v3", "v4", "v10")+"nested: {c: gateway}\n"),
	})
	want := parsed(t, `
v1: blueprint
v2: class
v3: class-in-namespace
v4: gateway
v5: class
v6: class-in-namespace
v7: gateway
v8: blueprint
v9: gateway-namespace
v10: class-namespace
nested: {a: blueprint-override, b: blueprint, c: gateway}
`)
	if diff := cmp.Diff(want, got.Values); diff != "" {
		t.Error(diff)
	}
	for leaf, origin := range map[string]string{"v2": "class", "nested.a": "blueprint", "nested.b": "blueprint", "nested.c": "gateway"} {
		if got.Origins[leaf].Name.Name != origin {
			t.Errorf("%s is said to be from %q", leaf, got.Origins[leaf].Name.Name)
		}
	}
	if len(got.Conflicts) != 0 || len(got.Origins) != 13 {
		t.Error(got.Conflicts, got.Origins)
	}
}

func TestValuesOfAnotherForm(t *testing.T) {
	got := Merge([]Layer{
		{Origin: named("blueprint"), Defaults: parsed(t, "dns: {zone: example.com}\nlist: [a, b]")},
		{Origin: named("team"), Defaults: parsed(t, "dns: none\nextra: 1")},
		{Origin: named("other"), Defaults: parsed(t, "list: [c]\nempty: null")},
	})
	if diff := cmp.Diff(parsed(t, "dns: {zone: example.com}\nlist: [c]\nempty: null"), got.Values); diff != "" {
		t.Error(diff)
	}
	if len(got.Conflicts) != 1 || got.Conflicts[0].Origin != named("team") || !strings.Contains(got.Conflicts[0].Message, "dns") {
		t.Error(got.Conflicts)
	}
}

func TestHostnames(t *testing.T) {
	got := HostnamesOf([]string{"*.example.com", "foo.example.com", "example.com", "bar.other.net", "foo.example.com", ""})
	want := Hostnames{
		Union:        []string{"*.example.com", "bar.other.net", "example.com", "foo.example.com"},
		Intersection: []string{"*.example.com", "bar.other.net", "example.com"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
