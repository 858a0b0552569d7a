package loop

import (
	"context"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/keyset"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// publication is what proxies have not been told yet. It is told at once, except of those
// Gateways for which the pipeline asks for contents or key sets: that waits until these are
// known, so that nobody sees a listener between the mention of its certificate and the
// certificate. A Service that is mentioned is waited for too, see late. A Gateway waits for
// nothing that isn't its own, but for a moment at most. As long as something of a Gateway can't
// be computed, or a policy that its blueprint makes isn't there, only its endpoints are told: a guard may be missing in the rest.
type publication struct {
	running context.Context
	updates []xds.Update
	known   map[object.Name]bool // the Gateways that the server has been told of
	reading bool
	rounds  int // how often contents have been read one after the other
	// wanted are the contents that were asked for last, and settled those that were when
	// the last reading ended: they are known, or known not to be had in time.
	wanted, settled map[object.Key]struct{}
	keySets         keySets
	late            late
	// withholds says that something could not be computed, and waits of which Gateways proxies are told
	// nothing new for that, and whether something waits.
	withholds bool
	waits     map[object.Name]bool
}

// maxRounds bounds how often contents are read before all is published: a certificate may
// be named by what another reading has brought, but not for ever.
const maxRounds = 4

// readTimeout is how long the contents of Secrets and ConfigMaps may take before what
// there is, is published without them.
const readTimeout = 3 * time.Second

func (p *publication) add(updates []xds.Update) { p.updates = xds.Merge(p.updates, updates) }

// Waits reports whether a publication waits. For functions that Call runs.
func (l *Loop) Waits() bool {
	p := &l.publication
	return p.reading || len(p.keySets.pending) > 0 || len(p.late.services) > 0
}

// proceed publishes, or has read first what is asked for.
func (l *Loop) proceed() {
	p := &l.publication
	if len(l.came)+len(l.gone) > 0 {
		l.transact(nil, nil) // what proxies had said is taken in, or forgotten, at once
	}
	if !p.reading && p.rounds < maxRounds {
		l.read()
	}
	l.askKeySets()
	l.noteArrivals()
	exhausted := !p.reading && p.rounds >= maxRounds
	failing := l.withheld()
	withheld := failing.or(l.Pipeline.Unguarded())
	if l.Waits() && !exhausted {
		l.apply(l.settledUpdates(withheld))
		l.serve(p.endpoints())
		return
	}
	p.keySets.end()
	p.late.end()
	l.apply(p.take(func(u *xds.Update) bool { return !withheld.has(u) }))
	p.rounds = 0
	if len(p.updates) > 0 {
		l.serve(p.endpoints())
	}
	l.tellWithheld(failing)
	for _, o := range l.Observers {
		o.Published()
	}
	l.Heard = nil
	if exhausted {
		l.read() // what was asked for last is not left until the next change
	}
}

// apply tells proxies.
func (l *Loop) apply(updates []xds.Update) {
	l.serve(updates)
	for _, u := range updates {
		if l.publication.known[u.Gateway] = true; u.Gone {
			delete(l.publication.known, u.Gateway)
		}
	}
}

// serve hands updates to the server, by way of extensions if there are any.
func (l *Loop) serve(updates []xds.Update) {
	if l.Extensions != nil {
		l.Extensions.Apply(updates)
	} else {
		l.Server.Apply(updates)
	}
}

// settledUpdates takes out of a publication what needs not wait: the updates of Gateways
// all of whose contents are settled. What one Gateway asks for keeps no other one waiting.
func (l *Loop) settledUpdates(withheld withheld) (now []xds.Update) {
	p := &l.publication
	l.Pipeline.Engine.View(func(c *flow.Ctx) {
		now = p.take(func(u *xds.Update) bool {
			_, early := p.late.gateways[u.Gateway]
			settled := !early && !withheld.has(u)
			l.Pipeline.Graph.Contents(c, u.Gateway, func(k object.Key) {
				_, ok := p.settled[k]
				settled = settled && (ok || l.Contents == nil) // else they come with the batches
			})
			l.Pipeline.Graph.KeySets(c, u.Gateway, func(k keyset.Key) {
				_, pending := p.keySets.pending[k]
				settled = settled && !pending
			})
			return settled
		})
	})
	return now
}

// take takes out some updates.
func (p *publication) take(which func(*xds.Update) bool) (taken []xds.Update) {
	var left []xds.Update
	for i := range p.updates {
		if u := &p.updates[i]; which(u) {
			taken = append(taken, *u)
		} else {
			left = append(left, *u)
		}
	}
	p.updates = left
	return taken
}

// read begins to read the contents that are asked for, if there are new ones.
func (l *Loop) read() {
	p := &l.publication
	contents := l.askContents()
	if contents == nil {
		p.settled, p.rounds = p.wanted, 0
		return
	}
	p.reading = true
	p.rounds++
	go func() {
		ctx, cancel := context.WithTimeout(p.running, readTimeout)
		take := contents(ctx)
		cancel()
		l.Call(p.running, func() {
			p.reading, p.settled = false, p.wanted
			if contents := take(); !contents.Empty() {
				l.takeContents(contents)
			}
			l.proceed()
		})
	}()
}

// askContents returns a function that reads the contents that are newly asked for; nil where
// there are none.
func (l *Loop) askContents() func(context.Context) (take func() source.Batch) {
	if l.Contents == nil {
		return nil
	}
	secrets, configMaps, changed := l.Pipeline.Asked()
	if !changed {
		return nil
	}
	gone, read := l.Contents.Want(secrets, configMaps)
	if !gone.Empty() {
		l.takeContents(gone)
	}
	p := &l.publication
	p.wanted = make(map[object.Key]struct{}, len(secrets)+len(configMaps))
	for _, n := range secrets {
		p.wanted[object.Key{Kind: kind.Secret, Name: n}] = struct{}{}
	}
	for _, n := range configMaps {
		p.wanted[object.Key{Kind: kind.ConfigMap, Name: n}] = struct{}{}
	}
	return read
}

func (l *Loop) takeContents(b source.Batch) {
	batches := []source.Batch{b}
	if l.merge != nil {
		batches = l.merged(l.ContentsSource, b)
	}
	l.transact(batches, nil)
}

// endpoints takes out of a publication that waits what needs not wait: the endpoints
// of Gateways that the server knows.
func (p *publication) endpoints() []xds.Update {
	var out []xds.Update
	for i := range p.updates {
		u := &p.updates[i]
		if !p.known[u.Gateway] || p.ends(u.Gateway) {
			continue
		}
		isEndpoints := func(r *envoy.Resource) bool { return r.Type == envoy.Endpoints }
		now := xds.Update{Gateway: u.Gateway}
		for _, r := range u.Set {
			if isEndpoints(r) {
				now.Set = append(now.Set, r)
			}
		}
		if len(now.Set) > 0 {
			u.Set = slices.DeleteFunc(u.Set, isEndpoints)
			out = append(out, now)
		}
	}
	return out
}

// ends reports whether the publication ends a Gateway, before another one of its name
// may begin.
func (p *publication) ends(gateway object.Name) bool {
	return slices.ContainsFunc(p.updates, func(u xds.Update) bool { return u.Gateway == gateway && u.Gone })
}
