package cluster

import (
	"maps"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/loop"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
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
	if !c.config.Has(configuration.RoleConfiguration) {
		return // it doesn't read all that statuses speak of
	}
	changed := c.troubled.TakeStatuses(c.pipeline.Kinds, func(yield func(object.Key, any) bool) {
		for k, status := range c.statuses {
			if status == nil && c.term != nil && c.term.orphans.has(k) {
				continue // they count it
			}
			if !yield(k, status) {
				return
			}
		}
	})
	if c.term != nil {
		view.LogStates(c.log, changed)
	}
}

// countOne is count of a status that doesn't follow from a commit. Any goroutine of a replica
// that leads may call it.
func (c *Cluster) countOne(k object.Key, status any) {
	view.LogStates(c.log, c.troubled.TakeStatuses(c.pipeline.Kinds, maps.All(map[object.Key]any{k: status})))
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
	counts := c.troubled.Counts()
	for of, n := range c.source.Kept() {
		counts[view.Trouble{Kind: of.Name(), Reason: string(source.NotServed)}] += n
	}
	if refused := c.opts.Refused; refused != nil && refused() {
		counts[view.Trouble{Kind: "Configuration", Reason: string(source.Invalid)}] = 1
	}
	return counts
}

// hear takes in what this process's own proxies say.
func (c *Cluster) hear(gateway object.Name, state xds.State) {
	c.proxies.heard(gateway, state)
	c.loop.Tell(c.running, loop.Feedback{Gateway: gateway, State: state})
}
