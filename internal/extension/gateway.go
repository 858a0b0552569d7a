package extension

import (
	"context"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// gateway is what is on its way to the proxies of one Gateway. A goroutine works on it while there is something.
type gateway struct {
	stage *Stage
	name  object.Name

	mu      sync.Mutex
	pending []xds.Update
	anew    bool // servers are to be asked about all there is
	busy    bool
	known   bool // the first update has been handed on
	// waiting is what the updates that are worked on, and those behind them, set of endpoints or remove.
	waiting map[xds.Ref]struct{}

	answers // of the goroutine that works, while there is one
}

// answers is what servers have made of a Gateway's resources.
type answers struct {
	want     map[xds.Ref]*envoy.Resource // as the pipeline has them, of the types that servers are asked about
	sent     map[xds.Ref]*envoy.Resource // as they were handed on
	outcomes map[question]*outcome
	bundles  map[envoy.Hash]*bundle
	wrong    map[xds.Ref][]string
	// stale are the resources of which something stays as it was. What they may refer to is not removed: held.
	stale map[xds.Ref]struct{}
	held  map[xds.Ref]struct{}
	said  []string // what Tell was told; nil before
	live  int      // outcomes that were in use when the others were last forgotten
}

// bundle is what the virtual hosts have become that are kept together.
type bundle struct {
	now        *envoy.Bundle
	wrong      []string
	silent     bool
	generation uint64
}

func newGateway(s *Stage, name object.Name) *gateway {
	return &gateway{stage: s, name: name, waiting: map[xds.Ref]struct{}{}, answers: newAnswers()}
}

func newAnswers() answers {
	return answers{
		want: map[xds.Ref]*envoy.Resource{}, sent: map[xds.Ref]*envoy.Resource{}, outcomes: map[question]*outcome{}, bundles: map[envoy.Hash]*bundle{},
		wrong: map[xds.Ref][]string{}, stale: map[xds.Ref]struct{}{}, held: map[xds.Ref]struct{}{},
	}
}

// take takes updates in: what no server is asked about is handed on at once, if nothing is before it.
func (g *gateway) take(updates []xds.Update) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.busy && g.known && len(g.held) == 0 && !slices.ContainsFunc(updates, g.concerns) {
		g.stage.config.Apply(updates)
		return
	}
	if g.known {
		g.passEndpoints(updates)
	}
	g.await(updates)
	g.pending = xds.Merge(g.pending, updates)
	g.work()
}

// concerns reports whether an update has something that servers are asked about.
func (g *gateway) concerns(u xds.Update) bool {
	return u.Gone || slices.ContainsFunc(u.Set, func(r *envoy.Resource) bool { return g.stage.asked(hookOf(r.Type)) }) ||
		slices.ContainsFunc(u.Remove, func(r xds.Ref) bool { return g.stage.asked(hookOf(r.Type)) })
}

// await notes what updates bring that endpoints must not overtake.
func (g *gateway) await(updates []xds.Update) {
	for i := range updates {
		for _, ref := range updates[i].Remove {
			g.waiting[ref] = struct{}{}
		}
		for _, r := range updates[i].Set {
			if r.Type == envoy.Endpoints {
				g.waiting[refOf(r)] = struct{}{}
			}
		}
	}
}

// passEndpoints hands on the endpoints of updates, which wait for nobody but for what is on its way of their own.
func (g *gateway) passEndpoints(updates []xds.Update) {
	if len(g.pending) > 0 && slices.ContainsFunc(g.pending, func(u xds.Update) bool { return u.Gone }) {
		return
	}
	for i := range updates {
		u := &updates[i]
		if u.Gone {
			return
		}
		now := xds.Update{Gateway: g.name}
		u.Set = slices.DeleteFunc(slices.Clone(u.Set), func(r *envoy.Resource) bool {
			_, behind := g.waiting[refOf(r)]
			if r.Type != envoy.Endpoints || behind {
				return false
			}
			now.Set = append(now.Set, r)
			return true
		})
		if len(now.Set) > 0 {
			g.stage.config.Apply([]xds.Update{now})
		}
	}
}

// askAnew has servers asked about all there is.
func (g *gateway) askAnew() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.anew = true
	g.work()
}

// work begins to work, unless that is done already; g.mu is held.
func (g *gateway) work() {
	if !g.busy {
		g.busy = true
		go g.run()
	}
}

// run works until nothing is left to do.
func (g *gateway) run() {
	for {
		g.mu.Lock()
		updates, anew := g.pending, g.anew
		if g.pending, g.anew = nil, false; len(updates) == 0 && !anew || g.stage.running.Err() != nil {
			g.busy = false
			g.mu.Unlock()
			return
		}
		// Endpoints of a Gateway's successor come behind its end.
		g.known = g.known && !slices.ContainsFunc(updates, func(u xds.Update) bool { return u.Gone })
		g.mu.Unlock()
		out, hold := g.process(updates, anew)
		g.report(updates)
		g.mu.Lock()
		switch {
		case g.stage.running.Err() != nil:
		case hold: // and what has come meanwhile behind it
			g.pending = xds.Merge(updates, g.pending)
			g.busy = g.anew
		default:
			g.handOn(updates, out)
		}
		busy, gone := g.busy, len(updates) > 0 && updates[len(updates)-1].Gone
		g.mu.Unlock()
		if !busy {
			return
		}
		if gone {
			g.stage.drop(g)
		}
	}
}

// handOn hands on what updates have become; g.mu is held.
func (g *gateway) handOn(updates, out []xds.Update) {
	g.stage.config.Apply(out)
	if n := len(updates); n > 0 {
		g.known = !updates[n-1].Gone
	}
	g.waiting = maps.Clone(g.held)
	g.await(g.pending)
}

// process asks servers about updates, and, if that is due, about all there is anew. It returns what can be handed on, or that nothing
// can: proxies that have a configuration from before would lose it to one that a server has to see first.
func (g *gateway) process(updates []xds.Update, anew bool) (out []xds.Update, hold bool) {
	generation := g.stage.generation.Load()
	if anew {
		g.forgetSilent()
	}
	for _, u := range updates {
		if u.Gone {
			g.answers = newAnswers()
			out = append(out, u)
			continue
		}
		g.ask(u.Set, generation)
		if !g.known && g.awaits(u.Set) {
			g.noteAwaited()
			return nil, true
		}
		for _, ref := range u.Remove {
			g.forget(ref)
		}
		set := g.settle(u.Set)
		u.Set, u.Remove = set.Set, append(slices.Clone(u.Remove), set.Remove...)
		g.holdRemovals(&u)
		out = append(out, u)
	}
	if anew && (g.known || len(out) > 0) {
		all := make([]*envoy.Resource, 0, len(g.want))
		for _, r := range g.want {
			all = append(all, r)
		}
		slices.SortFunc(all, func(a, b *envoy.Resource) int { return compareRefs(refOf(a), refOf(b)) })
		g.ask(all, generation)
		u := g.settle(all)
		g.holdRemovals(&u)
		out = append(out, u)
	}
	g.sweep()
	return out, false
}

// ask asks servers about what of some resources they have not been asked in this generation.
func (g *gateway) ask(set []*envoy.Resource, generation uint64) {
	asked := map[question]bool{}
	var list []subject
	add := func(of subject) {
		if o := g.outcomes[of.question]; (o == nil || o.generation < generation) && !asked[of.question] {
			asked[of.question] = true
			list = append(list, of)
		}
	}
	for _, r := range set {
		switch {
		case !g.stage.asked(hookOf(r.Type)):
		case r.Type != envoy.Routes:
			add(aboutResource(r))
		default:
			for _, b := range r.Bundles() {
				if known := g.bundles[b.Hash()]; known != nil && known.generation >= generation {
					continue
				}
				for _, p := range b.Parts() {
					add(aboutHost(p))
				}
			}
		}
	}
	made := make([]*outcome, len(list))
	ctx, cancel := context.WithTimeout(g.stage.running, patience*g.stage.longestCall())
	defer cancel()
	var group errgroup.Group
	group.SetLimit(2 * maxCalls * len(g.stage.clients))
	for i, of := range list {
		group.Go(func() error {
			made[i] = g.stage.ask(ctx, g.name, of, generation)
			return nil
		})
	}
	_ = group.Wait()
	worse := 0
	late := ctx.Err() != nil
	for i, of := range list {
		o, before := made[i], g.outcomes[of.question]
		if o.silent && before != nil && !before.silent { // what was said of the very same counts still
			kept := *before
			kept.generation, kept.again = generation, true
			o = &kept
		}
		g.outcomes[of.question] = o
		if len(o.wrong) == 0 || o.silent {
			continue
		}
		if worse++; worse <= mostLines {
			g.stage.config.Log.Warn("an answer of an extension server is not used", "gateway", g.name.String(), "error", o.wrong[0])
		}
	}
	if worse > mostLines {
		g.stage.config.Log.Warn("more answers of extension servers are not used", "gateway", g.name.String(), "count", worse-mostLines)
	}
	if late && g.stage.running.Err() == nil {
		g.askAnew() // those that there was no time for
	}
}

// forgetSilent has those asked again of which nothing was said.
func (g *gateway) forgetSilent() {
	for q, o := range g.outcomes {
		switch {
		case o.silent:
			delete(g.outcomes, q)
		case o.again:
			o.generation, o.again = 0, false
		}
	}
	for sum, b := range g.bundles {
		if b.silent {
			delete(g.bundles, sum)
		}
	}
}

const (
	// patience is how many timeouts of a call a Gateway's updates wait at most, however many calls they need.
	patience = 10
	// mostLines is how many answers that are not used are logged of one update.
	mostLines = 5
)

// awaits reports whether a server that has to be asked about some resources can't be.
func (g *gateway) awaits(set []*envoy.Resource) bool {
	return slices.ContainsFunc(set, func(r *envoy.Resource) bool {
		if r.Type != envoy.Routes {
			o := g.outcomes[aboutResource(r).question]
			return g.stage.asked(hookOf(r.Type)) && o != nil && o.mute
		}
		return slices.ContainsFunc(r.Bundles(), func(b *envoy.Bundle) bool {
			return slices.ContainsFunc(b.Parts(), func(p *envoy.Part) bool {
				o := g.outcomes[aboutHost(p).question]
				return o != nil && o.mute
			})
		})
	})
}
