package schema

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
)

var mutations = flag.Int("mutations", 15, "of each document that fast and slow validation are compared on")

// What is said of an object doesn't depend on the fast way being there: over all manifests of the
// project's tests, and over mistakes in them. And the fast way is there: it is that of every
// kind, and takes every object that is valid.
func TestFastIsTheSame(t *testing.T) {
	v := newValidator(t, true)
	random := rand.New(rand.NewPCG(1, 2))
	valid, invalid := 0, 0
	for _, document := range manifests(t) {
		id, err := v.Identify(document)
		if err != nil || !id.row.Custom {
			continue
		}
		texts := runtime.DeepCopyJSON(document)
		for n := range *mutations + 1 {
			if n > 0 {
				texts = runtime.DeepCopyJSON(document)
				for range 1 + n%3 {
					mutate(random, texts)
				}
			}
			if sameFast(t, v, id, texts) {
				valid++
			} else {
				invalid++
			}
			if t.Failed() {
				return
			}
		}
	}
	if valid < 1000 || invalid < 1000 {
		t.Errorf("%d were valid and %d invalid: that compares little", valid, invalid)
	}
}

// Every kind has the fast way: its schema has nothing that the fast way doesn't know.
func TestFastIsOfAllKinds(t *testing.T) {
	rows, err := rowsOf(kind.All)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range rows {
		for version := range k.Versions {
			if s, err := k.schemaOf(experimental, k.Versions[version].Name); k.Custom && err == nil && s.fast == nil {
				t.Errorf("%s %s has only the slow way", k, k.Versions[version].Name)
			}
		}
	}
}

// Values that differ are not taken for each other.
func TestEncoded(t *testing.T) {
	seen := map[string]any{}
	for _, value := range []any{
		nil, true, false, "", "0", "t", "s", int64(0), int64(1), 0.0, 1.0, []any{}, map[string]any{}, []any{nil}, []any{[]any{}}, []any{"a", "b"}, []any{"ab"},
		[]any{"a"}, map[string]any{"a": "b"}, map[string]any{"a": nil}, map[string]any{"a": nil, "b": nil}, map[string]any{"a": map[string]any{"b": nil}},
		[]any{map[string]any{"a": "b"}, "c"}, []any{map[string]any{"a": "b", "c": nil}}, "\x01", []any{int64(1), int64(2)}, []any{[]any{int64(1)}, int64(2)},
	} {
		text, ok := encoded(nil, value)
		if other, taken := seen[string(text)]; !ok || taken {
			t.Errorf("%v (%v) is taken for %v", value, ok, other)
		}
		seen[string(text)] = value
	}
	for _, long := range []any{strings.Repeat("x", maxRepeated+1), slices.Repeat([]any{int64(1)}, maxRepeated), map[string]any{strings.Repeat("x", maxRepeated): nil}} {
		if _, ok := encoded(nil, long); ok {
			t.Errorf("%v is remembered", long)
		}
	}
}

// Rules of a value that was seen before cost what they cost the first time.
func TestRepeatsCostTheSame(t *testing.T) {
	s, err := newValidator(t, false).kinds[kind.HTTPRoute].schemaOf(standard, "v1")
	if err != nil {
		t.Fatal(err)
	}
	content := parse(t, route)
	s.setDefaults(content)
	var left []int64
	for range 3 {
		budget := int64(math.MaxInt64)
		if !s.fast.rules.hold(content, &budget) {
			t.Fatal("a valid route is refused")
		}
		left = append(left, budget)
	}
	if left[0] != left[1] || left[1] != left[2] || left[0] == math.MaxInt64 {
		t.Errorf("budgets that are left: %v", left)
	}
	if s.fast.rules.hold(content, new(math.MaxInt64-left[0])) {
		t.Error("more was spent than there was")
	}
}

// sameFast validates a document both ways, and reports whether it is valid.
func sameFast(t *testing.T, v *Validator, id Identity, document map[string]any) bool {
	t.Helper()
	s, err := id.row.schemaOf(v.channel, id.version)
	if err != nil {
		t.Fatal(err)
	}
	content := runtime.DeepCopyJSON(document)
	v.unknownFields(id, s, content)
	s.setDefaults(content)
	slow := *s
	slow.fast = nil
	want := faultsOf(slow.validate(content))
	got := faultsOf(s.validate(content))
	if !slices.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwithout the fast way\n%s\n%v", id.Key, strings.Join(got, "\n"), strings.Join(want, "\n"), content)
	}
	if all := s.fast.openapi.Validate(content).IsValid() && s.fast.rules.hold(content, new(int64(math.MaxInt64))); all != (len(want) == 0) && !onlyLists(want) {
		t.Errorf("%s: valid by the fast way is %v, but\n%s\n%v", id.Key, all, strings.Join(want, "\n"), content)
	}
	return len(want) == 0
}

// onlyLists reports whether all that is wrong is in what both ways leave to the check of sets.
func onlyLists(said []string) bool {
	return !slices.ContainsFunc(said, func(s string) bool { return !strings.Contains(s, "Duplicate value") })
}

func faultsOf(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		out = append(out, err.Error())
	}
	slices.Sort(out) // the API server's order is that of a Go map
	return out
}

// manifests are the objects in the test data of the whole project.
func manifests(t *testing.T) (documents []map[string]any) {
	t.Helper()
	seen := map[string]bool{}
	for _, pattern := range []string{
		"../../../*/*/testdata/*.txtar", "../../../*/*/*/testdata/*.txtar", "../../../examples/*/*.yaml",
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, name := range files {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			texts := [][]byte{archive.Comment}
			for _, f := range archive.Files {
				texts = append(texts, f.Data)
			}
			for _, text := range texts {
				decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
				for {
					var raw json.RawMessage
					if decoder.Decode(&raw) != nil {
						break // the end, or no YAML
					}
					var document map[string]any
					if seen[string(raw)] || utiljson.Unmarshal(raw, &document) != nil || document == nil {
						continue
					}
					seen[string(raw)] = true
					documents = append(documents, document)
				}
			}
		}
	}
	if len(documents) < 500 {
		t.Fatalf("%d documents", len(documents))
	}
	return documents
}

// mutate makes a mistake in a value, or a change.
func mutate(random *rand.Rand, in map[string]any) {
	var at any = in
	spec, ok := in["spec"].(map[string]any)
	if ok && random.IntN(10) > 0 {
		at = spec
	}
	for {
		switch value := at.(type) {
		case map[string]any:
			names := slices.Sorted(maps.Keys(value))
			if len(names) == 0 || random.IntN(12) == 0 {
				value[words[random.IntN(len(words))]] = odd(random)
				return
			}
			name := names[random.IntN(len(names))]
			switch below := value[name]; {
			case isContainer(below) && random.IntN(6) > 0:
				at = below
				continue
			case random.IntN(4) == 0:
				delete(value, name)
			default:
				value[name] = like(random, below)
			}
			return
		case []any:
			if len(value) == 0 {
				return
			}
			i := random.IntN(len(value))
			if isContainer(value[i]) && random.IntN(6) > 0 {
				at = value[i]
				continue
			}
			value[i] = like(random, value[i])
			return
		default:
			return
		}
	}
}

func isContainer(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// like is another value, of the same type as a rule.
func like(random *rand.Rand, value any) any {
	if random.IntN(4) == 0 {
		return odd(random)
	}
	switch value := value.(type) {
	case string:
		return []any{"", value + "x", "/" + value, strings.Repeat(value+"a", 300), strings.ToUpper(value), "*", words[random.IntN(len(words))]}[random.IntN(7)]
	case int64:
		return []any{value + 1, -value, int64(0), int64(70000), int64(1) << 40, float64(value) + .5}[random.IntN(6)]
	case bool:
		return !value
	case []any:
		if len(value) == 0 {
			return odd(random)
		}
		twice := runtime.DeepCopyJSONValue(value[0])
		return []any{append(slices.Clone(value), twice), []any{}, slices.Repeat(value, 40), value[:1], append(slices.Clone(value), odd(random))}[random.IntN(5)]
	case map[string]any:
		return []any{map[string]any{}, []any{value}, map[string]any{words[random.IntN(len(words))]: value}}[random.IntN(3)]
	}
	return odd(random)
}

func odd(random *rand.Rand) any {
	return []any{nil, "", "text", "1h", int64(-1), int64(8080), 1.5, true, []any{}, map[string]any{}, []any{"a", "a"}, []any{map[string]any{"name": "a"}}}[random.IntN(12)]
}

// words are fields and values of which some mean something nearly everywhere.
var words = []string{
	"name", "namespace", "group", "kind", "port", "type", "value", "path", "filters", "matches", "backendRefs", "headers", "timeouts",
	"request", "backendRequest", "retry", "sectionName", "hostname", "tls", "mode", "options", "certificateRefs", "weight", "urlRewrite",
	"requestRedirect", "requestMirror", "percent", "fraction", "scheme", "statusCode", "sessionPersistence", "targetRefs", "parentRefs",
	"Exact", "PathPrefix", "RegularExpression", "HTTP", "HTTPS", "TLS", "Terminate", "Passthrough", "Service", "Gateway", "Secret", "Same", "Selector",
	"RequestRedirect", "URLRewrite", "RequestMirror", "ExtensionRef", "CORS", "ReplaceFullPath", "ReplacePrefixMatch", "gateway.networking.k8s.io",
}
