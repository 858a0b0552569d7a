package xds

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// The last good version of a host doesn't stand in for one that says otherwise who may pass.
func TestRefusedGuard(t *testing.T) {
	h := start(t)
	h.apply(table("t", "x:1", "y:1@a", "z:1@a"))
	p := h.connect()
	p.subscribe(envoy.Routes, "t")
	p.expect("routes +t=[x:1 y:1@a z:1@a]")
	// A guard is new on x and another one on y; z has the same as before.
	h.apply(table("t", "x:bad@a", "y:bad@b", "z:bad@a"))
	p.expect(
		"routes +t=[x:bad@a y:bad@b z:bad@a] ! no",
		"routes +t=[x:bad@a y:1@a z:1@a] ! no",
		// From here on it is certain that x is at fault.
		"routes +t=[x:500 y:bad@b z:bad@a] ! no",
		"routes +t=[x:500 y:1@a z:1@a]",
		"routes +t=[x:500 y:bad@b z:1@a] ! no",
		"routes +t=[x:500 y:500 z:bad@a] ! no",
		"routes +t=[x:500 y:500 z:1@a]",
	)
	h.state("all refused", rejects("routes/t/x", "routes/t/y", "routes/t/z old"))
	p.quiet()
	late := h.connect()
	late.subscribe(envoy.Routes, "t")
	late.expect("routes +t=[x:500 y:500 z:1@a]")
	// Where nobody is to be stopped any more, and nothing is refused, it serves again.
	h.apply(table("t", "x:2", "y:2@b", "z:2@a"))
	late.expect("routes +t=[x:2 y:2@b z:2@a]")
	h.state("healed", rejects())
}

// A guard of the table itself is that of all its hosts.
func TestRefusedGuardOfATable(t *testing.T) {
	h := start(t)
	h.apply(table("t", "x:1", "y:1"))
	p := h.connect()
	p.subscribe(envoy.Routes, "t")
	p.expect("routes +t=[x:1 y:1]")
	h.apply(envoy.NewComposite(envoy.Routes, "t", []byte("table bad "), table("", "x:2", "y:1").Parts()).Guarded(guardBy("a")))
	p.expect("routes +t=[bad x:2 y:1] ! no", "routes +t=[bad x:1 y:1] ! no", "routes +t=[x:500 y:500]")
	h.state("t refused", rejects("routes/t"))
	// An edit of a host changes nothing of it: what is in force stays.
	h.apply(envoy.NewComposite(envoy.Routes, "t", []byte("table bad "), table("", "x:3", "y:1").Parts()).Guarded(guardBy("a")))
	p.expect("routes +t=[bad x:3 y:1] ! no", "routes +t=[bad x:500 y:500] ! no")
	p.quiet()
	h.state("t refused still", rejects("routes/t"))
	h.apply(table("t", "x:3", "y:1"))
	p.expect("routes +t=[x:3 y:1]")
	h.state("healed", rejects())
}

// A table whose own fields are at fault doesn't keep hosts open that the new one guards.
func TestRefusedTableOfGuardedHosts(t *testing.T) {
	h := start(t)
	h.apply(table("t", "a:1@a", "c:1", "x:1", "y:1"))
	p := h.connect()
	p.subscribe(envoy.Routes, "t")
	p.expect("routes +t=[a:1@a c:1 x:1 y:1]")
	// Nor those that it doesn't have: another one has a wildcard that takes their requests, perhaps.
	bad := envoy.NewComposite(envoy.Routes, "t", []byte("table bad "), table("", "a:2@a", "b:1@a", "x:2@a", "y:1", "z:1").Parts())
	h.apply(bad)
	p.expect(
		"routes +t=[bad a:2@a b:1@a x:2@a y:1 z:1] ! no",
		"routes +t=[bad a:1@a b:500 x:500 y:1 z:500] ! no",
		"routes +t=[a:1@a b:500 x:500 y:1 z:500]",
	)
	h.state("t refused", rejects("routes/t old"))
	p.quiet()
	h.apply(table("t", "a:2@a", "b:1@a", "x:2@a", "y:1"))
	p.expect("routes +t=[a:2@a b:1@a x:2@a y:1]")
	h.state("healed", rejects())
}

// A host of the version before is not served in a table that has another guard around it, nor
// without one that was beside it, if the new version of the host says otherwise who may pass.
func TestRefusedGuardThatMoves(t *testing.T) {
	h := start(t)
	h.apply(table("t", "x:1", "y:1").Guarded(guardBy("a")))
	p := h.connect()
	p.subscribe(envoy.Routes, "t")
	p.expect("routes +t=[x:1 y:1]")
	// From the table to its hosts.
	h.apply(table("t", "x:bad@a", "y:2@a", "z:1@a"))
	p.expect(
		"routes +t=[x:bad@a y:2@a z:1@a] ! no",
		"routes +t=[x:500 y:500 z:500]",
		"routes +t=[x:bad@a y:500 z:500] ! no",
		"routes +t=[x:500 y:2@a z:1@a]",
	)
	h.state("x refused", rejects("routes/t/x"))
	// From a host that goes to the one that gets its requests.
	h.apply(table("t", "x:3", "y:2", "z:1@a"))
	p.expect("routes +t=[x:3 y:2 z:1@a]")
	h.apply(table("t", "x:bad", "y:3@a"))
	p.expect(
		"routes +t=[x:bad y:3@a] ! no",
		"routes +t=[x:3 y:500]",
		"routes +t=[x:bad y:500] ! no",
		"routes +t=[x:3 y:3@a]",
	)
	h.state("x refused again", rejects("routes/t/x old"))
	p.quiet()
}

// A listener that asks for other certificates of clients is not served as it was before.
func TestRefusedGuardOfAListener(t *testing.T) {
	h := start(t)
	h.apply(listener("l", "1"), listener("m", "1").Guarded(guardBy("a")))
	p := h.connect()
	p.subscribe(envoy.Listeners)
	p.expect("listener +l=1 +m=1")
	h.apply(listener("l", "bad").Guarded(guardBy("a")), listener("m", "bad").Guarded(guardBy("a")))
	p.expect("listener +l=bad +m=bad ! Error adding/updating listener(s) l: no\nm: no", "listener +m=1 -l")
	h.state("both refused", rejects("listener/l", "listener/m old"))
	p.quiet() // whoever comes before the answer is told to remove l: it may be the same proxy
	late := h.connect()
	late.subscribe(envoy.Listeners)
	late.expect("listener +m=1")
	late.quiet()
	h.apply(listener("l", "2").Guarded(guardBy("a")), listener("m", "2"))
	p.expect("listener +l=2 +m=2")
	late.expect("listener +l=2 +m=2")
	h.state("healed", rejects())
}

// Authorities that are refused are not replaced by those before, but by nobody's.
func TestRefusedAuthorities(t *testing.T) {
	h := start(t)
	h.apply(secret("a", "1").Guarded(guardBy("1")), secret("pair", "1"))
	p := h.connect()
	p.subscribe(envoy.Secrets, "a", "pair")
	p.expect("secret +a=1", "secret +pair=1")
	h.apply(secret("a", "bad").Guarded(guardBy("2")), secret("pair", "bad"))
	p.expect("secret +a=bad ! no", "secret +pair=bad ! no", "secret +a=nobody's")
	p.quiet()
	h.state("both refused", rejects("secret/a", "secret/pair old"))
	h.apply(secret("a", "worse").Guarded(guardBy("3")))
	p.expect("secret +a=worse ! no") // it has nobody's already
	p.quiet()
	late := h.connect()
	late.subscribe(envoy.Secrets, "a", "pair")
	late.expect("secret +a=nobody's", "secret +pair=1")
	h.apply(secret("a", "1").Guarded(guardBy("1")))
	p.expect("secret +a=1")
	late.expect("secret +a=1")
	h.state("a is healed", rejects("secret/pair old"))
}

// Who may pass by a divided table is not what it was before, if that is refused, but nobody.
func TestRefusedTableAccess(t *testing.T) {
	access := func(body, guard string) *envoy.Resource {
		return resource(envoy.Extensions, "gatehouse.access/t", body).Guarded(guardBy(guard))
	}
	h := start(t)
	h.apply(access("1", "1"), resource(envoy.Extensions, "tcp", "1"))
	p := h.connect()
	p.subscribe(envoy.Extensions, "gatehouse.access/t", "tcp")
	p.expect("extension +gatehouse.access/t=1", "extension +tcp=1")
	h.apply(access("bad", "2"), resource(envoy.Extensions, "tcp", "bad"))
	p.expect("extension +gatehouse.access/t=bad ! no", "extension +tcp=bad ! no", "extension +gatehouse.access/t=empty")
	p.quiet()
	h.state("both refused", rejects("extension/gatehouse.access/t", "extension/tcp old"))
	h.apply(access("2", "3"))
	p.expect("extension +gatehouse.access/t=2")
	h.state("healed", rejects("extension/tcp old"))
}

// A proxy that refuses what guards goes on with nothing that this process doesn't know.
func TestRefusedGuardAfterARestart(t *testing.T) {
	h := start(t)
	h.apply(secret("a", "bad").Guarded(guardBy("2")), secret("pair", "bad"))
	p := h.connect()
	p.resume(envoy.Secrets, secret("a", "1"), secret("pair", "1"))
	p.expect("secret +a=bad ! no", "secret +pair=bad ! no", "secret +a=nobody's")
	p.quiet()
	h.state("both refused", rejects("secret/a", "secret/pair"))
}

// What one proxy refuses is not in force for that another one takes it, whichever answers first:
// the one that refuses would go on with the version before.
func TestRefusedGuardThatAnotherTakes(t *testing.T) {
	for _, first := range []string{"refused", "taken"} {
		t.Run(first+" first", func(t *testing.T) {
			h := start(t)
			h.apply(secret("a", "1").Guarded(guardBy("1")))
			p, q := h.connect(), h.connect()
			for _, c := range []*client{p, q} {
				c.subscribe(envoy.Secrets, "a")
				c.expect("secret +a=1")
			}
			h.apply(secret("a", "2").Guarded(guardBy("2")))
			if first == "taken" {
				q.expect("secret +a=2")
				q.quiet()
				p.expect("secret +a=2 ! no", "secret +a=nobody's")
				q.expect("secret +a=nobody's")
			} else {
				q.expect("secret +a=2 ?")
				p.expect("secret +a=2 ! no", "secret +a=nobody's")
				q.answer()
				q.expect("secret +a=nobody's")
			}
			p.quiet()
			q.quiet()
			h.state("refused", rejects("secret/a"))
			late := h.connect()
			late.subscribe(envoy.Secrets, "a")
			late.expect("secret +a=nobody's")
			h.apply(secret("a", "3").Guarded(guardBy("3")))
			for _, c := range []*client{p, q, late} {
				c.expect("secret +a=3")
			}
			h.state("healed", rejects())
		})
	}
}
