package pipeline

import (
	"maps"
	"slices"
	"strings"
	"testing"

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

// TestShards protects that nothing but partition.go knows in which route configuration a
// host lives: of a table with many routes, every host is sent in its shard, hosts with
// wildcards in all, and what a proxy refuses leads back to the routes from there.
func TestShards(t *testing.T) {
	options := standalone
	options.Topology.Settings = &v1alpha1.Settings{RouteTables: &v1alpha1.RouteTables{ShardAbove: new(int32(4))}}
	p := New(options)
	gw := edgeGateway(gwv1.Listener{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType})
	route := func(name string, hostnames ...gwv1.Hostname) *gwv1.HTTPRoute {
		r := &gwv1.HTTPRoute{}
		r.Namespace, r.Name = "default", name
		r.Spec.ParentRefs = []gwv1.ParentReference{{Name: "edge"}}
		r.Spec.Hostnames = hostnames
		r.Spec.Rules = []gwv1.HTTPRouteRule{{}}
		return r
	}
	sent := func() map[string][]string {
		out := map[string][]string{}
		p.Engine.View(func(c *flow.Ctx) {
			for k, r := range flow.All(c, p.RouteConfigurations) {
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
		p.Updates(p.Apply(source.Batch{Set: []source.Object{route(name, hostnames...)}}))
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
	check("few routes again: the listener asks for a shard", asks(), false)
}
