package xds

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	gocmp "github.com/google/go-cmp/cmp"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// somebody does what an Envoy does, as slowly as the test has it.
type somebody struct {
	t       *rapid.T
	id      int
	server  *Server
	gateway *gateway
	session *session
	queue   []*discoveryv3.DeltaDiscoveryResponse // sent, and not answered
	has     map[envoy.Type]map[string]string      // versions
	bodies  map[Ref]string
	asked   map[envoy.Type]map[string]bool // by name
	started []envoy.Type                   // in the order in which it has asked for them first
}

func (p *somebody) url(t envoy.Type) string { return p.server.types[t].url }

func (p *somebody) request(now time.Time, r *discoveryv3.DeltaDiscoveryRequest) {
	if err := p.session.receive(r, now); err != nil {
		p.t.Fatalf("proxy %d is refused: %v", p.id, err)
	}
}

// connect begins a session, with what the proxy has from the last one.
func (p *somebody) connect(now time.Time) {
	p.queue = nil
	p.session = newSession(p.gateway, p.server.nextID(), now)
	p.gateway.attach(p.session, now)
	for _, t := range p.started {
		p.request(now, &discoveryv3.DeltaDiscoveryRequest{
			TypeUrl: p.url(t), ResourceNamesSubscribe: slices.Sorted(maps.Keys(p.asked[t])), InitialResourceVersions: maps.Clone(p.has[t]),
		})
	}
}

// ask changes subscriptions of a type.
func (p *somebody) ask(now time.Time, t envoy.Type, want map[string]bool) {
	r := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: p.url(t)}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !p.asked[t][name] {
			r.ResourceNamesSubscribe = append(r.ResourceNamesSubscribe, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.asked[t])) {
		if !want[name] {
			r.ResourceNamesUnsubscribe = append(r.ResourceNamesUnsubscribe, name)
			delete(p.has[t], name)
			delete(p.bodies, Ref{t, name})
		}
	}
	p.asked[t] = want
	first := !slices.Contains(p.started, t)
	if first && (len(want) > 0 || p.server.types[t].hasWildcard) {
		p.started = append(p.started, t)
	} else if len(r.ResourceNamesSubscribe)+len(r.ResourceNamesUnsubscribe) == 0 {
		return
	}
	p.request(now, r)
}

// asks has the proxy ask for what its resources refer to.
func (p *somebody) asks(now time.Time) {
	if p.asked[envoy.Listeners] == nil {
		p.ask(now, envoy.Clusters, map[string]bool{})
		p.ask(now, envoy.Listeners, map[string]bool{})
	}
	want := map[envoy.Type]map[string]bool{envoy.Endpoints: {}, envoy.Routes: {}, envoy.Extensions: {}}
	scoped := false
	for name := range p.has[envoy.Clusters] {
		want[envoy.Endpoints][name] = true
	}
	for name := range p.has[envoy.Listeners] {
		for _, ref := range strings.Fields(p.bodies[Ref{envoy.Listeners, name}])[1:] {
			switch {
			case ref == "scopes":
				scoped = true
			case strings.HasPrefix(ref, "x"):
				want[envoy.Extensions][ref] = true
			default:
				want[envoy.Routes][ref] = true
			}
		}
	}
	if scoped && p.asked[envoy.Scopes] == nil {
		p.ask(now, envoy.Scopes, map[string]bool{})
	}
	for name := range p.has[envoy.Scopes] {
		want[envoy.Routes][name] = true
	}
	for _, t := range []envoy.Type{envoy.Endpoints, envoy.Extensions, envoy.Routes} {
		p.ask(now, t, want[t])
	}
}

// pull takes what there is to send.
func (p *somebody) pull(now time.Time) bool {
	plan := p.session.plan(now)
	for _, f := range plan {
		p.queue = append(p.queue, message(p.t, p.session, f))
	}
	return len(plan) > 0
}

// answer takes in the oldest response. A body refuses itself with the word bad and the proxy's number.
func (p *somebody) answer(now time.Time) {
	m := p.queue[0]
	p.queue = p.queue[1:]
	i := slices.IndexFunc(p.server.types, func(t resourceType) bool { return t.url == m.TypeUrl })
	t, y := envoy.Type(i), p.server.types[i] //nolint:gosec // an index of the table
	r := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: m.TypeUrl, ResponseNonce: m.Nonce}
	var bad []string
	dropped := maps.Clone(p.asked[t])
	for _, name := range m.RemovedResources {
		delete(p.has[t], name)
		delete(p.bodies, Ref{t, name})
		delete(dropped, name)
	}
	for _, res := range m.Resources {
		body := string(res.Resource.Value)
		if strings.Contains(body, "bad"+strconv.Itoa(p.id)) {
			bad = append(bad, res.Name)
			continue
		}
		if y.hasWildcard || p.asked[t][res.Name] {
			p.has[t][res.Name] = res.Version
			p.bodies[Ref{t, res.Name}] = body
		}
	}
	if len(bad) > 0 {
		r.ErrorDetail = &rpcstatus.Status{Code: 13, Message: y.atFault + strings.Join(bad, ", ") + ": no"}
	}
	p.request(now, r)
	if y.clientNames != nil {
		p.ask(now, t, dropped)
	}
	p.asks(now)
}

// hashesAreRight protects against hashes that are of another time.
func (p *somebody) hashesAreRight() {
	wanted, acknowledged := p.session.versions()
	p.session.hashes = hashes{}
	if w, a := p.session.versions(); w != wanted || a != acknowledged {
		p.t.Fatalf("proxy %d: the hashes %s and %s are said to be %s and %s", p.id, w, a, wanted, acknowledged)
	}
}

// TestProxiesConverge protects each proxy from all that happens before: others that refuse what it takes, slow ones,
// connections that break, names that come and go, spare forms. In the end it has what it is to have.
func TestProxiesConverge(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		server := newServer(Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}, resourceTypes())
		defer server.Stop()
		server.grace = time.Nanosecond // which passes by the clock
		g := server.enter(gw, "")
		now := time.Now()
		var proxies []*somebody
		for id := range 2 {
			p := &somebody{t: rt, id: id, server: server, gateway: g, has: map[envoy.Type]map[string]string{}, bodies: map[Ref]string{}, asked: map[envoy.Type]map[string]bool{}}
			for t := range envoy.NumTypes {
				p.has[t] = map[string]string{}
			}
			p.connect(now)
			p.asks(now)
			proxies = append(proxies, p)
		}
		names := map[envoy.Type][]string{
			envoy.Clusters: {"c0", "c1"}, envoy.Secrets: {"ns/a", "a.test", "b.test"}, envoy.Listeners: {"l0", "l1"}, envoy.Extensions: {"x0"},
			envoy.Scopes: {"t", "u/0", "u/1"}, envoy.Routes: {"t", "u", "u/0", "u/1"},
		}
		types := slices.Sorted(maps.Keys(names))
		is := map[Ref]bool{}
		made := func(ref Ref, text string) (out []*envoy.Resource) {
			r := envoy.NewResource(ref.Type, ref.Name, []byte(text))
			if ref.Type == envoy.Clusters {
				out = append(out, envoy.NewResource(envoy.Endpoints, ref.Name, []byte(text)))
			}
			if ref.Type == envoy.Scopes {
				r = r.Awaiting(ref.Name)
			}
			return append(out, r)
		}
		change := func(sound bool) (u Update) {
			u.Gateway = gw
			for range rapid.IntRange(1, 4).Draw(rt, "changes") {
				typ := rapid.SampledFrom(types).Draw(rt, "type")
				ref := Ref{typ, rapid.SampledFrom(names[typ]).Draw(rt, "name")}
				if slices.ContainsFunc(u.Set, func(r *envoy.Resource) bool { return r.Type == ref.Type && r.Name == ref.Name }) || slices.Contains(u.Remove, ref) {
					continue
				}
				if is[ref] && rapid.IntRange(0, 2).Draw(rt, "remove") == 0 {
					delete(is, ref)
					u.Remove = append(u.Remove, ref)
					if typ == envoy.Clusters {
						u.Remove = append(u.Remove, Ref{envoy.Endpoints, ref.Name})
					}
					continue
				}
				is[ref] = true
				text := strconv.Itoa(rapid.IntRange(0, 3).Draw(rt, "version"))
				if !sound && rapid.IntRange(0, 4).Draw(rt, "bad") == 0 {
					text += fmt.Sprint("bad", rapid.IntRange(0, 1).Draw(rt, "for"))
				}
				if typ == envoy.Listeners {
					for _, uses := range []string{"t", "u", "x0", "scopes"} {
						if rapid.Bool().Draw(rt, uses) {
							text += " " + uses
						}
					}
				}
				for _, r := range made(ref, text) {
					u.Set = append(u.Set, r.Sparing(typ == envoy.Routes && rapid.IntRange(0, 3).Draw(rt, "spare") == 0))
				}
			}
			return u
		}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			p := proxies[rapid.IntRange(0, 1).Draw(rt, "proxy")]
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0, 1:
				g.apply([]Update{change(false)}, now)
			case 2, 3:
				p.pull(now)
			case 4, 5, 6:
				for n := rapid.IntRange(1, 3).Draw(rt, "answers"); n > 0 && len(p.queue) > 0; n-- {
					p.answer(now)
				}
			case 7:
				now = now.Add(rapid.SampledFrom([]time.Duration{10 * time.Millisecond, 150 * time.Millisecond, time.Second, 6 * time.Second, 15 * time.Second}).Draw(rt, "time"))
			case 8:
				p.session.close()
				p.connect(now)
			case 9:
				want := maps.Clone(p.asked[envoy.Secrets])
				if want == nil {
					want = map[string]bool{}
				}
				want[rapid.SampledFrom([]string{"a.test", "A.test", "A.TEST", "b.test", "B.test", "nobody.test", "ns/a"}).Draw(rt, "server name")] = true
				p.ask(now, envoy.Secrets, want)
			}
			for _, p := range proxies {
				p.hashesAreRight()
			}
		}
		// What is bad is made sound.
		last := Update{Gateway: gw}
		for ref := range is {
			if e := g.entries[ref.Type][ref.Name]; strings.Contains(string(e.want.Body()), "bad") {
				sound := append([]string{"9"}, strings.Fields(string(e.want.Body()))[1:]...)
				last.Set = append(last.Set, made(ref, strings.Join(sound, " "))...)
			}
		}
		g.apply([]Update{last}, now)
		for range 12 {
			for _, p := range proxies {
				for more := true; more; {
					more = p.pull(now)
					for len(p.queue) > 0 {
						p.answer(now)
						more = true
					}
				}
			}
			now = now.Add(3 * time.Second)
		}
		for _, p := range proxies {
			for i, y := range server.types {
				typ := envoy.Type(i) //nolint:gosec // an index of the table
				want := map[string]string{}
				for name, e := range g.entries[typ] {
					if y.hasWildcard && p.session.types[typ].wildcard || p.asked[typ][name] {
						want[name] = e.want.Version
					}
				}
				for name := range p.asked[typ] {
					if y.clientNames != nil && want[name] == "" && g.entries[typ][hostOf(name)] != nil {
						r, _ := g.target(Ref{typ, name})
						want[name] = r.Version
					}
					if y.empty != nil && want[name] == "" {
						want[name] = y.empty(name).Version
					}
				}
				if y.usedBy != nil { // what has gone together with what used it stays, for what drains
					for name := range p.has[typ] {
						if g.entries[typ][name] == nil {
							delete(p.has[typ], name)
							delete(want, name)
						}
					}
				}
				if d := gocmp.Diff(want, p.has[typ]); d != "" {
					rt.Fatalf("proxy %d, %s (-want +got):\n%s", p.id, y.name, d)
				}
			}
			if s := p.session; len(s.inflight)+len(s.unanswered)+len(s.removing)+len(s.awaited)+len(s.spares.waiting) > 0 {
				rt.Fatalf("proxy %d: %d in flight, %d unanswered, %d to remove, %d awaited, %d spare ones wait", p.id,
					len(s.inflight), len(s.unanswered), len(s.removing), len(s.awaited), len(s.spares.waiting))
			}
			p.session.close()
		}
		if len(g.removals)+len(g.quarantined) > 0 || g.charged != 0 {
			rt.Fatalf("%d removals and %d in quarantine are left; %d bytes are charged", len(g.removals), len(g.quarantined), g.charged)
		}
	})
}
