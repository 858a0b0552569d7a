package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/kube"
)

// Whoever restricts the namespaces is told that the parameters of a class are in
// another one, instead of being asked to make what is there.
func TestParametersThatAreNotRead(t *testing.T) {
	for _, test := range []struct {
		name   string
		source configuration.Kubernetes
		labels map[string]string
		want   string
	}{
		{"all", configuration.Kubernetes{}, nil, "doesn't exist"},
		{"listed", configuration.Kubernetes{Namespaces: []string{"shop", "infra"}}, nil, "doesn't exist"},
		{"not listed", configuration.Kubernetes{Namespaces: []string{"shop"}}, nil, "leaves namespace infra out"},
		{"selected", configuration.Kubernetes{NamespaceSelector: metav1.AddLabelToSelector(&metav1.LabelSelector{}, "read", "yes")}, map[string]string{"read": "yes"}, "doesn't exist"},
		{"not selected", configuration.Kubernetes{NamespaceSelector: metav1.AddLabelToSelector(&metav1.LabelSelector{}, "read", "yes")}, nil, "leaves namespace infra out"},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := configuration.Default()
			cfg.Sources = []configuration.Source{{Kubernetes: &test.source}}
			p := pipeline.New(pipelineOptions(cfg, kube.Experimental))
			namespace := gwv1.Namespace("infra")
			p.Apply(source.Batch{Set: []source.Object{&gwv1.GatewayClass{
				ObjectMeta: metav1.ObjectMeta{Name: "gatehouse"},
				Spec: gwv1.GatewayClassSpec{
					ControllerName: pipeline.ControllerName,
					ParametersRef:  &gwv1.ParametersReference{Group: "gatehouse.dev", Kind: "GatewayParameters", Namespace: &namespace, Name: "p"},
				},
			}}})
			// The namespace is heard of last: the class must be looked at again.
			p.Apply(source.Batch{Set: []source.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "infra", Labels: test.labels}}}})
			p.Engine.View(func(c *flow.Ctx) {
				class, _ := flow.Get(c, p.Graph.Classes, "gatehouse")
				if !strings.Contains(class.Accepted.Message, test.want) {
					t.Errorf("got %q, want one with %q", class.Accepted.Message, test.want)
				}
			})
		})
	}
}

// Routes that refer into a namespace that isn't read are told so, instead of being asked for a
// ReferenceGrant, which isn't read either.
func TestReferencesThatAreNotRead(t *testing.T) {
	cfg := configuration.Default()
	cfg.Sources = []configuration.Source{{Kubernetes: &configuration.Kubernetes{Namespaces: []string{"shop"}}}}
	p := pipeline.New(pipelineOptions(cfg, "standard"))
	namespace := func(name string) source.Object { return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	to := new(gwv1.Namespace("infra"))
	route := &gwv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: gwv1.HTTPRouteSpec{
		CommonRouteSpec: gwv1.CommonRouteSpec{ParentRefs: []gwv1.ParentReference{{Name: "web"}}},
		Rules: []gwv1.HTTPRouteRule{{BackendRefs: []gwv1.HTTPBackendRef{{BackendRef: gwv1.BackendRef{
			BackendObjectReference: gwv1.BackendObjectReference{Namespace: to, Name: "cart", Port: new(gwv1.PortNumber(80))},
		}}}}},
	}}
	p.Apply(source.Batch{Set: []source.Object{
		&gwv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "gatehouse"}, Spec: gwv1.GatewayClassSpec{ControllerName: pipeline.ControllerName}},
		namespace("shop"), namespace("infra"),
		&gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: gwv1.GatewaySpec{
			GatewayClassName: "gatehouse", Listeners: []gwv1.Listener{{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType}},
		}},
		route,
	}})
	p.Engine.View(func(c *flow.Ctx) {
		s, ok := p.StatusOf(c, object.Key{Kind: kind.HTTPRoute, Name: object.Name{Namespace: "shop", Name: "web"}}).(*gwv1.RouteStatus)
		if !ok || len(s.Parents) != 1 {
			t.Fatalf("the route has the status %+v", s)
		}
		for _, condition := range s.Parents[0].Conditions {
			if condition.Type == string(gwv1.RouteConditionResolvedRefs) {
				if want := "leaves namespace infra out; add it there"; condition.Status != metav1.ConditionFalse || !strings.Contains(condition.Message, want) {
					t.Errorf("%s: %q, not one with %q", condition.Status, condition.Message, want)
				}
				return
			}
		}
		t.Error("the route says nothing of what it refers to")
	})
}
