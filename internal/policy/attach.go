package policy

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Attached are the policies of a kind on one object. Nil is none.
type Attached[S Asks[S]] struct {
	sections []section[S] // sorted by name
}

// section is a section of an object with its policies, at least one.
type section[S Asks[S]] struct {
	name     string
	policies []Said[S]
}

// Said is what a policy says to what it is attached to.
type Said[S Asks[S]] struct {
	Policy object.Name
	// Refused is why the policy can't be used, in words; empty where it can be.
	Refused  string
	Strategy Strategy
	Asks     S
}

// Equal reports whether the same policy says the same.
func (s Said[S]) Equal(o Said[S]) bool {
	return s.Policy == o.Policy && s.Refused == o.Refused && s.Strategy == o.Strategy && s.Asks.Equal(o.Asks)
}

// At returns the policies that name exactly a section, or exactly the whole object, by
// precedence. They may not be written to.
func (a *Attached[S]) At(name string) []Said[S] {
	if a == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(a.sections, name, func(s section[S], name string) int { return strings.Compare(s.name, name) })
	if !ok {
		return nil
	}
	return a.sections[i].policies
}

// Sections yields the names of the sections that have policies of their own, and the empty
// one where there are policies for the whole object.
func (a *Attached[S]) Sections() iter.Seq[string] {
	return func(yield func(string) bool) {
		if a == nil {
			return
		}
		for _, s := range a.sections {
			if !yield(s.name) {
				return
			}
		}
	}
}

// First returns the policy that is in force on a section: the first one that names it,
// or else the first for the whole object; false for none.
func (a *Attached[S]) First(name string) (Said[S], bool) {
	for _, at := range [...]string{name, ""} {
		if all := a.At(at); len(all) > 0 {
			return all[0], true
		}
	}
	return Said[S]{}, false
}

// Equal reports whether the same policies say the same of the same sections.
func (a *Attached[S]) Equal(o *Attached[S]) bool {
	return slices.EqualFunc(a.sections, o.sections, func(a, b section[S]) bool {
		return a.name == b.name && slices.EqualFunc(a.policies, b.policies, Said[S].Equal)
	})
}

// Attachments is which objects have policies of a kind.
type Attachments[P any, S Asks[S]] struct {
	kind Kind[P, S]
	// targets are the objects that have some.
	targets  flow.Table[object.Key, struct{}]
	attached flow.Table[object.Key, *Attached[S]]
}

// targeting is a policy with one of its targets.
type targeting struct {
	policy object.Name
	target Target
}

func (t targeting) compare(o targeting) int {
	return cmp.Or(t.policy.Compare(o.policy), t.target.Compare(o.target))
}

// Attach declares which objects the policies of a kind are attached to. The names of its
// tables begin with name. What policies say and what they target are apart, so that a target more
// or less is a matter of this target alone: a policy may select hundreds.
func Attach[P any, S Asks[S]](name string, k Kind[P, S], policies flow.Table[object.Name, P]) *Attachments[P, S] {
	said := flow.Map(name+"-says", policies, func(_ *flow.Ctx, of object.Name, p P, emit func(object.Name, *says[S])) {
		emit(of, k.Node(p).says())
	})
	targetings := flow.Map(name+"-targetings", policies, func(_ *flow.Ctx, of object.Name, p P, emit func(targeting, bool)) {
		n := k.Node(p)
		named, within := len(n.Targets)-n.Selected, len(n.Targets)-n.Beyond
		for i, t := range n.Targets {
			if i >= named || !slices.Contains(n.Targets[:i], t) {
				emit(targeting{of, t}, i < within)
			}
		}
	}, flow.Equal(flow.Same[bool]))
	on := func(t targeting, _ bool, yield func(object.Key)) { yield(t.target.Key) }
	a := &Attachments[P, S]{kind: k}
	a.targets = flow.Keys(name+"-targets", on, targetings)
	a.attached = flow.Group(name+"-attachments", flow.NewIndex(targetings, on, targeting.compare),
		func(c *flow.Ctx, _ object.Key, members flow.Members[targeting, bool]) (*Attached[S], bool) {
			list := make([]placedSays[S], 0, members.Len())
			for t, within := range members.All() {
				if s, ok := flow.Get(c, said, t.policy); ok {
					list = append(list, placedSays[S]{s, t.target.Section, within})
				}
			}
			slices.SortStableFunc(list, func(a, b placedSays[S]) int { return a.says.compare(b.says) })
			return attached(list), true
		})
	return a
}

// placedSays is what a policy says to a section of an object, or to the whole of it.
type placedSays[S Asks[S]] struct {
	says    *says[S]
	section string
	within  bool
}

// attached sorts policies on an object, which are in their order, under its sections.
func attached[S Asks[S]](list []placedSays[S]) *Attached[S] {
	bySection := map[string][]Said[S]{}
	for _, p := range list {
		said := p.says.within
		if !p.within {
			said = p.says.beyond
		}
		bySection[p.section] = append(bySection[p.section], said)
	}
	out := &Attached[S]{sections: make([]section[S], 0, len(bySection))}
	for name, policies := range bySection {
		out.sections = append(out.sections, section[S]{name, policies})
	}
	slices.SortFunc(out.sections, func(a, b section[S]) int { return strings.Compare(a.name, b.name) })
	return out
}

// Targets are the objects that have policies of the kind, whether they exist or not.
func (a *Attachments[P, S]) Targets() flow.Table[object.Key, struct{}] { return a.targets }

// Kind returns the descriptor of the kind.
func (a *Attachments[P, S]) Kind() Kind[P, S] { return a.kind }

// On returns the policies on an object; nil for none. Who asks for many objects asks
// Presence first.
func (a *Attachments[P, S]) On(c *flow.Ctx, on object.Key) *Attached[S] {
	out, _ := flow.Get(c, a.attached, on)
	return out
}

// Judge returns why a policy has no effect on one of its targets, that aside whether
// there is such a target; nil where it has. It is an Accepted condition.
func (a *Attachments[P, S]) Judge(c *flow.Ctx, p P, t Target) *metav1.Condition {
	n := a.kind.Node(p)
	if n.Refused != nil || a.kind.Conflict == Joined {
		return n.Refused
	}
	if all := a.On(c, t.Key).At(t.Section); len(all) > 0 && all[0].Policy != n.Name {
		conflicted := a.kind.Conflicted(t.String(), all[0].Policy.String())
		return &conflicted
	}
	return nil
}
