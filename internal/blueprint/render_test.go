package blueprint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// world is a cluster of objects by kind and name.
type world map[string]map[string]any

func (w world) live(ref Ref) map[string]any { return w[ref.String()] }

func (w world) set(t *testing.T, text string) {
	o := parsed(t, text)
	m := o["metadata"].(map[string]any)
	namespace, _ := m["namespace"].(string)
	w[fmt.Sprintf("%s %s", o["kind"], strings.TrimPrefix(fmt.Sprintf("%s/%s", namespace, m["name"]), "/"))] = o
}

func compiled(t *testing.T, text string) *Blueprint {
	t.Helper()
	b, problems := Compile(spec(t, text))
	if problems != nil {
		t.Fatal(problems)
	}
	return b
}

func spec(t *testing.T, text string) *v1alpha1.GatewayBlueprintSpec {
	t.Helper()
	out := &v1alpha1.GatewayBlueprintSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

func input(w world, values map[string]any) Input {
	return Input{
		Namespace: "shop", Values: values, Live: w.live,
		Gateway:   map[string]any{"metadata": map[string]any{"name": "edge", "namespace": "shop"}},
		Listeners: []any{}, Hostnames: HostnamesOf([]string{"shop.example.com"}),
		Namespaced: func(k schema.GroupVersionKind) (bool, bool) { return k.Kind != "ClusterThing", k.Kind != "Absent" },
	}
}

// told is an outcome in a line for each object and each resource that is held.
func told(o Outcome) (lines []string) {
	for _, c := range o.Children {
		text, _ := json.Marshal(c.Object.Object)
		line := c.Place.String() + ": " + string(text)
		if c.NotReady != "" {
			line += " not ready: " + c.NotReady
		}
		lines = append(lines, line)
	}
	for _, h := range o.Undecided {
		verb := " is wrong: "
		if h.Waits {
			verb = " waits: "
		}
		lines = append(lines, h.Place.String()+verb+h.Why)
	}
	return lines
}

const twoResources = `
resources:
- id: target
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: "${gateway.metadata.name}-target"}
    data: {from: "${source.data.word} and ${string(values.count)}", address: "${source.status.address}"}
- id: source
  readyWhen: source.data.word != ''
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: "${gateway.metadata.name}-source", labels: "${values.labels}"}
    data: {word: "${values.word}"}
`

// TestSiblings follows a resource that reads another one's live object: it waits for the
// object, then for a field of it.
func TestSiblings(t *testing.T) {
	b, w := compiled(t, twoResources), world{}
	in := input(w, parsed(t, "word: hello\ncount: 3\nlabels: {a: b}"))
	source := `source: {"apiVersion":"v1","data":{"word":"hello"},"kind":"ConfigMap","metadata":{"labels":{"a":"b"},"name":"edge-source","namespace":"shop"}}`
	got := b.Render(in)
	if diff := cmp.Diff([]string{source, "target waits: waits for source, which isn't in the cluster yet"}, told(got)); diff != "" {
		t.Error(diff)
	}
	w.set(t, `{kind: ConfigMap, metadata: {name: edge-source, namespace: shop}, data: {word: live}}`)
	if diff := cmp.Diff([]string{source, "target waits: spec.resources[0].template.data.address: ${source.status.address}: status is not there"}, told(b.Render(in))); diff != "" {
		t.Error(diff)
	}
	w.set(t, `{kind: ConfigMap, metadata: {name: edge-source, namespace: shop}, data: {word: live}, status: {address: 192.0.2.1}}`)
	got = b.Render(in)
	want := []string{source, `target: {"apiVersion":"v1","data":{"address":"192.0.2.1","from":"live and 3"},"kind":"ConfigMap","metadata":{"name":"edge-target","namespace":"shop"}}`}
	if diff := cmp.Diff(want, told(got)); diff != "" {
		t.Error(diff)
	}
}

// TestMistakes costs what has them and what reads that, and nothing else.
func TestMistakes(t *testing.T) {
	b := compiled(t, `
resources:
- id: wrong
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: wrong}, data: {x: "${values.missing}"}}
- id: behind
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: behind}, data: {x: "${wrong.data.x}"}}
- id: fine
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: fine, namespace: other}}
- id: same
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: fine, namespace: other}}
- id: wide
  template: {apiVersion: v1, kind: ClusterThing, metadata: {name: wide}}
- id: absent
  template: {apiVersion: x.example/v1, kind: Absent, metadata: {name: absent}}
- id: none
  includeWhen: values.?none.orValue(false)
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: none}}
- id: optional
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: optional}
    data: {left: "${values.?missing}", none: "${none == null ? 'no none' : none.data.x}", money: "$${x}"}
- id: many
  forEach: values.many
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "many-${each}"}}
`)
	in := input(world{}, parsed(t, "many: [a, b]"))
	want := []string{
		`fine: {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"fine","namespace":"other"}}`,
		`wide: {"apiVersion":"v1","kind":"ClusterThing","metadata":{"name":"wide"}}`,
		`optional: {"apiVersion":"v1","data":{"money":"${x}","none":"no none"},"kind":"ConfigMap","metadata":{"name":"optional","namespace":"shop"}}`,
		`many: {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"many-a","namespace":"shop"}}`,
		`many[1]: {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"many-b","namespace":"shop"}}`,
		`wrong is wrong: spec.resources[0].template.data.x: ${values.missing}: missing is not there`,
		`behind waits: waits for wrong`,
		`same is wrong: fine makes the ConfigMap other/fine too; give one of them another name`,
		`absent waits: the kind Absent of x.example/v1 is not installed`,
	}
	got := told(b.Render(in))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRoutes(t *testing.T) {
	b := compiled(t, `
resources:
- id: child
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: child}}
- id: copy
  for: Route
  template:
    apiVersion: gateway.networking.k8s.io/v1
    kind: HTTPRoute
    metadata: {name: "${route.metadata.name}-copy", namespace: "${route.metadata.namespace}"}
    spec: {parentRefs: [{name: "${child.metadata.name}"}], rules: "${route.spec.rules}"}
`)
	w := world{}
	w.set(t, `{kind: ConfigMap, metadata: {name: child, namespace: shop}}`)
	in := input(w, nil)
	for _, name := range []string{"a", "b"} {
		in.Routes = append(in.Routes, Route{
			object.Key{Name: object.Name{Namespace: "shop", Name: name}},
			parsed(t, fmt.Sprintf(`{metadata: {name: %s, namespace: shop}, spec: {rules: [{backendRefs: [{name: %s, port: 80, weight: 7}]}]}}`, name, name)),
		})
	}
	got := b.Render(in)
	if len(got.Undecided) > 0 || len(got.Children) != 3 {
		t.Fatal(told(got))
	}
	for i, c := range got.Children[1:] {
		rules, _ := json.Marshal(c.Object.Object["spec"].(map[string]any)["rules"])
		want, _ := json.Marshal(in.Routes[i].Object["spec"].(map[string]any)["rules"])
		if string(rules) != string(want) {
			t.Errorf("%s, want %s", rules, want)
		}
	}
}

// TestProblems are mistakes that are told when a blueprint is written.
func TestProblems(t *testing.T) {
	object := func(id, more string) string {
		return fmt.Sprintf("{id: %s, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {x: %s}}}", id, id, more)
	}
	for text, why := range map[string]string{
		object("a", `"${b.data.x}"`) + ", " + object("b", `"${c.data.x}"`) + ", " + object("c", `"${a.data.x}"`): "a → b → c → a",
		object("a", `"${a.data.x}"`):               "undeclared reference to 'a'",
		object("a", `"${vaules.x}"`):               "undeclared reference to 'vaules'; there are attachedRoutes, gateway, hostnames, listeners, values",
		object("a", `"${values.x"`):                "has no end",
		object("a", `"${ }"`):                      "is empty",
		object("a", `{"${values.x}": y}`):          "names of fields have no expressions",
		object("a", `"${route.metadata.name}"`):    "undeclared reference to 'route'",
		object("values", "y"):                      "is a name that expressions read already",
		object("a", "y") + ", " + object("a", "y"): "has the id a too",
		`{id: a, template: {apiVersion: v1, kind: "${values.kind}", metadata: {name: a}}}`:                       "is not written out",
		`{id: a, template: {apiVersion: v1, kind: ConfigMap, metadata: {}}}`:                                     "the same object needs the same name",
		`{id: a, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, finalizers: [x]}}}`:             "leave it out",
		`{id: a, template: {apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: a}}}`: "can't make a GatewayClass",
		`{id: a, template: {apiVersion: gatehouse.dev/v1alpha1, kind: GatewayBlueprint, metadata: {name: a}}}`:   "can't make a GatewayBlueprint",
		`{id: a, includeWhen: "1 +", template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}`:          "includeWhen",
	} {
		_, problems := Compile(spec(t, "resources: ["+text+"]"))
		said := fmt.Sprint(problems)
		if len(problems) != 1 || !strings.Contains(said, why) {
			t.Errorf("%s\n  %s\n  want %q", text, said, why)
		}
	}
}

// TestShape fuzzes values: whatever they are, they come out as they were, in the field where they
// belong, and nothing else changes.
func TestShape(t *testing.T) {
	b := compiled(t, `
resources:
- id: a
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: a, annotations: {whole: "${values.s}"}}
    data: {middle: "before ${values.s} after", list: ["${values.s}", fixed]}
`)
	hostile := []string{"${", "}", "$${", "'", "\"", "\n", ": ", "- ", "#", "{{ .x }}", "---\n", "\\", "\u2028", "!!binary ", "&a ", "*a", "\x00", "%"}
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOf(rapid.OneOf(rapid.SampledFrom(hostile), rapid.String())).Draw(t, "value"), "")
		got := b.Render(input(world{}, map[string]any{"s": s}))
		if len(got.Children) != 1 {
			t.Fatal(told(got))
		}
		want := map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "a", "namespace": "shop", "annotations": map[string]any{"whole": s}},
			"data":     map[string]any{"middle": "before " + s + " after", "list": []any{s, "fixed"}},
		}
		if diff := cmp.Diff(want, got.Children[0].Object.Object); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestExpressionsEnd(t *testing.T) {
	for text, want := range map[string][]part{
		`a${x}b`:               {{"a", false}, {"x", true}, {"b", false}},
		`${ {"a": {"b": 1}} }`: {{`{"a": {"b": 1}}`, true}},
		`${"}"}`:               {{`"}"`, true}},
		`${'\'}'}`:             {{`'\'}'`, true}},
		`${r'\'}x`:             {{`r'\'`, true}, {"x", false}},
		`${"""}"}"""}`:         {{`"""}"}"""`, true}},
		`$${x} $x ${y}`:        {{"${x} $x ", false}, {"y", true}},
	} {
		got, err := split(text)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

// TestMade protects what reads an object that is replaced: until the new one is ready it reads the newest that is.
func TestMade(t *testing.T) {
	b, problems := Compile(spec(t, `
resources:
- id: cert
  replace: CreateBeforeDestroy
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "cert-${values.zone}"}}
  readyWhen: cert.data.?ready.orValue("") == "yes"
- id: user
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: user}, data: {cert: "${cert.metadata.name}"}}
`))
	if problems != nil {
		t.Fatal(problems)
	}
	ref := func(zone string) Ref {
		return Ref{schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, object.Name{Namespace: "shop", Name: "cert-" + zone}}
	}
	for name, c := range map[string]struct {
		ready map[string]string // of those that are there
		made  []Ref
		reads string
	}{
		"the first one, ready or not":      {map[string]string{"c": ""}, []Ref{ref("c")}, "cert-c"},
		"the new one, ready":               {map[string]string{"a": "yes", "c": "yes"}, []Ref{ref("a"), ref("c")}, "cert-c"},
		"the old one, else":                {map[string]string{"a": "yes", "c": ""}, []Ref{ref("a"), ref("c")}, "cert-a"},
		"the old one, before a new one":    {map[string]string{"a": "yes"}, []Ref{ref("a")}, "cert-a"},
		"the newest one that is ready":     {map[string]string{"a": "yes", "b": "yes", "c": ""}, []Ref{ref("a"), ref("b")}, "cert-b"},
		"not one that never was ready":     {map[string]string{"a": "yes", "b": "", "c": ""}, []Ref{ref("a"), ref("b")}, "cert-a"},
		"none, where none is ready":        {map[string]string{"a": "", "c": ""}, []Ref{ref("a")}, ""},
		"none, where all are not there":    {nil, []Ref{ref("a")}, ""},
		"one that is wanted anew, at once": {map[string]string{"a": "yes", "c": "yes"}, []Ref{ref("c"), ref("a")}, "cert-c"},
	} {
		w := world{}
		for zone, ready := range c.ready {
			w[ref(zone).String()] = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "cert-" + zone}, "data": map[string]any{"ready": ready}}
		}
		in := input(w, map[string]any{"zone": "c"})
		in.Made = map[Place][]Ref{{ID: "cert"}: c.made}
		reads := ""
		for _, child := range b.Render(in).Children {
			if child.ID == "user" {
				reads, _, _ = unstructured.NestedString(child.Object.Object, "data", "cert")
			}
		}
		if reads != c.reads {
			t.Errorf("%s: %q is read, not %q", name, reads, c.reads)
		}
	}
}

// TestProgrammed protects from listeners that are taken to be in force before proxies have them.
func TestProgrammed(t *testing.T) {
	for _, c := range []struct{ conditions, want string }{
		{`[]`, "is not programmed yet"},
		{`[{type: Programmed, status: "True", observedGeneration: 1}]`, "is not programmed yet"},
		{`[{type: Programmed, status: "False", observedGeneration: 2, message: no proxy}]`, "no proxy"},
		{`[{type: Accepted, status: "False", observedGeneration: 2}, {type: Programmed, status: "True", observedGeneration: 2}]`, ""},
	} {
		o := &unstructured.Unstructured{}
		text, err := yaml.YAMLToJSON([]byte(`{apiVersion: gateway.networking.k8s.io/v1, kind: ListenerSet, metadata: {name: a, generation: 2}, status: {conditions: ` + c.conditions + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		if err := o.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		if got := notReady(o); got != c.want {
			t.Errorf("%s: %q, not %q", c.conditions, got, c.want)
		}
	}
}

// TestSaidReady protects what works from the object that takes its place, while nobody has said anything of that.
func TestSaidReady(t *testing.T) {
	const never = "has no condition Ready=True yet; give its resource a readyWhen if it never has"
	for _, c := range []struct{ text, want string }{
		{`{apiVersion: cert-manager.io/v1, kind: Certificate}`, never},
		{`{apiVersion: cert-manager.io/v1, kind: Certificate, status: {conditions: [{type: Issuing, status: "True"}]}}`, never},
		{`{apiVersion: cert-manager.io/v1, kind: Certificate, status: {conditions: [{type: Ready, status: "True"}]}}`, ""},
		{`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute}`, never},
		{`{apiVersion: v1, kind: ConfigMap}`, ""},
	} {
		o := &unstructured.Unstructured{Object: parsed(t, c.text)}
		if got := notSaidReady(o); got != c.want {
			t.Errorf("%s: %q, not %q", c.text, got, c.want)
		}
	}
}

func TestAddresses(t *testing.T) {
	b := compiled(t, `
datapath: Rendered
addresses:
- {type: IPAddress, value: "${source.data.?address}"}
- {type: Hostname, value: "${values.names}"}
resources:
- {id: source, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: source}}}
`)
	for _, c := range []struct{ live, values, want string }{
		{"", "names: [a.example]", "[] spec.addresses[0].value: waits for source, which isn't in the cluster yet"},
		{"{}", "names: []", "[] spec.addresses: there is none yet"},
		{"{address: 4.5.6.7}", "names: [a.example, b.example, a.example]", "[4.5.6.7 a.example b.example] "},
		{"{address: nobody}", "names: []", `[] spec.addresses[0].value: "nobody" is no IP address`},
		{"{}", "names: [192.0.2.1]", `[] spec.addresses[1].value: "192.0.2.1" is no host name`},
		{"{}", "other: 1", "[] spec.addresses[1].value: ${values.names}: names is not there"},
	} {
		w := world{}
		if c.live != "" {
			w.set(t, "{kind: ConfigMap, metadata: {name: source, namespace: shop}, data: "+c.live+"}")
		}
		got := b.Render(input(w, parsed(t, c.values)))
		if said := fmt.Sprint(got.Addresses, " ", got.NoAddress); said != c.want {
			t.Errorf("%s, %s: %s, want %s", c.live, c.values, said, c.want)
		}
	}
	if _, problems := Compile(spec(t, "datapath: Rendered")); len(problems) != 1 || problems[0].Field != "spec.addresses" {
		t.Error(problems)
	}
}
