package view

import (
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
)

// StateChange is an object whose state became bad, or good again.
type StateChange struct {
	Object  string // "kind ns/name"
	OK      bool
	Reason  string
	Message string
}

// Troubled are the objects in a bad state, with the reason. It is kept up by
// difference, so that it costs what a commit changes and not what exists.
type Troubled map[string]string

// Take takes in a commit and returns what it changed, by name.
func (t Troubled) Take(p *pipeline.Pipeline, c *flow.Commit) []StateChange {
	var out []StateChange
	for _, table := range p.Statuses {
		table.Changes(c, func(ch pipeline.StatusChange) {
			if ch.New == nil {
				delete(t, ch.Object.String())
			} else {
				t.take(ch.Object.String(), summaryOf(p.Kinds.StatusOf(ch.Object.Kind), ch.New), &out)
			}
		})
	}
	slices.SortFunc(out, func(a, b StateChange) int { return strings.Compare(a.Object, b.Object) })
	return out
}

func (t Troubled) take(object string, s Summary, out *[]StateChange) {
	reason, message, bad := s.Trouble()
	was, known := t[object]
	switch {
	case bad && was != reason:
		t[object] = reason
		*out = append(*out, StateChange{Object: object, Reason: reason, Message: message})
	case !bad && known && s.Settled():
		delete(t, object)
		*out = append(*out, StateChange{Object: object, OK: true, Reason: s.State})
	}
}
