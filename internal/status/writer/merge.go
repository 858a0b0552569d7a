package writer

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
)

// merging makes one status of what is there and what should be.
type merging struct {
	controller gwv1.GatewayController
	namespace  string // of the object
	now        metav1.Time
	owns       func(*gwv1.ParentReference) bool
}

// The API's limits.
const (
	maxParents          = 32
	maxAncestors        = 16
	maxBackendAncestors = 32
)

// merge returns a status of the type of live, which it leaves as it is. desired is of
// the same type, or nil where nothing of ours is to stay; left is what was desired
// before that.
func (m *merging) merge(live, desired, left any) any {
	switch live := live.(type) {
	case *gwv1.GatewayClassStatus:
		if d, ok := desired.(*gwv1.GatewayClassStatus); ok {
			out := d.DeepCopy()
			out.Conditions = m.conditions(live.Conditions, d.Conditions)
			return out
		}
	case *gwv1.GatewayStatus:
		if d, ok := desired.(*gwv1.GatewayStatus); ok {
			return m.gateway(live, d)
		}
		if was, ok := left.(*gwv1.GatewayStatus); ok && untouched(live.Conditions, was.Conditions) {
			return &gwv1.GatewayStatus{Conditions: m.conditions(live.Conditions, unclaimed())}
		}
	case *gwv1.ListenerSetStatus:
		if d, ok := desired.(*gwv1.ListenerSetStatus); ok {
			return m.listenerSet(live, d)
		}
		if was, ok := left.(*gwv1.ListenerSetStatus); ok && untouched(live.Conditions, was.Conditions) {
			return &gwv1.ListenerSetStatus{Conditions: m.conditions(live.Conditions, unclaimed())}
		}
	case *gwv1.RouteStatus:
		d, _ := desired.(*gwv1.RouteStatus)
		if d == nil {
			d = &gwv1.RouteStatus{}
		}
		return &gwv1.RouteStatus{Parents: entries(m, live.Parents, d.Parents, maxParents, parentEntry)}
	case *gwv1.PolicyStatus:
		d, _ := desired.(*gwv1.PolicyStatus)
		if d == nil {
			d = &gwv1.PolicyStatus{}
		}
		return &gwv1.PolicyStatus{Ancestors: entries(m, live.Ancestors, d.Ancestors, maxAncestors, ancestorEntry)}
	case *gwxv1alpha1.BackendStatus:
		d, _ := desired.(*gwxv1alpha1.BackendStatus)
		if d == nil {
			d = &gwxv1alpha1.BackendStatus{}
		}
		return &gwxv1alpha1.BackendStatus{Ancestors: entries(m, live.Ancestors, d.Ancestors, maxBackendAncestors, backendEntry)}
	}
	return live
}

func (m *merging) gateway(live, desired *gwv1.GatewayStatus) *gwv1.GatewayStatus {
	out := desired.DeepCopy()
	out.Conditions = m.conditions(live.Conditions, desired.Conditions)
	listeners(m, live.Listeners, out.Listeners, func(l *gwv1.ListenerStatus) (gwv1.SectionName, *[]metav1.Condition) { return l.Name, &l.Conditions })
	return out
}

func (m *merging) listenerSet(live, desired *gwv1.ListenerSetStatus) *gwv1.ListenerSetStatus {
	out := desired.DeepCopy()
	out.Conditions = m.conditions(live.Conditions, desired.Conditions)
	listeners(m, live.Listeners, out.Listeners, func(l *gwv1.ListenerEntryStatus) (gwv1.SectionName, *[]metav1.Condition) {
		return l.Name, &l.Conditions
	})
	return out
}

// listeners merges the conditions of listeners with those that the live ones of the
// same name have.
func listeners[L any](m *merging, live, out []L, part func(*L) (gwv1.SectionName, *[]metav1.Condition)) {
	was := map[gwv1.SectionName][]metav1.Condition{}
	for i := range live {
		name, conditions := part(&live[i])
		was[name] = *conditions
	}
	for i := range out {
		name, conditions := part(&out[i])
		*conditions = m.conditions(was[name], *conditions)
	}
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

// entry is what entries of parents and of ancestors have in common.
type entry struct {
	controller gwv1.GatewayController
	ref        *gwv1.ParentReference
	conditions *[]metav1.Condition
}

func parentEntry(e *gwv1.RouteParentStatus) entry {
	return entry{e.ControllerName, &e.ParentRef, &e.Conditions}
}

func ancestorEntry(e *gwv1.PolicyAncestorStatus) entry {
	return entry{e.ControllerName, &e.AncestorRef, &e.Conditions}
}

func backendEntry(e *gwxv1alpha1.BackendAncestorStatus) entry {
	return entry{e.ControllerName, &e.AncestorRef, &e.Conditions}
}

// ours reports whether an entry is this writer's.
func (m *merging) ours(e entry) bool { return e.controller == m.controller && m.owns(e.ref) }

// entries merges two lists: ours in the place that they have, new ones at the end as
// far as there is room, and others' as they are.
func entries[E any](m *merging, live, desired []E, most int, of func(*E) entry) []E {
	out := make([]E, 0, len(live)+len(desired))
	done := make([]bool, len(desired))
	for i := range live {
		was := of(&live[i])
		if !m.ours(was) {
			out = append(out, live[i])
			continue
		}
		j := 0
		for ; j < len(desired); j++ {
			if !done[j] && m.same(was.ref, of(&desired[j]).ref) {
				break
			}
		}
		if j < len(desired) {
			done[j] = true
			e := placed(m, desired[j], *was.conditions, of)
			*of(&e).ref = *was.ref // with what the API server has filled in
			out = append(out, e)
		}
	}
	for j := range desired {
		if !done[j] && len(out) < most {
			out = append(out, placed(m, desired[j], nil, of))
		}
	}
	return out
}

// placed returns an entry with its conditions merged into those that are there.
func placed[E any](m *merging, e E, live []metav1.Condition, of func(*E) entry) E {
	list := of(&e).conditions
	*list = m.conditions(live, *list)
	return e
}

// same reports whether two references mean the same: the API server fills in what one
// of them may leave out.
func (m *merging) same(a, b *gwv1.ParentReference) bool {
	return ptr.Deref(a.Group, gwv1.GroupName) == ptr.Deref(b.Group, gwv1.GroupName) &&
		ptr.Deref(a.Kind, "Gateway") == ptr.Deref(b.Kind, "Gateway") &&
		string(ptr.Deref(a.Namespace, gwv1.Namespace(m.namespace))) == string(ptr.Deref(b.Namespace, gwv1.Namespace(m.namespace))) &&
		a.Name == b.Name && ptr.Deref(a.SectionName, "") == ptr.Deref(b.SectionName, "") && ptr.Deref(a.Port, 0) == ptr.Deref(b.Port, 0)
}

// mentioned reports whether a status has entries of ours.
func (m *merging) mentioned(status any) bool {
	switch s := status.(type) {
	case *gwv1.RouteStatus:
		return some(m, s.Parents, parentEntry)
	case *gwv1.PolicyStatus:
		return some(m, s.Ancestors, ancestorEntry)
	case *gwxv1alpha1.BackendStatus:
		return some(m, s.Ancestors, backendEntry)
	default:
		return false // such a status doesn't say whose it is
	}
}

func some[E any](m *merging, list []E, of func(*E) entry) bool {
	for i := range list {
		if m.ours(of(&list[i])) {
			return true
		}
	}
	return false
}

// untouched reports whether a Gateway that we have left is as we left it. Statuses of
// Gateways don't say whose they are: once another controller has answered for it,
// nothing there is ours any more.
func untouched(live, left []metav1.Condition) bool {
	for _, kind := range []string{string(gwv1.GatewayConditionAccepted), string(gwv1.GatewayConditionProgrammed)} {
		a, ok := condition.Find(live, kind)
		b, had := condition.Find(left, kind)
		a.LastTransitionTime, b.LastTransitionTime = metav1.Time{}, metav1.Time{}
		if !ok || !had || a != b {
			return false
		}
	}
	return true
}

// unclaimed are the conditions of a Gateway or ListenerSet that nobody answers for, as
// the API server gives them to a new one.
func unclaimed() []metav1.Condition {
	return []metav1.Condition{
		{Type: string(gwv1.GatewayConditionAccepted), Status: metav1.ConditionUnknown, Reason: string(gwv1.GatewayReasonPending), Message: "Waiting for controller"},
		{Type: string(gwv1.GatewayConditionProgrammed), Status: metav1.ConditionUnknown, Reason: string(gwv1.GatewayReasonPending), Message: "Waiting for controller"},
	}
}
