package topology

import (
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// TLS listeners of one port whose hostnames overlap serve all the same, and the
// specification wants to be told of them: browsers reuse a connection for every host
// that its certificate names (ListenerConditionOverlappingTLSConfig).
//
// A listener of a Gateway may overlap with those of thousands of ListenerSets. It is
// told whether there are any, so that the second one wakes nobody.

// findOverlaps notes those among the listeners of one object.
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
	site
	ofSets   bool
	narrower bool // they have hostnames that the site's covers, and not that one itself
}

// declareOverlaps keeps where there are TLS listeners of Gateways that allow
// ListenerSets.
func declareOverlaps(own, ofSets flow.Table[ListenerKey, entry]) flow.Table[overlapKey, struct{}] {
	return flow.Keys("topology-overlaps", func(k ListenerKey, e entry, yield func(overlapKey)) {
		if e.family != encrypted || !e.valid {
			return
		}
		key := overlapKey{site: e.site(), ofSets: k.Set != object.Name{}}
		yield(key)
		for key.narrower = true; key.hostname != ""; {
			key.hostname = Wider(key.hostname)
			yield(key)
		}
	}, own, ofSets)
}

// overlapsThose reports whether a listener overlaps with those of its Gateway, or with
// those of its Gateway's ListenerSets. Its own hostname doesn't count: only one listener
// can have it.
func (g *Graph) overlapsThose(c *flow.Ctx, d *draft, ofSets bool) bool {
	key := overlapKey{site: entryOf(d, 0, 0).site(), ofSets: ofSets, narrower: true}
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
		d.overlaps.Sets = g.overlapsThose(c, d, true)
	}
}

// findSetOverlaps notes what a set's listeners overlap with, those aside that lose
// against others. Where it is listeners of the set itself, they are named, and it isn't
// looked for whether there are other sets besides.
func (g *Graph) findSetOverlaps(c *flow.Ctx, s *set, drafts []*draft) {
	var serving []*draft
	for _, d := range drafts {
		if d.family == encrypted && d.valid() {
			serving = append(serving, d)
		}
	}
	findOverlaps(serving)
	for _, d := range serving {
		if g.overlapsThose(c, d, false) {
			d.overlaps.Gateway = s.gateway.String()
		}
		if len(d.overlaps.Listeners) == 0 {
			d.overlaps.Sets = g.overlapsThose(c, d, true)
		}
	}
}
