package xds

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// A proxy that does not read delays neither a commit nor another proxy. When it reads again
// it gets the present state, without those in between.
func TestSlowProxyIsIsolated(t *testing.T) {
	h := start(t)
	big := strings.Repeat("x", 1<<20)
	h.apply(small()...)
	p := h.connectAll()
	slow := h.connectSilent()
	slow.subscribe(envoy.Listeners)
	slow.subscribe(envoy.Routes, "t")
	waitFor(t, "both there", func() bool { return len(h.server.Sessions()) == 2 && len(h.server.Sessions()[1].Types) == 2 })
	const n = 200
	for i := range n {
		h.apply(table("t", fmt.Sprint("x:", i, big)))
		p.expect(fmt.Sprint("routes +t=[x:", i, big, "]"))
	}
	info := h.server.Sessions()[1]
	if info.Unanswered > 20 || info.Pending == 0 || info.Lag == 0 {
		t.Errorf("%+v", info)
	}
	// Now it reads.
	got := 0
	for last := fmt.Sprint("routes +t=[x:", n-1, big, "]"); ; got++ {
		m, err := slow.stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		slow.ack(m)
		if describe(m) == last {
			break
		}
	}
	if got > 10 {
		t.Errorf("%d of %d states passed through a proxy that did not read", got, n)
	}
}

// The number of names that a proxy may use is bounded, and so is their length.
func TestNamesAreBounded(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	names := func(from, n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprint("name-", from+i))
		}
		return out
	}
	expectEnd := func(p *client, text string) {
		t.Helper()
		if err := p.ended(); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), text) {
			t.Errorf("the stream ends with %v", err)
		}
	}
	// As after a time without a controller: much that it knows is gone.
	p := h.connectAll()
	p.subscribe(envoy.Endpoints, names(0, maxUnknownNames)...)
	p.subscribe(envoy.Endpoints, names(0, maxUnknownNames)...)
	p.next()
	p.unsubscribe(envoy.Endpoints, names(0, maxUnknownNames)...)
	p.subscribe(envoy.Secrets, names(0, maxUnknownNames)...)
	p.unsubscribe(envoy.Secrets, names(0, maxUnknownNames)...)
	for i := range 5 {
		p.subscribe(envoy.Routes, names(i*maxUnknownNames/4, maxUnknownNames/4)...)
	}
	expectEnd(p, "is the most for this Gateway")

	p = h.connect()
	p.resume(envoy.Endpoints, ends(strings.Repeat("x", maxName+1), "1"))
	expectEnd(p, "a name")
	p = h.connectAll()
	p.subscribe(envoy.Secrets, strings.Repeat("x", maxName+1))
	expectEnd(p, "a name of a resource has 513 bytes")
	p = h.connect()
	p.send(&discoveryv3.DeltaDiscoveryRequest{
		TypeUrl: envoy.Clusters.URL(), InitialResourceVersions: map[string]string{"a": strings.Repeat("x", maxVersion+1)},
	})
	expectEnd(p, "a version of a resource has 65 bytes")
	h.connectAll().quiet()
}

// Names that a proxy makes up take a bounded room in a session, and none when it has unsubscribed
// from them, also if it never answers, and in all sessions of its Gateway.
func TestRoomForNamesIsBounded(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	long := func(part, n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf("ns/%0*d", maxName-len("ns/"), part*n+i))
		}
		return out
	}
	ended := func(p *client, text string) {
		t.Helper()
		if err := p.ended(); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), text) {
			t.Errorf("the stream ends with %v", err)
		}
	}
	const fit = maxSessionBytes / (maxName + maxVersion)
	p := h.connectAll()
	p.subscribe(envoy.Secrets, long(0, fit+1)...)
	ended(p, "is the most for a proxy")

	p = h.connect()
	for _, y := range []envoy.Type{envoy.Secrets, envoy.Endpoints} {
		for part := range 6 { // without an answer
			p.subscribe(y, long(part, fit/2)...)
			p.next()
			p.unsubscribe(y, long(part, fit/2)...)
		}
	}
	waitFor(t, "there is nothing of them", func() bool {
		i := h.server.Sessions()[0]
		return len(i.Types) == 2 && i.Types[0].Resources+i.Types[1].Resources+i.Pending == 0 && i.Unanswered <= maxReplaced
	})
	p.cancel()
	p.ended()

	var all []*client
	for range maxGatewayBytes / maxSessionBytes {
		p := h.connectAll()
		p.subscribe(envoy.Secrets, long(0, fit)...)
		p.next()
		all = append(all, p)
	}
	one := h.connectAll()
	one.subscribe(envoy.Secrets, long(0, fit)...)
	ended(one, "is the most for the proxies of a Gateway")
	steady := h.connectAll() // and others are served
	for _, p := range all {
		p.cancel()
	}
	waitFor(t, "they have gone", func() bool { return len(h.server.Sessions()) == 1 })
	again := h.connectAll()
	again.subscribe(envoy.Secrets, long(0, fit)...)
	again.next()
	steady.quiet()
}

// What is kept for a proxy that never answers does not grow with the number of changes.
func TestSilentProxyIsBounded(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	const n = 3 * (maxUnanswered + maxReplaced)
	last := 0
	for i := range n { // one after another, so that nothing merges
		h.apply(ends("a", fmt.Sprint(i)), cluster("b", fmt.Sprint(i)))
		waitFor(t, "sent", func() bool { return h.server.Sessions()[0].Pending == 0 })
	}
	for i := range n {
		h.apply(table("t", fmt.Sprint("x:", i)))
		if last < maxUnanswered {
			waitFor(t, "sent", func() bool { return h.server.Sessions()[0].Pending == 0 })
			last++
		}
	}
	if i := h.server.Sessions()[0]; i.Unanswered > maxUnanswered+maxReplaced+5 {
		t.Errorf("%d unanswered", i.Unanswered)
	}
	// It answers, and gets what is current.
	for m := range p.got {
		p.ack(m)
		if describe(m) == fmt.Sprintf("routes +t=[x:%d]", n-1) {
			break
		}
	}
	p.quiet()
}

// Names that are added and removed while a proxy does not read don't accumulate.
func TestPassingNamesAreForgotten(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	slow := h.connectSilent()
	slow.subscribe(envoy.Clusters)
	waitFor(t, "it has asked", func() bool { return len(h.server.Sessions()) == 1 && len(h.server.Sessions()[0].Types) == 1 })
	h.apply(cluster("big", strings.Repeat("x", 4<<20)))
	waitFor(t, "it has too much", func() bool { return h.server.Sessions()[0].Unanswered == 2 })
	h.apply(cluster("next", "1"))
	waitFor(t, "it is stuck", func() bool { return h.server.Sessions()[0].Unanswered == 3 })
	for i := range 1000 {
		name := fmt.Sprint("passing-", i)
		h.apply(cluster(name, "1"), ends(name, "1"))
		h.apply("-cluster/"+name, "-endpoints/"+name)
	}
	if n := h.server.Sessions()[0].Pending; n > 20 {
		t.Errorf("%d names wait for a proxy that never had them", n)
	}
	if i, _ := h.server.Gateway(gw); len(i.Resources) != len(small())+2 {
		t.Errorf("%d resources", len(i.Resources))
	}
}

// A listener belongs to a Gateway, whatever the proxy calls itself.
func TestIdentityIsTheListener(t *testing.T) {
	h := start(t)
	other := bufconn.Listen(1 << 16)
	h.serve(other, named("default/other"))
	h.apply(small()...)
	h.server.Apply([]Update{{Gateway: named("default/other"), Set: []*envoy.Resource{cluster("theirs", "1")}}})
	h.lis = other
	p := h.connect()
	p.subscribe(envoy.Clusters)
	p.expect("cluster +theirs=1")
	if i := h.server.Sessions(); i[0].Gateway != "default/other" || i[0].Node != "somebody else's gateway" {
		t.Errorf("%+v", i)
	}
}

func TestStateOfTheWorldIsRefused(t *testing.T) {
	h := start(t)
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(h.dial(h.lis)).StreamAggregatedResources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = stream.Recv()
	if status.Code(err) != codes.Unimplemented || !strings.Contains(err.Error(), "DELTA_GRPC") {
		t.Error(err)
	}
}

// Stopping ends streams with a status after which proxies connect again.
func TestStop(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	h.server.Stop()
	if err := <-p.err; status.Code(err) != codes.Unavailable {
		t.Error(err)
	}
}

// follower is a proxy that keeps what it is sent, as Envoy does, refuses what has "bad" in
// it, and connects again after every few messages.
type follower struct {
	h        *harness
	have     map[string]string // type/name → body
	versions [envoy.NumTypes]map[string]string
}

func (f *follower) follow(ctx context.Context, random *rand.Rand) map[string]string {
	f.have = map[string]string{}
	for t := range f.versions {
		f.versions[t] = map[string]string{}
	}
	for {
		c := f.connect()
		messages := 1 + random.IntN(200)
		if random.IntN(10) == 0 {
			messages = -1
		}
		for ; messages != 0; messages-- {
			select {
			case m := <-c.got:
				f.take(c, m)
			case <-ctx.Done():
				return f.have
			}
		}
		c.cancel()
	}
}

// connect asks for everything as Envoy does when it comes back.
func (f *follower) connect() *client {
	c := f.h.connect()
	names := [envoy.NumTypes][]string{envoy.Secrets: {"s"}, envoy.Routes: {"t", "u"}}
	for ref := range f.have {
		if name, ok := strings.CutPrefix(ref, "cluster/"); ok {
			names[envoy.Endpoints] = append(names[envoy.Endpoints], name)
		}
	}
	for t := range envoy.NumTypes {
		c.send(&discoveryv3.DeltaDiscoveryRequest{
			TypeUrl: t.URL(), ResourceNamesSubscribe: names[t], InitialResourceVersions: f.versions[t],
		})
	}
	return c
}

func (f *follower) take(c *client, m *discoveryv3.DeltaDiscoveryResponse) {
	t, _ := envoy.TypeOf(m.GetTypeUrl())
	var bad []string
	versions := map[string]string{}
	for _, r := range m.GetResources() {
		name, ref := r.GetName(), t.String()+"/"+r.GetName()
		text := body(t, name, r.GetResource().GetValue())
		if strings.Contains(text, "bad") {
			bad = append(bad, name+": bad")
			continue
		}
		if _, asked := f.have["cluster/"+name]; !asked && t == envoy.Endpoints {
			continue
		}
		if _, known := f.have[ref]; !known && t == envoy.Clusters {
			c.subscribe(envoy.Endpoints, name)
		}
		f.have[ref] = text
		versions[name] = r.GetVersion()
	}
	for _, name := range m.GetRemovedResources() {
		if _, known := f.have["cluster/"+name]; known && t == envoy.Clusters {
			c.unsubscribe(envoy.Endpoints, name)
			delete(f.have, "endpoints/"+name)
			delete(f.versions[envoy.Endpoints], name)
		}
		delete(f.have, t.String()+"/"+name)
		if len(bad) == 0 {
			delete(f.versions[t], name)
		}
	}
	if len(bad) > 0 {
		c.nack(m, resourceTypes()[t].atFault+strings.Join(bad, ", "))
		return
	}
	maps.Copy(f.versions[t], versions) // only what it accepts whole
	c.ack(m)
}

// Several proxies connect again and again during random commits with bad resources among
// them: in the end each proxy has exactly what is wanted.
func TestRandomHistoryConverges(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { randomHistory(t, seed) })
	}
}

func randomHistory(t *testing.T, seed uint64) {
	h := start(t)
	h.apply(small()...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	results := make([]map[string]string, 3)
	var wg sync.WaitGroup
	for i := range results {
		f := &follower{h: h}
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		wg.Go(func() { results[i] = f.follow(ctx, random) })
	}
	random := rand.New(rand.NewPCG(seed, 2))
	value := func() string {
		if random.IntN(4) == 0 {
			return fmt.Sprint("bad", random.IntN(5))
		}
		return fmt.Sprint(random.IntN(5))
	}
	for range 500 {
		var changes []any
		for range random.IntN(4) {
			name := string(rune('a' + random.IntN(3)))
			switch random.IntN(5) {
			case 0:
				changes = append(changes, cluster(name, value()), ends(name, value()))
			case 1:
				changes = append(changes, "-cluster/"+name, "-endpoints/"+name)
			case 2:
				changes = append(changes, table("t", "a:"+value(), "b:"+value(), "c:"+value()))
			case 3:
				changes = append(changes, ends("b", value()), secret("s", value()))
			case 4:
				changes = append(changes, listener(name, value()), table("u", "x:"+value(), "y:"+value()))
			}
		}
		h.apply(changes...)
		_, _ = h.server.Gateway(gw)
		for random.Uint64N(8) < seed { // the higher the seed, the less merges
			all := h.server.Sessions()
			if i := random.IntN(3); i < len(all) && all[i].Unanswered == 0 && all[i].Pending == 0 {
				break
			}
		}
	}
	final := []any{
		cluster("a", "7"), ends("a", "7"), cluster("b", "7"), ends("b", "7"), "-cluster/c", "-endpoints/c",
		cluster("dns", "7"), listener("l", "7"), listener("a", "7"), "-listener/b", "-listener/c",
		secret("s", "7"), table("t", "a:7", "b:bad7", "c:7"), table("u", "x:7", "y:7"),
	}
	h.apply(final...)
	h.state("only b in quarantine", func(s State) bool {
		return len(s.Rejected) == 1 && s.Rejected[0].Part == "b" && s.Rejected[0].Version == table("", "b:bad7").Parts()[0].Hash.String()
	})
	// The table in force may refer to what was removed with its change.
	h.apply(table("t", "a:7", "b:7", "c:7"))
	h.state("nothing in quarantine", rejects())
	defer func() {
		if t.Failed() {
			for _, i := range h.server.Sessions() {
				t.Logf("%+v", i)
			}
		}
	}()
	waitFor(t, "everybody has everything", func() bool {
		all := h.server.Sessions()
		for _, i := range all {
			if len(i.Types) < int(envoy.NumTypes) || i.Unanswered > 0 || i.Pending > 0 {
				return false
			}
		}
		return len(all) == len(results)
	})
	cancel()
	wg.Wait()
	for i, have := range results {
		for _, want := range []string{
			"cluster/a=7", "endpoints/a=7", "cluster/b=7", "endpoints/b=7", "cluster/dns=7",
			"listener/l=7", "listener/a=7", "secret/s=7", "routes/u=[x:7 y:7]", "routes/t=[a:7 b:7 c:7]",
		} {
			ref, body, _ := strings.Cut(want, "=")
			if have[ref] != body {
				t.Errorf("proxy %d: %s = %q, want %q", i, ref, have[ref], body)
			}
			delete(have, ref)
		}
		delete(have, "endpoints/dns") // asked for, like those of any cluster
		if len(have) > 0 {
			t.Errorf("proxy %d has more: %v", i, have)
		}
	}
}
