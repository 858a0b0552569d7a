//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

// TestFleetInControllerNamespace protects fleets in the controllers' namespace, where teams have no rights: with rights to
// write in that namespace only, a Gateway is served by proxies there, says their Service's address, shows its proxies,
// and takes its fleet along when it is deleted. A tenant's pod that says the same, with a ServiceAccount of the same name, gets nothing.
func TestFleetInControllerNamespace(t *testing.T) {
	t.Parallel()
	c := startControllers(t, "../../config/namespace.yaml", "../../config/install.yaml")
	// As the chart has it with formerNamespaces: [].
	everywhere := &rbacv1.ClusterRoleBinding{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "gatehouse-fleets"}, everywhere); err != nil {
		t.Fatal(err)
	}
	if err := c.Client.Delete(t.Context(), everywhere); err != nil {
		t.Fatal(err)
	}
	c.create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: controllerNamespace, Name: everywhere.Name}, RoleRef: everywhere.RoleRef, Subjects: everywhere.Subjects,
	})
	apiserver.AwaitRights(t, c.server.Config)
	ports := freePorts(t)
	p := c.run(t, nil, "--config", c.configure(t, "config.yaml", map[string]any{
		"ports": ports, "infrastructure": map[string]any{
			"image": "registry.example/gatehouse:test", "namespace": controllerNamespace, "formerNamespaces": []string{},
		},
	}))
	p.answers(t, ports.Health, "/readyz")

	listener := port.OfTest(t)
	gateway := &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: gwv1.GatewaySpec{
		GatewayClassName: "gatehouse",
		Listeners:        []gwv1.Listener{{Name: "http", Port: gwv1.PortNumber(listener), Protocol: gwv1.HTTPProtocolType}},
	}}
	c.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, gateway, &gwv1.HTTPRoute{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec: gwv1.HTTPRouteSpec{
			CommonRouteSpec: gwv1.CommonRouteSpec{ParentRefs: []gwv1.ParentReference{{Name: "web"}}}, Rules: redirectTo("there.example"),
		},
	})
	at := client.ObjectKey(infra.Places{Namespace: controllerNamespace}.Name(object.Name{Namespace: "shop", Name: "web"}, "gatehouse"))
	deployment, service := &appsv1.Deployment{}, &corev1.Service{}
	eventually(t, siteTimeout, func() error { return c.Get(t.Context(), at, deployment) })
	eventually(t, siteTimeout, func() error { return c.Get(t.Context(), at, service) })

	authorities := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), at, authorities); err != nil {
		t.Fatal(err)
	}
	named := metav1.ObjectMeta{Namespace: "shop", Name: at.Name}
	c.create(t, &corev1.ServiceAccount{ObjectMeta: named}, &corev1.ConfigMap{ObjectMeta: named, Data: authorities.Data})
	forged := c.runPod(t, c.makePodIn(t, "shop", deployment.Spec.Template, "forged-1"), ports)
	t.Cleanup(func() {
		forged.signal(t)
		forged.ends(t)
	})
	p.says(t, "Pod shop/forged-1 is in a namespace where no fleets are")

	proxy := c.runPod(t, c.makePodIn(t, controllerNamespace, deployment.Spec.Template, "web-1"), ports)
	t.Cleanup(func() { // its Envoy would outlive it otherwise
		proxy.signal(t)
		proxy.ends(t)
	})
	eventually(t, siteTimeout, proxy.ready)
	eventually(t, siteTimeout, func() error {
		res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request(t, listener))
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if got := res.Header.Get("Location"); !strings.Contains(got, "there.example") {
			return fmt.Errorf("%s leads to %q", res.Status, got)
		}
		return nil
	})
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.7"}}
	if err := c.Status().Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	eventually(t, siteTimeout, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(gateway), gateway); err != nil {
			return err
		}
		if s := gateway.Status; !meta.IsStatusConditionTrue(s.Conditions, string(gwv1.GatewayConditionProgrammed)) || len(s.Addresses) != 1 || s.Addresses[0].Value != "192.0.2.7" {
			return fmt.Errorf("the Gateway is %+v", s)
		}
		return nil
	})

	// Its objects have no owner: the controller sees that the Gateway is gone, also one that starts afterwards.
	p.stop(t)
	if err := c.Client.Delete(t.Context(), gateway); err != nil {
		t.Fatal(err)
	}
	c.run(t, nil, "--config", c.configure(t, "config.yaml", map[string]any{
		"ports": ports, "infrastructure": map[string]any{
			"image": "registry.example/gatehouse:test", "namespace": controllerNamespace, "formerNamespaces": []string{},
		},
	}))
	eventually(t, siteTimeout, func() error {
		for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &corev1.ServiceList{}, &corev1.ServiceAccountList{}, &corev1.ConfigMapList{}} {
			if err := c.List(t.Context(), list, client.InNamespace(controllerNamespace), client.MatchingLabels{infra.NamespaceLabel: "shop"}); err != nil {
				return err
			}
			if n := meta.LenList(list); n > 0 {
				return fmt.Errorf("%d objects of the fleet are left in %T", n, list)
			}
		}
		return nil
	})
}
