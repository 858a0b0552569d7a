package topology

import "testing"

// TestServeable says for which hostnames a certificate is of use.
func TestServeable(t *testing.T) {
	for _, c := range []struct {
		hostname, name string
		want           bool
	}{
		{"", "a.example.com", true},
		{"a.example.com", "a.example.com", true},
		{"a.example.com", "b.example.com", false},
		{"a.example.com", "*.example.com", true},
		{"a.b.example.com", "*.example.com", false},
		{"example.com", "*.example.com", false},
		{"*.example.com", "*.example.com", true},
		{"*.example.com", "a.example.com", true},
		{"*.example.com", "a.b.example.com", true},
		{"*.example.com", "*.b.example.com", true},
		{"*.b.example.com", "*.example.com", false},
		{"*.example.com", "example.com", false},
		{"*.example.com", "badexample.com", false},
	} {
		if got := serveable(c.hostname, []string{"else.test", c.name}); got != c.want {
			t.Errorf("hostname %q, certificate for %q: %v", c.hostname, c.name, got)
		}
	}
	if serveable("a.example.com", nil) {
		t.Error("a certificate without names is of use")
	}
}
