//go:build linux

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

// policy is a RateLimitPolicy.
func policy(in metav1.ObjectMeta, fields map[string]any) *unstructured.Unstructured {
	p := &unstructured.Unstructured{Object: fields}
	p.SetAPIVersion("gatehouse.dev/v1alpha1")
	p.SetKind("RateLimitPolicy")
	p.SetNamespace(in.Namespace)
	p.SetName(in.Name)
	return p
}

// TestFleetCounts protects that the pods of a fleet count together: the proxy knows the pod that
// counts, and that one the proxy, by the certificates that the controller has given them. What a
// kubelet and a Deployment do is done here. The backend of the route can't be reached, which is
// answered with 503; only requests that pass a limit get so far.
func TestFleetCounts(t *testing.T) {
	t.Parallel()
	c := startControllers(t, "../../config/namespace.yaml", "../../config/install.yaml")
	ports := freePorts(t)
	controller := c.run(t, nil, "--config", c.configure(t, "config.yaml", map[string]any{
		"ports": ports, "infrastructure": map[string]any{"image": "registry.example/gatehouse:test"},
	}))
	controller.answers(t, ports.Health, "/readyz")
	eventually(t, siteTimeout, func() error { return c.accepted(t.Context(), "gatehouse") })
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	first, second := port.OfTest(t), port.OfTest(t)
	in := metav1.ObjectMeta{Namespace: "shop", Name: "web"}
	listener := func(name string, port int) gwv1.Listener {
		return gwv1.Listener{Name: gwv1.SectionName(name), Port: gwv1.PortNumber(port), Protocol: gwv1.HTTPProtocolType}
	}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: in.Namespace}},
		&gwv1.Gateway{ObjectMeta: in, Spec: gwv1.GatewaySpec{
			GatewayClassName: "gatehouse", Listeners: []gwv1.Listener{listener("one", first), listener("two", second)},
		}},
		&corev1.Service{ObjectMeta: in, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}},
		&discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: in.Namespace, Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
			AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(80))}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"255.255.255.255"}}},
		},
		&gwv1.HTTPRoute{ObjectMeta: in, Spec: gwv1.HTTPRouteSpec{
			CommonRouteSpec: gwv1.CommonRouteSpec{ParentRefs: []gwv1.ParentReference{{Name: "web"}}},
			Rules: []gwv1.HTTPRouteRule{{BackendRefs: []gwv1.HTTPBackendRef{{BackendRef: gwv1.BackendRef{
				BackendObjectReference: gwv1.BackendObjectReference{Name: "web", Port: new(gwv1.PortNumber(80))},
			}}}}},
		}},
		policy(in, map[string]any{"spec": map[string]any{
			"targetRefs": []any{map[string]any{"group": gwv1.GroupName, "kind": "Gateway", "name": "web"}},
			"limits":     map[string]any{"all": map[string]any{"scope": "Global", "rates": []any{map[string]any{"limit": int64(100), "window": "1h"}}}},
		}}),
	} {
		must(c.Create(t.Context(), o))
	}
	deployment := func(application string) *appsv1.Deployment {
		t.Helper()
		list := &appsv1.DeploymentList{}
		eventually(t, siteTimeout, func() error {
			err := c.List(t.Context(), list, client.InNamespace(in.Namespace), client.MatchingLabels{"app.kubernetes.io/name": application})
			if err != nil || len(list.Items) != 1 {
				return fmt.Errorf("%d Deployments of %s: %w", len(list.Items), application, err)
			}
			return nil
		})
		return &list.Items[0]
	}
	programmed := func(want metav1.ConditionStatus, text string) {
		t.Helper()
		eventually(t, siteTimeout, func() error {
			live := policy(in, map[string]any{})
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
				return err
			}
			p := &v1alpha1.RateLimitPolicy{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, p); err != nil {
				return err
			}
			for _, a := range p.Status.Ancestors {
				if got := meta.FindStatusCondition(a.Conditions, "Programmed"); got != nil && got.Status == want && strings.Contains(got.Message, text) {
					return nil
				}
			}
			return fmt.Errorf("status %+v", p.Status)
		})
	}

	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(port.OfTest(t)))
	proxy := c.startPod(t, deployment("gatehouse-proxy").Spec.Template, "web-1", ports, "--limits="+at)
	eventually(t, siteTimeout, proxy.ready)
	programmed(metav1.ConditionFalse, "Nobody counts requests for all proxies of Gateway shop/web yet")

	counts := deployment("gatehouse-limits")
	counter := c.startPod(t, counts.Spec.Template, "limits-1", ports, "--listen="+at)
	eventually(t, siteTimeout, counter.ready)
	counts.Status = appsv1.DeploymentStatus{ObservedGeneration: counts.Generation, Replicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
	must(c.Status().Update(t.Context(), counts))
	programmed(metav1.ConditionTrue, "All rules of the policy are in force")

	web := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}, Timeout: callTimeout}
	defer web.CloseIdleConnections()
	send := func(requests int) map[int]int {
		t.Helper()
		statuses := map[int]int{}
		for i := range requests {
			at := []int{first, second}[i%2]
			res, err := web.Get("http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(at)) + "/")
			must(err)
			must(res.Body.Close())
			statuses[res.StatusCode]++
		}
		return statuses
	}
	// One that is asked for before there was somebody to ask has passed uncounted.
	if got := send(1000); got[http.StatusServiceUnavailable] != 100 || got[http.StatusTooManyRequests] != 900 {
		t.Errorf("of 1,000 requests on two ports were answered: %v", got)
	}

	// Without somebody who counts all pass, and they don't wait for it. It is found again.
	counter.signal(t)
	counter.ends(t)
	if got := send(20); got[http.StatusServiceUnavailable] != 20 {
		t.Errorf("while nobody counts: %v", got)
	}
	counter = c.startPod(t, counts.Spec.Template, "limits-2", ports, "--listen="+at)
	eventually(t, siteTimeout, counter.ready)
	eventually(t, siteTimeout, func() error {
		if got := send(150); got[http.StatusTooManyRequests] == 0 {
			return fmt.Errorf("nobody is found who counts: %v", got)
		}
		return nil
	})
	proxy.signal(t)
	proxy.ends(t)
	controller.stop(t)
}
