package topology

import (
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// TLS listeners of one port whose hostnames overlap are served, and the specification wants
// a condition on them: browsers reuse a connection for every host that its certificate
// names (ListenerConditionOverlappingTLSConfig).
//
// A listener of a Gateway may overlap with those of thousands of ListenerSets. It reads
// only whether there are any, so that a second one changes nothing for it.

// findOverlaps records which listeners of one object overlap.
func findOverlaps(drafts []*draft) {
	for _, d := range drafts {
		if d.family == encrypted {
			d.overlaps.Listeners = others(drafts, func(o *draft) bool {
				_, overlap := intersect(d.Hostname, o.Hostname)
				return o != d && o.family == encrypted && o.Port == d.Port && overlap
			})
		}
	}
}

// overlapKey is where TLS listeners are that others may overlap with.
type overlapKey struct {
	distinctKey
	ofSets   bool
	narrower bool // they have hostnames that the key's covers, and not that one itself
}

// declareOverlaps keeps where there are TLS listeners of Gateways that allow
// ListenerSets.
func declareOverlaps(own, ofSets flow.Table[precedence, orderedListener]) flow.Table[overlapKey, struct{}] {
	return flow.Keys("topology-overlaps", func(p precedence, e orderedListener, yield func(overlapKey)) {
		if e.family != encrypted || !e.valid {
			return
		}
		key := overlapKey{distinctKey: e.distinctKey(), ofSets: p.key.Set() != object.Name{}}
		yield(key)
		for key.narrower = true; key.hostname != ""; {
			key.hostname = Wider(key.hostname)
			yield(key)
		}
	}, own, ofSets)
}

// overlapsWith reports whether a listener overlaps with those of its Gateway or, with
// ofSets, with those of its Gateway's ListenerSets. Its own hostname doesn't count: only one listener
// can have it.
func (g *Graph) overlapsWith(c *flow.Ctx, d *draft, ofSets bool) bool {
	key := overlapKey{distinctKey: orderedListenerOf(d).distinctKey(), ofSets: ofSets, narrower: true}
	if _, some := flow.Get(c, g.overlaps, key); some {
		return true
	}
	for key.narrower = false; key.hostname != ""; {
		key.hostname = Wider(key.hostname)
		if _, some := flow.Get(c, g.overlaps, key); some {
			return true
		}
	}
	return false
}

// overlapSets adds the listeners of ListenerSets to what one of the Gateway's own
// overlaps with.
func (g *Graph) overlapSets(c *flow.Ctx, d *draft) {
	if d.family == encrypted && d.valid() {
		d.overlaps.Sets = g.overlapsWith(c, d, true)
	}
}

// findSetOverlaps records what a set's listeners overlap with, except those in conflict.
// Where they overlap within the set, those listeners are named, and other sets are not
// looked for.
func (g *Graph) findSetOverlaps(c *flow.Ctx, s *set, drafts []*draft) {
	var serving []*draft
	for _, d := range drafts {
		if d.family == encrypted && d.valid() {
			serving = append(serving, d)
		}
	}
	findOverlaps(serving)
	for _, d := range serving {
		if g.overlapsWith(c, d, false) {
			d.overlaps.Gateway = s.gateway.String()
		}
		if len(d.overlaps.Listeners) == 0 {
			d.overlaps.Sets = g.overlapsWith(c, d, true)
		}
	}
}
