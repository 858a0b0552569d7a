package pipeline

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// TestOnDemandForms protects when a port serves certificates on demand, that one more listener changes nothing
// of it then, and that what drains keeps its scopes for a while.
func TestOnDemandForms(t *testing.T) {
	p := New(Options{
		Addresses: []string{"127.0.0.1"},
		Topology: topology.Options{
			ControllerName: ControllerName, ImplicitClass: StandaloneClass, SharedHost: true, DefaultAddresses: []string{"127.0.0.1"},
			Settings: &v1alpha1.Settings{Certificates: &v1alpha1.Certificates{OnDemandAbove: new(int32(4))}},
		},
	})
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	take := func(b source.Batch) {
		t.Helper()
		p.Updates(p.Update(func(tx *flow.Tx) {
			p.Tick(tx, now)
			p.Take(tx, []source.Batch{b})
		}))
	}
	settle := func() { take(source.Batch{}); take(source.Batch{}) }
	// seen is the version of the listener, and the server names that have a scope and a certificate.
	seen := func() (version string, scopes, secrets []string) {
		p.Engine.View(func(c *flow.Ctx) {
			for k, r := range flow.All(c, p.Listeners) {
				if k.Listener == "tls-443" {
					version = r.Version
				}
			}
			for k := range flow.All(c, p.Scopes) {
				scopes = append(scopes, k.Name)
			}
			for k := range flow.All(c, p.Secrets) {
				if name := k.Secret.ServerName(); name != "" {
					secrets = append(secrets, name)
				}
			}
		})
		slices.Sort(scopes)
		slices.Sort(secrets)
		return version, scopes, secrets
	}
	expect := func(what string, scopes, secrets int) string {
		t.Helper()
		version, s, c := seen()
		var hosts []ir.OnDemandHost
		p.Engine.View(func(c *flow.Ctx) {
			p.OnDemandHosts(c, func(_ object.Name, h ir.OnDemandHost) { hosts = append(hosts, h) })
		})
		if len(hosts) != secrets {
			t.Errorf("%s: hosts on demand are %v", what, hosts)
		}
		if d := cmp.Diff([]int{scopes, secrets}, []int{len(s), len(c)}); d != "" {
			t.Errorf("%s: scopes and certificates by name (-want +got):\n%s%v %v", what, d, s, c)
		}
		return version
	}
	gone := func(from, to int) (out []object.Key) {
		for i := from; i < to; i++ {
			out = append(out, object.Key{Kind: kind.ListenerSet, Name: object.Name{Namespace: "default", Name: fmt.Sprintf("set-%05d", i)}})
		}
		return out
	}
	take(source.Batch{Set: manySets(t, 4, gwv1.HTTPSProtocolType)})
	settle()
	expect("4", 4, 0) // an earlier process may have had it otherwise
	now = now.Add(drained)
	settle()
	expect("4, and nothing drains", 0, 0)
	take(source.Batch{Set: oneSet(4, gwv1.HTTPSProtocolType)})
	was := expect("5", 5, 5)
	settle()
	take(source.Batch{Set: oneSet(5, gwv1.HTTPSProtocolType)})
	if is := expect("6", 6, 6); is != was {
		t.Error("one more listener changes the proxies' listener")
	}
	take(source.Batch{Deleted: gone(3, 6)})
	if is := expect("3", 3, 3); is != was {
		t.Error("listeners less change the proxies' listener")
	}
	// Inside a wildcard of the port a host has a chain of its own; its connections from before go on.
	wide := oneSet(9, gwv1.HTTPSProtocolType)
	wide[0].(*gwv1.ListenerSet).Spec.Listeners[0].Hostname = new(gwv1.Hostname("*.test"))
	take(source.Batch{Set: wide})
	expect("none that could be", 3, 0)
	settle()
	take(source.Batch{Deleted: gone(9, 10)})
	settle()
	expect("3, again in chains", 3, 0)
	now = now.Add(drained)
	settle()
	expect("and drained", 0, 0)
	// A proxy that refuses a listener goes on with the last one, for any time.
	take(source.Batch{Set: append(oneSet(3, gwv1.HTTPSProtocolType), oneSet(4, gwv1.HTTPSProtocolType)...)})
	settle()
	take(source.Batch{Set: wide})
	say := func(state xds.State) {
		p.Updates(p.Update(func(tx *flow.Tx) { p.TakeFeedback(tx, object.Name{Namespace: "default", Name: "edge"}, state) }))
	}
	say(xds.State{Connected: 1, Rejected: []xds.Rejected{{Ref: xds.Ref{Type: envoy.Listeners, Name: "tls-443@127.0.0.1"}, Message: "no"}}})
	for range 3 {
		now = now.Add(drained)
		settle()
	}
	expect("a proxy goes on with the form of before", 5, 0)
	say(xds.State{Connected: 1})
	now = now.Add(drained)
	settle()
	expect("and drained as well", 0, 0)
	// A proxy that connects has been served by another process, which had it otherwise.
	had := func(onDemand bool) {
		say(xds.State{Connected: 1, OtherForms: map[string]bool{"tls-443-host-00001.test": onDemand}})
	}
	had(true) // and none could be on demand now
	expect("a proxy has it on demand", 5, 0)
	now = now.Add(drained)
	settle()
	take(source.Batch{Deleted: append(gone(9, 10), gone(3, 5)...)})
	settle()
	now = now.Add(drained)
	settle()
	expect("3, in chains", 0, 0)
	had(false)
	expect("a proxy has connections that drain", 3, 0)
	now = now.Add(drained)
	settle()
	expect("which it has no more", 0, 0)
	had(true)
	expect("as a proxy has it", 3, 3)
	now = now.Add(drained)
	settle()
	expect("and as it stays", 3, 3)
}
