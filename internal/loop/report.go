package loop

import (
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
)

// Reporter tells where objects are from what has become of them.
type Reporter interface {
	// Report says what the status of an object is; nil that there is nothing to say of it.
	Report(k object.Key, status any)
}

// Reporters are the sources that want to know, by index.
type Reporters map[int]Reporter

// Report tells the source that an object is from what its status is. An object that another source has now is none of the
// former one's.
func (r Reporters) Report(owner int, k object.Key, status any) {
	for i, to := range r {
		if i == owner {
			to.Report(k, status)
		} else {
			to.Report(k, nil)
		}
	}
}

// Reports tells sources what has become of their objects.
type Reports struct {
	Loop func() *Loop
	To   Reporters

	changed map[object.Key]any
}

// Committed takes in a commit.
func (r *Reports) Committed(c *flow.Commit) {
	if len(r.To) == 0 {
		return
	}
	if r.changed == nil {
		r.changed = map[object.Key]any{}
	}
	for _, table := range r.Loop().Pipeline.Statuses {
		table.Changes(c, func(ch pipeline.StatusChange) { r.changed[ch.Object] = ch.New })
	}
}

// Published tells what has changed.
func (r *Reports) Published() {
	for k, status := range r.changed {
		r.To.Report(r.Loop().Owner(k), k, status)
	}
	clear(r.changed)
}
