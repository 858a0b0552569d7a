package control

import (
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
)

// StateChange is an object whose state became bad, or good again.
type StateChange struct {
	Object  string // "kind ns/name"
	OK      bool
	Reason  string
	Message string
}

// troubled are the objects in a bad state, with the reason. It is kept up by
// difference, so that it costs what a commit changes and not what exists.
type troubled map[string]string

// note takes in a commit and returns what it changed, by name.
func (t troubled) note(p *Pipeline, c *flow.Commit) []StateChange {
	var out []StateChange
	for _, kind := range p.reported {
		kind.changes(c, func(ch statusChange) {
			if ch.New == nil {
				delete(t, ch.Object.String())
			} else {
				t.take(ch.Object.String(), summaryOf(ch.New), &out)
			}
		})
	}
	slices.SortFunc(out, func(a, b StateChange) int { return strings.Compare(a.Object, b.Object) })
	return out
}

func (t troubled) take(object string, s Summary, out *[]StateChange) {
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
