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
