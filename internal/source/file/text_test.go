package file

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	kubeyaml "sigs.k8s.io/yaml"
)

func TestSplit(t *testing.T) {
	type doc struct {
		Line int
		Text string
	}
	cases := map[string]struct {
		text string
		want []doc
	}{
		"one":               {"a: 1\n", []doc{{1, "a: 1\n"}}},
		"two":               {"a: 1\n---\nb: 2", []doc{{1, "a: 1\n"}, {2, "---\nb: 2"}}},
		"leading marker":    {"---\na: 1\n---\n", []doc{{1, "---\na: 1\n"}}},
		"content on marker": {"--- {a: 1}\n---\t{b: 2}\r\n", []doc{{1, "--- {a: 1}\n"}, {2, "---\t{b: 2}\r\n"}}},
		"block scalar":      {"a: |\n  ---\n  x\n", []doc{{1, "a: |\n  ---\n  x\n"}}},
		"not a marker":      {"----\n---x: 1\n", []doc{{1, "----\n---x: 1\n"}}},
		"end marker":        {"a: 1\n...\n%YAML 1.2\n---\nb: 2\n", []doc{{1, "a: 1\n"}, {4, "---\nb: 2\n"}}},
		"comments only":     {"# x\n---\n\n# y\n--- # z\n", nil},
		"byte order mark":   {"\xef\xbb\xbfa: 1", []doc{{1, "a: 1"}}},
		"empty":             {"", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []doc
			for _, chunk := range split([]byte(c.text)) {
				got = append(got, doc{chunk.line, string(chunk.text)})
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A value must mean here what it means to kubectl.
func TestValuesAreKubectls(t *testing.T) {
	for _, text := range []string{
		"a: yes\nb: on\nc: n\nd: 'yes'\ne: True\nf: !!str yes",
		"a: 017\nb: 0x1f\nc: 1_000\nd: -5\ne: 0b11\nf: 9223372036854775807\ng: +3",
		"a: 1.0\nb: 1e3\nc: 1.5\nd: .5\ne: -0.25\nf: 1e400x",
		"a: 2026-01-02\nb: 2026-01-02T03:04:05Z\nc: 12:30:45",
		"a: ~\nb:\nc: null\nd: 'null'\ne: \"\"",
		"80: a\ntrue: b\n1.5: c\n'x y': d",
		"a: &x {b: 1, c: 2}\nd: {<<: *x, b: 3}\ne: *x",
		"x: &x {a: 1}\ny: &y {a: 2, b: 2}\nz: {<<: [*x, *y]}",
		"a: |\n  one\n  two\nb: >-\n  one\n  two\nc: \"\\u00e9\\n\"",
		"a: !!binary aGVsbG8=",
		"[1, [2, {a: 3}], []]",
		`{"a": 1, "b": [true, null, 1.5, "x"]}`,
	} {
		nodes, err := parse([]byte("v:\n"+indent(text)), false)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		value, err := (&converter{}).value(nodes[0], 0)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		want, err := kubeyaml.YAMLToJSON([]byte("v:\n" + indent(text)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%q (-kubectl +ours):\n%s", text, diff)
		}
	}
}

func indent(text string) string {
	out := "  "
	for _, r := range text {
		if out += string(r); r == '\n' {
			out += "  "
		}
	}
	return out + "\n"
}

func TestRefusedText(t *testing.T) {
	cases := map[string]struct {
		text string
		json bool
		line int
	}{
		"alias in itself":   {"a: &a\n  b: *a\n", false, 2},
		"infinity":          {"a: 1\nb: .inf\n", false, 2},
		"null key":          {"a: 1\n~: 2\n", false, 2},
		"mapping as key":    {"a: 1\n? {b: 1}\n: 2\n", false, 2},
		"open quote":        {"a: 1\nb: \"x\nc: 2\n", false, 2},
		"open bracket":      {"a: 1\nb: [1, 2\nc: 2\n", false, 2},
		"tab":               {"a:\n\tb: 1\n", false, 2},
		"two on a line":     {"a: 1\nb: c: 2\n", false, 2},
		"merge of a scalar": {"a: 1\n<<: 2\n", false, 2},
		"JSON ends":         {"{\"a\":\n 1,\n", true, 2},
		"JSON comma":        {"{\"a\": 1,\n \"b\": 2,\n}", true, 2},
		"no JSON at all":    {"a: 1\n", true, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			doc := (&reader{}).read([]byte(c.text), c.json, nil)
			if len(doc.faults()) != 1 || !doc.rest.unreadable {
				t.Fatalf("faults %+v", doc.faults())
			}
			if got := doc.faults()[0].line + 1; got != c.line {
				t.Errorf("line %d, want %d: %s", got, c.line, doc.faults()[0].message)
			}
		})
	}
}

func TestLineOf(t *testing.T) {
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(`metadata:
  labels: {a: x}
  annotations:
    example.com/a: x
    example.com/a.b: x
spec:
  base: &base
    shared: 1
  rules:
  - name: a
    <<: *base
  - matches:
    - path:
        value: x
`), &root); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{
		"":                                     1,
		"metadata.labels[a]":                   2,
		"metadata.annotations.example.com/a":   4,
		"metadata.annotations.example.com/a.b": 5,
		"metadata.annotations[example.com/a]":  4,
		"metadata.name":                        1,
		"spec.rules[0].name":                   10,
		"spec.rules[0].shared":                 8,
		"spec.rules[1].matches[0].path.value":  14,
		"spec.rules[1].matches[0].path.type":   13,
		"spec.rules[7].name":                   9,
		"spec.rules[x":                         9,
	} {
		if got := lineOf(root.Content[0], path); got != want {
			t.Errorf("%s: line %d, want %d", path, got, want)
		}
	}
}
