package loop

import (
	"context"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// publication is what proxies have not been told yet. It is told at once, unless the
// pipeline asks for contents: then it waits until these are known, so that nobody sees
// a listener between the mention of its certificate and the certificate.
type publication struct {
	running context.Context
	updates []xds.Update
	known   map[object.Name]bool // the Gateways that the server has been told of
	reading bool
	rounds  int // how often contents have been read for this publication
}

// maxRounds bounds how often contents are read for one publication: a certificate may
// be named by what another reading has brought, but not for ever.
const maxRounds = 4

// readTimeout is how long the contents of Secrets and ConfigMaps may take before what
// there is, is published without them.
const readTimeout = 3 * time.Second

func (p *publication) add(updates []xds.Update) { p.updates = xds.Merge(p.updates, updates) }

// Waits reports whether a publication waits for contents. For functions that Call runs.
func (l *Loop) Waits() bool { return l.publication.reading }

// proceed publishes, or has read first what is asked for.
func (l *Loop) proceed() {
	p := &l.publication
	if len(l.came)+len(l.gone) > 0 {
		l.transact(nil, nil) // what proxies had said is taken in, or forgotten, at once
	}
	if !p.reading && p.rounds < maxRounds {
		l.read()
	}
	if p.reading {
		l.Server.Apply(p.endpoints())
		return
	}
	exhausted := p.rounds >= maxRounds
	l.Server.Apply(p.updates)
	for _, u := range p.updates {
		if p.known[u.Gateway] = true; u.Gone {
			delete(p.known, u.Gateway)
		}
	}
	p.updates, p.rounds = nil, 0
	for _, o := range l.Observers {
		o.Published()
	}
	l.Heard = nil
	if exhausted {
		l.read() // what was asked for last is not left until the next change
	}
}

// read begins to read the contents that are asked for, if there are new ones.
func (l *Loop) read() {
	if l.Contents == nil {
		return
	}
	secrets, configMaps, changed := l.Pipeline.Asked()
	if !changed {
		return
	}
	gone, read := l.Contents.Want(secrets, configMaps)
	if !gone.Empty() {
		l.takeContents(gone)
	}
	if read == nil {
		return
	}
	p := &l.publication
	p.reading = true
	p.rounds++
	go func() {
		ctx, cancel := context.WithTimeout(p.running, readTimeout)
		take := read(ctx)
		cancel()
		l.Call(p.running, func() {
			p.reading = false
			if contents := take(); !contents.Empty() {
				l.takeContents(contents)
			}
			l.proceed()
		})
	}()
}

func (l *Loop) takeContents(b source.Batch) {
	if l.merge != nil {
		b = l.merge.Take(l.ContentsSource, b)
	}
	l.transact([]source.Batch{b}, nil)
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
