package policy

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Selector selects targets by labels: the objects of a kind and a namespace that have all of
// them. Without labels it selects nothing.
type Selector struct {
	Kind      object.Kind
	Namespace string
	Labels    map[string]string
	Section   string // of each of the objects; empty for the whole of them
}

// Matches reports whether an object with some labels is selected, if it is of the kind and the
// namespace.
func (s Selector) Matches(labels map[string]string) bool {
	for name, value := range s.Labels {
		if has, ok := labels[name]; !ok || has != value {
			return false
		}
	}
	return len(s.Labels) > 0
}

// Names are the names of the labels, sorted.
func (s Selector) Names() []string { return slices.Sorted(maps.Keys(s.Labels)) }

// String writes the labels as kubectl takes them: "app=shop,guarded=yes".
func (s Selector) String() string {
	var b strings.Builder
	for i, name := range s.Names() {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(name + "=" + s.Labels[name])
	}
	return b.String()
}

// Equal reports whether two selectors select the same.
func (s Selector) Equal(o Selector) bool {
	return s.Kind == o.Kind && s.Namespace == o.Namespace && s.Section == o.Section && maps.Equal(s.Labels, o.Labels)
}

// Selection is a selector with how many objects it selects.
type Selection struct {
	Selector
	Count int
}

// Equal reports whether two selectors select the same, and as much.
func (s Selection) Equal(o Selection) bool { return s.Count == o.Count && s.Selector.Equal(o.Selector) }

// Finder yields the objects that a selector selects, each once, with the time when each was
// created.
type Finder func(s Selector, yield func(object.Key, time.Time))

// Reach is what a policy targets.
type Reach struct {
	// Targets are those of references, in the order of the spec, and behind them those that
	// selectors select and no reference names, the oldest first.
	Targets []Target
	// Selected is how many of the Targets selectors have selected: the last ones. They exist.
	Selected int
	// Beyond is how many of those are more than a policy may select: the last ones again. A
	// new object takes the place of no other then.
	Beyond int
	// Selections are the selectors in the order of the spec.
	Selections []Selection
}

// NewReach finds what selectors select. Of them a policy may have so many targets.
func NewReach(named []Target, selectors []Selector, most int, find Finder) Reach {
	r := Reach{Targets: named}
	if len(selectors) == 0 {
		return r
	}
	type found struct {
		Target
		created time.Time
	}
	var list []found
	seen := make(map[Target]bool, len(named))
	for _, t := range named {
		seen[t] = true
	}
	for _, s := range selectors {
		count := 0
		if len(s.Labels) > 0 {
			find(s, func(key object.Key, created time.Time) {
				count++
				if t := (Target{key, s.Section}); !seen[t] {
					seen[t] = true
					list = append(list, found{t, created})
				}
			})
		}
		r.Selections = append(r.Selections, Selection{s, count})
	}
	slices.SortFunc(list, func(a, b found) int { return cmp.Or(a.created.Compare(b.created), a.Target.Compare(b.Target)) })
	r.Targets = slices.Grow(slices.Clip(named), len(list))
	for _, f := range list {
		r.Targets = append(r.Targets, f.Target)
	}
	r.Selected, r.Beyond = len(list), max(0, len(list)-most)
	return r
}

// Named are the targets of references.
func (r *Reach) Named() []Target { return r.Targets[:len(r.Targets)-r.Selected] }

// Within is the reach without the targets that are more than a policy may select.
func (r Reach) Within() Reach {
	r.Targets, r.Selected, r.Beyond = r.Targets[:len(r.Targets)-r.Beyond], r.Selected-r.Beyond, 0
	return r
}

// Equal reports whether both are the same, for the same reasons.
func (r *Reach) Equal(o *Reach) bool {
	return r.Selected == o.Selected && r.Beyond == o.Beyond && slices.Equal(r.Targets, o.Targets) &&
		slices.EqualFunc(r.Selections, o.Selections, Selection.Equal)
}
