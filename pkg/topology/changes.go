package topology

import (
	"maps"
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
		nodeOf:    p.nodeOf,
		listeners: byKey(flow.Changes(ch.commit, p.inherited.Listeners), flow.Changes(ch.commit, p.inherited.SetListeners)),
		own:       byKey(flow.Changes(ch.commit, p.inherited.Routes)),
		routes:    byKey(flow.Changes(ch.commit, p.g.inputs.Routes)),
		attached:  byKey(flow.Changes(ch.commit, p.g.graph.Attachments)),
	}
	p.g.engine.View(func(c *flow.Ctx) {
		concerned := d.concerned(c)
		for i, at := range concerned {
			if paths := len(d.out) / max(i, 1); cap(d.out)-len(d.out) < paths { // of each until here
				d.out = slices.Grow(d.out, paths*(len(concerned)-i))
			}
			d.attachment(c, at)
		}
	})
	return d.out
}

// difference compares what was in force with what is.
type difference[P Object, R any] struct {
	p         *Policies[P, R]
	nodeOf    func(object.Name) Node // of a policy
	listeners map[topology.ListenerKey]flow.Change[topology.ListenerKey, *topology.Inheritance[*value[R]]]
	own       map[topology.AttachmentKey]flow.Change[topology.AttachmentKey, *topology.RouteInheritance[*value[R]]]
	routes    map[object.Key]flow.Change[object.Key, topology.RouteObject]
	attached  map[topology.AttachmentKey]flow.Change[topology.AttachmentKey, *topology.Attachment]
	// on is the listener of the attachments that are looked at, which follow each other.
	on onListener[R]
	// last is what the last rule had that doesn't have what is in force on the listener: the
	// next one of its route may have the same.
	last          comparison[R]
	before, after []string // names of rules, of one route after the other
	out           []Change[R]
}

// onListener is what the routes of a listener have in common.
type onListener[R any] struct {
	key           topology.ListenerKey
	class         string
	comparison[R] // of what is in force on those without policies of their own
}

// comparison is whether what was in force says the same as what is. Thousands of paths ask.
type comparison[R any] struct {
	before, after *policy.Effective[*value[R]]
	same          bool
}

func compare[R any](before, after *policy.Effective[*value[R]]) comparison[R] {
	return comparison[R]{before, after, Effective[R]{of: before}.Equal(Effective[R]{of: after})}
}

func (c *comparison[R]) isOf(before, after *policy.Effective[*value[R]]) bool {
	return before == c.before && after == c.after
}

func byKey[K comparable, V any](lists ...[]flow.Change[K, V]) map[K]flow.Change[K, V] {
	n := 0
	for _, list := range lists {
		n += len(list)
	}
	out := make(map[K]flow.Change[K, V], n)
	for _, list := range lists {
		for _, ch := range list {
			out[ch.Key] = ch
		}
	}
	return out
}

// concerned returns all attachments that may be concerned, sorted.
func (d *difference[P, R]) concerned(c *flow.Ctx) (out []topology.AttachmentKey) {
	g := d.p.g
	listeners := slices.SortedFunc(maps.Keys(d.listeners), topology.ListenerKey.Compare)
	routes := 0
	for _, l := range listeners {
		routes += flow.Select(c, g.attached, l).Len()
	}
	out = make([]topology.AttachmentKey, 0, routes)
	for _, l := range listeners {
		for at := range flow.Select(c, g.attached, l).All() {
			out = append(out, at)
		}
	}
	listed := len(out)
	add := func(at topology.AttachmentKey) {
		if _, ok := d.listeners[at.Listener]; ok {
			if _, there := flow.Get(c, g.graph.Attachments, at); there {
				return // it is listed
			}
		}
		out = append(out, at)
	}
	for at := range d.own {
		add(at)
	}
	for at := range d.attached {
		add(at)
	}
	for route := range d.routes {
		for _, parent := range g.graph.Parents(c, route) {
			for l := range parent.Attached {
				add(topology.AttachmentKey{Route: route, Listener: l})
			}
		}
	}
	if len(out) > listed {
		slices.SortFunc(out, topology.AttachmentKey.Compare)
		out = slices.Compact(out)
	}
	return out
}

// attachment compares the rules of a route on a listener one by one.
func (d *difference[P, R]) attachment(c *flow.Ctx, at topology.AttachmentKey) {
	g := d.p.g
	now, there := flow.Get(c, g.inputs.Routes, at.Route)
	was, had := now, there
	if ch, ok := d.routes[at.Route]; ok {
		was, had = ch.Old, ch.Had
	}
	if ch, ok := d.attached[at]; ok {
		there, had = ch.Has, ch.Had && had
	}
	d.listener(c, at.Listener)
	own, owned := flow.Get(c, d.p.inherited.Routes, at)
	old, owning := own, owned
	if ch, ok := d.own[at]; ok {
		old, owning = ch.Old, ch.Had
	}
	before, after := d.before[:0], d.after[:0]
	if had {
		before = topology.AppendRuleNames(before, was)
	}
	d.before = before
	switch {
	case there && had && was == now:
		after = before
	case there:
		after = topology.AppendRuleNames(after, now)
		d.after = after
	}
	for i := range max(len(before), len(after)) {
		ch := Change[R]{Path: Path{class: d.on.class, at: at, rule: i}}
		if i < len(before) {
			ch.Path.name = before[i]
			ch.Before = d.effective(old, owning, d.on.before, before[i])
		}
		if i < len(after) {
			ch.Path.name = after[i]
			ch.After = d.effective(own, owned, d.on.after, after[i])
		}
		if !d.equal(ch.Before.of, ch.After.of) {
			d.out = append(d.out, ch)
		}
	}
}

// listener looks at what the routes of a listener have in common, if it is another one.
func (d *difference[P, R]) listener(c *flow.Ctx, key topology.ListenerKey) {
	if d.on.key == key {
		return
	}
	now := d.p.inherited.OnListener(c, key)
	was := now
	if ch, ok := d.listeners[key]; ok {
		was = ch.Old
	}
	var before, after *policy.Effective[*value[R]]
	if was != nil {
		before = was.Effective
	}
	if now != nil {
		after = now.Effective
	}
	d.on = onListener[R]{key, d.p.g.classOf(c, key.Gateway()), compare(before, after)}
}

// effective returns what is in force for a rule: by what its route has of its own, or else by the
// listener.
func (d *difference[P, R]) effective(own *topology.RouteInheritance[*value[R]], owned bool, above *policy.Effective[*value[R]], rule string) Effective[R] {
	if owned {
		above = own.On(rule)
	}
	if above == nil {
		return Effective[R]{}
	}
	return Effective[R]{above, d.nodeOf}
}

// equal reports whether what was in force on a path says the same as what is.
func (d *difference[P, R]) equal(before, after *policy.Effective[*value[R]]) bool {
	if d.on.isOf(before, after) {
		return d.on.same
	}
	if !d.last.isOf(before, after) {
		d.last = compare(before, after)
	}
	return d.last.same
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
