package xds

import (
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never: %s", what)
		}
	}
}

func (p *client) resumeSmall() {
	p.t.Helper()
	p.resume(envoy.Clusters, cluster("a", "1"), cluster("b", "1"), cluster("dns", "1"))
	p.resume(envoy.Endpoints, ends("a", "1"), ends("b", "1"))
	p.resume(envoy.Listeners, listener("l", "1"))
	p.resume(envoy.Secrets, secret("s", "1"))
	p.resume(envoy.Routes, table("t", "x:1", "y:1"))
}

// A proxy that connects again with all that it should have is sent nothing.
func TestReconnectUnchanged(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connect()
	p.resumeSmall()
	p.quiet()
	h.state("synced without a word", func(s State) bool {
		return s.Synced && s.Listeners["l"] == listener("l", "1").Version
	})
	h.apply(ends("b", "2"))
	p.expect("endpoints +b=2")
	p.quiet()
}

// A connection that is old enough ends, and costs a proxy that connects again no resource.
func TestConnectionAge(t *testing.T) {
	h := start(t, func(o *Options) { o.MaxAge = time.Second })
	h.apply(small()...)
	p := h.connect()
	p.resumeSmall()
	p.quiet()
	began := time.Now()
	select {
	case <-p.err:
	case <-time.After(patience):
		t.Fatal("an old connection goes on")
	}
	if lasted := time.Since(began); lasted > 4*ageGrace {
		t.Errorf("it has ended after %s more", lasted)
	}
	again := h.connect()
	again.resumeSmall()
	again.quiet()
}

// endGrace ends the time that each proxy has to name what it subscribes to.
func (h *harness) endGrace() {
	h.change(func(s *Server) { s.grace = 0 }, (*session).notify)
}

// What has changed meanwhile is sent, and what is left over is removed, after the routes
// that may use it.
func TestReconnectAfterChanges(t *testing.T) {
	h := start(t, func(o *Options) { o.Grace = time.Hour })
	h.apply(
		cluster("a", "2"), ends("a", "1"), cluster("b", "1"), ends("b", "2"), cluster("c", "1"), ends("c", "1"),
		listener("l", "1"), table("t", "x:2"),
	)
	p := h.connect()
	p.resumeSmall()
	p.expect("cluster +a=2 +c=1")
	p.subscribe(envoy.Endpoints, "c") // before it reads on
	p.expect("endpoints +a=1")
	// The endpoints of b and c and the routes come as the requests arrive.
	seen := map[string]bool{}
	for range 3 {
		m := p.next()
		seen[describe(m)] = true
		p.ack(m)
	}
	for _, line := range []string{"endpoints +b=2", "endpoints +c=1", "routes +t=[x:2]"} {
		if !seen[line] {
			t.Errorf("missing %s in %v", line, seen)
		}
	}
	p.expect("cluster -dns", "secret -s")
	p.quiet()
}

// A proxy may connect again with routes and extensions that it has not named yet: nothing that
// they may use is removed before.
func TestReconnectRemovesAfterRoutesAreKnown(t *testing.T) {
	h := start(t, func(o *Options) { o.Grace = time.Hour })
	h.apply(cluster("a", "1"), ends("a", "1"), listener("l", "1"), table("t", "x:2"), resource(envoy.Extensions, "tcp", "2"))
	p := h.connect()
	p.resume(envoy.Clusters, cluster("a", "1"), cluster("old", "1"))
	p.resume(envoy.Listeners, listener("l", "1"))
	p.quiet()
	p.resume(envoy.Routes, table("t", "x:1"))
	p.expect("routes +t=[x:2]")
	p.quiet()
	p.resume(envoy.Extensions, resource(envoy.Extensions, "tcp", "1"))
	p.expect("extension +tcp=2 ?")
	p.quiet()
	p.answer()
	p.expect("cluster -old")
}

// A proxy without any routes loses clusters all the same.
func TestReconnectWithoutRoutes(t *testing.T) {
	h := start(t, func(o *Options) { o.Grace = time.Hour })
	h.apply(listener("tcp", "1"))
	p := h.connect()
	p.resume(envoy.Clusters, cluster("old", "1"))
	p.resume(envoy.Listeners, listener("tcp", "1"), listener("old", "1"))
	p.expect("listener -old", "cluster -old")
}

// Nor does one keep them that asks for none of the routes that there are.
func TestReconnectWithoutAskingForRoutes(t *testing.T) {
	h := start(t, func(o *Options) { o.Grace = time.Hour })
	h.apply(listener("tcp", "1"), table("t", "x:1"))
	p := h.connect()
	p.resume(envoy.Clusters, cluster("old", "1"))
	p.resume(envoy.Listeners, listener("tcp", "1"), listener("old", "1"))
	p.quiet()
	h.endGrace()
	p.expect("listener -old", "cluster -old")
}

// Listeners that are left over are removed, tables and endpoints emptied.
func TestReconnectLeftovers(t *testing.T) {
	h := start(t)
	h.apply(cluster("a", "1"))
	p := h.connect()
	p.resume(envoy.Clusters, cluster("a", "1"))
	p.resume(envoy.Endpoints, ends("a", "1"))
	p.resume(envoy.Routes, table("t", "x:1"))
	p.resume(envoy.Listeners)
	p.expect("listener", "endpoints +a=empty", "routes +t=empty")
	p.quiet()
}

// Nor is it forgotten where the resource goes only after the proxy has connected, and before it was sent anew.
func TestReconnectAfterARefusalOfWhatGoesLater(t *testing.T) {
	h := start(t, func(o *Options) { o.Grace = time.Hour })
	h.apply(small()...)
	p := h.connectAll()
	h.apply(listener("m", "bad"), listener("n", "1"))
	p.expect("listener +m=bad +n=1 ! Error adding/updating listener(s) m: no\n", "listener +n=1 ?")
	p.cancel()
	waitFor(t, "gone", func() bool { return len(h.server.Sessions()) == 0 })
	p = h.connect()
	p.resume(envoy.Listeners, listener("l", "1")) // it is to name its routes before it gets any
	p.quiet()
	h.apply("-listener/m", "-listener/n")
	h.endGrace()
	p.expect("listener -n")
	p.quiet()
}

// The same goes for a proxy that connects again before anybody knows that its connection has ended, and before
// it has been sent anew, because something else is waited for, what it has not named.
func TestReconnectBeforeARefusalIsCorrected(t *testing.T) {
	h := start(t, func(o *Options) { o.Grace = time.Hour })
	h.server.maxAwait = time.Hour
	h.apply(small()...)
	p := h.connectAll()
	h.apply(listener("m", "bad"), listener("n", "1"))
	p.expect("listener +m=bad +n=1 ?")
	h.apply(cluster("tls", "1").Awaiting("ca"), secret("ca", "1"))
	p.expect("cluster +tls=1")
	p.nack(p.pending[0], "Error adding/updating listener(s) m: no\n")
	h.state("m refused", rejects("listener/m"))
	p.quiet()
	h.apply("-listener/m", "-listener/n")
	again := h.connect()
	again.resume(envoy.Listeners, listener("l", "1"))
	again.quiet()
	h.endGrace()
	again.expect("listener -n")
	again.quiet()
}

// Envoy accepts the good resources of a response that it refuses, and does not name them
// when it connects again. What is removed meanwhile must be removed there too.
func TestReconnectAfterARefusal(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	h.apply(listener("m", "bad"), listener("n", "1"))
	p.expect("listener +m=bad +n=1 ! Error adding/updating listener(s) m: no\n", "listener +n=1 ?")
	p.cancel()
	waitFor(t, "gone", func() bool { return len(h.server.Sessions()) == 0 })
	h.apply("-listener/m", "-listener/n")
	p = h.connect()
	p.resume(envoy.Listeners, listener("l", "1"))
	p.expect("listener -n")
	p.quiet()
}
