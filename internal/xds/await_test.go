package xds

import (
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// startPatient starts a server that doesn't give up a wait for what a proxy asks for late, until the test says so.
func startPatient(t *testing.T) *harness {
	t.Helper()
	h := start(t)
	h.server.maxAwait = time.Hour
	return h
}

// awaitFor says how long what a proxy doesn't ask for is waited for, from now on.
func (h *harness) awaitFor(d time.Duration) {
	h.change(func(s *Server) { s.maxAwait = d }, (*session).notify)
}

// awaitedSince returns since when something is waited for; it must be.
func (h *harness) awaitedSince(ref Ref) time.Time {
	h.t.Helper()
	g := h.server.gateways[gw]
	g.mu.Lock()
	defer g.mu.Unlock()
	for s := range g.sessions {
		if w := s.awaited[ref]; w != nil {
			return w.since
		}
	}
	h.t.Fatalf("%s is not waited for", ref)
	return time.Time{}
}

// A cluster counts as missing until its secrets have come: routes to it are sent after them.
func TestRoutesFollowTheSecretsOfClusters(t *testing.T) {
	h := startPatient(t)
	h.apply(small()...)
	p := h.connectAll()
	h.apply(cluster("tls", "1").Awaiting("ca"), ends("tls", "1"), secret("ca", "1"), table("t", "x:2"), "-cluster/a", "-endpoints/a")
	p.expect("cluster +tls=1", "endpoints +tls=1")
	p.subscribe(envoy.Secrets, "ca")
	p.expect("secret +ca=1", "routes +t=[x:2]", "cluster -a")
	p.unsubscribe(envoy.Endpoints, "a")
	p.quiet()
	// The next cluster with the same secret waits for nothing.
	h.apply(cluster("other", "1").Awaiting("ca"), ends("other", "1"), table("t", "x:3"))
	p.expect("cluster +other=1", "endpoints +other=1", "routes +t=[x:3]")
	p.quiet()
}

// The wait for a proxy that does not ask is short: its name server may be down.
func TestSecretsThatNobodyAsksFor(t *testing.T) {
	h := startPatient(t)
	h.apply(small()...)
	p := h.connectAll()
	h.apply(cluster("tls", "1").Awaiting("ca"), secret("ca", "1"), table("t", "x:2"))
	p.expect("cluster +tls=1")
	p.quiet()
	h.awaitFor(time.Millisecond)
	p.expect("routes +t=[x:2]")
	p.subscribe(envoy.Secrets, "ca")
	p.expect("secret +ca=1")
}

// A proxy that has not answered to a cluster yet has had no time to ask for its secrets: on a
// busy machine that is no sign that it never will.
func TestSecretsOfABusyProxy(t *testing.T) {
	h := start(t)
	h.server.maxAwait = 10 * time.Millisecond
	h.apply(small()...)
	p := h.connectAll()
	h.apply(cluster("tls", "1").Awaiting("ca"), secret("ca", "1"), table("t", "x:2"))
	p.expect("cluster +tls=1 ?")
	ca, began := Ref{envoy.Secrets, "ca"}, time.Now()
	waitFor(t, "the wait to begin again and again", func() bool { return h.awaitedSince(ca).Sub(began) > 2*h.server.maxAwait })
	p.quiet()
	h.awaitFor(time.Hour)
	p.answer()
	p.subscribe(envoy.Secrets, "ca")
	p.expect("secret +ca=1", "routes +t=[x:2]")
}

// A secret that is removed before the proxy has asked for it delays nothing. The proxy is
// told that there is none, so that the cluster does not wait for ever.
func TestSecretsThatAreGoneAtOnce(t *testing.T) {
	h := startPatient(t)
	h.apply(small()...)
	p := h.connectAll()
	h.apply(cluster("tls", "1").Awaiting("ca"), ends("tls", "1"), secret("ca", "1"), table("t", "x:2"))
	p.expect("cluster +tls=1 ?", "endpoints +tls=1")
	h.apply("-cluster/tls", "-endpoints/tls", "-secret/ca", table("t", "x:3"))
	p.expect("routes +t=[x:3]", "cluster -tls")
	p.subscribe(envoy.Secrets, "ca")
	p.expect("secret -ca")
	p.quiet()
}

// A proxy that has asked for scopes once does not wait for new ones: what uses them is sent when the
// proxy has these, and the route tables that they lead to.
func TestScopesGoAhead(t *testing.T) {
	scope := func(name string) *envoy.Resource { return resource(envoy.Scopes, name, "1").Awaiting(name) }
	h := startPatient(t)
	h.apply(small()...)
	p := h.connectAll()
	p.subscribe(envoy.Scopes)
	p.expect("scope")
	h.apply(scope("s/0"), scope("s/1"), table("s/0", "x:1"), table("s/1", "y:1"), listener("l", "2"), table("t", "x:2"), "-cluster/a", "-endpoints/a")
	p.expect("scope +s/0=1 +s/1=1")
	p.quiet()
	p.subscribe(envoy.Routes, "s/0")
	p.expect("routes +s/0=[x:1]")
	p.quiet()
	// A change meanwhile of what is in use already waits as well.
	h.apply(table("t", "x:3"), table("s/0", "x:3"))
	p.quiet()
	p.subscribe(envoy.Routes, "s/1")
	p.expect("routes +s/1=[y:1]", "listener +l=2", "scope +s/0=1 +s/1=1", "routes +s/0=[x:3]", "routes +t=[x:3]", "cluster -a")
	p.unsubscribe(envoy.Endpoints, "a")
	p.quiet()

	// What used them goes on with them while it drains. Whether the proxy has them is not known then.
	h.apply("-scope/s/0", "-scope/s/1", "-routes/s/0", "-routes/s/1", listener("l", "3"))
	p.expect("listener +l=3")
	p.unsubscribe(envoy.Routes, "s/0", "s/1") // it has forgotten
	p.quiet()
	h.apply(scope("s/0"), table("s/0", "x:4"), listener("l", "4"))
	p.expect("scope +s/0=1")
	p.subscribe(envoy.Routes, "s/0")
	p.expect("routes +s/0=[x:4]", "listener +l=4", "scope +s/0=1")
	p.quiet()

	// A proxy that never asks holds up nothing for long.
	h.apply(scope("s/2"), table("s/2", "x:1"), listener("l", "5"))
	p.expect("scope +s/2=1")
	h.awaitFor(time.Millisecond)
	p.expect("listener +l=5", "scope +s/0=1 +s/2=1")
	p.quiet()
}
