package control

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// outcome is what transactions that are published together come to.
type outcome struct {
	updates  []xds.Update
	statuses map[object.Key]any
	fleets   map[object.Name]*infra.Gateway // nil for one that is to go
	kept     map[object.Name]*kept          // likewise
	used     map[string]bool                // whether classes are
}

func newOutcome() outcome {
	return outcome{statuses: map[object.Key]any{}, fleets: map[object.Name]*infra.Gateway{}, kept: map[object.Name]*kept{}, used: map[string]bool{}}
}

// maxRounds bounds how often contents are fetched for one publication: a
// certificate may be named by what another fetch has brought, but not for ever.
const maxRounds = 4

// fetchTimeout is how long the API server may take for contents before what there
// is, is published without them.
const fetchTimeout = 3 * time.Second

// commit takes in what has arrived, fetches what is asked for because of it, and
// publishes the whole: nobody sees a listener between its certificate's mention
// and its content.
func (c *Cluster) commit(batches []source.Batch, said []feedback) {
	out := newOutcome()
	if c.static != nil {
		for i := range batches {
			batches[i] = c.static.take(batches[i])
		}
	}
	c.transact(&out, batches, said)
	// Only after a transaction is it known which Gateways have come and gone with it. What
	// their proxies say is taken up, or forgotten, at once.
	if len(c.came)+len(c.gone) > 0 {
		c.transact(&out, nil, nil)
	}
	for range maxRounds {
		secrets, configMaps, changed := c.pipeline.asked()
		if !changed {
			break
		}
		ctx, cancel := context.WithTimeout(c.running, fetchTimeout)
		contents := c.source.Want(ctx, secrets, configMaps)
		cancel()
		if contents.Empty() {
			break
		}
		if c.merge != nil {
			contents = c.merge.Take(c.clusterSource(), contents)
		}
		c.transact(&out, []source.Batch{contents}, nil)
	}
	c.publish(&out)
	if len(said) > 0 {
		c.heed()
	}
	c.settle()
}

// transact runs one transaction and adds what it changes to an outcome.
func (c *Cluster) transact(out *outcome, batches []source.Batch, said []feedback) {
	c.update(out, func(tx *flow.Tx) {
		c.pipeline.clock.Set(tx, struct{}{}, time.Now().Truncate(time.Minute))
		c.pipeline.apply(tx, batches)
		c.tellShadows(tx)
		for _, gateway := range c.gone {
			c.pipeline.unhear(tx, gateway)
		}
		c.gone = nil
		// Replicas don't see Gateways come and go at the same time: what they say of one
		// that isn't there may be the last of its proxies' words, or the first of its
		// successor's.
		for _, f := range said {
			gateway := parseName(f.gateway)
			state := c.states.take(f.replica, gateway, f.state)
			if c.present[gateway] {
				c.pipeline.hear(tx, feedback{gateway: f.gateway, state: state})
			}
		}
		for _, gateway := range c.came {
			if c.present[gateway] {
				c.pipeline.hear(tx, feedback{gateway: gateway.String(), state: c.states.merged(gateway)})
			}
		}
		c.came = nil
	})
}

func (c *Cluster) update(out *outcome, change func(*flow.Tx)) {
	commit := c.pipeline.engine.Update(change)
	logFailures(c.log, commit)
	logProblems(c.log, c.pipeline, commit)
	out.updates = xds.Merge(out.updates, c.pipeline.Updates(commit))
	for _, kind := range c.pipeline.reported {
		kind.changes(commit, func(ch statusChange) { out.statuses[ch.Object] = ch.New })
	}
	if c.static != nil {
		c.static.run(c.pipeline, commit)
	} else {
		for _, ch := range flow.Changes(commit, c.pipeline.infra) {
			out.fleets[ch.Key] = ch.New
		}
		for _, ch := range flow.Changes(commit, c.pipeline.kept) {
			out.kept[ch.Key] = ch.New
		}
		for _, ch := range flow.Changes(commit, c.pipeline.used) {
			out.used[ch.Key] = ch.New
		}
	}
	for _, ch := range flow.Changes(commit, c.pipeline.fleets) {
		if ch.Has {
			c.present[ch.Key] = true
			if len(c.states[ch.Key]) > 0 {
				c.came = append(c.came, ch.Key)
			}
		} else if ch.Had {
			delete(c.present, ch.Key)
			c.gone = append(c.gone, ch.Key)
			c.states.take("", ch.Key, xds.State{})
			c.relay.Forget(ch.Key.String())
		}
	}
}

// publish tells proxies, and those who write.
func (c *Cluster) publish(out *outcome) {
	c.server.Apply(out.updates)
	if c.static != nil {
		c.static.conflicts(out.statuses)
		c.static.note(c)
	}
	c.fleets.update(out.fleets)
	c.reportShadows()
	if c.term == nil {
		return
	}
	for k, status := range out.statuses {
		c.write(k, status)
	}
	for name, settings := range out.kept {
		c.term.keeper.set(name, settings)
	}
	for class, used := range out.used {
		c.term.classes.set(class, used)
	}
	if c.term.fleets == nil {
		return
	}
	for name, fleet := range out.fleets {
		if fleet == nil {
			c.term.fleets.Delete(name)
		} else {
			c.term.fleets.Set(fleet)
		}
	}
}

// hear takes in what this process's own proxies say.
func (c *Cluster) hear(gateway string, state xds.State) {
	c.relay.Send(gateway, state)
	c.events.tell(c.running, feedback{gateway: gateway, state: state})
}

// fleetState takes in what is to be said of a Gateway's fleet.
func (c *Cluster) fleetState(gateway object.Name, s *infra.State) {
	out := newOutcome()
	c.update(&out, func(tx *flow.Tx) { c.pipeline.fleetState(tx, gateway, s) })
	c.publish(&out)
}
