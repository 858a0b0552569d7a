package cluster

import (
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
	changed := c.troubled.Take(c.pipeline, commit)
	if c.term != nil {
		view.LogStates(c.log, changed)
		for _, w := range c.term.work {
			w.committed(commit)
		}
	}
}

// Published has statuses written of what proxies have been told.
func (c *Cluster) Published() {
	c.selection.statuses(c.statuses)
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

// hear takes in what this process's own proxies say.
func (c *Cluster) hear(gateway object.Name, state xds.State) {
	c.proxies.heard(gateway, state)
	c.loop.Tell(c.running, loop.Feedback{Gateway: gateway, State: state})
}
