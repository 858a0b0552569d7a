package xds

import (
	"maps"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// What a proxy has when it connects, with listener l in version 1, is compared with what is in force.
func TestFormsOfTables(t *testing.T) {
	whole, shard := table("t", "x:1"), table("t/0", "x:1")
	// The table of a host, which has a scope if the certificate is on demand.
	scope, certificate := resource(envoy.Scopes, "t", "1"), secret("a.test", "1")
	for what, c := range map[string]struct {
		wanted, has []*envoy.Resource
		want        map[string]bool
	}{
		"as it should be":                                 {[]*envoy.Resource{whole}, []*envoy.Resource{whole}, nil},
		"in shards, to be whole":                          {[]*envoy.Resource{whole}, []*envoy.Resource{shard, table("t/1", "x:1")}, map[string]bool{"t": true}},
		"and both forms are there":                        {[]*envoy.Resource{whole, shard.Sparing(true)}, []*envoy.Resource{shard}, map[string]bool{"t": true}},
		"both, to be whole":                               {[]*envoy.Resource{whole}, []*envoy.Resource{whole, shard}, map[string]bool{"t": false}},
		"whole, to be in shards":                          {[]*envoy.Resource{shard}, []*envoy.Resource{whole}, map[string]bool{"t": false}},
		"both, to be in shards":                           {[]*envoy.Resource{shard, whole.Sparing(true)}, []*envoy.Resource{whole, shard}, map[string]bool{"t": false}},
		"in shards, as it should":                         {[]*envoy.Resource{shard, whole.Sparing(true)}, []*envoy.Resource{shard}, nil},
		"on demand, to be no more":                        {[]*envoy.Resource{whole}, []*envoy.Resource{whole, scope, certificate}, map[string]bool{"t": true}},
		"on demand in another spelling":                   {[]*envoy.Resource{whole}, []*envoy.Resource{whole, scope, secret("A.test", "1")}, map[string]bool{"t": true}},
		"on demand before, while it drains":               {[]*envoy.Resource{whole}, []*envoy.Resource{whole, scope, secret("ns/a", "1")}, map[string]bool{"t": false}},
		"on demand before, and scopes are there":          {[]*envoy.Resource{whole, scope.Sparing(true)}, []*envoy.Resource{whole, scope}, map[string]bool{"t": false}},
		"on demand, and scopes are there":                 {[]*envoy.Resource{whole, scope.Sparing(true)}, []*envoy.Resource{whole, scope, certificate}, map[string]bool{"t": true}},
		"on demand, as it should":                         {[]*envoy.Resource{whole, scope, certificate}, []*envoy.Resource{whole, scope, certificate}, nil},
		"not on demand, and it should":                    {[]*envoy.Resource{whole, scope, certificate}, []*envoy.Resource{whole}, nil},
		"on demand, and the host has gone, as all others": {[]*envoy.Resource{table("u", "x:1")}, []*envoy.Resource{whole, scope, certificate}, nil},
		"somebody else's":                                 {[]*envoy.Resource{whole}, []*envoy.Resource{whole, table("u", "x:1"), table("u/0", "x:1"), table("t/0/0", "x:1")}, nil},
	} {
		t.Run(what, func(t *testing.T) {
			h := start(t)
			p := h.connect()
			p.resume(envoy.Listeners, listener("l", "1"))
			has := map[envoy.Type][]*envoy.Resource{envoy.Routes: nil}
			for _, r := range c.has {
				has[r.Type] = append(has[r.Type], r)
			}
			// Envoy names them in the order in which it has asked for them first.
			for _, t := range []envoy.Type{envoy.Routes, envoy.Scopes, envoy.Secrets} {
				if of, any := has[t]; any {
					p.resume(t, of...)
				}
			}
			// What a proxy names late, as one that gets no processor does, counts as what it doesn't have.
			waitFor(t, "all requests read", func() bool {
				i := h.server.Sessions()
				return len(i) == 1 && len(i[0].Types) == 1+len(has)
			})
			u := h.update(listener("l", "2"))
			u.Set = append(u.Set, c.wanted...)
			h.server.Apply([]Update{u})
			if c.want == nil {
				p.expect("listener +l=2")
				if s := h.server.state(gw); s.OtherForms != nil {
					t.Errorf("%v is said", s.OtherForms)
				}
				return
			}
			s := h.state("a table in another form", func(s State) bool { return len(s.OtherForms) > 0 })
			if !maps.Equal(s.OtherForms, c.want) {
				t.Errorf("%v is said, want %v", s.OtherForms, c.want)
			}
			h.server.Apply([]Update{{Gateway: gw, TookForms: s.OtherForms}})
			h.state("nothing more to say", func(s State) bool { return len(s.OtherForms) == 0 })
		})
	}
}

// Nothing is sent before what a proxy has of a table has been taken in: what it has already may be
// what it is to have.
func TestFormsAreTakenInFirst(t *testing.T) {
	scope := func(n string) *envoy.Resource { return resource(envoy.Scopes, "t/"+n, "1").Awaiting("t/" + n) }
	h := start(t, func(o *Options) { o.Grace = time.Hour })
	p := h.connect()
	connect := func() {
		p.resume(envoy.Listeners, listener("l", "1"))
		p.resume(envoy.Scopes, scope("0"), scope("1"))
		p.resume(envoy.Routes, table("t/0", "x:1"), table("t/1", "y:1"))
	}
	says := func() {
		h.state("shards", func(s State) bool { return maps.Equal(s.OtherForms, map[string]bool{"t": true}) })
	}
	connect()
	h.apply(listener("l", "2"), table("t", "x:1", "y:1"))
	says()
	// The same proxy once more, before anybody knows that the connection has ended.
	p = h.connect()
	connect()
	says()
	u := h.update(listener("l", "1"), scope("0"), scope("1"), table("t/0", "x:2"), table("t/1", "y:1"), table("t", "x:2", "y:1").Sparing(true))
	u.TookForms = map[string]bool{"t": true}
	h.server.Apply([]Update{u})
	p.expect("routes +t/0=[x:2]")
	p.quiet()

	// A proxy that had listeners waits until it has named its routes as well.
	h.apply(cluster("a", "1"), listener("l", "3"))
	p = h.connect()
	p.resume(envoy.Clusters)
	p.resume(envoy.Listeners, listener("l", "2"))
	p.expect("cluster +a=1")
	p.quiet()
	p.resume(envoy.Routes, table("t/0", "x:2"), table("t/1", "y:1"))
	p.expect("listener +l=3")
}

// A proxy doesn't wait for ever.
func TestFormsThatAreNotTakenIn(t *testing.T) {
	h := start(t, func(o *Options) { o.Grace = time.Hour })
	h.apply(listener("l", "2"), table("t", "x:1"))
	p := h.connect()
	p.resume(envoy.Listeners, listener("l", "1"))
	p.resume(envoy.Routes, table("t/0", "x:1"))
	h.state("shards", func(s State) bool { return s.OtherForms["t"] })
	h.server.Apply([]Update{{Gateway: gw, TookForms: map[string]bool{"t": false, "u": true}}}) // what another proxy had
	p.quiet()
	g := h.server.gateways[gw]
	g.mu.Lock()
	for s := range g.sessions {
		s.takenUntil = time.Now()
		s.notify()
	}
	g.mu.Unlock()
	p.expect("listener +l=2")
}
