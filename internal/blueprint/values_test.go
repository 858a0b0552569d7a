package blueprint

import (
	"fmt"
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

const valuesSchemaText = `
valuesSchema:
  type: object
  required: [zone]
  properties:
    zone: {type: string, pattern: '^[a-z.]+$'}
    size: {type: string, enum: [small, large], default: small}
    dns:
      type: object
      required: [ttl, server]
      properties: {ttl: {type: integer, minimum: 1}, server: {type: string}}
`

// TestValuesSchema checks what each object says, and what all say together.
func TestValuesSchema(t *testing.T) {
	b := compiled(t, valuesSchemaText+`
values: {defaults: {dns: {server: ns.example}}}
resources:
- {id: a, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {zone: "${values.zone}", ttl: "${values.?dns.?ttl.orValue(0)}"}}}
`)
	own := named("blueprint")
	got := b.Values(own, []Layer{
		{Origin: own, Defaults: parsed(t, "dns: {server: ns.example}")},
		{Origin: named("class"), Defaults: parsed(t, "zone: example.com"), Overrides: parsed(t, "dns: {ttl: 60}")},
		{Origin: named("wrong"), Defaults: parsed(t, "size: huge\nzone: wrong.example")},
		{Origin: named("unknown"), Defaults: parsed(t, "dns: {tll: 1}")},
		{Origin: named("range"), Overrides: parsed(t, "dns: {ttl: 0}")},
	})
	if diff := cmp.Diff(parsed(t, "zone: example.com\nsize: small\ndns: {ttl: 60, server: ns.example}"), got.Values); diff != "" {
		t.Error(diff)
	}
	var said []string
	for _, c := range got.Conflicts {
		said = append(said, c.Origin.Name.Name+": "+c.Message)
	}
	want := []string{
		`wrong: spec.defaults.size: Unsupported value: supported values: "small", "large"`,
		"unknown: spec.defaults.dns.tll: there is no such value in the blueprint's schema",
		"range: spec.overrides.dns.ttl: should be greater than or equal to 1",
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error(diff)
	}
	if got.Origins["size"] != own || got.Origins["zone"] != named("class") || got.Problems != nil {
		t.Error(got.Origins, got.Problems)
	}
	if got = b.Values(own, nil); len(got.Problems) != 1 || got.Problems[0].Field != "values.zone" {
		t.Error(got.Problems)
	}
}

// TestValuesSchemaProblems are mistakes that are told when a blueprint is written.
func TestValuesSchemaProblems(t *testing.T) {
	for text, why := range map[string]string{
		valuesSchemaText + "values: {defaults: {size: huge}}":                                                                                        "spec.values.defaults.size",
		"valuesSchema: {type: string}":                                                                                                               "must be object",
		"valuesSchema: {type: object, properties: {a: {}}}":                                                                                          "spec.valuesSchema.properties[a].type",
		"valuesSchema: {type: object, properties: {a: {type: string, pattern: '['}}}":                                                                "must be a valid regular expression",
		"valuesSchema: {type: object, properties: {a: {type: string, default: 1}}}":                                                                  "spec.valuesSchema.properties[a].default",
		"valuesSchema: {type: object, x-kubernetes-validations: [{rule: 'true', message: wrong}]}":                                                   "leave them out",
		valuesSchemaText + `resources: [{id: a, includeWhen: values.dns.tll > 1, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}]`: "values.dns.tll is not in spec.valuesSchema, which has server, ttl there",
	} {
		_, problems := Compile(spec(t, text))
		if said := fmt.Sprint(problems); len(problems) != 1 || !strings.Contains(said, why) {
			t.Errorf("%s\n  %s\n  want %q", text, said, why)
		}
	}
}
