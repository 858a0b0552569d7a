package topology

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// Change is a path on which other policies are in force than before an Update, or that came
// or went with policies in force on it.
type Change[R any] struct {
	Path          Path
	Before, After Effective[R]
}

// Changes returns the paths that an Update has changed, sorted. It is called before the next
// Update.
func (p *Policies[P, R]) Changes(ch *Changes) []Change[R] {
	d := &difference[P, R]{
		p:         p,
		listeners: byKey(flow.Changes(ch.commit, p.inherited.Listeners), flow.Changes(ch.commit, p.inherited.SetListeners)),
		own:       byKey(flow.Changes(ch.commit, p.inherited.Routes)),
		routes:    byKey(flow.Changes(ch.commit, p.g.inputs.Routes)),
		attached:  byKey(flow.Changes(ch.commit, p.g.graph.Attachments)),
		seen:      map[topology.AttachmentKey]bool{},
		compared:  map[[2]*policy.Effective[*value[R]]]bool{},
	}
	p.g.engine.View(d.run)
	if byPath := func(a, b Change[R]) int { return a.Path.Compare(b.Path) }; !slices.IsSortedFunc(d.out, byPath) {
		slices.SortFunc(d.out, byPath)
	}
	return d.out
}

// difference compares what was in force with what is.
type difference[P Object, R any] struct {
	p         *Policies[P, R]
	listeners map[topology.ListenerKey]flow.Change[topology.ListenerKey, *topology.Inheritance[*value[R]]]
	own       map[topology.AttachmentKey]flow.Change[topology.AttachmentKey, *topology.RouteInheritance[*value[R]]]
	routes    map[object.Key]flow.Change[object.Key, topology.RouteObject]
	attached  map[topology.AttachmentKey]flow.Change[topology.AttachmentKey, *topology.Attachment]
	seen      map[topology.AttachmentKey]bool
	// compared are pairs of what was in force and what is, which thousands of paths share.
	compared map[[2]*policy.Effective[*value[R]]]bool
	out      []Change[R]
}

func byKey[K comparable, V any](lists ...[]flow.Change[K, V]) map[K]flow.Change[K, V] {
	out := map[K]flow.Change[K, V]{}
	for _, list := range lists {
		for _, ch := range list {
			out[ch.Key] = ch
		}
	}
	return out
}

// run looks at all attachments that may be concerned.
func (d *difference[P, R]) run(c *flow.Ctx) {
	g := d.p.g
	for l := range d.listeners {
		for at := range flow.Select(c, g.attached, l).All() {
			d.attachment(c, at)
		}
	}
	for at := range d.own {
		d.attachment(c, at)
	}
	for at := range d.attached {
		d.attachment(c, at)
	}
	for route := range d.routes {
		for _, parent := range g.graph.Parents(c, route) {
			for l := range parent.Attached {
				d.attachment(c, topology.AttachmentKey{Route: route, Listener: l})
			}
		}
	}
}

// attachment compares the rules of a route on a listener one by one.
func (d *difference[P, R]) attachment(c *flow.Ctx, at topology.AttachmentKey) {
	if d.seen[at] {
		return
	}
	d.seen[at] = true
	g := d.p.g
	now, there := flow.Get(c, g.inputs.Routes, at.Route)
	was, had := now, there
	if ch, ok := d.routes[at.Route]; ok {
		was, had = ch.Old, ch.Had
	}
	if ch, ok := d.attached[at]; ok {
		there, had = ch.Has, ch.Had && had
	}
	var before, after []string
	if had {
		before = topology.RuleNames(was)
	}
	if there {
		after = topology.RuleNames(now)
	}
	class := g.classOf(c, at.Listener.Gateway())
	for i := range max(len(before), len(after)) {
		ch := Change[R]{Path: Path{class: class, at: at, rule: i}}
		if i < len(before) {
			ch.Path.name = before[i]
			ch.Before = d.before(c, at, before[i])
		}
		if i < len(after) {
			ch.Path.name = after[i]
			ch.After = d.p.effective(c, ch.Path)
		}
		if !d.equal(ch.Before, ch.After) {
			d.out = append(d.out, ch)
		}
	}
}

func (d *difference[P, R]) equal(a, b Effective[R]) bool {
	pair := [2]*policy.Effective[*value[R]]{a.of, b.of}
	same, known := d.compared[pair]
	if !known {
		same = a.Equal(b)
		d.compared[pair] = same
	}
	return same
}

// before returns what was in force for a rule.
func (d *difference[P, R]) before(c *flow.Ctx, at topology.AttachmentKey, rule string) Effective[R] {
	in := d.p.inherited
	own, has := flow.Get(c, in.Routes, at)
	if ch, ok := d.own[at]; ok {
		own, has = ch.Old, ch.Had
	}
	if has {
		return Effective[R]{own.On(rule), d.p.nodeOf}
	}
	above := in.OnListener(c, at.Listener)
	if ch, ok := d.listeners[at.Listener]; ok {
		above = ch.Old
	}
	if above == nil {
		return Effective[R]{}
	}
	return Effective[R]{above.Effective, d.p.nodeOf}
}

// Concerned returns the policies of which an Update has changed what there is to say of
// them: those that have come or changed, those whose Gateways have, and those on paths on
// which something is different. Policies that are gone are among them.
func (p *Policies[P, R]) Concerned(ch *Changes) (out []Node) {
	for _, n := range flow.Changes(ch.commit, p.nodes) {
		out = append(out, p.nodeOf(n.Key))
	}
	for _, a := range flow.Changes(ch.commit, p.ancestors) {
		out = append(out, p.nodeOf(a.Key))
	}
	seen := map[*policy.Effective[*value[R]]]bool{}
	for _, c := range p.Changes(ch) {
		for _, e := range [...]*policy.Effective[*value[R]]{c.Before.of, c.After.of} {
			if seen[e] {
				continue
			}
			seen[e] = true
			for _, o := range e.Outcomes() {
				out = append(out, p.nodeOf(o.Policy))
			}
		}
	}
	slices.SortFunc(out, Node.Compare)
	return slices.Compact(out)
}
