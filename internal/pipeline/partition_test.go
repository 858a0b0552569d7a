package pipeline

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// byFirstLetter keeps each table in three configurations. Hosts with wildcards live in all
// of them, as a proxy that chooses one by the request's host would need it.
var byFirstLetter = partition{
	names: func(t ir.TableKey, yield func(string)) {
		for _, letter := range []string{"a", "b", "c"} {
			yield(letter + " of " + t.Table())
		}
	},
	of: func(h ir.HostKey, yield func(string)) {
		for _, letter := range []string{"a", "b", "c"} {
			if strings.HasPrefix(h.Domain, "*") || strings.HasPrefix(h.Domain, letter) {
				yield(letter + " of " + h.Table())
			}
		}
	},
}

// TestPartition protects that nothing but the partition knows in which route configuration
// a host lives: with another one, every host is sent where it says, and what a proxy
// refuses leads back to the routes from there.
func TestPartition(t *testing.T) {
	p := newPipeline(standalone, byFirstLetter)
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

	p.Apply(source.Batch{Set: []source.Object{gw}})
	check("without routes", sent(), map[string][]string{"a of http-80": {"*"}, "b of http-80": {"*"}, "c of http-80": {"*"}})
	p.Apply(source.Batch{Set: []source.Object{route("first", "a.test", "b.test"), route("second", "*.test")}})
	check("with routes", sent(), map[string][]string{
		"a of http-80": {"*", "*.test", "a.test"}, "b of http-80": {"*", "*.test", "b.test"}, "c of http-80": {"*", "*.test"},
	})

	refuse("a of http-80", "a.test")
	check("a host is refused", told(), []string{"first"})
	refuse("b of http-80", "a.test")
	check("a host is refused where it doesn't live", told(), []string(nil))
	refuse("c of http-80", "*.test")
	check("a host of all configurations is refused in one", told(), []string{"second"})
	p.Apply(source.Batch{Set: []source.Object{route("second", "b.test"), route("first", "*.test")}})
	check("another route has the host", told(), []string{"first"})
}
