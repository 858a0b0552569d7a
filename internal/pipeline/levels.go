package pipeline

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
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
