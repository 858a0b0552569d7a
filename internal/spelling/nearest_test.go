package spelling

import (
	"fmt"
	"slices"
	"testing"
)

// TestNearest protects readers from advice that makes no sense, and from none where a letter
// is wrong.
func TestNearest(t *testing.T) {
	for _, c := range []struct {
		written string
		names   []string
		want    string
	}{
		{"wbe", []string{"api", "web"}, "web"},
		{"Web", []string{"web"}, "web"},
		{"HttpRoute", []string{"GRPCRoute", "HTTPRoute"}, "HTTPRoute"},
		{"backendRef", []string{"backendRefs", "filters"}, "backendRefs"},
		{"frontend-svc", []string{"frontend-service", "frontend"}, ""},
		{"a", []string{"b"}, "b"},
		{"a", []string{"web"}, ""},
		{"web", []string{"api", "shop"}, ""},
		{"web", []string{"wet", "wed"}, "wet"},
		{"web", []string{"web"}, ""},
		{"", []string{"a"}, "a"},
		{"web", nil, ""},
	} {
		if got := Nearest(c.written, slices.Values(c.names)); got != c.want {
			t.Errorf("%q is meant by %q of %q, want %q", got, c.written, c.names, c.want)
		}
	}
}

// TestNearestIsBounded protects the time of whoever has many objects.
func TestNearestIsBounded(t *testing.T) {
	asked := 0
	got := Nearest("web-1", func(yield func(string) bool) {
		for asked = 1; yield(fmt.Sprintf("web-%d", asked+1)); asked++ {
		}
	})
	if got != "" || asked > maxNames+1 {
		t.Errorf("%q after %d names", got, asked)
	}
}

// Among too many names none is compared: where many objects name one that is missing, that
// would be most of the work.
func TestNearestOfTooMany(t *testing.T) {
	names := make([]string, 2*maxNames)
	for i := range names {
		names[i] = fmt.Sprintf("name-%05d", i)
	}
	if n := testing.AllocsPerRun(10, func() { Nearest("nane-00000", slices.Values(names)) }); n > 50 {
		t.Errorf("%d names cost %v allocations", len(names), n)
	}
}
