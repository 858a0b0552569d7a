package pipeline_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// guardedPipeline has a Gateway with routes, each with a host of its own.
func guardedPipeline(routes int) *pipeline.Pipeline {
	options := pipeline.Local(pipeline.ControllerName, "", []string{"127.0.0.1"}, nil)
	options.Topology.ImplicitClass, options.Topology.AnyName = pipeline.StandaloneClass, true
	p := pipeline.New(options)
	gateway := &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web"}}
	gateway.Spec.GatewayClassName = pipeline.StandaloneClass
	gateway.Spec.Listeners = []gwv1.Listener{{Name: "http", Port: 8080, Protocol: gwv1.HTTPProtocolType}}
	all := []source.Object{gateway}
	for i := range routes {
		route := &gwv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprintf("r%d", i)}}
		route.Spec.ParentRefs = []gwv1.ParentReference{{Name: "web"}}
		route.Spec.Hostnames = []gwv1.Hostname{gwv1.Hostname(fmt.Sprintf("h%d.test", i))}
		route.Spec.Rules = []gwv1.HTTPRouteRule{{}}
		all = append(all, route)
	}
	p.Apply(source.Batch{Set: all})
	return p
}

// officePolicy lets addresses pass that are one's own for each n.
func officePolicy(kind, name string, n int) *v1alpha1.AuthPolicy {
	o := &v1alpha1.AuthPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "office"}}
	target := gwv1.LocalPolicyTargetReferenceWithSectionName{}
	target.Group, target.Kind, target.Name = gwv1.GroupName, gwv1.Kind(kind), gwv1.ObjectName(name)
	o.Spec.TargetRefs = []gwv1.LocalPolicyTargetReferenceWithSectionName{target}
	o.Spec.Authorization = map[string]v1alpha1.Authorization{"office": {Addresses: &v1alpha1.AuthAddresses{
		Allow: []string{fmt.Sprintf("10.%d.%d.0/24", n/256%256, n%256)},
	}}}
	return o
}

// An edit of a policy of a Gateway is one of its table: no host is looked at for it.
func TestPolicyOfGatewayTouchesNoHost(t *testing.T) {
	p := guardedPipeline(50)
	p.Apply(source.Batch{Set: []source.Object{officePolicy("Gateway", "web", 1)}})
	commit := p.Apply(source.Batch{Set: []source.Object{officePolicy("Gateway", "web", 2)}})
	if n := len(flow.Changes(commit, p.Hosts)); n != 0 {
		t.Errorf("%d hosts have changed", n)
	}
	if n := len(flow.Changes(commit, p.RouteConfigurations)); n != 1 {
		t.Errorf("%d tables have changed", n)
	}
	if n := len(flow.Changes(commit, p.Listeners)); n != 0 {
		t.Errorf("%d listeners have changed", n)
	}
	commit = p.Apply(source.Batch{Set: []source.Object{officePolicy("HTTPRoute", "r7", 3)}})
	if n := len(flow.Changes(commit, p.Listeners)); n != 0 {
		t.Errorf("a policy that moves to a route changes %d listeners", n)
	}
}

// What a policy says stands once on a host if all rules agree, and not for each of them: it may
// have thousands of keys.
func TestPolicyOfRouteStandsOnHost(t *testing.T) {
	p := guardedPipeline(1)
	route := &gwv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "r0"}}
	route.Spec.ParentRefs = []gwv1.ParentReference{{Name: "web"}}
	route.Spec.Hostnames = []gwv1.Hostname{"h0.test"}
	route.Spec.Rules = []gwv1.HTTPRouteRule{
		{Name: new(gwv1.SectionName("one")), Matches: []gwv1.HTTPRouteMatch{{Path: &gwv1.HTTPPathMatch{Value: new("/a")}}, {Path: &gwv1.HTTPPathMatch{Value: new("/b")}}}},
		{},
	}
	copies := func() (host, rules int) {
		p.Engine.View(func(c *flow.Ctx) {
			for _, h := range flow.All(c, p.Hosts) {
				if h.Filters != nil && h.Filters.Access != nil {
					host++
				}
				for _, r := range h.Rules {
					if r.Filters.Access != nil {
						rules++
					}
				}
			}
		})
		return host, rules
	}
	for _, gateway := range []bool{false, true} {
		all := []source.Object{route, officePolicy("HTTPRoute", "r0", 1)}
		if gateway {
			above := officePolicy("Gateway", "web", 2)
			above.Name = "above"
			all = append(all, above)
		}
		p.Apply(source.Batch{Set: all})
		if host, rules := copies(); host != 1 || rules != 0 {
			t.Errorf("the policy stands on %d hosts and %d rules, want one host (policy of the Gateway: %v)", host, rules, gateway)
		}
	}
	own := officePolicy("HTTPRoute", "r0", 3)
	own.Name = "own"
	own.Spec.TargetRefs[0].SectionName = new(gwv1.SectionName("one"))
	p.Apply(source.Batch{Set: []source.Object{own}})
	if host, rules := copies(); host != 0 || rules != 3 {
		t.Errorf("policies that differ stand on %d hosts and %d rules, want three rules", host, rules)
	}
}

// BenchmarkPolicyEdit is the control plane's part of an edit of an AuthPolicy among 5,000 routes.
func BenchmarkPolicyEdit(b *testing.B) {
	for _, c := range []struct{ kind, name string }{{"Gateway", "web"}, {"HTTPRoute", "r7"}} {
		b.Run(c.kind, func(b *testing.B) {
			p := guardedPipeline(5000)
			n := 0
			for b.Loop() {
				n++
				p.Apply(source.Batch{Set: []source.Object{officePolicy(c.kind, c.name, n)}})
			}
		})
	}
}
