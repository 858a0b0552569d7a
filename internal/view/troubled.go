package view

import (
	"cmp"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
)

// StateChange is an object whose state became bad, or good again.
type StateChange struct {
	Object  string // "kind ns/name"
	OK      bool
	Reason  string
	Message string
}

// Trouble is what can be wrong with objects of a kind.
type Trouble struct {
	Kind   string
	Reason string
}

// Troubled are the objects in a bad state, with the reason. It is kept up by
// difference, so that it costs what a commit changes and not what exists.
type Troubled struct {
	mu      sync.Mutex
	reasons map[object.Key]string
	waiting map[object.Key]bool // of these, those that are not counted: they only wait now
	counts  map[Trouble]int
}

// NewTroubled returns one for which all is well.
func NewTroubled() *Troubled {
	return &Troubled{reasons: map[object.Key]string{}, waiting: map[object.Key]bool{}, counts: map[Trouble]int{}}
}

// Take takes in a commit and returns what it changed, by name.
func (t *Troubled) Take(p *pipeline.Pipeline, c *flow.Commit) []StateChange {
	return t.TakeStatuses(p.Kinds, func(yield func(object.Key, any) bool) {
		more := true
		for _, table := range p.Statuses {
			table.Changes(c, func(ch pipeline.StatusChange) { more = more && yield(ch.Object, ch.New) })
		}
	})
}

// TakeStatuses takes in statuses that have changed, nil for those of objects that have none
// any more, and returns what they changed, by name.
func (t *Troubled) TakeStatuses(kinds *kind.Table, statuses iter.Seq2[object.Key, any]) []StateChange {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []StateChange
	for k, status := range statuses {
		if status == nil {
			t.set(k, "")
		} else {
			s := kinds.StatusOf(k.Kind)
			t.take(k, summaryOf(s, status), noted(s, status), &out)
		}
	}
	slices.SortFunc(out, func(a, b StateChange) int { return strings.Compare(a.Object, b.Object) })
	return out
}

// noted is the first condition of a status that says, whatever the state of the object is, what
// a person must do something about; zero for none. It is worth an Event, too.
func noted(s *kind.Status, status any) metav1.Condition {
	for _, list := range s.Conditions(status) {
		for _, c := range list {
			if condition.EventReason(c) != "" {
				return c
			}
		}
	}
	return metav1.Condition{}
}

func (t *Troubled) take(k object.Key, s Summary, note metav1.Condition, out *[]StateChange) {
	reason, message, bad := s.Trouble()
	if about := condition.EventReason(note); !bad && about != "" {
		reason, message, bad = about, note.Message, true
	}
	was, known := t.reasons[k]
	switch {
	case bad && was != reason:
		t.set(k, reason)
		*out = append(*out, StateChange{Object: k.String(), Reason: reason, Message: message})
	case bad && t.waiting[k]:
		t.set(k, reason)
	case !bad && known && s.Settled():
		t.set(k, "")
		*out = append(*out, StateChange{Object: k.String(), OK: true, Reason: s.State})
	case !bad && known && !t.waiting[k]:
		// Whether it is in order again is told when it is; what was wrong is not any more.
		t.uncount(k, was)
		t.waiting[k] = true
	}
}

// set notes why an object is in a bad state; empty for no reason.
func (t *Troubled) set(k object.Key, reason string) {
	if was, known := t.reasons[k]; known {
		if !t.waiting[k] {
			t.uncount(k, was)
		}
		delete(t.reasons, k)
		delete(t.waiting, k)
	}
	if reason != "" {
		t.reasons[k] = reason
		t.counts[Trouble{k.Kind.Name(), reason}]++
	}
}

func (t *Troubled) uncount(k object.Key, reason string) {
	of := Trouble{k.Kind.Name(), reason}
	if t.counts[of]--; t.counts[of] == 0 {
		delete(t.counts, of)
	}
}

// Counts returns how many objects there are of each trouble. Any goroutine may call it.
func (t *Troubled) Counts() map[Trouble]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.counts)
}

// objects are those in a bad state, and those that were and wait now.
func (t *Troubled) objects() map[object.Key]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make(map[object.Key]bool, len(t.reasons))
	for k := range t.reasons {
		out[k] = true
	}
	return out
}

// maxStateLines bounds what one commit logs: a Gateway that goes takes all its
// routes along.
const maxStateLines = 20

// LogStates logs the objects that became bad, or good again. Those with which nothing is wrong
// that isn't told elsewhere are one line.
func LogStates(log *slog.Logger, changes []StateChange) {
	bad, healed, waiting := 0, 0, 0
	first := ""
	for _, c := range changes {
		if c.Reason == condition.ReasonWaiting {
			waiting++
			first = cmp.Or(first, c.Message)
			continue
		}
		if c.OK {
			if healed++; healed <= maxStateLines {
				log.Info("object is in order again", "object", c.Object)
			}
			continue
		}
		if bad++; bad <= maxStateLines {
			log.Warn("object needs attention", "object", c.Object, "reason", c.Reason, "message", c.Message)
		}
	}
	if bad > maxStateLines {
		log.Warn("more objects need attention; `gatehouse status` shows all", "more", bad-maxStateLines)
	}
	if waiting > 0 {
		log.Warn("objects wait for what is wrong elsewhere; `gatehouse status` shows them", "objects", waiting, "message", first)
	}
	if healed > maxStateLines {
		log.Info("more objects are in order again", "more", healed-maxStateLines)
	}
}
