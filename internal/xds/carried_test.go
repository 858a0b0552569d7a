package xds

import (
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

func carrying(r *envoy.Resource, marks ...uint64) *envoy.Resource { return r.Carrying(&marks) }

func carried(c *Carried) func(State) bool {
	return func(s State) bool { return s.Carried.equal(c) }
}

// What is on its way to a proxy is not in force there, and what others have of it stays said:
// whoever guards something by it must not be told that it is too early, nor that it is gone.
func TestCarried(t *testing.T) {
	h := start(t)
	h.apply(append(small(), carrying(table("t", "x:1", "y:1"), 1, 2))...)
	p, q := h.connectAll(), h.connectAll()
	h.state("two proxies with all", carried(&Carried{Proxies: 2, Marks: []uint64{1, 2}}))

	h.apply(carrying(table("t", "x:2", "y:1"), 2, 3))
	p.expect("routes +t=[x:2 y:1]")
	q.expect("routes +t=[x:2 y:1] ?")
	h.state("one that lacks the new mark", carried(&Carried{Proxies: 2, Marks: []uint64{2, 3}, Lacking: map[uint64]int{3: 1}}))
	q.answer()
	h.state("both that have it", carried(&Carried{Proxies: 2, Marks: []uint64{2, 3}}))

	// A mark that changes nothing for a proxy is there at once.
	h.apply(carrying(table("t", "x:2", "y:1"), 2, 3, 4))
	h.state("a mark without a change", carried(&Carried{Proxies: 2, Marks: []uint64{2, 3, 4}}))

	// A table brings what it carries without the hosts that are refused, of which the state says so.
	h.apply(carrying(table("t", "x:2", "y:3"), 2, 3, 5))
	p.expect("routes +t=[x:2 y:3] ?")
	h.state("a table on its way", carried(&Carried{Proxies: 2, Marks: []uint64{2, 3, 5}, Lacking: map[uint64]int{5: 2}}))
	p.nack(p.pending[0], "y is bad")
	h.state("a refusal", func(s State) bool {
		return len(s.Rejected) == 1 && s.Carried.equal(&Carried{Proxies: 2, Marks: []uint64{2, 3, 5}})
	})
}

// A proxy that has something which never carries marks has none of them in force for it.
func TestCarriedByNobodyYet(t *testing.T) {
	h := start(t)
	h.apply(append(small(), carrying(table("t", "x:1"), 1), resource(envoy.Extensions, "tcp", "1"))...)
	p := h.connect()
	p.subscribe(envoy.Extensions, "tcp")
	p.expect("extension +tcp=1")
	p.quiet()
	if s := h.server.reports.state(gw); s.Carried != nil {
		t.Errorf("%+v", s.Carried)
	}
	p.subscribe(envoy.Routes, "t")
	p.expect("routes +t=[x:1]")
	h.state("a proxy with the table", carried(&Carried{Proxies: 1, Marks: []uint64{1}}))
}

// Who may pass by a divided table is in force when the proxy has what stands beside its shards, and
// what stands there for a proxy that refuses it brings nothing.
func TestCarriedBesideShards(t *testing.T) {
	const name = "gatehouse.access/t"
	access := func(body, guard string, marks ...uint64) *envoy.Resource {
		return carrying(resource(envoy.Extensions, name, body).Guarded(guardBy(guard)), marks...)
	}
	h := start(t)
	h.apply(append(small(), carrying(table("t", "x:1", "y:1"), 9))...)
	p := h.connectAll()
	p.subscribe(envoy.Extensions, name)
	p.expect("extension +" + name + "=empty")
	h.state("a proxy with the table", carried(&Carried{Proxies: 1, Marks: []uint64{9}}))
	h.apply(carrying(table("t", "x:1", "y:1"), 1, 9), access("1", "1", 1))
	p.expect("extension +" + name + "=1 ?")
	h.state("a policy on its way", carried(&Carried{Proxies: 1, Marks: []uint64{1, 9}, Lacking: map[uint64]int{1: 1}}))
	p.answer()
	h.state("a policy in force", carried(&Carried{Proxies: 1, Marks: []uint64{1, 9}}))
	h.apply(carrying(table("t", "x:1", "y:1"), 2, 9), access("bad", "2", 2))
	p.expect("extension +"+name+"=bad ! no", "extension +"+name+"=empty")
	h.state("a policy that is refused", func(s State) bool {
		return len(s.Rejected) == 1 && s.Carried.equal(&Carried{Proxies: 1, Marks: []uint64{2, 9}, Lacking: map[uint64]int{2: 1}})
	})
}

// Edits that bring nothing new are no news, however many there are.
func TestCarriedIsNoNews(t *testing.T) {
	h := start(t)
	var looks atomic.Int32
	state := h.server.reports.state
	h.server.reports.state = func(gateway object.Name) State {
		looks.Add(1)
		return state(gateway)
	}
	h.apply(append(small(), carrying(table("t", "x:1", "y:1"), 1, 2))...)
	p := h.connectAll()
	h.state("a proxy with all", carried(&Carried{Proxies: 1, Marks: []uint64{1, 2}}))
	p.quiet()
	before := looks.Load()
	for _, body := range []string{"x:2", "x:3", "x:4"} {
		h.apply(carrying(table("t", body, "y:1"), 1, 2))
		p.expect("routes +t=[" + body + " y:1]")
	}
	p.quiet()
	if n := looks.Load() - before; n != 0 {
		t.Errorf("the state has been looked at %d times", n)
	}
}

// Of a mark that one server doesn't know nothing is said about its proxies.
func TestMergeCarried(t *testing.T) {
	a := State{Connected: 2, Carried: &Carried{Proxies: 2, Marks: []uint64{1, 2}, Lacking: map[uint64]int{2: 1}}}
	b := State{Connected: 1, Carried: &Carried{Proxies: 1, Marks: []uint64{1, 3}}}
	want := &Carried{Proxies: 3, Marks: []uint64{1, 2, 3}, Lacking: map[uint64]int{2: 2, 3: 2}}
	for _, list := range [][]State{{a, b}, {b, a}, {a, {}, b}, {a, {Connected: 4}, b}} {
		if d := cmp.Diff(want, MergeStates(list...).Carried); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	}
}
