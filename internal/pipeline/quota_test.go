package pipeline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// sharedGateway returns a Gateway "shared" in namespace infra, open to all namespaces, whose
// class has quotas.
func sharedGateway(q *v1alpha1.Quotas) []source.Object {
	class := &gwv1.GatewayClass{}
	class.Name = "shared"
	class.Spec.ControllerName = "x"
	class.Spec.ParametersRef = &gwv1.ParametersReference{
		Group: kind.Gatehouse, Kind: gwv1.Kind(kind.GatewayParameters.Name()), Name: "shared", Namespace: new(gwv1.Namespace("infra")),
	}
	parameters := &v1alpha1.GatewayParameters{}
	parameters.Namespace, parameters.Name = "infra", "shared"
	parameters.Spec.Allow = &v1alpha1.Allow{Quotas: q}
	gw := &gwv1.Gateway{}
	gw.Namespace, gw.Name = "infra", "shared"
	gw.Spec.GatewayClassName = "shared"
	gw.Spec.Listeners = []gwv1.Listener{{
		Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType,
		AllowedRoutes: &gwv1.AllowedRoutes{Namespaces: &gwv1.RouteNamespaces{From: new(gwv1.NamespacesFromAll)}},
	}}
	gw.Spec.AllowedListeners = &gwv1.AllowedListeners{Namespaces: &gwv1.ListenerNamespaces{From: new(gwv1.NamespacesFromAll)}}
	return []source.Object{class, parameters, gw}
}

// tenantRoute returns a route of one rule with some matches; the one with the least age is
// the oldest.
func tenantRoute(namespace, name string, age, matches int, hosts ...string) *gwv1.HTTPRoute {
	r := &gwv1.HTTPRoute{}
	r.Namespace, r.Name = namespace, name
	r.CreationTimestamp = metav1.Time{Time: time.Unix(int64(age), 0)}
	r.Spec.ParentRefs = []gwv1.ParentReference{{Name: "shared", Namespace: new(gwv1.Namespace("infra"))}}
	for _, h := range hosts {
		r.Spec.Hostnames = append(r.Spec.Hostnames, gwv1.Hostname(h))
	}
	rule := gwv1.HTTPRouteRule{Filters: []gwv1.HTTPRouteFilter{{
		Type: gwv1.HTTPRouteFilterRequestRedirect, RequestRedirect: &gwv1.HTTPRequestRedirectFilter{Scheme: new("https")},
	}}}
	for i := range matches {
		rule.Matches = append(rule.Matches, gwv1.HTTPRouteMatch{Path: &gwv1.HTTPPathMatch{
			Type: new(gwv1.PathMatchPathPrefix), Value: new(fmt.Sprintf("/%d", i)),
		}})
	}
	r.Spec.Rules = []gwv1.HTTPRouteRule{rule}
	return r
}

// TestQuotas protects who shares a Gateway from those who take much of it: they are served up
// to their quota, the oldest first, answered with errors up to as much again, and others
// notice nothing.
func TestQuotas(t *testing.T) {
	p := New(Options{Topology: topology.Options{ControllerName: "x"}, Addresses: []string{"127.0.0.1"}})
	p.Apply(source.Batch{Set: sharedGateway(&v1alpha1.Quotas{Hosts: new(int32(3)), Rules: new(int32(8))})})
	p.Apply(source.Batch{Set: []source.Object{
		tenantRoute("b", "own", 9, 20, "own.b.example"), // over by itself, and more than twice
		tenantRoute("c", "only", 9, 8, "only.c.example"),
		tenantRoute("a", "oldest", 1, 2, "one.a.example", "two.a.example"),
		tenantRoute("a", "guard", 2, 5, "one.a.example"),
		tenantRoute("a", "younger", 3, 4, "one.a.example"),
		tenantRoute("a", "youngest", 4, 4, "four.a.example"),
	}})

	// rules returns how many rules of a route a host has, and whether they refuse.
	rules := func(namespace, name, host string) (served, refused int) {
		p.Engine.View(func(c *flow.Ctx) {
			for k, h := range flow.All(c, p.Hosts) {
				if k.Domain != host {
					continue
				}
				for _, r := range h.Rules {
					switch {
					case r.Source.Name != object.Name{Namespace: namespace, Name: name}:
					case r.Status >= 500:
						refused++
					default:
						served++
					}
				}
			}
		})
		return served, refused
	}
	accepted := func(namespace, name string) metav1.Condition {
		var out metav1.Condition
		p.Engine.View(func(c *flow.Ctx) {
			s, ok := flow.Get(c, p.RouteStatus, object.Key{Kind: kind.HTTPRoute, Name: object.Name{Namespace: namespace, Name: name}})
			if ok && len(s.Parents) == 1 {
				out = s.Parents[0].Conditions[0]
			}
		})
		return out
	}
	check := func(namespace, name, host, want, message string) {
		t.Helper()
		served, refused := rules(namespace, name, host)
		got := "absent"
		switch {
		case served > 0 && refused == 0:
			got = "served"
		case refused > 0 && served == 0:
			got = "refused"
		case served > 0:
			got = "mixed"
		}
		if got != want {
			t.Errorf("route %s/%s is %s on %s, want %s", namespace, name, got, host, want)
		}
		if a := accepted(namespace, name); (a.Status == metav1.ConditionTrue) != (want == "served") || !strings.Contains(a.Message, message) {
			t.Errorf("route %s/%s: %s %s: %s; want %q", namespace, name, a.Status, a.Reason, a.Message, message)
		}
	}
	t.Run("oldest first", func(t *testing.T) {
		check("a", "oldest", "one.a.example", "served", "")
		check("a", "guard", "one.a.example", "refused", "9 matches of rules on all hosts, over the limit of 8")
		check("a", "younger", "one.a.example", "served", "") // the rest of the quota is enough for it
		check("a", "youngest", "four.a.example", "absent", "4 hosts, over the limit of 3")
		check("b", "own", "own.b.example", "absent", "20 matches of rules on all hosts, over the limit of 8")
		check("c", "only", "only.c.example", "served", "")
	})
	t.Run("usage", func(t *testing.T) {
		all := map[string]Usage{}
		p.Tenants(func(tenant Tenant, u Usage) { all[tenant.Namespace] = u })
		if got, want := all["a"], (Usage{Hosts: 5, Rules: 17, ServedHosts: 3, ServedRules: 8}); got != want {
			t.Errorf("a has %+v, want %+v", got, want)
		}
	})
	t.Run("not attached", func(t *testing.T) {
		p.Engine.View(func(c *flow.Ctx) {
			s, _ := flow.Get(c, p.GatewayStatus, object.Name{Namespace: "infra", Name: "shared"})
			if n := s.Listeners[0].AttachedRoutes; n != 3 {
				t.Errorf("%d routes are attached, want 3", n)
			}
		})
	})
	t.Run("room again", func(t *testing.T) {
		p.Apply(source.Batch{Deleted: []object.Key{{Kind: kind.HTTPRoute, Name: object.Name{Namespace: "a", Name: "oldest"}}}})
		check("a", "guard", "one.a.example", "served", "")
		check("a", "younger", "one.a.example", "refused", "9 matches")
	})
	t.Run("no quota", func(t *testing.T) {
		p.Apply(source.Batch{Set: sharedGateway(nil)[1:2]})
		check("a", "youngest", "four.a.example", "served", "")
		check("b", "own", "own.b.example", "served", "")
		var hosts []ir.HostKey
		p.Engine.View(func(c *flow.Ctx) {
			for k := range flow.All(c, p.Hosts) {
				hosts = append(hosts, k)
			}
		})
		if len(hosts) != 4 {
			t.Errorf("hosts are %v, want four", hosts)
		}
	})
}

// TestListenerQuota protects the listeners of a shared Gateway.
func TestListenerQuota(t *testing.T) {
	p := New(Options{Topology: topology.Options{ControllerName: "x"}, Addresses: []string{"127.0.0.1"}})
	set := func(namespace, name string, age, listeners int) *gwv1.ListenerSet {
		s := &gwv1.ListenerSet{}
		s.Namespace, s.Name = namespace, name
		s.CreationTimestamp = metav1.Time{Time: time.Unix(int64(age), 0)}
		s.Spec.ParentRef = gwv1.ParentGatewayReference{Name: "shared", Namespace: new(gwv1.Namespace("infra"))}
		for i := range listeners {
			s.Spec.Listeners = append(s.Spec.Listeners, gwv1.ListenerEntry{
				Name: gwv1.SectionName(fmt.Sprint("l", i)), Port: 80, Protocol: gwv1.HTTPProtocolType,
				Hostname: new(gwv1.Hostname(fmt.Sprintf("%d.%s.%s.example", i, name, namespace))),
			})
		}
		return s
	}
	p.Apply(source.Batch{Set: append(sharedGateway(&v1alpha1.Quotas{Listeners: new(int32(4))}),
		set("a", "old", 1, 3), set("a", "new", 2, 2), set("b", "other", 3, 4))})
	accepted := func(namespace, name string) (out metav1.Condition) {
		p.Engine.View(func(c *flow.Ctx) {
			if s, ok := flow.Get(c, p.ListenerSetStatus, object.Name{Namespace: namespace, Name: name}); ok {
				out = s.Conditions[0]
			}
		})
		return out
	}
	for _, want := range []struct {
		namespace, name string
		status          metav1.ConditionStatus
		message         string
	}{
		{"a", "old", metav1.ConditionTrue, ""},
		{"a", "new", metav1.ConditionFalse, "namespace a has 5 listeners on Gateway infra/shared, over the limit of 4"},
		{"b", "other", metav1.ConditionTrue, ""},
	} {
		if got := accepted(want.namespace, want.name); got.Status != want.status || !strings.Contains(got.Message, want.message) {
			t.Errorf("ListenerSet %s/%s: %s %s: %s", want.namespace, want.name, got.Status, got.Reason, got.Message)
		}
	}
	p.Apply(source.Batch{Deleted: []object.Key{{Kind: kind.ListenerSet, Name: object.Name{Namespace: "a", Name: "old"}}}})
	if got := accepted("a", "new"); got.Status != metav1.ConditionTrue {
		t.Errorf("after the older one has gone: %s: %s", got.Reason, got.Message)
	}
}
