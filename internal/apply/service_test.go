package apply

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/internal/infra"
)

func testLoadBalancerClass(t *testing.T, at *applierTest) {
	class := func(c string) func(*infra.Gateway) {
		return with(v1alpha1.Settings{Service: &v1alpha1.Service{LoadBalancerClass: &c}})
	}
	a := at.start()
	g := at.gateway(class("lb.example/a"))
	a.Set(g)
	service := &corev1.Service{}
	at.await("a Service", func() bool { return at.get(g, service) && *service.Spec.LoadBalancerClass == "lb.example/a" })
	first := service.UID
	at.patch(service, `{"metadata": {"finalizers": ["lb.example/cleanup"]}}`) // as load balancers do
	a.Set(at.gateway(class("lb.example/b")))
	at.await("the Service's end", func() bool { return at.get(g, service) && service.DeletionTimestamp != nil })
	at.patch(service, `{"metadata": {"finalizers": null}}`)
	at.await("another Service", func() bool {
		return at.get(g, service) && service.UID != first && *service.Spec.LoadBalancerClass == "lb.example/b"
	})
	select {
	case e := <-a.events.Events:
		if !strings.Contains(e, "Warning RecreatingService Service web-gatehouse is deleted and made again") {
			t.Errorf("the event is %q", e)
		}
	default:
		t.Error("there is no event")
	}
	second := service.UID
	a.Set(at.gateway())
	at.await("a third Service", func() bool {
		return at.get(g, service) && service.UID != second && service.Spec.LoadBalancerClass == nil
	})
}

// Somebody opens a port that no listener asks for, and does it again.
func testForeignPort(t *testing.T, at *applierTest) {
	kind := corev1.ServiceTypeClusterIP
	g, service := at.gateway(with(v1alpha1.Settings{Service: &v1alpha1.Service{Type: &kind}})), &corev1.Service{}
	a := at.start()
	a.Set(g)
	at.await("a Service", func() bool { return at.get(g, service) })
	ports := len(service.Spec.Ports)
	for range 2 {
		at.must(at.Patch(t.Context(), service, client.RawPatch(types.JSONPatchType,
			[]byte(`[{"op": "add", "path": "/spec/ports/-", "value": {"name": "foreign", "port": 4711}}]`)), client.FieldOwner("somebody")))
		at.await("our ports alone", func() bool { return at.get(g, service) && len(service.Spec.Ports) == ports })
	}
}

func testServiceTypes(t *testing.T, at *applierTest) {
	a := at.start()
	g, service := at.gateway(), &corev1.Service{}
	first := ""
	for _, kind := range []corev1.ServiceType{"LoadBalancer", "ClusterIP", "NodePort", "LoadBalancer", "NodePort", "ClusterIP"} {
		a.Set(at.gateway(with(v1alpha1.Settings{Service: &v1alpha1.Service{Type: &kind}})))
		at.await(string(kind), func() bool { return at.get(g, service) && service.Spec.Type == kind })
		if first == "" {
			first = string(service.UID)
		}
		if string(service.UID) != first {
			t.Errorf("the Service is made anew to be of type %s", kind)
		}
	}
}
