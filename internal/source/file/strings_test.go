package file

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"
)

func TestRecent(t *testing.T) {
	r := newRecent()
	text := func(s string) string { return strings.Clone(s) }
	first := r.copyOf(text("route-1"))
	again := r.copyOf(text("route-1"))
	if unsafe.StringData(again) != unsafe.StringData(first) { //nolint:gosec // addresses are compared, not followed
		t.Errorf("%q is kept twice", again)
	}
	for i := range 5000 { // far more than are remembered
		s := fmt.Sprint("route-", i)
		if got := r.copyOf(text(s)); got != s {
			t.Fatalf("got %q for %q", got, s)
		}
	}
	long := strings.Repeat("x", 2*maxRecent)
	if got := r.copyOf(long); got != long {
		t.Errorf("got %q", got)
	}
	if got := (*recent)(nil).copyOf("x"); got != "x" {
		t.Errorf("got %q", got)
	}
}
