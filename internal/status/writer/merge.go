package writer

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
)

// merging makes one status of what is there and what should be.
type merging struct {
	controller gwv1.GatewayController
	namespace  string // of the object
	now        metav1.Time
	owns       func(*gwv1.ParentReference) bool
	keeps      bool // entries of ours stay that are not desired: see Complete
}

// merge returns a status of the type of live, which it leaves as it is. desired is of
// the same type, or nil where nothing of ours is to stay; left is what was desired
// before that.
func (m *merging) merge(s *kind.Status, live, desired, left any) any {
	switch {
	case s.IsShared():
		return s.Join(m.entries(s.Entries(live), s.Entries(desired), s.Most()))
	case desired != nil:
		was := maps.Collect(s.Conditions(live))
		return s.WithConditions(desired, func(place string, list []metav1.Condition) []metav1.Condition {
			return m.conditions(was[place], list)
		})
	case left != nil && len(s.Initial) > 0 && untouched(s, live, left):
		return s.Saying(m.conditions(wholeOf(s, live), s.Initial))
	}
	return live
}

// conditions merges two lists: ours in the place that they have, new ones at the end,
// and others' as they are. A condition changed when its status did.
func (m *merging) conditions(live, desired []metav1.Condition) []metav1.Condition {
	out := make([]metav1.Condition, 0, len(desired))
	for _, was := range live {
		if c, wanted := condition.Find(desired, was.Type); wanted {
			out = append(out, m.dated(c, was))
		} else if !condition.Ours(was.Type) {
			out = append(out, was)
		}
	}
	for _, c := range desired {
		if _, there := condition.Find(live, c.Type); !there {
			out = append(out, m.dated(c, metav1.Condition{}))
		}
	}
	return out
}

func (m *merging) dated(c, was metav1.Condition) metav1.Condition {
	c.LastTransitionTime = m.now
	if was.Status == c.Status {
		c.LastTransitionTime = was.LastTransitionTime
	}
	return c
}

// ours reports whether an entry is this writer's.
func (m *merging) ours(e *kind.Entry) bool { return e.Controller == m.controller && m.owns(&e.Ref) }

// entries merges two lists: ours in the place that they have, new ones at the end as
// far as there is room, and others' as they are.
func (m *merging) entries(live, desired []kind.Entry, most int) []kind.Entry {
	out := make([]kind.Entry, 0, len(live)+len(desired))
	done := make([]bool, len(desired))
	for i := range live {
		was := &live[i]
		nameless := was.Controller == "" // by a definition that has no field for it
		if !m.ours(was) && !nameless {
			out = append(out, *was)
			continue
		}
		j := 0
		for ; j < len(desired); j++ {
			if !done[j] && m.same(&was.Ref, &desired[j].Ref) {
				break
			}
		}
		if j < len(desired) {
			done[j] = true
			e := m.placed(desired[j], was.Conditions)
			e.Controller = was.Controller
			e.Ref = was.Ref // with what the API server has filled in
			out = append(out, e)
		} else if m.keeps || nameless {
			out = append(out, *was)
		}
	}
	for j := range desired {
		if !done[j] && len(out) < most {
			out = append(out, m.placed(desired[j], nil))
		}
	}
	return out
}

// placed returns an entry with its conditions merged into those that are there.
func (m *merging) placed(e kind.Entry, live []metav1.Condition) kind.Entry {
	e.Conditions = m.conditions(live, e.Conditions)
	return e
}

// gatewayKind is what references without a kind mean.
var gatewayKind = gwv1.Kind(kind.Gateway.Name())

// same reports whether two references mean the same: the API server fills in what one
// of them may leave out.
func (m *merging) same(a, b *gwv1.ParentReference) bool {
	return ptr.Deref(a.Group, gwv1.GroupName) == ptr.Deref(b.Group, gwv1.GroupName) &&
		ptr.Deref(a.Kind, gatewayKind) == ptr.Deref(b.Kind, gatewayKind) &&
		string(ptr.Deref(a.Namespace, gwv1.Namespace(m.namespace))) == string(ptr.Deref(b.Namespace, gwv1.Namespace(m.namespace))) &&
		a.Name == b.Name && ptr.Deref(a.SectionName, "") == ptr.Deref(b.SectionName, "") && ptr.Deref(a.Port, 0) == ptr.Deref(b.Port, 0)
}

// mentioned reports whether a status has entries of ours. A whole status doesn't say
// whose it is.
func (m *merging) mentioned(s *kind.Status, status any) bool {
	return s.IsShared() && slices.ContainsFunc(s.Entries(status), func(e kind.Entry) bool { return m.ours(&e) })
}

// untouched reports whether an object that we have left is as we left it. A whole status
// doesn't say whose it is: once another controller has answered for the object, nothing
// there is ours any more.
func untouched(s *kind.Status, live, left any) bool {
	for _, initial := range s.Initial {
		a, ok := condition.Find(wholeOf(s, live), initial.Type)
		b, had := condition.Find(wholeOf(s, left), initial.Type)
		a.LastTransitionTime, b.LastTransitionTime = metav1.Time{}, metav1.Time{}
		if !ok || !had || a != b {
			return false
		}
	}
	return true
}
