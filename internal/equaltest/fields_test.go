package equaltest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

type inner struct {
	A int
	b string
}

type node struct {
	Name    string
	on      bool
	At      time.Time
	Ratio   float64
	Port    uint16
	Hash    [2]byte
	List    []inner
	Pointer *inner
	Labels  map[string]inner
	Text    fmt.Stringer
	Next    *node
}

type word string

func (w word) String() string { return string(w) }

// whole compares everything.
func whole(a, b *node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Name == b.Name && a.on == b.on && a.At.Equal(b.At) && a.Ratio == b.Ratio && a.Port == b.Port && a.Hash == b.Hash &&
		slices.Equal(a.List, b.List) && (a.Pointer == b.Pointer || a.Pointer != nil && b.Pointer != nil && *a.Pointer == *b.Pointer) &&
		maps.Equal(a.Labels, b.Labels) && a.Text == b.Text && whole(a.Next, b.Next)
}

var text = Other("Text", word("other"))

func TestWholeComparisonPasses(t *testing.T) {
	Fields(t, &node{}, whole, text)
	Fields(t, node{Name: "x", List: []inner{{A: 1}, {b: "2"}}, Labels: map[string]inner{"a": {}, "b": {}}},
		func(a, b node) bool { return whole(&a, &b) }, text)
}

// Each field that a comparison leaves out is reported, whatever its kind.
func TestOmissionsAreReported(t *testing.T) {
	for path, reset := range map[string]func(*node){
		"Name":        func(n *node) { n.Name = "" },
		"on":          func(n *node) { n.on = false },
		"At":          func(n *node) { n.At = time.Time{} },
		"Ratio":       func(n *node) { n.Ratio = 0 },
		"Port":        func(n *node) { n.Port = 0 },
		"Hash[]":      func(n *node) { n.Hash[1] = 0 },
		"List":        func(n *node) { n.List = n.List[:min(1, len(n.List))] },
		"List[].b":    func(n *node) { n.List = each(n.List) },
		"Pointer.A":   func(n *node) { n.Pointer = only(n.Pointer) },
		"Labels{}":    func(n *node) { n.Labels = keys(n.Labels) },
		"Text":        func(n *node) { n.Text = nil },
		"Next.on":     func(n *node) { n.Next = quiet(n.Next) },
		"Next.List[]": func(n *node) { n.Next = short(n.Next) },
	} {
		forgets := func(a, b *node) bool {
			x, y := *a, *b
			reset(&x)
			reset(&y)
			return whole(&x, &y)
		}
		found := check(&node{Next: &node{Next: &node{}, Text: word("")}}, forgets, []Option{text, Other("Next.Text", word("other")),
			Ignored("Next.Next")})
		if !slices.ContainsFunc(found, func(s string) bool {
			return strings.HasPrefix(s, path) && strings.Contains(s, "not noticed")
		}) {
			t.Errorf("%s is left out, and reported is only %q", path, found)
		}
	}
}

func each(list []inner) (out []inner) {
	for _, i := range list {
		out = append(out, inner{A: i.A})
	}
	return out
}

func only(p *inner) *inner {
	if p == nil {
		return nil
	}
	return &inner{b: p.b}
}

func keys(m map[string]inner) map[string]inner {
	out := map[string]inner{}
	for k := range m {
		out[k] = inner{}
	}
	return out
}

func quiet(n *node) *node {
	if n == nil {
		return nil
	}
	c := *n
	c.on = false
	return &c
}

func short(n *node) *node {
	if n == nil {
		return nil
	}
	c := *n
	c.List = nil
	return &c
}

// An exception that is no longer true fails, so that the list of them stays short.
func TestOptionsMustBeMet(t *testing.T) {
	for want, options := range map[string][]Option{
		"Name longer: the change is noticed, though the field is said to be left out": {text, Ignored("Name")},
		"there is no field Gone to change":                                            {text, Ignored("Gone")},
		"there is no field Missing to change":                                         {text, NotNil("Missing")},
		"there is no field Lost to change":                                            {text, Other("Lost", 1)},
		"Text is of kind interface: name another value for it by Other":               nil,
	} {
		if found := check(&node{}, whole, options); !slices.Contains(found, want) {
			t.Errorf("reported is %q, want %q", found, want)
		}
	}
}

func TestNotNil(t *testing.T) {
	careless := func(a, b *node) bool {
		c, d := *a, *b
		if c.List[0] != d.List[0] || *c.Pointer != *d.Pointer { // panics for what is never nil
			return false
		}
		return whole(a, b)
	}
	Fields(t, &node{}, careless, text, NotNil("Pointer", "List"))
	if found := check(&node{}, careless, []Option{text, NotNil("List")}); len(found) != 1 || !strings.HasPrefix(found[0], "Pointer nil: the comparison panics") {
		t.Errorf("%q", found)
	}
}

func TestOrderAndSelf(t *testing.T) {
	ordered := func(a, b *node) bool { return a.Port <= b.Port }
	found := check(&node{}, ordered, []Option{text})
	if !slices.Contains(found, "Port plus 1: it depends on the order of the values whether the change is noticed") {
		t.Errorf("%q", found)
	}
	never := func(_, _ *node) bool { return false }
	if found := check(&node{}, never, []Option{text}); !slices.Contains(found, "a value does not equal itself") {
		t.Errorf("%q", found)
	}
	if found := check(1, func(a, b int) bool { return a == b }, nil); len(found) != 1 {
		t.Errorf("%q", found)
	}
}

// The sample is shared by all tests of a package: it is read only.
func TestSampleIsNotWritten(t *testing.T) {
	sample := &node{List: []inner{{A: 1}}, Pointer: &inner{A: 1}, Labels: map[string]inner{"a": {A: 1}}, Next: &node{}}
	Fields(t, sample, whole, text, Other("Next.Text", word("other")))
	if !whole(sample, &node{List: []inner{{A: 1}}, Pointer: &inner{A: 1}, Labels: map[string]inner{"a": {A: 1}}, Next: &node{}}) {
		t.Errorf("%+v", sample)
	}
}
