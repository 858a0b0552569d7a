//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

// TestSharedFleetInCluster protects Gateways of a class that share one Deployment and one Service in the namespace
// of the class's parameters: proxies of it serve both, both say its address, and it goes with the last of them.
func TestSharedFleetInCluster(t *testing.T) {
	t.Parallel()
	c := startControllers(t, "../../config/namespace.yaml", "../../config/install.yaml")
	ports := freePorts(t)
	p := c.run(t, nil, "--config", c.configure(t, "config.yaml", map[string]any{
		"ports": ports, "infrastructure": map[string]any{"image": "registry.example/gatehouse:test"},
	}))
	p.answers(t, ports.Health, "/readyz")
	listener := port.OfTest(t)
	gateway := func(namespace string) *gwv1.Gateway {
		return &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: gwv1.GatewaySpec{
			GatewayClassName: "shared",
			Listeners: []gwv1.Listener{{
				Name: "http", Port: gwv1.PortNumber(listener), Protocol: gwv1.HTTPProtocolType, Hostname: new(gwv1.Hostname(namespace + ".example")),
			}},
		}}
	}
	route := func(namespace string) *gwv1.HTTPRoute {
		return &gwv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: gwv1.HTTPRouteSpec{
			CommonRouteSpec: gwv1.CommonRouteSpec{ParentRefs: []gwv1.ParentReference{{Name: "web"}}},
			Rules:           redirectTo("to-" + namespace + ".example"),
		}}
	}
	namespace := func(name string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	class := &gwv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}
	class.Spec.ControllerName = "gatehouse.dev/controller"
	class.Spec.ParametersRef = &gwv1.ParametersReference{
		Group: gwv1.Group(v1alpha1.GroupVersion.Group), Kind: "GatewayParameters", Name: "shared", Namespace: new(gwv1.Namespace("shop")),
	}
	c.create(t, namespace("shop"), namespace("one"), namespace("two"),
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": "GatewayParameters",
			"metadata": map[string]any{"namespace": "shop", "name": "shared"}, "spec": map[string]any{"mergeGateways": true},
		}},
		class, gateway("one"), gateway("two"), route("one"), route("two"))

	fleet := object.SharedFleet("shop", "shared")
	at := client.ObjectKey{Namespace: "shop", Name: infra.Name(fleet, "shared")}
	deployment, service := &appsv1.Deployment{}, &corev1.Service{}
	eventually(t, siteTimeout, func() error { return c.Get(t.Context(), at, deployment) })
	eventually(t, siteTimeout, func() error { return c.Get(t.Context(), at, service) })
	if len(service.Spec.Ports) != 1 || int(service.Spec.Ports[0].Port) != listener {
		t.Errorf("the Service has the ports %+v", service.Spec.Ports)
	}
	made := c.makePod(t, deployment.Spec.Template, "shared-1")
	proxy := c.runPod(t, made, ports)
	t.Cleanup(func() { // its Envoy would outlive it otherwise
		proxy.signal(t)
		proxy.ends(t)
	})
	eventually(t, siteTimeout, proxy.ready)

	asks := func(host, want string) func() error {
		return func() error {
			req := request(t, listener)
			req.Host = host
			res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
			if err != nil {
				return err
			}
			defer res.Body.Close()
			if got := res.Header.Get("Location"); !strings.Contains(got, want) {
				return fmt.Errorf("%s: %s, leads to %q, not %q", host, res.Status, got, want)
			}
			return nil
		}
	}
	eventually(t, siteTimeout, asks("one.example", "to-one"))
	eventually(t, siteTimeout, asks("two.example", "to-two"))
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.7"}}
	if err := c.Status().Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	is := func(name string, check func(*gwv1.Gateway) bool) {
		t.Helper()
		eventually(t, siteTimeout, func() error {
			gw := &gwv1.Gateway{}
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "web"}, gw); err != nil {
				return err
			}
			if !check(gw) {
				return fmt.Errorf("the Gateway is %+v", gw.Status)
			}
			return nil
		})
	}
	for _, name := range []string{"one", "two"} {
		is(name, func(gw *gwv1.Gateway) bool {
			return meta.IsStatusConditionTrue(gw.Status.Conditions, string(gwv1.GatewayConditionProgrammed)) &&
				len(gw.Status.Addresses) == 1 && gw.Status.Addresses[0].Value == "192.0.2.7"
		})
	}

	// A field that would count for all is refused, and costs the others nothing.
	gw := &gwv1.Gateway{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "two", Name: "web"}, gw); err != nil {
		t.Fatal(err)
	}
	gw.Spec.Infrastructure = &gwv1.GatewayInfrastructure{Labels: map[gwv1.LabelKey]gwv1.LabelValue{"team": "two"}}
	if err := c.Update(t.Context(), gw); err != nil {
		t.Fatal(err)
	}
	is("two", func(gw *gwv1.Gateway) bool {
		return meta.IsStatusConditionFalse(gw.Status.Conditions, string(gwv1.GatewayConditionAccepted))
	})
	if err := asks("one.example", "to-one")(); err != nil {
		t.Error(err)
	}

	for _, name := range []string{"one", "two"} {
		if err := c.Delete(t.Context(), gateway(name)); err != nil {
			t.Fatal(err)
		}
		if name == "one" {
			if err := c.Get(t.Context(), at, deployment); err != nil {
				t.Errorf("the Deployment after one of two Gateways is gone: %v", err)
			}
		}
	}
	eventually(t, siteTimeout, func() error {
		if err := c.Get(t.Context(), at, deployment); client.IgnoreNotFound(err) != nil {
			return err
		} else if err == nil && deployment.DeletionTimestamp == nil {
			return fmt.Errorf("the Deployment is there without a Gateway")
		}
		return nil
	})
}
