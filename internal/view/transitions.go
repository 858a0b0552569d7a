package view

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// Transitions remembers when conditions last changed their status. The tables
// don't know the time, by law; most conditions never change after the start, so
// only those that did take memory.
type Transitions struct {
	mu    sync.Mutex
	start metav1.Time            // of the first commit
	at    map[string]metav1.Time // "object path type" → time
	// outdated has, by file, the objects of which an earlier version is in force, and since
	// when; zero if that is since before the first commit.
	outdated map[string]map[string]time.Time
}

// NewTransitions returns one that knows of no change.
func NewTransitions() *Transitions {
	return &Transitions{at: map[string]metav1.Time{}, outdated: map[string]map[string]time.Time{}}
}

// Take takes in a commit.
func (t *Transitions) Take(p *pipeline.Pipeline, c *flow.Commit, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := metav1.NewTime(now.Truncate(time.Second))
	if t.start.IsZero() {
		t.start = at
		now = time.Time{}
	}
	for _, ch := range flow.Changes(c, p.Problems) {
		t.outdate(ch.Key, ch.New, now)
	}
	for _, table := range p.Statuses {
		table.Changes(c, func(ch pipeline.StatusChange) {
			s := p.Kinds.StatusOf(ch.Object.Kind)
			t.compare(ch.Object.String(), ch.Old != nil, ch.New != nil, at, conditionsOf(s, ch.Old), conditionsOf(s, ch.New))
		})
	}
}

func (t *Transitions) compare(object string, had, has bool, at metav1.Time, old, now conditions) {
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

// outdate takes in what is wrong with a file.
func (t *Transitions) outdate(file string, problems []source.Problem, now time.Time) {
	was := t.outdated[file]
	is := map[string]time.Time{}
	for _, p := range problems {
		for k := range p.Outdated {
			key := k.String()
			at, known := was[key]
			if !known {
				at = now
			}
			is[key] = at
		}
	}
	t.outdated[file] = is
	if len(is) == 0 {
		delete(t.outdated, file)
	}
}

// since returns when an object's version in force became outdated; zero if that is not known.
func (t *Transitions) since(object string) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	var first time.Time
	for _, objects := range t.outdated {
		at, ok := objects[object]
		switch {
		case ok && at.IsZero():
			return at
		case ok && (first.IsZero() || at.Before(first)):
			first = at
		}
	}
	return first
}

func find(list []metav1.Condition, kind string) *metav1.Condition {
	for i := range list {
		if list[i].Type == kind {
			return &list[i]
		}
	}
	return nil
}

// Fill sets the transition times in the conditions of a view, and since when edits are
// refused.
func (t *Transitions) Fill(v *View, now time.Time) {
	for i := range v.Items {
		if sum := &v.Items[i].Summary; sum.RefusedEdit != "" {
			sum.RefusedSince = t.since(v.Items[i].Key())
			sum.tellEdit(now)
		}
		t.fill(v.Items[i].Key(), conditionsOf(v.Items[i].kind.Status, v.Items[i].Status))
	}
}

func (t *Transitions) fill(object string, all conditions) {
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
