package xds

import (
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// Two types that are not served, for tests: a type is a row, and nothing else in this
// package names it.
const (
	// areas are all asked for at once, refer to others and can be removed.
	areas = envoy.NumTypes + iota
	// vhosts come with the area of their name, and can only be emptied.
	vhosts
)

// testTypes returns all types, also those of tests.
func testTypes() []resourceType {
	return append(resourceTypes(),
		resourceType{
			name: "area", url: "type.googleapis.com/envoy.test.Area",
			hasWildcard:  true,
			refers:       true,
			removalOrder: 7,
		},
		resourceType{
			name: "vhost", url: "type.googleapis.com/envoy.config.route.v3.VirtualHost",
			with:         new(areas),
			removalOrder: 8,
			empty:        func(name string) *envoy.Resource { return vhost(name, "nothing") },
			passing:      func(message string) bool { return message == "busy" },
		},
	)
}

func area(name, body string) *envoy.Resource  { return resource(areas, name, body) }
func vhost(name, body string) *envoy.Resource { return resource(vhosts, name, body) }

// A row is all that a type needs to be served, acknowledged, refused, emptied and
// removed, in its place among the others.
func TestATypeIsARow(t *testing.T) {
	h := startWith(t, testTypes())
	h.apply(append(small(), area("s", "1"), vhost("s", "1"))...)
	p := h.connectAll()
	p.subscribe(envoy.Extensions, "limits")
	p.expect("extension +limits=empty")
	p.subscribe(envoy.Scopes)
	p.expect("scope")

	// Served and acknowledged: what belongs to a resource follows unasked, and again
	// if that was too early.
	p.subscribe(areas)
	p.expect("area +s=1", "vhost +s=1")
	p.subscribe(vhosts, "s", "none")
	p.expect("vhost +none=empty", "vhost +s=1")
	p.unsubscribe(vhosts, "none")
	p.quiet()
	all := h.server.Sessions()[0].Types
	if y := all[areas]; y.Type != "area" || !y.Wildcard || y.Resources != 1 || y.Sent != 1 || y.Acked != 1 {
		t.Errorf("%+v", y)
	}
	if y := all[vhosts]; y.Type != "vhost" || y.Wildcard || y.Resources != 1 || y.Sent != 3 || y.Acked != 3 {
		t.Errorf("%+v", y)
	}

	// In order: after what it refers to, and before the removal of what it referred to.
	h.apply("-cluster/a", "-endpoints/a", area("s", "2"), table("t", "x:2"), ends("new", "1"), cluster("new", "1"))
	p.expect("cluster +new=1", "endpoints +new=1", "routes +t=[x:2]", "area +s=2 ?", "vhost +s=1")
	p.quiet()
	p.answer()
	p.expect("cluster -a")
	p.unsubscribe(envoy.Endpoints, "a")

	// Refused: alone, with the last good version in force, which holds up removals.
	h.apply(area("s", "bad"), area("u", "1"), "-cluster/b", "-endpoints/b")
	p.expect("area +s=bad ! no", "area +u=1", "vhost +s=1")
	h.state("s refused", rejects("type-7/s old"))
	p.quiet()
	h.apply(area("s", "3"))
	p.expect("area +s=3", "vhost +s=1", "cluster -b")
	p.unsubscribe(envoy.Endpoints, "b")
	h.state("healed", rejects())

	// Refused when it is new: emptied for the time being. What may pass is tried again.
	h.apply(vhost("u", "bad"))
	p.subscribe(vhosts, "u")
	p.expect("vhost +u=bad ! no", "vhost +u=empty")
	h.state("u refused", rejects("type-8/u"))
	h.apply(vhost("u", "1"))
	p.expect("vhost +u=1 ! busy", "vhost +u=1")
	h.state("healed", rejects())

	// Emptied and removed.
	h.apply("-vhost/s")
	p.expect("vhost +s=empty")
	h.apply("-area/s", "-area/u", "-vhost/u")
	p.expect("area -s -u")
	p.unsubscribe(vhosts, "s", "u")
	p.quiet()
}

// A proxy that comes back with resources of a type of its own keeps what is equal and
// loses what is left over.
func TestATypeIsARowForAProxyThatComesBack(t *testing.T) {
	h := startWith(t, testTypes(), func(o *Options) { o.Grace = 10 * time.Millisecond })
	h.apply(area("s", "1"), area("u", "2"), vhost("s", "1"))
	p := h.connect()
	p.resume(areas, area("s", "1"), area("u", "1"), area("old", "1"))
	p.resume(vhosts, vhost("s", "1"))
	p.expect("area +u=2", "area -old")
	p.quiet()
	p.cancel()
	waitFor(t, "gone", func() bool { return len(h.server.Sessions()) == 0 })

	// What it refused it may have, and doesn't say so.
	p = h.connect()
	p.resume(areas, area("s", "1"), area("u", "2"))
	h.apply(area("v", "1"))
	p.expect("area +v=1 ?")
	p.cancel()
	waitFor(t, "gone", func() bool { return len(h.server.Sessions()) == 0 })
	h.apply("-area/v")
	p = h.connect()
	p.resume(areas, area("s", "1"), area("u", "2"))
	p.expect("area -v")
	p.quiet()
}

// The same questions to every type, and what the proxy is sent.
func TestEveryType(t *testing.T) {
	type lines []string
	cases := map[envoy.Type]struct {
		served, changed, refused, healed, removed, back lines
	}{
		envoy.Clusters: {
			served: lines{"cluster +r=1"}, changed: lines{"cluster +r=2"},
			// The refused one may stay among those that warm.
			refused: lines{"cluster +r=3 ! no", "cluster +r=2"},
			healed:  lines{"cluster +r=4"}, removed: lines{"cluster -r"}, back: lines{"cluster +r=5"},
		},
		envoy.Endpoints: {
			served: lines{"endpoints +r=1"}, changed: lines{"endpoints +r=2"}, refused: lines{"endpoints +r=3 ! no"},
			healed: lines{"endpoints +r=4"},
			// There is no cluster that they could be used by.
			removed: nil, back: lines{"endpoints +r=5"},
		},
		envoy.Secrets: {
			served: lines{"secret +r=1"}, changed: lines{"secret +r=2"}, refused: lines{"secret +r=3 ! no"},
			healed: lines{"secret +r=4"}, removed: lines{"secret -r"}, back: lines{"secret +r=5"},
		},
		envoy.Listeners: {
			served: lines{"listener +r=1"}, changed: lines{"listener +r=2"},
			// The version before may have been in a response that was refused.
			refused: lines{"listener +r=3 ! no", "listener +r=2"},
			healed:  lines{"listener +r=4"}, removed: lines{"listener -r"}, back: lines{"listener +r=5"},
		},
		envoy.Extensions: {
			served: lines{"extension +r=1"}, changed: lines{"extension +r=2"}, refused: lines{"extension +r=3 ! no"},
			healed: lines{"extension +r=4"}, removed: lines{"extension +r=empty"}, back: lines{"extension +r=5"},
		},
		envoy.Routes: {
			served: lines{"routes +r=1"}, changed: lines{"routes +r=2"}, refused: lines{"routes +r=3 ! no"},
			healed: lines{"routes +r=4"}, removed: lines{"routes +r=empty"}, back: lines{"routes +r=5"},
		},
		envoy.Scopes: {
			served: lines{"scope +r=1"}, changed: lines{"scope +r=2"},
			// The version before may have been in a response that was refused.
			refused: lines{"scope +r=3 ! no", "scope +r=2"},
			healed:  lines{"scope +r=4"}, removed: lines{"scope -r"}, back: lines{"scope +r=5"},
		},
		areas: {
			served: lines{"area +r=1"}, changed: lines{"area +r=2"}, refused: lines{"area +r=3 ! no"},
			healed: lines{"area +r=4"}, removed: lines{"area -r"}, back: lines{"area +r=5"},
		},
		vhosts: {
			served: lines{"vhost +r=1"}, changed: lines{"vhost +r=2"}, refused: lines{"vhost +r=3 ! no"},
			healed: lines{"vhost +r=4"}, removed: nil, back: lines{"vhost +r=5"},
		},
	}
	for i, y := range testTypes() {
		t.Run(y.name, func(t *testing.T) {
			typ := envoy.Type(i)
			c, ok := cases[typ]
			if !ok {
				t.Fatal("say here what a proxy is sent of the type")
			}
			h := startWith(t, testTypes(), func(o *Options) { o.Grace = time.Millisecond })
			set := func(body string) { h.apply(resource(typ, "r", body)) }
			set("1")
			p := h.connect()
			if y.hasWildcard {
				p.subscribe(typ)
			} else {
				p.subscribe(typ, "r")
			}
			p.expect(c.served...)
			p.quiet()
			set("2")
			p.expect(c.changed...)
			p.quiet()
			set("3")
			p.expect(c.refused...)
			h.state("r refused", rejects(Ref{typ, "r"}.String()+" old"))
			p.quiet()
			set("4")
			p.expect(c.healed...)
			h.state("healed", rejects())
			h.apply("-" + y.name + "/r")
			p.expect(c.removed...)
			p.quiet()
			set("5")
			p.expect(c.back...)
			p.quiet()
		})
	}
}

// What a row says of another type, and the order of the rows, fit together.
func TestTypesFitTogether(t *testing.T) {
	types := testTypes()
	if n := len(resourceTypes()); n != int(envoy.NumTypes) {
		t.Errorf("%d of %d types are served", n, envoy.NumTypes)
	}
	names, urls, removals := map[string]bool{}, map[string]bool{}, map[int]bool{}
	referring := false
	for i, y := range types {
		if y.name == "" || names[y.name] || y.url == "" || urls[y.url] {
			t.Errorf("%s: its name or URL is missing or another type's", y.name)
		}
		names[y.name], urls[y.url] = true, true
		if !y.removedAtOnce && (removals[y.removalOrder] || y.removalOrder == 0) {
			t.Errorf("%s: its place among the removals is missing or another type's", y.name)
		}
		removals[y.removalOrder] = !y.removedAtOnce
		if y.with != nil && (int(*y.with) >= i || y.removalOrder <= types[*y.with].removalOrder) {
			t.Errorf("%s: what it belongs to must be sent and removed before it", y.name)
		}
		if y.waitsFor != nil && (types[*y.waitsFor].refers && !y.askedOnce() || y.removalOrder >= types[*y.waitsFor].removalOrder) {
			t.Errorf("%s: what it waits for must be sent before what refers to it, and removed after it", y.name)
		}
		if referring && y.waitsFor != nil && !y.askedOnce() {
			t.Errorf("%s: it must come before what refers to it", y.name)
		}
		referring = referring || y.refers
		if y.empty != nil && (y.hasWildcard || y.shared) {
			t.Errorf("%s: only what is asked for by name and sent alone can be emptied", y.name)
		}
		if y.shared != (y.atFault != "") {
			t.Errorf("%s: its responses can be shared if and only if a refusal names who is at fault", y.name)
		}
	}
}
