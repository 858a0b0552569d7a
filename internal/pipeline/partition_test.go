package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// edgeRoute is a route of the edge Gateway with one rule for everything.
func edgeRoute(name string, hostnames ...gwv1.Hostname) *gwv1.HTTPRoute {
	r := &gwv1.HTTPRoute{}
	r.Namespace, r.Name = "default", name
	r.Spec.ParentRefs = []gwv1.ParentReference{{Name: "edge"}}
	r.Spec.Hostnames = hostnames
	r.Spec.Rules = []gwv1.HTTPRouteRule{{}}
	return r
}

// TestShards protects that nothing but partition.go knows in which route configuration a
// host lives: of a table with many routes, every host is sent in its shard, hosts with
// wildcards in all, and what a proxy refuses leads back to the routes from there.
func TestShards(t *testing.T) {
	options := standalone
	options.Topology.Settings = &v1alpha1.Settings{RouteTables: &v1alpha1.RouteTables{ShardAbove: new(int32(4))}}
	p := New(options)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	pass := func(d time.Duration) {
		now = now.Add(d)
		p.Updates(p.Update(func(tx *flow.Tx) {
			p.Tick(tx, now)
			p.Take(tx, nil)
		}))
	}
	gw := edgeGateway(gwv1.Listener{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType})
	sentTo := func(spare bool) map[string][]string {
		out := map[string][]string{}
		p.Engine.View(func(c *flow.Ctx) {
			for k, r := range flow.All(c, p.RouteConfigurations) {
				if r.Spare != spare {
					continue
				}
				var hosts []string
				for _, part := range r.Parts() {
					hosts = append(hosts, part.Name)
				}
				out[k.Name] = slices.Sorted(slices.Values(hosts))
				if _, scoped := flow.Get(c, p.Scopes, k); scoped != strings.Contains(k.Name, "/") {
					t.Errorf("%s has a scope: %t", k, scoped)
				}
			}
		})
		return out
	}
	sent := func() map[string][]string { return sentTo(false) }
	told := func() []string {
		routes := map[string]bool{}
		p.Engine.View(func(c *flow.Ctx) {
			for k, s := range flow.All(c, p.RouteStatus) {
				for _, parent := range s.Parents {
					for _, c := range parent.Conditions {
						if strings.Contains(c.Message, "refused because") {
							routes[k.Name.Name] = true
						}
					}
				}
			}
		})
		return slices.Sorted(maps.Keys(routes))
	}
	refuse := func(configuration, domain string) {
		state := xds.State{Connected: 1}
		state.Rejected = []xds.Rejected{{Ref: xds.Ref{Type: envoy.Routes, Name: configuration}, Part: domain, Message: "refused because"}}
		p.Update(func(tx *flow.Tx) { p.TakeFeedback(tx, object.Name{Namespace: "default", Name: "edge"}, state) })
	}
	check := func(what string, got, want any) {
		t.Helper()
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", what, d)
		}
	}

	add := func(name string, hostnames ...gwv1.Hostname) {
		p.Updates(p.Apply(source.Batch{Set: []source.Object{edgeRoute(name, hostnames...)}}))
	}
	shardOf := func(host string) string { return envoy.ShardName("http-80", envoy.ShardOf(host)) }
	asks := func() (sharded bool) {
		p.Engine.View(func(c *flow.Ctx) {
			for _, r := range flow.All(c, p.Listeners) {
				sharded = strings.Contains(string(r.Body()), "gatehouse-shard")
			}
		})
		return sharded
	}

	pass(0)
	p.Apply(source.Batch{Set: []source.Object{gw}})
	check("without routes", sent(), map[string][]string{"http-80": {"*"}})
	add("first", "a.test", "b.test", "c.test")
	add("wide", "*.test")
	check("with few routes", sent(), map[string][]string{"http-80": {"*", "*.test", "a.test", "b.test", "c.test"}})
	check("few routes: the listener asks for a shard", asks(), false)

	add("fifth", "d.test")
	check("with many routes: the listener asks for a shard", asks(), true)
	want := map[string][]string{}
	for shard := range uint8(envoy.Shards) {
		hosts := []string{"*", "*.test"}
		for _, h := range []string{"a.test", "b.test", "c.test", "d.test"} {
			if envoy.ShardOf(h) == shard {
				hosts = append(hosts, h)
			}
		}
		want[envoy.ShardName("http-80", shard)] = hosts
	}
	check("with many routes", sent(), want)
	all := map[string][]string{"http-80": {"*", "*.test", "a.test", "b.test", "c.test", "d.test"}}
	check("for what drains", sentTo(true), all)
	add("fifth", "d.test", "e.test")
	all["http-80"] = append(all["http-80"], "e.test")
	check("for what drains, after an edit", sentTo(true), all)
	pass(drained - time.Minute)
	check("for what still drains", sentTo(true), all)
	add("fifth", "d.test")
	pass(time.Minute)
	check("when all has drained", sentTo(true), map[string][]string{})
	check("with many routes, later", sent(), want)

	refuse(shardOf("a.test"), "a.test")
	check("a host is refused", told(), []string{"first"})
	refuse(shardOf("a.test"), "b.test")
	check("a host is refused where it doesn't live", told(), []string(nil))
	refuse("http-80", "a.test")
	check("a host is refused in a configuration that is no more", told(), []string(nil))
	refuse(shardOf("d.test"), "*.test")
	check("a host of all shards is refused in one", told(), []string{"wide"})

	for _, gone := range []string{"fifth", "wide"} {
		p.Updates(p.Apply(source.Batch{Deleted: []object.Key{{Kind: kind.HTTPRoute, Name: object.Name{Namespace: "default", Name: gone}}}}))
		check("with fewer routes: the listener asks for a shard", asks(), true)
	}
	add("first", "a.test")
	check("with few routes again", sent(), map[string][]string{"http-80": {"*", "a.test"}})
	check("few routes again: the shards of what drains", len(sentTo(true)), envoy.Shards)
	// A proxy that refuses the new listener goes on with the old one, and with shards.
	say := func(state xds.State) {
		p.Updates(p.Update(func(tx *flow.Tx) { p.TakeFeedback(tx, object.Name{Namespace: "default", Name: "edge"}, state) }))
	}
	say(xds.State{Rejected: []xds.Rejected{{Ref: xds.Ref{Type: envoy.Listeners, Name: "http-80@127.0.0.1"}, ServingOld: true}}})
	for range 3 {
		pass(drained)
	}
	say(xds.State{})
	pass(drained - time.Minute)
	check("few routes again: the shards of what a proxy serves with a listener of before", len(sentTo(true)), envoy.Shards)
	add("first", "b.test")
	check("few routes again: a shard of what drains", sentTo(true)[shardOf("b.test")], []string{"*", "b.test"})
	pass(time.Minute)
	check("few routes again, when all has drained", sentTo(true), map[string][]string{})
	check("few routes again: the listener asks for a shard", asks(), false)
}

// What starts doesn't know in which form proxies have a table that would have stayed divided.
func TestShardsAtTheStart(t *testing.T) {
	for _, hosts := range []int{2, 3, 4, 5} {
		for _, nobody := range []bool{false, true} {
			options := standalone
			options.NoProxies = nobody
			options.Topology.Settings = &v1alpha1.Settings{RouteTables: &v1alpha1.RouteTables{ShardAbove: new(int32(4))}}
			p := New(options)
			var hostnames []gwv1.Hostname
			for i := range hosts {
				hostnames = append(hostnames, gwv1.Hostname(fmt.Sprintf("h%d.test", i)))
			}
			p.Updates(p.Apply(source.Batch{Set: []source.Object{edgeGateway(gwv1.Listener{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType}), edgeRoute("many", hostnames...)}}))
			count := func() (n int) {
				p.Engine.View(func(c *flow.Ctx) {
					for range flow.All(c, p.RouteConfigurations) {
						n++
					}
				})
				return n
			}
			now := map[bool]int{false: 1, true: envoy.Shards}[hosts > 4]
			first := now
			if hosts > 2 && !nobody {
				first = 1 + envoy.Shards
			}
			if got := count(); got != first {
				t.Errorf("%d hosts, NoProxies %t: %d route configurations, want %d", hosts, nobody, got, first)
			}
			for _, after := range []time.Duration{0, drained} {
				p.Updates(p.Update(func(tx *flow.Tx) {
					p.Tick(tx, time.Time{}.Add(after))
					p.Take(tx, nil)
				}))
			}
			if got := count(); got != now {
				t.Errorf("%d hosts, NoProxies %t: %d route configurations later, want %d", hosts, nobody, got, now)
			}
		}
	}
}

// A table is divided where that makes most edits cheap, and costs little memory.
func TestWhichTablesAreDivided(t *testing.T) {
	spread := func(n, each int32) (c census) {
		for i := range n {
			c.shards[i%envoy.Shards] += each
		}
		return c
	}
	with := func(c census, everywhere int32) census {
		c.everywhere = everywhere
		return c
	}
	for what, c := range map[string]struct {
		census
		above     int
		now, kept bool // if it was whole, or divided
	}{
		"none":                        {census{}, 512, false, false},
		"just few enough":             {spread(512, 1), 512, false, true},
		"one too many":                {spread(513, 1), 512, true, true},
		"half":                        {spread(256, 1), 512, false, false},
		"switched off":                {spread(5000, 1), 0, false, false},
		"one host of many":            {spread(1, 5000), 512, false, false},
		"two hosts":                   {spread(2, 2500), 512, false, true},
		"some hosts of many":          {spread(5, 1000), 512, true, true},
		"a few with wildcards":        {with(spread(600, 1), 17), 512, true, true},
		"many with wildcards":         {with(spread(600, 1), 30), 512, false, true},
		"hardly one without wildcard": {with(spread(10, 1), 600), 512, false, false},
	} {
		if now, kept := c.divides(c.above, false), c.divides(c.above, true); now != c.now || kept != c.kept {
			t.Errorf("%s: divided: %t, and %t if it was; want %t and %t", what, now, kept, c.now, c.kept)
		}
	}
}

// What a proxy that connects has of a table counts: an earlier process, or another replica, has sent it.
func TestShardsThatProxiesHave(t *testing.T) {
	edge := object.Name{Namespace: "default", Name: "edge"}
	type world struct {
		*Pipeline
		now time.Time
	}
	pass := func(w *world, d time.Duration) {
		w.now = w.now.Add(d)
		w.Updates(w.Update(func(tx *flow.Tx) {
			w.Tick(tx, w.now)
			w.Take(tx, nil)
		}))
	}
	hosts := func(w *world, n int, more ...source.Object) {
		var names []gwv1.Hostname
		for i := range n {
			names = append(names, gwv1.Hostname(fmt.Sprintf("h%d.test", i)))
		}
		w.Updates(w.Apply(source.Batch{Set: append(more, edgeRoute("many", names...))}))
	}
	start := func(n int, more ...source.Object) *world {
		options := standalone
		options.Topology.Settings = &v1alpha1.Settings{RouteTables: &v1alpha1.RouteTables{ShardAbove: new(int32(4))}}
		w := &world{New(options), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		pass(w, 0)
		hosts(w, n, append(more, edgeGateway(gwv1.Listener{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType}))...)
		return w
	}
	say := func(t *testing.T, w *world, forms map[string]bool) {
		t.Helper()
		updates := w.Updates(w.Update(func(tx *flow.Tx) { w.TakeFeedback(tx, edge, xds.State{Connected: 1, OtherForms: forms}) }))
		if len(updates) != 1 || updates[0].Gateway != edge || !maps.Equal(updates[0].TookForms, forms) {
			t.Errorf("proxies are told %+v, not that %v has been taken in", updates, forms)
		}
		again := w.Updates(w.Update(func(tx *flow.Tx) { w.TakeFeedback(tx, edge, xds.State{Connected: 1}) }))
		if len(again) > 0 {
			t.Errorf("proxies are told %+v once more", again)
		}
	}
	// forms are the route configurations in force, and those for what drains.
	check := func(t *testing.T, w *world, when string, inForce, spare int) {
		t.Helper()
		var got [2]int
		w.Engine.View(func(c *flow.Ctx) {
			for _, r := range flow.All(c, w.RouteConfigurations) {
				if r.Spare {
					got[1]++
				} else {
					got[0]++
				}
			}
		})
		if got != [2]int{inForce, spare} {
			t.Errorf("%s: %d route configurations, and %d for what drains; want %d and %d", when, got[0], got[1], inForce, spare)
		}
	}
	settled := func(w *world) {
		pass(w, 0)
		pass(w, drained)
		pass(w, 0)
	}
	shards, alone := envoy.Shards, map[string]bool{"http-80": true}

	t.Run("below half", func(t *testing.T) {
		w := start(2)
		check(t, w, "at first", 1, 0)
		say(t, w, alone)
		check(t, w, "shards are in use", 1, shards)
		pass(w, drained-time.Minute)
		check(t, w, "something may still drain", 1, shards)
		hosts(w, 3)
		check(t, w, "more than half: what was made whole is", 1, shards)
		hosts(w, 2)
		settled(w)
		check(t, w, "all has drained", 1, 0)
		// The next one that connects.
		say(t, w, alone)
		check(t, w, "shards are in use again", 1, shards)
	})
	t.Run("below half, said twice", func(t *testing.T) {
		w := start(2)
		say(t, w, alone)
		pass(w, drained/2)
		say(t, w, alone)
		pass(w, drained-time.Minute)
		check(t, w, "something may still drain", 1, shards)
		hosts(w, 3)
		check(t, w, "more than half", 1, shards)
		hosts(w, 2)
		settled(w)
		check(t, w, "all has drained", 1, 0)
	})
	t.Run("between, divided", func(t *testing.T) {
		w := start(3)
		check(t, w, "at first", 1, shards)
		say(t, w, alone)
		check(t, w, "a proxy has it divided", shards, 1)
		settled(w)
		check(t, w, "later", shards, 0)
		hosts(w, 2)
		check(t, w, "below half", 1, shards)
		hosts(w, 3)
		check(t, w, "and back", 1, shards)
	})
	t.Run("between, in both forms", func(t *testing.T) {
		w := start(3)
		settled(w)
		check(t, w, "when all has drained", 1, 0)
		say(t, w, map[string]bool{"http-80": false})
		check(t, w, "shards are in use", 1, shards)
		settled(w)
		check(t, w, "when all has drained again", 1, 0)
	})
	t.Run("divided", func(t *testing.T) {
		w := start(5)
		settled(w)
		check(t, w, "when all has drained", shards, 0)
		say(t, w, map[string]bool{"http-80": false})
		check(t, w, "the whole is in use", shards, 1)
		settled(w)
		check(t, w, "when all has drained again", shards, 0)
	})
	t.Run("no table", func(t *testing.T) {
		w := start(2)
		say(t, w, map[string]bool{"http-81": true})
		check(t, w, "a table that isn't there", 1, 0)
		settled(w)
		hosts(w, 2, edgeGateway(gwv1.Listener{Name: "http", Port: 81, Protocol: gwv1.HTTPProtocolType}))
		check(t, w, "it comes", 1, 0)
	})
	t.Run("hosts with wildcards", func(t *testing.T) {
		wild := edgeRoute("wild", "*.test")
		for range maxClaimed {
			wild.Spec.Rules = append(wild.Spec.Rules, gwv1.HTTPRouteRule{})
		}
		w := start(2, wild)
		say(t, w, alone)
		check(t, w, "one route too many for all shards", 1, 0)
		wild = wild.DeepCopy()
		wild.Spec.Rules = wild.Spec.Rules[:maxClaimed]
		hosts(w, 2, wild)
		check(t, w, "as many as may be", 1, shards)
	})
}
