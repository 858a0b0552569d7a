package envoy

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/equaltest"
)

// Content is compared by its hash: what only restates the content, or follows from it,
// is left out.
func TestEqualComparesEachField(t *testing.T) {
	equaltest.Fields(t, &Bundle{}, (*Bundle).Equal, equaltest.Ignored("parts"))
	equaltest.Fields(t, &Resource{}, (*Resource).Equal, equaltest.Ignored("head", "waits", "carries", "composite"))
}

// The hashes tell every difference of what is left out there.
func TestVersionsFollowTheContent(t *testing.T) {
	part := func(name, body string) *Part { return &Part{Name: name, Hash: Sum([]byte(body)), Body: []byte(body)} }
	a, b := part("a", "1"), part("b", "1")
	b2 := part("b", "2")
	for _, c := range []struct {
		what  string
		x, y  *Resource
		equal bool
	}{
		{"the same", NewResource(Routes, "t", []byte("x")), NewResource(Routes, "t", []byte("x")), true},
		{"another body", NewResource(Routes, "t", []byte("x")), NewResource(Routes, "t", []byte("y")), false},
		{"the same parts", NewComposite(Routes, "t", []byte("x"), []*Part{a, b}), NewComposite(Routes, "t", []byte("x"), []*Part{a, b}), true},
		{"another head", NewComposite(Routes, "t", []byte("x"), []*Part{a, b}), NewComposite(Routes, "t", []byte("y"), []*Part{a, b}), false},
		{"another part", NewComposite(Routes, "t", []byte("x"), []*Part{a, b}), NewComposite(Routes, "t", []byte("x"), []*Part{a, b2}), false},
		{"a part less", NewComposite(Routes, "t", []byte("x"), []*Part{a, b}), NewComposite(Routes, "t", []byte("x"), []*Part{a}), false},
	} {
		if got := c.x.Equal(c.y); got != c.equal {
			t.Errorf("%s: Equal is %t", c.what, got)
		}
	}
}
