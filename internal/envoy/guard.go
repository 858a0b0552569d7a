package envoy

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// Guard says who may pass by a piece of configuration: for each of its routes, in their order,
// what the filters that decide it are told. It is empty for a piece that says nothing of it.
type Guard []GuardedRoute

// GuardedRoute is a route of a Guard. What is everything has the zero Match.
type GuardedRoute struct {
	Match uint64 // of which requests, a hash
	By    uint64 // of what the filters are told; zero for nothing, so that those around decide
	Alone bool   // what stands beside a divided table has no say, see TableAccess
}

// closed is the By of a route that answers in place of what it can't do. Nobody passes by it.
const closed = 1

// KeptBy reports whether a version from before may stand in: no request passes by it that this
// one is there to stop. What is said around this one, and not by it, is in around. Each request
// is looked at that the one version may answer by its route i and the other by its route j. It is
// none that an earlier route of either has the match of.
func (g Guard) KeptBy(before, around Guard) bool {
	// What a route says replaces what is said around it.
	opens := func(by, old uint64) bool {
		return old != by && old != closed && (by != 0 || len(around) > 0)
	}
	if len(g) == 0 {
		return !slices.ContainsFunc(before, func(b GuardedRoute) bool { return opens(0, b.By) })
	}
	return len(before) > 0 && !g.meets(before, func(n, b GuardedRoute) bool { return opens(n.By, b.By) })
}

// takesOver reports whether there are requests of which this one decides alone, and the version before didn't.
func (g Guard) takesOver(before Guard) bool {
	if len(before) == 0 {
		return slices.ContainsFunc(g, GuardedRoute.decides)
	}
	return g.meets(before, func(n, b GuardedRoute) bool { return n.decides() && !b.decides() })
}

func (r GuardedRoute) decides() bool { return r.Alone || r.By == closed }

// meets reports whether a request may be answered by such a route of this guard and such a one of the version before.
func (g Guard) meets(before Guard, such func(n, b GuardedRoute) bool) bool {
	now, then := g.first(), before.first()
	for i, n := range g {
		last := len(before) - 1
		if j, ok := then[n.Match]; ok {
			last = j
		}
		for _, b := range before[:last+1] {
			if k, ok := now[b.Match]; ok && k < i {
				continue
			}
			if such(n, b) {
				return true
			}
		}
	}
	return false
}

// first are the indexes of matches.
func (g Guard) first() map[uint64]int {
	out := make(map[uint64]int, len(g))
	for i, r := range slices.Backward(g) {
		out[r.Match] = i
	}
	return out
}

// guardsBy reports whether a filter decides who may pass.
func guardsBy(filter string) bool {
	return filter == accessSlot || strings.HasPrefix(filter, tableAccessPrefix) || strings.HasPrefix(filter, authPrefix)
}

// guardedBy identifies what those filters are told by these settings together; zero for nothing.
func guardedBy(settings ...map[string]*anypb.Any) uint64 {
	var d *xxhash.Digest // most settings say nothing
	for _, s := range settings {
		for _, name := range slices.Sorted(maps.Keys(s)) {
			if !guardsBy(name) {
				continue
			}
			if d == nil {
				d = xxhash.New()
			}
			_, _ = d.WriteString(name)
			_, _ = d.Write([]byte{0})
			_, _ = d.Write(s[name].GetValue())
			_, _ = d.Write([]byte{0})
		}
	}
	if d == nil {
		return 0
	}
	return d.Sum64()
}

// guardOf returns the guard of settings for everything.
func guardOf(settings map[string]*anypb.Any) Guard {
	if by := guardedBy(settings); by != 0 {
		return Guard{{By: by}}
	}
	return nil
}

// guardOfClients returns the guard of a listener whose clients need certificates. A Gateway says for
// a port which ones, so all chains have the same.
func guardOfClients(l *ir.Listener) Guard {
	for i := range l.Chains {
		if t := l.Chains[i].TLS; t != nil && t.Clients != nil {
			return Guard{{By: clientsGuard(t.Clients)}}
		}
	}
	return nil
}

// clientsGuard tells by what clients are checked.
func clientsGuard(c *ir.Clients) uint64 {
	return xxhash.Sum64String(fmt.Sprint(SecretName(c.Authorities), c.Fallback))
}

// guardOfHost returns the guard of a host's routes.
func guardOfHost(vh *routev3.VirtualHost) Guard {
	out := make(Guard, len(vh.GetRoutes()))
	// Once for all routes: there may be thousands of keys.
	inherited, alone := guardedBy(vh.GetTypedPerFilterConfig()), leavesTable(vh.GetTypedPerFilterConfig())
	guarded := false
	for i, r := range vh.GetRoutes() {
		if r.GetDirectResponse().GetStatus() >= http.StatusInternalServerError {
			out[i].By, guarded = closed, true
			continue
		}
		settings := []map[string]*anypb.Any{r.GetTypedPerFilterConfig()}
		for _, c := range r.GetRoute().GetWeightedClusters().GetClusters() {
			settings = append(settings, c.GetTypedPerFilterConfig())
		}
		out[i].By, out[i].Alone = inherited*31+guardedBy(settings...), alone || leavesTable(r.GetTypedPerFilterConfig())
		guarded = guarded || out[i].By != 0
	}
	if !guarded {
		return nil // and no match need be looked at
	}
	for i, r := range vh.GetRoutes() {
		match, err := wire.Marshal(r.GetMatch())
		if err != nil {
			match = nil // nor can the host be marshalled, then
		}
		out[i].Match = xxhash.Sum64(match)
	}
	return out
}
