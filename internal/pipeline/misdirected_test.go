package pipeline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// best returns the most specific of the patterns that match a host, as both a
// choice of listeners and a route table's choice of hosts are made.
func best(patterns map[string]bool, host string) (string, bool) {
	for p := host; ; p = topology.Wider(p) {
		if patterns[p] {
			return p, true
		}
		if p == "" {
			return "", false
		}
	}
}

// TestMisdirected protects the answers to requests for hosts without routes, over
// the connection of any HTTPS listener of a port (Listener.hostname in the Gateway
// API), and what is said of them where the listeners are many.
func TestMisdirected(outer *testing.T) {
	shared := manySets(outer, 0, gwv1.HTTPSProtocolType)
	hostnames := []string{"", "a.test", "b.test", "*.test", "*.b.test", "c.b.test", "*.c.b.test", "*.other"}
	hosts := []string{"a.test", "b.test", "x.test", "c.b.test", "d.b.test", "e.c.b.test", "x.other", "nobody"}
	rapid.Check(outer, func(t *rapid.T) {
		listed := rapid.SliceOfNDistinct(rapid.SampledFrom(hostnames), 1, 6, rapid.ID[string]).Draw(t, "hostnames")
		many := rapid.Bool().Draw(t, "many")
		if many {
			for i := range knownHosts {
				listed = append(listed, fmt.Sprintf("%d.filler", i))
			}
		}
		all := map[string]bool{}   // hostnames of listeners
		serve := map[string]bool{} // of those that serve
		objects := slices.Clone(shared)
		for i, h := range listed {
			all[h], serve[h] = true, i == 0 || rapid.IntRange(0, 3).Draw(t, "serves") > 0
			objects = append(objects, setWith(i, h, serve[h])...)
		}
		tables := map[string]map[string]bool{} // by table, then hostname: whether 421
		for k, misdirected := range fallbacksOf(outer, objects) {
			if tables[k.Table()] == nil {
				tables[k.Table()] = map[string]bool{}
			}
			pattern := strings.TrimPrefix(k.Domain, "*")
			if pattern != "" {
				pattern = k.Domain
			}
			tables[k.Table()][pattern] = misdirected
		}
		for h, serves := range serve {
			table := tables["tls-443-"+strings.Replace(cmp.Or(h, "*"), "*", "_", 1)]
			if !serves {
				if table != nil {
					t.Fatalf("%q doesn't serve, and has a table", h)
				}
				continue
			}
			patterns := map[string]bool{}
			for p := range table {
				patterns[p] = true
			}
			for _, host := range hosts {
				p, ok := best(patterns, host)
				got := ok && table[p]
				owner, owned := best(all, host)
				want := owned && owner != h
				if !owned && many {
					want = true
				}
				if got != want {
					t.Fatalf("listener %q of %q, host %q: misdirected is %t, want %t", h, listed, host, got, want)
				}
			}
		}
	})
}

// setWith returns a ListenerSet with an HTTPS listener, which has no certificate where it is not to serve.
func setWith(i int, hostname string, serves bool) []source.Object {
	objects := oneSet(i, gwv1.HTTPSProtocolType)[:1]
	entry := &objects[0].(*gwv1.ListenerSet).Spec.Listeners[0]
	entry.Hostname = new(gwv1.Hostname(hostname))
	if !serves {
		entry.TLS.CertificateRefs[0].Name = "missing"
	}
	return objects
}

// fallbacksOf returns the hosts of tables that have an answer without a route, and whether that is 421.
func fallbacksOf(t testing.TB, objects []source.Object) map[ir.HostKey]bool {
	out := map[ir.HostKey]bool{}
	p := pipelineOf(t, objects)
	p.Engine.View(func(c *flow.Ctx) { maps.Insert(out, flow.All(c, p.fallbacks)) })
	return out
}

// TestFallbacksAreFew protects the cost of many HTTPS listeners on a port.
func TestFallbacksAreFew(t *testing.T) {
	const n = 2000
	objects := manySets(t, n, gwv1.HTTPSProtocolType)
	if got, most := len(fallbacksOf(t, append(objects, setWith(n, "*.test", true)...))), 3*n+3; got > most {
		t.Errorf("%d fallbacks, at most %d are allowed", got, most)
	}
}
