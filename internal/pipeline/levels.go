package pipeline

import (
	"maps"
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// leveling puts what policies of a kind say to the rules of a host on the highest level that is
// right. What all rules of a host agree in stands once, on the host: thousands of keys are not
// there for each rule. Otherwise what all inherit does, and rules for which something else is in
// force have that themselves.
type leveling[F any] struct {
	// says returns what is in force for the rules of each entry, by their names; nil for what
	// they inherit.
	says      []func(rule string) *F
	inherited []*F // by the rules of each entry
	outer     *F   // around the host; nil for nothing
	above     bool // whether outer is what all inherit

	equal func(a, b *F) bool
	// open reports whether a filter does nothing; around it nothing has to be said.
	open func(*F) bool
	set  func(*ir.Filters, *F)
}

// put gives the host and its rules what they have to say.
func (l *leveling[F]) put(in *translate.HostInput) {
	for i := range l.says {
		if l.says[i] == nil {
			l.says[i] = func(string) *F { return l.inherited[i] }
		}
	}
	host := l.outer
	all, ok := l.agreed(in.Entries)
	if !ok && !l.above {
		all, ok = l.inherited[0], !slices.ContainsFunc(l.inherited, func(f *F) bool { return !l.equal(l.inherited[0], f) })
	}
	if ok && !l.equal(all, host) {
		host = said(all)
		if in.Filters == nil {
			in.Filters = &ir.Filters{}
		}
		l.set(in.Filters, host)
	}
	for i := range in.Entries {
		in.Entries[i].Rules = l.rules(in.Entries[i].Rules, host, l.says[i])
	}
}

// agreed is what is in force for all rules of all entries; false if they don't agree.
func (l *leveling[F]) agreed(entries []translate.HostEntry) (all *F, ok bool) {
	for i := range entries {
		for _, r := range entries[i].Rules {
			f := l.says[i](r.Source.Title)
			if ok && !l.equal(f, all) {
				return nil, false
			}
			all, ok = f, true
		}
	}
	return all, ok
}

// rules returns the rules with what is in force for each, by its name, where that is not what is
// in force around them.
func (l *leveling[F]) rules(rules []*ir.Rule, around *F, of func(rule string) *F) []*ir.Rule {
	var out []*ir.Rule
	for i, r := range rules {
		f := of(r.Source.Title)
		if l.equal(f, around) || f == nil && (around == nil || l.open(around)) {
			continue
		}
		if out == nil {
			out = slices.Clone(rules)
		}
		rule := *r
		l.set(&rule.Filters, said(f))
		out[i] = &rule
	}
	if out == nil {
		return rules
	}
	return out
}

// said is a filter for a level that has to say so: one that does nothing where none is in force.
func said[F any](f *F) *F {
	if f == nil {
		return new(F)
	}
	return f
}

// inForce is what the policies of a kind say together: to the routes of a listener, and to those with
// policies of their own. It becomes filters of hosts and rules.
type inForce[F any] struct {
	listeners, setListeners flow.Table[topology.ListenerKey, *F]
	routes                  flow.Table[topology.AttachmentKey, *routeInForce[F]]

	equal func(a, b *F) bool // and the others as those of leveling
	open  func(*F) bool
	set   func(*ir.Filters, *F)
}

// routeInForce is what is said to a route with policies of its own.
type routeInForce[F any] struct {
	all   *F
	rules map[string]*F // by the names of rules with policies of their own
}

func (r *routeInForce[F]) on(rule string) *F {
	if f, ok := r.rules[rule]; ok {
		return f
	}
	return r.all
}

// declareInForce declares what policies of a kind, whose rules are R, say together to clients of a listener. What
// they say comes to F, or to nil for nothing.
func declareInForce[R topology.Asks[R], F any](
	in *inForce[F], name string, all *topology.Inherited[R], says func(*flow.Ctx, topology.ListenerKey, *topology.Effective[R]) *F,
) {
	onListener := func(c *flow.Ctx, k topology.ListenerKey, i *topology.Inheritance[R], emit func(topology.ListenerKey, *F)) {
		if f := says(c, k, i.Effective); f != nil {
			emit(k, f)
		}
	}
	equal := flow.Equal(in.equal)
	in.listeners = flow.Map(name+"-on-listeners", all.Listeners, onListener, equal)
	in.setListeners = flow.Map(name+"-on-set-listeners", all.SetListeners, onListener, equal)
	in.routes = flow.Map(name+"-on-routes", all.Routes,
		func(c *flow.Ctx, k topology.AttachmentKey, r *topology.RouteInheritance[R], emit func(topology.AttachmentKey, *routeInForce[F])) {
			out := &routeInForce[F]{all: says(c, k.Listener, r.Effective)}
			for name, e := range r.Rules() {
				if out.rules == nil {
					out.rules = map[string]*F{}
				}
				out.rules[name] = says(c, k.Listener, e)
			}
			emit(k, out)
		}, flow.Equal(func(a, b *routeInForce[F]) bool {
			return in.equal(a.all, b.all) && maps.EqualFunc(a.rules, b.rules, in.equal)
		}))
}

// level gives a host what is said to it, by the policies on the paths to the rules of its entries, whose
// attachments are in the same order, with what is said around it; nil where none says anything.
func (in *inForce[F]) level(c *flow.Ctx, host *translate.HostInput, attached []topology.AttachmentKey, outer *F) *leveling[F] {
	if !in.any(c, attached) {
		return nil
	}
	l := &leveling[F]{
		says: make([]func(rule string) *F, len(attached)), inherited: make([]*F, len(attached)),
		equal: in.equal, open: in.open, set: in.set, outer: outer, above: outer != nil,
	}
	for i, at := range attached {
		l.inherited[i], _ = flow.Get(c, in.inherited(at.Listener), at.Listener)
		if own, ok := flow.Get(c, in.routes, at); ok {
			l.says[i] = own.on
		}
	}
	l.put(host)
	return l
}

// any reports whether any policy says something to some routes.
func (in *inForce[F]) any(c *flow.Ctx, attached []topology.AttachmentKey) bool {
	for i := range attached {
		if _, ok := flow.Get(c, in.routes, attached[i]); ok {
			return true
		}
		if _, ok := flow.Get(c, in.inherited(attached[i].Listener), attached[i].Listener); ok {
			return true
		}
	}
	return false
}

// inherited is the table that has what routes of a listener inherit.
func (in *inForce[F]) inherited(at topology.ListenerKey) flow.Table[topology.ListenerKey, *F] {
	return topology.TableOf[*F](at, in.listeners, in.setListeners)
}
