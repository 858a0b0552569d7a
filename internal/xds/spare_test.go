package xds

import (
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// proxiesTake says how long each proxy has to do with the spare resources that it has got.
func (h *harness) proxiesTake(d time.Duration) {
	g := h.server.gateways[gw]
	g.mu.Lock()
	defer g.mu.Unlock()
	for s := range g.sessions {
		s.spares.until = time.Now().Add(d)
		s.notify()
	}
}

// withSpare starts with a table in two forms, the spare one of which the proxy has in its second version.
func withSpare(t *testing.T) (*harness, *client) {
	h := start(t)
	h.apply(listener("l", "1"), cluster("old", "1"), table("t", "x:1"), table("t/0", "x:1").Sparing(true))
	p := h.connect()
	p.subscribe(envoy.Clusters)
	p.expect("cluster +old=1")
	p.subscribe(envoy.Listeners)
	p.expect("listener +l=1")
	p.subscribe(envoy.Routes, "t", "t/0")
	p.expect("routes +t=[x:1]", "routes +t/0=[x:1]")
	h.proxiesTake(0)
	h.apply(table("t", "x:2"), table("t/0", "x:2").Sparing(true))
	p.expect("routes +t=[x:2]", "routes +t/0=[x:2]")
	h.proxiesTake(time.Hour)
	return h, p
}

func TestSpareResourcesFollow(t *testing.T) {
	h, p := withSpare(t)
	for _, v := range []string{"3", "4", "5"} {
		h.apply(table("t", "x:"+v), table("t/0", "x:"+v).Sparing(true))
		p.expect("routes +t=[x:" + v + "]")
	}
	p.quiet()
	g := h.server.gateways[gw]
	g.mu.Lock()
	for s := range g.sessions {
		if !s.dirty.IsZero() {
			t.Error("what waits by itself counts as what a proxy doesn't take in")
		}
	}
	g.mu.Unlock()
	h.proxiesTake(0)
	p.expect("routes +t/0=[x:5]")
	p.quiet()
}

// A table has as many seconds as it has times the rate in bytes, whoever asks.
func TestSpareResourcesAreSentAtARate(t *testing.T) {
	h, p := withSpare(t)
	h.proxiesTake(0)
	long := "x:" + strings.Repeat("7", 3*spareRate)
	before := time.Now()
	h.apply(table("t/0", long).Sparing(true))
	p.ack(p.next())
	after := time.Now() // it has been sent in between
	p.quiet()
	g := h.server.gateways[gw]
	g.mu.Lock()
	defer g.mu.Unlock()
	for s := range g.sessions {
		if until := s.spares.until; until.Sub(before) < 3*time.Second || until.Sub(after) > 3100*time.Millisecond {
			t.Errorf("the next one may come %v after this one", until.Sub(after))
		}
	}
}

// A proxy that has not got much yet is given more at once.
func TestFewSpareResourcesDoNotWait(t *testing.T) {
	h, p := withSpare(t)
	h.proxiesTake(spareAhead / 2)
	h.apply(table("t/0", "x:3").Sparing(true))
	p.expect("routes +t/0=[x:3]")
	g := h.server.gateways[gw]
	g.mu.Lock()
	defer g.mu.Unlock()
	for s := range g.sessions {
		if s.spares.timer != nil {
			t.Error("it has waited")
		}
	}
}

func TestSpareGuardsDoNotWait(t *testing.T) {
	h, p := withSpare(t)
	h.apply(table("t/0", "x:3").Sparing(true))
	p.quiet()
	h.apply(table("t/0", "x:3@k").Sparing(true))
	p.expect("routes +t/0=[x:3@k]")
	h.apply(table("t/0", "x:4@k").Sparing(true))
	p.quiet()
	h.apply(table("t/0", "x:5@k").Sparing(true).Guarded(guardBy("r")))
	p.expect("routes +t/0=[x:5@k]")
}

// What a proxy has is not what it has refused.
func TestSpareAfterARefusal(t *testing.T) {
	h, p := withSpare(t)
	h.apply(table("t/0", "x:3@k").Sparing(true))
	p.expect("routes +t/0=[x:3@k] ! no", "routes +t/0=[x:500]")
	h.apply(table("t/0", "x:4@k").Sparing(true))
	p.expect("routes +t/0=[x:4@k]")
}

func TestSpareThatIsInForceAgain(t *testing.T) {
	h, p := withSpare(t)
	h.apply(table("t/0", "x:3").Sparing(true))
	p.quiet()
	h.apply(table("t/0", "x:3"))
	p.expect("routes +t/0=[x:3]")
}

func TestSpareThatGoes(t *testing.T) {
	h, p := withSpare(t)
	h.apply(table("t/0", "x:3").Sparing(true), "-cluster/old")
	p.quiet()
	h.apply("-routes/t/0")
	p.expect("cluster -old", "routes +t/0=empty")
}

// What a spare resource refers to stays until the version that doesn't has been answered, also where still newer
// ones wait.
func TestRemovalsWaitForSpareResources(t *testing.T) {
	h, p := withSpare(t)
	h.apply(cluster("new", "1"), table("t", "x:3"), table("t/0", "x:3").Sparing(true), "-cluster/old")
	p.expect("cluster +new=1", "routes +t=[x:3]")
	p.quiet()
	h.proxiesTake(0)
	p.expect("routes +t/0=[x:3] ?")
	h.proxiesTake(time.Hour)
	h.apply(table("t/0", "x:4").Sparing(true))
	p.quiet()
	p.answer()
	p.expect("cluster -old")
	p.quiet()
}

// Whoever edits guards all the time holds up nobody else's removals.
func TestSpareResourcesWaitForAShortTime(t *testing.T) {
	h, p := withSpare(t)
	h.apply(table("t/1", "y:1").Sparing(true))
	p.subscribe(envoy.Routes, "t/1")
	p.expect("routes +t/1=[y:1]")
	until := func() (at time.Time) {
		g := h.server.gateways[gw]
		g.mu.Lock()
		defer g.mu.Unlock()
		for s := range g.sessions {
			at = s.spares.until
		}
		return at
	}
	h.proxiesTake(0)
	for _, by := range []string{"k", "l", "m"} {
		h.apply(table("t/0", "x:"+strings.Repeat("7", 20*spareRate)+"@"+by).Sparing(true))
		p.ack(p.next())
	}
	p.quiet()
	if left := time.Until(until()); left > maxSpareWait {
		t.Errorf("what changes now waits for %v", left)
	}
	h.proxiesTake(time.Hour)
	h.apply(table("t/1", "y:2").Sparing(true), "-cluster/old")
	p.quiet()
	at := until()
	h.apply(table("t/0", "x:"+strings.Repeat("7", 20*spareRate)+"@n").Sparing(true))
	p.ack(p.next())
	p.quiet()
	if later := until(); !later.Equal(at) {
		t.Errorf("and by another's guard for %v longer", later.Sub(at))
	}
	h.proxiesTake(0)
	p.expect("routes +t/1=[y:2]", "cluster -old")
}

func TestSpareThatIsWhatItWas(t *testing.T) {
	h, p := withSpare(t)
	h.apply(table("t/0", "x:3").Sparing(true), "-cluster/old")
	p.quiet()
	h.apply(table("t/0", "x:2").Sparing(true))
	p.expect("cluster -old")
}
