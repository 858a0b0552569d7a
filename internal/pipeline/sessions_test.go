package pipeline

import (
	"slices"
	"testing"
)

func TestWider(t *testing.T) {
	for domain, want := range map[string][]string{
		"a.b.example": {"a.b.example", "*.b.example", "*.example", "*"},
		"*.b.example": {"*.b.example", "*.example", "*"}, // and not b.example
		"example":     {"example", "*"},
		"*.example":   {"*.example", "*"},
		"*":           {"*"},
	} {
		if got := slices.Collect(wider(domain)); !slices.Equal(got, want) {
			t.Errorf("%s is within %q, want %q", domain, got, want)
		}
	}
	for range wider("a.b.example") {
		break // is no fault
	}
}
