package topology

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

var (
	label      = rapid.SampledFrom([]string{"a", "b", "ab"})
	hostLabels = rapid.SliceOfN(label, 1, 4)
	pattern    = rapid.Custom(func(t *rapid.T) string {
		text := strings.Join(hostLabels.Draw(t, "labels"), ".")
		return rapid.SampledFrom([]string{"", text, "*." + text}).Draw(t, "pattern")
	})
	host = rapid.Custom(func(t *rapid.T) string { return strings.Join(hostLabels.Draw(t, "labels"), ".") })
)

// matches is the specification's rule, label by label.
func matches(pattern, host string) bool {
	if pattern == "" || pattern == host {
		return true
	}
	want, have := strings.Split(pattern, "."), strings.Split(host, ".")
	if want[0] != "*" || len(have) < len(want) {
		return false
	}
	for i := 1; i < len(want); i++ {
		if want[len(want)-i] != have[len(have)-i] {
			return false
		}
	}
	return true
}

// TestIntersection protects that an intersection holds exactly the hosts that
// both patterns match.
func TestIntersection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, h := pattern.Draw(t, "a"), pattern.Draw(t, "b"), host.Draw(t, "host")
		common, ok := intersect(a, b)
		if swapped, ok2 := intersect(b, a); ok != ok2 || swapped != common {
			t.Fatalf("intersect(%q, %q) = %q, %t; swapped %q, %t", a, b, common, ok, swapped, ok2)
		}
		both := matches(a, h) && matches(b, h)
		if got := ok && matches(common, h); got != both {
			t.Fatalf("%q in %q ∩ %q = %q: got %t, want %t", h, a, b, common, got, both)
		}
		if covers(a, b) && matches(b, h) && !matches(a, h) {
			t.Fatalf("%q covers %q, but not its host %q", a, b, h)
		}
	})
}

// TestOneOwner protects listener isolation: whatever the listeners of a port, a
// host is served by exactly one of those that match it, the most specific one.
func TestOneOwner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		patterns := rapid.SliceOfNDistinct(pattern, 1, 6, rapid.ID[string]).Draw(t, "listeners")
		h := host.Draw(t, "host")
		sections := make([]section, len(patterns))
		for i, p := range patterns {
			sections[i] = section{Frontend: Frontend{Port: 80, Protocol: gwv1.HTTPProtocolType, Hostname: p}, family: cleartext}
		}
		var owner *section
		for i := range sections {
			s := &sections[i]
			hosts, _, ok := new(Graph).hostsOn(nil, s, sections, []gwv1.Hostname{gwv1.Hostname(h)}, hostnamePermission{})
			if ok != matches(s.Hostname, h) {
				t.Fatalf("listener %q attaches a route for %q: %t", s.Hostname, h, ok)
			}
			if len(hosts) == 0 {
				continue
			}
			if owner != nil {
				t.Fatalf("%q is served by %q and %q", h, owner.Hostname, s.Hostname)
			}
			owner = s
		}
		for _, p := range patterns {
			if !matches(p, h) {
				continue
			}
			if owner == nil {
				t.Fatalf("%q is served by none of %q", h, patterns)
			}
			if specificity(p) > specificity(owner.Hostname) {
				t.Fatalf("%q is served by %q though there is %q", h, owner.Hostname, p)
			}
		}
	})
}
