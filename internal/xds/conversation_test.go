package xds

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// small is a configuration with one of everything.
func small() []any {
	return []any{
		cluster("a", "1"), ends("a", "1"), cluster("b", "1"), ends("b", "1"), cluster("dns", "1"),
		secret("s", "1"), listener("l", "1"), table("t", "x:1", "y:1"),
	}
}

// connectAll brings a proxy up to small, in the order in which Envoy asks.
func (h *harness) connectAll() *client {
	h.t.Helper()
	p := h.connect()
	p.subscribe(envoy.Clusters)
	p.expect("cluster +a=1 +b=1 +dns=1")
	p.subscribe(envoy.Endpoints, "a", "b")
	p.expect("endpoints +a=1", "endpoints +b=1")
	p.subscribe(envoy.Listeners)
	p.expect("listener +l=1")
	p.subscribe(envoy.Secrets, "s")
	p.expect("secret +s=1")
	p.subscribe(envoy.Routes, "t")
	p.expect("routes +t=[x:1 y:1]")
	p.quiet()
	return p
}

// A new proxy gets clusters, then what it asks for. Every resource has a response of its
// own, except clusters and listeners.
func TestFirstConnect(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	h.connectAll()
	h.state("everything acknowledged", func(s State) bool {
		return s.Synced && s.Connected == 1 && s.Listeners["l"] == listener("l", "1").Version && len(s.Rejected) == 0
	})
}

// A change sends what has changed and nothing else.
func TestChangeSendsOneResource(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	h.apply(ends("a", "2"))
	p.expect("endpoints +a=2")
	h.apply(table("t", "x:1", "y:2"))
	p.expect("routes +t=[x:1 y:2]")
	h.apply(listener("l", "2"))
	p.expect("listener +l=2")
	h.apply(secret("s", "2"))
	p.expect("secret +s=2")
	h.apply(ends("a", "2"), cluster("b", "1")) // equal
	p.quiet()
}

// The order within one commit never refers to what is not there.
func TestOrderWithinACommit(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	h.apply(
		table("t", "x:2"), listener("l", "2"), secret("s", "2"),
		ends("new", "1"), ends("b", "2"), cluster("new", "1"),
		"-cluster/a", "-endpoints/a",
	)
	p.expect("cluster +new=1")
	p.subscribe(envoy.Endpoints, "new") // before it reads on
	p.expect("endpoints +b=2", "endpoints +new=1",
		"secret +s=2", "listener +l=2", "routes +t=[x:2]", "cluster -a")
	p.unsubscribe(envoy.Endpoints, "a")
	p.quiet()
}

// A proxy that starts warms clusters that need DNS before it asks for the endpoints of
// others, and drops endpoints that come before. One that is up asks at once.
func TestEndpointsWaitForAStartingProxy(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connect()
	p.subscribe(envoy.Clusters)
	p.expect("cluster +a=1 +b=1 +dns=1 ?")
	h.apply(cluster("c", "1"), ends("c", "1"), ends("b", "2"))
	p.expect("cluster +c=1 ?")
	p.quiet()
	p.subscribe(envoy.Endpoints, "a", "b")
	p.expect("endpoints +a=1", "endpoints +b=2", "endpoints +c=1")
	// What it has answered before it asked was lost on it.
	p.subscribe(envoy.Endpoints, "c")
	p.expect("endpoints +c=1")
	p.quiet()
}

// The endpoints of the first cluster of a proxy that is up are sent at once, and again if
// that was too early.
func TestFirstEndpoints(t *testing.T) {
	h := start(t)
	h.apply(listener("l", "1"), table("t", "x:1"))
	p := h.connect()
	p.subscribe(envoy.Clusters)
	p.expect("cluster")
	p.subscribe(envoy.Listeners)
	p.expect("listener +l=1")
	h.apply(cluster("a", "1"), ends("a", "1"))
	p.expect("cluster +a=1", "endpoints +a=1 ?")
	p.subscribe(envoy.Endpoints, "a")
	p.expect("endpoints +a=1")
	p.subscribe(envoy.Endpoints, "a") // every subscription is answered
	p.expect("endpoints +a=1")
	p.quiet()
}

// Envoy does not ask again for the endpoints of a cluster that is replaced, and does not
// use the new one without them.
func TestEndpointsFollowAReplacedCluster(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	h.apply(cluster("a", "2"))
	p.expect("cluster +a=2", "endpoints +a=1")
	h.apply(cluster("dns", "2"))
	p.expect("cluster +dns=2")
	p.quiet()
}

// The acknowledgement of clusters may take as long as DNS does; nothing waits.
func TestNothingWaitsForClusters(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	h.apply(cluster("slow", "1"))
	p.expect("cluster +slow=1 ?")
	h.apply(cluster("c", "1"), ends("c", "1"), table("t", "x:2"))
	p.expect("cluster +c=1 ?", "endpoints +c=1", "routes +t=[x:2]")
	h.apply("-cluster/b", "-endpoints/b")
	p.expect("cluster -b")
	p.answer()
	p.answer()
	p.quiet()
}

// What a route used is removed when the proxy has acknowledged the routes without it.
func TestRemovalWaitsForRoutes(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	h.apply(table("t", "x:2"), "-cluster/a", "-endpoints/a", "-secret/s")
	p.expect("routes +t=[x:2] ?")
	h.apply(ends("b", "2"))
	p.expect("endpoints +b=2")
	p.quiet()
	p.answer()
	p.expect("cluster -a", "secret -s")
	p.unsubscribe(envoy.Endpoints, "a")
	p.quiet()
}

// Removals happen also while there are always further changes.
func TestRemovalsAreNotStarved(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	h.apply(table("t", "x:2"), "-cluster/a", "-endpoints/a")
	p.expect("routes +t=[x:2] ?")
	h.apply(table("t", "x:3"))
	p.expect("routes +t=[x:3] ?")
	p.answer()
	p.expect("cluster -a")
	p.answer()
}

// A cluster that is added again before it is removed from the proxy stays there.
func TestRemovalIsUndone(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	h.apply(table("t", "x:2"), "-cluster/a", "-endpoints/a")
	p.expect("routes +t=[x:2] ?")
	h.apply(cluster("a", "1"), ends("a", "1"))
	p.answer()
	p.quiet()
	h.apply(cluster("a", "2"))
	p.expect("cluster +a=2", "endpoints +a=1")
}

// Envoy's traffic ignores the removal of endpoints and routes: they are emptied.
func TestRemovedWhileInUse(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	h.apply("-endpoints/a")
	p.expect("endpoints +a=empty")
	h.apply("-routes/t")
	p.expect("routes +t=empty")
	h.apply(ends("a", "3"), table("t", "x:1"))
	p.expect("endpoints +a=3", "routes +t=[x:1]")
	p.quiet()
}

// Connections that a removed listener drains keep its routes.
func TestRoutesOfARemovedListenerStay(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	h.apply("-listener/l", "-routes/t", "-cluster/a", "-endpoints/a")
	p.expect("listener -l", "cluster -a")
	p.unsubscribe(envoy.Routes, "t")
	p.unsubscribe(envoy.Endpoints, "a")
	p.quiet()
}

// An address passes from one listener to another within one response, since
// Envoy would refuse the second while it has the first.
func TestListenersSwapInOneResponse(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	h.apply("-listener/l", listener("m", "1"))
	p.expect("listener +m=1 -l")
	p.quiet()
}

// Every subscription is answered, also to what does not exist.
func TestUnknownResources(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	p.subscribe(envoy.Endpoints, "none")
	p.expect("endpoints +none=empty")
	p.subscribe(envoy.Routes, "none")
	p.expect("routes +none=empty")
	p.subscribe(envoy.Secrets, "ns/none", "nothing")
	p.expect("secret -nothing -ns/none")
	p.subscribe(envoy.Secrets, "ns/none", "nothing") // a client's SNI again
	p.expect("secret -nothing -ns/none")
	h.apply(secret("ns/none", "1"), secret("nothing", "1"), table("none", "x:1"), ends("none", "1"))
	p.expect("endpoints +none=1", "secret +ns/none=1", "routes +none=[x:1]")
	p.quiet()
}

// A client that sends the SNI * gets no secrets, and changes nothing for other clients.
func TestSecretsHaveNoWildcard(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connect()
	p.subscribe(envoy.Secrets) // Envoy's way to say * in a first request
	p.expect("secret -*")
	p.subscribe(envoy.Secrets, "*")
	p.expect("secret -*")
	p.subscribe(envoy.Secrets, "*", "s")
	p.expect("secret +s=1", "secret -*")
	h.apply(secret("other", "1"))
	p.quiet()
	p.subscribe(envoy.Routes, "*")
	p.expect("routes -*")
}

// A subscription is answered even if the proxy should have the resource.
func TestResubscription(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	p.subscribe(envoy.Routes, "t")
	p.expect("routes +t=[x:1 y:1]")
	p.unsubscribe(envoy.Endpoints, "a")
	p.quiet()
	h.apply(ends("a", "2"))
	p.quiet()
	p.subscribe(envoy.Endpoints, "a")
	p.expect("endpoints +a=2")
}

// A proxy for which there is nothing gets an empty response: it waits for a first one.
func TestEmptyGateway(t *testing.T) {
	h := start(t)
	h.apply()
	p := h.connect()
	p.subscribe(envoy.Clusters)
	p.expect("cluster")
	p.subscribe(envoy.Listeners)
	p.expect("listener")
	p.quiet()
	h.state("synced", func(s State) bool { return s.Synced })
}

// A control plane that has just started does not know yet what there is, and must not
// answer that there is nothing.
func TestNothingIsAnsweredBeforeTheFirstUpdate(t *testing.T) {
	h := start(t)
	p := h.connect()
	all := []*envoy.Resource{cluster("a", "1"), cluster("old", "1")}
	p.resume(envoy.Clusters, all...)
	p.resume(envoy.Endpoints, ends("a", "1"))
	p.resume(envoy.Listeners, listener("l", "1"))
	p.resume(envoy.Routes, table("t", "x:1"))
	p.subscribe(envoy.Secrets, "s")
	p.subscribe(envoy.Extensions, "limits")
	p.subscribe(envoy.Scopes)
	waitFor(t, "all requests read", func() bool {
		i := h.server.Sessions()
		return len(i) == 1 && len(i[0].Types) == int(envoy.NumTypes)
	})
	if len(p.got) > 0 {
		t.Fatalf("answered: %s", describe(<-p.got))
	}
	h.apply(cluster("a", "1"), ends("a", "1"), listener("l", "1"), table("t", "x:2"), secret("s", "1"))
	p.expect("secret +s=1", "extension +limits=empty", "scope", "routes +t=[x:2]", "cluster -old")
	p.quiet()
}

// The proxies of a Gateway that is removed lose its listeners.
func TestGone(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connectAll()
	h.server.Apply([]Update{{Gateway: gw, Gone: true}})
	p.expect("listener -l", "cluster -a -b -dns", "secret -s")
	if _, ok := h.server.Gateway(gw); !ok {
		t.Fatal("forgotten while it is served")
	}
	h.apply(small()...)
	p.expect("cluster +a=1 +b=1 +dns=1", "endpoints +a=1", "endpoints +b=1")
}

// A Gateway that is removed and added again at once has a state of its own. It is reported
// although its proxies have answered nothing new, since the report on its predecessor does
// not count any more.
func TestComesBack(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	p := h.connect()
	p.resumeSmall()
	works := func(s State) bool { return s.Synced && s.Connected == 1 && s.Listeners["l"] != "" }
	h.state("all in force", works)
	p.quiet()
	for len(h.states) > 0 {
		<-h.states
	}
	h.server.Apply([]Update{{Gateway: gw, Gone: true}, h.update(small()...)})
	h.state("all in force again", works)
	p.quiet()
	h.server.Apply([]Update{{Gateway: gw, Gone: true}})
	p.expect("listener -l") // whose answer is reported
	h.state("nothing in force", func(s State) bool { return !s.Synced && len(s.Listeners) == 0 })
}

// A proxy connects again while its Gateway gets another record: the last report is of the
// new connection, not of the end of the old one.
func TestStateOfTheLastRecord(t *testing.T) {
	told := State{}
	server := New(Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil)), OnState: func(_ object.Name, s State) { told = s }})
	connect := func() (end func()) {
		g := server.enter(gw, "")
		s := newSession(g, server.nextID(), time.Now())
		g.attach(s, time.Now())
		return func() {
			s.close()
			server.leave(g)
		}
	}
	end := connect()
	server.reports.done.Wait()
	for range 100 {
		end()
		end = connect()
		server.reports.done.Wait()
		if told.Connected != 1 {
			t.Fatalf("%d proxies are connected", told.Connected)
		}
	}
	end()
	server.reports.done.Wait()
	server.Stop()
	if told.Connected != 0 {
		t.Fatalf("%d proxies are connected at the end", told.Connected)
	}
}

// A proxy that starts gets the endpoints that another one has taken in one response.
// If it refuses that, it gets them one by one, and the culprit shows.
func TestManyEndpointsShareAResponse(t *testing.T) {
	n := 2 * resourceTypes()[envoy.Endpoints].sharedTaken
	h := start(t)
	var all []any
	var names []string
	for i := range n {
		name := fmt.Sprintf("c%03d", i)
		names = append(names, name)
		all = append(all, cluster(name, "1"), ends(name, "1"))
	}
	h.apply(append(all, listener("l", "1"))...)
	line := func(kind string) string { return kind + " +" + strings.Join(names, "=1 +") + "=1" }
	single := make([]string, n)
	for i, name := range names {
		single[i] = "endpoints +" + name + "=1"
	}

	first := h.connect()
	first.subscribe(envoy.Clusters)
	first.expect(line("cluster"))
	first.subscribe(envoy.Endpoints, names...)
	first.expect(single...)
	first.subscribe(envoy.Listeners)
	first.expect("listener +l=1")
	first.quiet()

	second := h.connect()
	second.subscribe(envoy.Clusters)
	second.expect(line("cluster"))
	second.subscribe(envoy.Endpoints, names...)
	second.expect(line("endpoints"))
	second.quiet()
	h.apply(ends("c001", "2"))
	first.expect("endpoints +c001=2 ?") // which nobody has taken
	second.expect("endpoints +c001=2 ?")

	third := h.connect()
	third.subscribe(envoy.Clusters)
	third.expect(line("cluster"))
	third.subscribe(envoy.Endpoints, names...)
	without := append([]string{names[0]}, names[2:]...)
	third.expect("endpoints +c001=2", "endpoints +"+strings.Join(without, "=1 +")+"=1 ! malformed IP address")
	for i, name := range names {
		switch i {
		case 0:
			third.expect(single[i] + " ! malformed IP address")
		case 1: // has been taken
		default:
			third.expect("endpoints +" + name + "=1")
		}
	}
	third.quiet()
	h.state("c000 refused by one", rejects("endpoints/c000"))
}
