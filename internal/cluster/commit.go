package cluster

import (
	"maps"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/loop"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/view"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// Committed takes in a commit, for the leader to write.
func (c *Cluster) Committed(commit *flow.Commit) {
	for _, table := range c.pipeline.Statuses {
		table.Changes(commit, func(ch pipeline.StatusChange) { c.statuses[ch.Object] = ch.New })
	}
	if c.term != nil {
		for _, w := range c.term.work {
			w.committed(commit)
		}
	}
}

// Published has statuses written of what proxies have been told.
func (c *Cluster) Published() {
	c.selection.statuses(c.statuses)
	c.count()
	if c.term != nil && !c.term.told {
		c.tellAll(c.term)
	}
	c.reportShadows()
	if c.term != nil {
		for k, status := range c.statuses {
			c.write(k, status)
		}
		c.writeDelayed()
	}
	clear(c.statuses)
	c.settle()
}

// count counts the objects that need attention, and logs them where this replica leads. A
// status that has not been published may say of a Secret that it doesn't exist, since it
// has not been read yet; so may all of them before everything that exists is known.
func (c *Cluster) count() {
	select {
	case <-c.published:
	default:
		return
	}
	if changed := c.troubled.TakeStatuses(c.pipeline.Kinds, maps.All(c.statuses)); c.term != nil {
		view.LogStates(c.log, changed)
	}
}

// countAll is count of all that there is.
func (c *Cluster) countAll() {
	c.pipeline.Engine.View(func(ctx *flow.Ctx) {
		for _, table := range c.pipeline.Statuses {
			table.All(ctx, func(k object.Key, status any) { c.statuses[k] = status })
		}
	})
	c.selection.passed(func(k object.Key, status any) { c.statuses[k] = status })
	c.count()
	clear(c.statuses)
}

// counts are the objects that need attention, for the metric of the replica that leads:
// the others may not know yet what it knows.
func (c *Cluster) counts() map[view.Trouble]int {
	if c.leads.Load() == nil {
		return nil
	}
	return c.troubled.Counts()
}

// hear takes in what this process's own proxies say.
func (c *Cluster) hear(gateway object.Name, state xds.State) {
	c.proxies.heard(gateway, state)
	c.loop.Tell(c.running, loop.Feedback{Gateway: gateway, State: state})
}
