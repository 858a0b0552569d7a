package pipeline

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/features"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// TestNoFormerClassWithoutFleets protects the same where somebody else runs the proxies:
// Services are theirs, and say nothing of classes.
func TestNoFormerClassWithoutFleets(t *testing.T) {
	o := Provisioned("example.com/controller", "", nil)
	o.Mode = features.Unmanaged
	p := New(o)
	gw := &gwv1.Gateway{}
	gw.Namespace, gw.Name, gw.UID = "team", "edge", "1"
	gw.Spec.GatewayClassName = "missing"
	name := object.Name{Namespace: gw.Namespace, Name: gw.Name}
	s := &corev1.Service{}
	s.Namespace, s.Name, s.Labels = name.Namespace, infra.Name(name, "former"), infra.Labels(name, "former")
	s.OwnerReferences = []metav1.OwnerReference{{APIVersion: gwv1.GroupVersion.String(), Kind: "Gateway", Name: gw.Name, UID: gw.UID, Controller: new(true)}}
	s.Annotations = map[string]string{
		"gatehouse.dev/gateway": name.String(), "gatehouse.dev/class": "former", "gatehouse.dev/controller": "example.com/controller",
	}
	p.Apply(source.Batch{Set: []source.Object{gw, s}})
	p.Engine.View(func(c *flow.Ctx) {
		if node, ok := flow.Get(c, p.Graph.Gateways, name); ok {
			t.Errorf("the Gateway is served: %+v", node)
		}
	})
}

// TestFormerClass protects the rules of classes from those who may create Services: only
// a Service that the Gateway owns tells which class the Gateway had. What else is wrong
// with a Gateway whose class is missing counts when the class exists.
func TestFormerClass(t *testing.T) {
	p := New(Provisioned("example.com/controller", "", nil))
	gw := &gwv1.Gateway{}
	gw.Namespace, gw.Name, gw.UID = "team", "edge", "1"
	gw.Spec.GatewayClassName = "missing"
	gw.Spec.Addresses = []gwv1.GatewaySpecAddress{{Type: new(gwv1.HostnameAddressType), Value: "not.an.address"}}
	gw.Spec.Listeners = []gwv1.Listener{{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType}}
	name := object.Name{Namespace: gw.Namespace, Name: gw.Name}
	p.Apply(source.Batch{Set: []source.Object{gw}})
	for _, tc := range []struct {
		owner  []metav1.OwnerReference
		served bool
	}{
		{owner: nil},
		{owner: []metav1.OwnerReference{{APIVersion: gwv1.GroupVersion.String(), Kind: "Gateway", Name: gw.Name, UID: "2", Controller: new(true)}}},
		{owner: []metav1.OwnerReference{{APIVersion: gwv1.GroupVersion.String(), Kind: "Gateway", Name: gw.Name, UID: gw.UID}}},
		{owner: []metav1.OwnerReference{{APIVersion: gwv1.GroupVersion.String(), Kind: "Gateway", Name: gw.Name, UID: gw.UID, Controller: new(true)}}, served: true},
	} {
		s := &corev1.Service{}
		s.Namespace, s.Name, s.OwnerReferences = name.Namespace, infra.Name(name, "former"), tc.owner
		s.Labels = infra.Labels(name, "former")
		s.Annotations = map[string]string{
			"gatehouse.dev/gateway": name.String(), "gatehouse.dev/class": "former", "gatehouse.dev/controller": "example.com/controller",
		}
		p.Apply(source.Batch{Set: []source.Object{s}})
		var node *topology.Gateway
		p.Engine.View(func(c *flow.Ctx) { node, _ = flow.Get(c, p.Graph.Gateways, name) })
		if (node != nil) != tc.served {
			t.Errorf("a Service of %v: the Gateway is %+v", tc.owner, node)
		}
		if node != nil && (!node.Frozen || node.MissingClass != "missing" || node.Accepted.Reason != condition.ReasonClassNotFound) {
			t.Errorf("the Gateway is not frozen for its class: %+v", node)
		}
	}
}
