package pipeline

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/object"
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
func TestMisdirected(t *testing.T) {
	hostnames := []string{"", "a.test", "b.test", "*.test", "*.b.test", "c.b.test", "*.c.b.test", "*.other"}
	hosts := []string{"a.test", "b.test", "x.test", "c.b.test", "d.b.test", "e.c.b.test", "x.other", "nobody"}
	rapid.Check(t, func(t *rapid.T) {
		listed := rapid.SliceOfNDistinct(rapid.SampledFrom(hostnames), 1, 6, rapid.ID[string]).Draw(t, "hostnames")
		many := rapid.Bool().Draw(t, "many")
		if many {
			for i := range knownHosts {
				listed = append(listed, fmt.Sprintf("%d.filler", i))
			}
		}
		all := map[string]bool{}   // hostnames of listeners
		serve := map[string]bool{} // of those that serve
		var listeners []*topology.Listener
		for i, h := range listed {
			l := &topology.Listener{Hostname: h, Protocol: gwv1.HTTPSProtocolType}
			l.Serves = i == 0 || rapid.IntRange(0, 3).Draw(t, "serves") > 0
			listeners = append(listeners, l)
			all[h], serve[h] = true, l.Serves
		}
		tables := map[string]map[string]bool{} // by table, then hostname: whether 421
		for _, c := range fallbacksOf(object.Name{Namespace: "default", Name: "edge"}, listeners) {
			if tables[c.key.Table()] == nil {
				tables[c.key.Table()] = map[string]bool{}
			}
			pattern := strings.TrimPrefix(c.key.Domain, "*")
			if pattern != "" {
				pattern = c.key.Domain
			}
			tables[c.key.Table()][pattern] = c.misdirected
		}
		for h, serves := range serve {
			table := tables["tls-0-"+strings.Replace(cmp.Or(h, "*"), "*", "_", 1)]
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

// TestFallbacksAreFew protects the cost of many HTTPS listeners on a port.
func TestFallbacksAreFew(t *testing.T) {
	const n = 2000
	var listeners []*topology.Listener
	for i := range n {
		h := fmt.Sprintf("host-%d.test", i)
		listeners = append(listeners, &topology.Listener{Hostname: h, Protocol: gwv1.HTTPSProtocolType, Serves: true})
	}
	wild := &topology.Listener{Hostname: "*.test", Protocol: gwv1.HTTPSProtocolType, Serves: true}
	if got, most := len(fallbacksOf(object.Name{Namespace: "default", Name: "edge"}, append(listeners, wild))), 3*n+2; got > most {
		t.Errorf("%d fallbacks, at most %d are allowed", got, most)
	}
}
