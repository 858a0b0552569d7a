package extension

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

func refOf(r *envoy.Resource) xds.Ref { return xds.Ref{Type: r.Type, Name: r.Name} }

func compareRefs(a, b xds.Ref) int {
	return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name))
}

// settle returns what resources have become, as far as it isn't what was handed on already.
func (g *gateway) settle(set []*envoy.Resource) xds.Update {
	u := xds.Update{Gateway: g.name}
	for _, r := range set {
		ref := refOf(r)
		delete(g.held, ref)
		if !g.stage.asked(hookOf(r.Type)) {
			u.Set = append(u.Set, r)
			continue
		}
		g.want[ref] = r
		delete(g.wrong, ref)
		delete(g.stale, ref)
		last := g.sent[ref]
		now := g.become(ref, r, last)
		switch {
		case now == nil && last != nil:
			delete(g.sent, ref)
			u.Remove = append(u.Remove, ref)
		case now != nil && (!now.Equal(last) || !now.CarriesAlike(last)):
			g.sent[ref] = now
			u.Set = append(u.Set, now)
		}
	}
	return u
}

// become returns what a resource is now, after it was last; nil if it can't be sent at all.
func (g *gateway) become(ref xds.Ref, r, last *envoy.Resource) *envoy.Resource {
	if r.Type == envoy.Routes {
		return g.becomeTable(ref, r, last)
	}
	o := g.outcomes[aboutResource(r).question]
	g.wrong[ref] = o.wrong
	if !o.withheld {
		return r.Become(o.resource)
	}
	g.stale[ref] = struct{}{}
	if last != nil && r.Guard().KeptBy(last.Guard(), nil) {
		return last
	}
	return nil
}

// becomeTable is become of a route table, host by host.
func (g *gateway) becomeTable(ref xds.Ref, r, last *envoy.Resource) *envoy.Resource {
	was := r.Bundles()
	now := make([]*envoy.Bundle, len(was))
	var before map[string]*envoy.Part
	for i, b := range was {
		if known := g.bundles[b.Hash()]; known != nil && known.generation >= g.generationOf(b) {
			now[i] = known.now
			g.wrong[ref] = append(g.wrong[ref], known.wrong...)
			continue
		}
		made, withheld := &bundle{generation: g.generationOf(b)}, false
		parts, same := make([]*envoy.Part, len(b.Parts())), true
		for j, p := range b.Parts() {
			o := g.outcomes[aboutHost(p).question]
			made.wrong, made.silent = append(made.wrong, o.wrong...), made.silent || o.silent || o.again
			if parts[j] = o.host; o.withheld {
				withheld = true
				if before == nil {
					before = partsOf(last)
				}
				if parts[j] = before[p.Name]; parts[j] == nil || !p.Guard.KeptBy(parts[j].Guard, r.Guard()) {
					parts[j] = envoy.Unserved(p)
				}
			}
			same = same && parts[j].Hash == p.Hash
		}
		if made.now = b; !same {
			made.now = envoy.NewBundle(parts)
		}
		now[i] = made.now
		g.wrong[ref] = append(g.wrong[ref], made.wrong...)
		if withheld {
			g.stale[ref] = struct{}{}
		} else {
			g.bundles[b.Hash()] = made
		}
	}
	if slices.Equal(was, now) {
		return r
	}
	out := r.WithBundles(now)
	if _, stale := g.stale[ref]; stale && last != nil {
		out = out.Carrying(last.Carries()) // a policy isn't in force for a host that stays as it was
	}
	return out
}

// generationOf is when the hosts of a bundle were asked about.
func (g *gateway) generationOf(b *envoy.Bundle) uint64 {
	for _, p := range b.Parts() {
		if o := g.outcomes[aboutHost(p).question]; o != nil {
			return o.generation
		}
	}
	return 0
}

func partsOf(r *envoy.Resource) map[string]*envoy.Part {
	out := map[string]*envoy.Part{}
	if r != nil {
		for _, p := range r.Parts() {
			out[p.Name] = p
		}
	}
	return out
}

func (g *gateway) forget(ref xds.Ref) {
	delete(g.want, ref)
	delete(g.sent, ref)
	delete(g.wrong, ref)
	delete(g.stale, ref)
}

// holdRemovals keeps what stale resources may refer to, and removes it when none does.
func (g *gateway) holdRemovals(u *xds.Update) {
	if len(u.Remove)+len(g.held) == 0 {
		return
	}
	all := slices.AppendSeq(slices.Clone(u.Remove), maps.Keys(g.held))
	slices.SortFunc(all, compareRefs)
	all = slices.Compact(all)
	clear(g.held)
	named := g.staleBodies()
	u.Remove = slices.DeleteFunc(all, func(ref xds.Ref) bool {
		kept := ref.Type != envoy.Listeners && len(named) > 0
		if ref.Type == envoy.Clusters || ref.Type == envoy.Endpoints { // others are named by what is kept, too
			kept = slices.ContainsFunc(named, func(body []byte) bool { return bytes.Contains(body, []byte(ref.Name)) })
		}
		if kept {
			g.held[ref] = struct{}{}
		}
		return kept
	})
}

// staleBodies are what proxies have of stale resources.
func (g *gateway) staleBodies() (out [][]byte) {
	for ref := range g.stale {
		r := g.sent[ref]
		if r == nil {
			continue
		}
		if r.Type != envoy.Routes {
			out = append(out, r.Body())
		}
		for _, p := range r.Parts() {
			out = append(out, p.Body)
		}
	}
	return out
}

// noteAwaited notes why nothing of a Gateway is handed on.
func (g *gateway) noteAwaited() {
	g.wrong = map[xds.Ref][]string{}
	for _, o := range g.outcomes {
		if o.mute {
			g.wrong[xds.Ref{}] = append(g.wrong[xds.Ref{}], o.wrong...)
		}
	}
}

// report tells what has no usable answer, if that has changed, or that the Gateway that updates end is gone.
func (g *gateway) report(updates []xds.Update) {
	if n := len(updates); n > 0 && updates[n-1].Gone {
		g.said = nil
		g.stage.config.Tell(g.stage.running, g.name, nil)
		return
	}
	said := []string{}
	for _, list := range g.wrong {
		said = append(said, list...)
	}
	slices.Sort(said)
	said = slices.Compact(said)
	if g.said != nil && slices.Equal(said, g.said) {
		return
	}
	g.said = said
	g.stage.config.Tell(g.stage.running, g.name, said)
}

// sweep forgets what was said of what is no more, when that is most of it.
func (g *gateway) sweep() {
	if len(g.outcomes)+len(g.bundles) < 2*g.live+1024 {
		return
	}
	outcomes, bundles := map[question]*outcome{}, map[envoy.Hash]*bundle{}
	for _, r := range g.want {
		if r.Type != envoy.Routes {
			q := aboutResource(r).question
			outcomes[q] = g.outcomes[q]
			continue
		}
		for _, b := range r.Bundles() {
			if known := g.bundles[b.Hash()]; known != nil {
				bundles[b.Hash()] = known
			}
			for _, p := range b.Parts() {
				if o := g.outcomes[aboutHost(p).question]; o != nil {
					outcomes[aboutHost(p).question] = o
				}
			}
		}
	}
	g.outcomes, g.bundles, g.live = outcomes, bundles, len(outcomes)+len(bundles)
}
