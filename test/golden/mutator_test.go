package golden

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// content is an object as it is written.
type content = map[string]any

// mutator makes other objects of those that it has. What it makes follows from the seed.
type mutator struct {
	random *rand.Rand
	seeds  []content
	values map[string][]any // what stands under a key in any of the seeds
	keys   []string         // of values
	names  func() object.Key
}

// newMutator returns a mutator of these objects. names returns the name of one that is
// there, for references.
func newMutator(random *rand.Rand, seeds []content, names func() object.Key) *mutator {
	m := &mutator{random: random, seeds: seeds, values: map[string][]any{}, names: names}
	for _, seed := range seeds {
		m.collect(seed)
	}
	m.keys = slices.Sorted(maps.Keys(m.values))
	return m
}

// collect notes what stands under each key, in an order that the objects alone decide.
func (m *mutator) collect(in any) {
	switch in := in.(type) {
	case content:
		for _, key := range slices.Sorted(maps.Keys(in)) {
			m.values[key] = append(m.values[key], in[key])
			m.collect(in[key])
		}
	case []any:
		for _, inner := range in {
			m.collect(inner)
		}
	}
}

// mutated returns an object that is like another but for one or a few places.
func (m *mutator) mutated(from content) content {
	out := runtime.DeepCopyJSON(from)
	for n := m.several(); n > 0; n-- {
		m.change(m.place(out))
	}
	return out
}

// several is mostly one: an object with many mistakes is refused for the first.
func (m *mutator) several() int {
	n := 1
	for n < 6 && m.random.IntN(3) == 0 {
		n++
	}
	return n
}

// place is where a value stands: in an object under a key, or in a list.
type place struct {
	in  any
	key string
	at  int
	set func(any) // puts another list in the place of the list
}

func (p place) value() any {
	if list, ok := p.in.([]any); ok {
		return list[p.at]
	}
	return p.in.(content)[p.key]
}

func (p place) put(value any) {
	if list, ok := p.in.([]any); ok {
		list[p.at] = value
		return
	}
	p.in.(content)[p.key] = value
}

func (p place) drop() {
	if list, ok := p.in.([]any); ok {
		p.set(slices.Delete(slices.Clone(list), p.at, p.at+1))
		return
	}
	delete(p.in.(content), p.key)
}

// place returns any place below spec, data and the like, sometimes one of the metadata.
func (m *mutator) place(of content) place {
	var all []place
	var collect func(p place)
	collect = func(p place) {
		all = append(all, p)
		switch value := p.value().(type) {
		case content:
			for _, key := range slices.Sorted(maps.Keys(value)) {
				collect(place{in: value, key: key})
			}
		case []any:
			for i := range value {
				collect(place{in: value, at: i, set: p.put})
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(of)) {
		switch key {
		case "apiVersion", "kind", "metadata", "status":
		default:
			collect(place{in: of, key: key})
		}
	}
	if meta, ok := of["metadata"].(content); ok && len(meta) > 0 && (len(all) == 0 || m.random.IntN(8) == 0) {
		all = nil
		for _, key := range slices.Sorted(maps.Keys(meta)) {
			collect(place{in: meta, key: key})
		}
	}
	if len(all) == 0 {
		return place{in: of, key: "spec"}
	}
	return all[m.random.IntN(len(all))]
}

// change changes what stands at a place.
func (m *mutator) change(p place) {
	switch m.random.IntN(8) {
	case 0:
		p.drop()
	case 1:
		p.put(m.extreme(p.value()))
	case 2, 3: // what stands elsewhere under the same name
		if values := m.values[p.key]; p.key != "" && len(values) > 0 {
			p.put(copied(values[m.random.IntN(len(values))]))
			return
		}
		p.put(m.extreme(p.value()))
	case 4: // what stands elsewhere under another name: mostly of another kind
		if m.random.IntN(4) == 0 {
			values := m.values[m.keys[m.random.IntN(len(m.keys))]]
			p.put(copied(values[m.random.IntN(len(values))]))
			return
		}
		m.refer(p)
	case 5, 6:
		m.refer(p)
	default:
		m.repeat(p)
	}
}

// refer makes a reference lead to another object.
func (m *mutator) refer(p place) {
	to := m.names()
	switch key := p.key; {
	case key == "name" || strings.HasSuffix(key, "Name"):
		p.put(to.Name.Name)
	case key == "namespace":
		p.put(to.Namespace)
	case key == "kind":
		p.put(to.Kind.Name())
	case key == "group":
		p.put(to.Kind.Group())
	default:
		switch value := p.value().(type) {
		case content:
			if _, ok := value["name"]; ok {
				value["name"] = to.Name.Name
				if m.random.IntN(2) == 0 {
					value["namespace"] = to.Namespace
				}
				return
			}
			p.put(m.extreme(value))
		default:
			p.put(m.extreme(value))
		}
	}
}

// repeat has a list's element twice or many times, or a list's order another.
func (m *mutator) repeat(p place) {
	list, ok := p.value().([]any)
	if !ok || len(list) == 0 {
		p.put(m.extreme(p.value()))
		return
	}
	out := slices.Clone(list)
	switch m.random.IntN(4) {
	case 0:
		m.random.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	case 1:
		for range 1 + m.random.IntN(20) {
			out = append(out, copied(list[m.random.IntN(len(list))]))
		}
	case 2: // alike, but for one place
		again := place{in: []any{copied(list[m.random.IntN(len(list))])}}
		if inner, ok := again.value().(content); ok && len(inner) > 0 {
			m.change(place{in: inner, key: slices.Sorted(maps.Keys(inner))[m.random.IntN(len(inner))]})
		}
		out = append(out, again.value())
	default:
		out = append(out, copied(list[m.random.IntN(len(list))]))
	}
	p.put(out)
}

var texts = []string{
	"", "a", "*", "*.", ".", "..", "/", "//", "-", "*.example.com", "a.example.com", "A.Example.com", "example.com.", "xn--a", "127.0.0.1", "::1", "0.0.0.0",
	"%", "%zz", "{}", "^.*$", "(", "a{1000}", "\x00", "\n", "\x1b[31m", "ä", "\u202e", "\U0001f600", "0", "-1", "65536", "1s", "1h1m", "-1s", "9999999h", "true", "null",
	"HTTP", "HTTPS", "TLS", "TCP", "UDP", "PathPrefix", "RegularExpression", "All", "Same", "Selector", "gatehouse", "default",
	strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a.", 126) + "a", strings.Repeat("/a", 2000), strings.Repeat("x", 20_000),
}

// extreme returns a value that the field's author did not think of.
func (m *mutator) extreme(of any) any {
	kind := m.random.IntN(8)
	switch of.(type) { // mostly of the same type
	case string:
		kind = min(kind, 1)
	case int64, float64:
		kind = min(kind, 3)
	case bool:
		kind = 4
	}
	switch kind {
	case 0, 1:
		return texts[m.random.IntN(len(texts))]
	case 2:
		return []any{int64(0), int64(1), int64(-1), int64(80), int64(443), int64(65535), int64(65536), int64(math.MaxInt32), int64(math.MaxInt64), int64(math.MinInt64)}[m.random.IntN(10)]
	case 3:
		return []any{0.5, 1e300, -1.5, float64(1 << 40)}[m.random.IntN(4)]
	case 4:
		return m.random.IntN(2) == 0
	case 5:
		return nil
	case 6:
		return []any{}
	default:
		return content{}
	}
}

// copied returns a value of JSON that shares nothing with another.
func copied(value any) any { return runtime.DeepCopyJSONValue(value) }
