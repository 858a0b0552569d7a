package control

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
)

// transitions remembers when conditions last changed their status. The tables
// don't know the time, by law; most conditions never change after the start, so
// only those that did take memory.
type transitions struct {
	mu    sync.Mutex
	start metav1.Time            // of the first commit
	at    map[string]metav1.Time // "object path type" → time
}

func newTransitions() *transitions { return &transitions{at: map[string]metav1.Time{}} }

// note takes in a commit.
func (t *transitions) note(p *Pipeline, c *flow.Commit, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := metav1.NewTime(now.Truncate(time.Second))
	if t.start.IsZero() {
		t.start = at
	}
	for _, kind := range p.reported {
		kind.changes(c, func(ch statusChange) {
			t.compare(ch.Object.String(), ch.Old != nil, ch.New != nil, at, conditionsOf(ch.Old), conditionsOf(ch.New))
		})
	}
}

// conditions are an object's lists of conditions, by where they stand in it.
type conditions map[string][]metav1.Condition

func (t *transitions) compare(object string, had, has bool, at metav1.Time, old, now conditions) {
	for path, list := range old {
		for _, c := range list {
			if !has || find(now[path], c.Type) == nil {
				delete(t.at, object+" "+path+" "+c.Type)
			}
		}
	}
	for path, list := range now {
		for _, c := range list {
			was := find(old[path], c.Type)
			if had && (was == nil || was.Status != c.Status) || !had && has && !at.Equal(&t.start) {
				t.at[object+" "+path+" "+c.Type] = at
			}
		}
	}
}

func find(list []metav1.Condition, kind string) *metav1.Condition {
	for i := range list {
		if list[i].Type == kind {
			return &list[i]
		}
	}
	return nil
}

// fill sets the transition times in an object's conditions.
func (t *transitions) fill(object string, all conditions) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for path, list := range all {
		for i := range list {
			at, ok := t.at[object+" "+path+" "+list[i].Type]
			if !ok {
				at = t.start
			}
			list[i].LastTransitionTime = at
		}
	}
}

func classConditions(s *gwv1.GatewayClassStatus) conditions {
	return conditions{"": s.Conditions}
}

func gatewayConditions(s *gwv1.GatewayStatus) conditions {
	out := conditions{"": s.Conditions}
	for i := range s.Listeners {
		out["listener "+string(s.Listeners[i].Name)] = s.Listeners[i].Conditions
	}
	return out
}

func setConditions(s *gwv1.ListenerSetStatus) conditions {
	out := conditions{"": s.Conditions}
	for i := range s.Listeners {
		out["listener "+string(s.Listeners[i].Name)] = s.Listeners[i].Conditions
	}
	return out
}

func routeConditions(s *gwv1.RouteStatus) conditions {
	out := conditions{}
	for i := range s.Parents {
		out[parentPath(s.Parents[i].ParentRef)] = s.Parents[i].Conditions
	}
	return out
}

// parentPath tells a route's parents apart.
func parentPath(ref gwv1.ParentReference) string {
	name := string(ref.Name)
	if ref.Namespace != nil {
		name = string(*ref.Namespace) + "/" + name
	}
	path := "parent " + name
	if ref.Kind != nil && *ref.Kind != "Gateway" {
		path = "parent " + string(*ref.Kind) + " " + name
	}
	if ref.SectionName != nil {
		path += "#" + string(*ref.SectionName)
	}
	if ref.Port != nil {
		path += ":" + itoa(int(*ref.Port))
	}
	return path
}
