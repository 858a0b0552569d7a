package object

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestLines protects those of whom little is known from one of whom much is: what doesn't fit is the largest.
func TestLines(t *testing.T) {
	all := map[Name]string{{Namespace: "a", Name: "small"}: "x", {Namespace: "b", Name: "large"}: strings.Repeat("y", 100), {Namespace: "c", Name: "small"}: "z"}
	text, left, err := Lines(all, 60)
	if err != nil || !slices.Equal(left, []Name{{Namespace: "b", Name: "large"}}) {
		t.Fatalf("%v is left out, %v", left, err)
	}
	if want := "{\"a/small\":\"x\",\n\"c/small\":\"z\"}"; text != want {
		t.Errorf("%s, want %s", text, want)
	}
	back, err := ParseLines[string](text)
	delete(all, left[0])
	if err != nil || !maps.Equal(all, back) {
		t.Errorf("read again it is %v, %v", back, err)
	}
	if _, err := ParseLines[string]("{"); err == nil {
		t.Error("half of it can be read")
	}
}
