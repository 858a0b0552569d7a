//go:build linux

package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
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

// countingFleet is a Gateway with a limit of 100 requests an hour for all its proxies, before a
// real API server and controller. What a kubelet and a Deployment do is done by the tests. The
// backend of its route can't be reached, which is answered with 503; only requests that pass the
// limit get so far.
type countingFleet struct {
	*controllers
	controller *controller
	ports      controllerPorts
	listeners  [2]int
	in         metav1.ObjectMeta
}

func startCountingFleet(t *testing.T) *countingFleet {
	t.Helper()
	f := &countingFleet{
		controllers: startControllers(t, "../../config/namespace.yaml", "../../config/install.yaml"), ports: freePorts(t),
		listeners: [2]int{port.OfTest(t), port.OfTest(t)}, in: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
	}
	f.controller = f.run(t, nil, "--config", f.configure(t, "config.yaml", map[string]any{
		"ports": f.ports, "infrastructure": map[string]any{"image": "registry.example/gatehouse:test"},
	}))
	f.controller.answers(t, f.ports.Health, "/readyz")
	eventually(t, siteTimeout, func() error { return f.accepted(t.Context(), "gatehouse") })
	listener := func(name string, port int) gwv1.Listener {
		return gwv1.Listener{Name: gwv1.SectionName(name), Port: gwv1.PortNumber(port), Protocol: gwv1.HTTPProtocolType}
	}
	in := f.in
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: in.Namespace}},
		&gwv1.Gateway{ObjectMeta: in, Spec: gwv1.GatewaySpec{
			GatewayClassName: "gatehouse", Listeners: []gwv1.Listener{listener("one", f.listeners[0]), listener("two", f.listeners[1])},
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
		if err := f.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// deployment is what the controller has made of an application.
func (f *countingFleet) deployment(t *testing.T, application string) *appsv1.Deployment {
	t.Helper()
	list := &appsv1.DeploymentList{}
	eventually(t, siteTimeout, func() error {
		err := f.List(t.Context(), list, client.InNamespace(f.in.Namespace), client.MatchingLabels{"app.kubernetes.io/name": application})
		if err != nil || len(list.Items) != 1 {
			return fmt.Errorf("%d Deployments of %s: %w", len(list.Items), application, err)
		}
		return nil
	})
	return &list.Items[0]
}

// programmed waits for what the policy says of itself.
func (f *countingFleet) programmed(t *testing.T, want metav1.ConditionStatus, text string) {
	t.Helper()
	eventually(t, siteTimeout, func() error {
		live := policy(f.in, map[string]any{})
		if err := f.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
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

// available says of the Deployment that counts what Kubernetes would with n pods that are ready.
func (f *countingFleet) available(t *testing.T, counts *appsv1.Deployment, n int32) {
	t.Helper()
	eventually(t, siteTimeout, func() error {
		if err := f.Get(t.Context(), client.ObjectKeyFromObject(counts), counts); err != nil {
			return err
		}
		counts.Status = appsv1.DeploymentStatus{ObservedGeneration: counts.Generation, Replicas: n, ReadyReplicas: n, AvailableReplicas: n}
		return f.Status().Update(t.Context(), counts)
	})
}

// A countedProxy is a proxy of the fleet, and who asks it.
type countedProxy struct {
	*pod
	web *http.Client
}

// proxies starts two proxies of the Gateway, each of which asks another address for its counts.
// The Envoy of the second one has a network of its own, as it has in a pod: where nobody can make
// one there is only the first.
func (f *countingFleet) proxies(t *testing.T, limits ...string) (out []countedProxy) {
	t.Helper()
	template := f.deployment(t, "gatehouse-proxy").Spec.Template
	add := func(name, limits string, dial func(context.Context, string, string) (net.Conn, error), flags ...string) {
		web := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8, DialContext: dial}, Timeout: callTimeout}
		t.Cleanup(web.CloseIdleConnections)
		out = append(out, countedProxy{f.startPod(t, template, name, f.ports, append(flags, "--limits="+limits)...), web})
	}
	add("web-1", limits[0], nil)
	if n := newNetwork(t); n != nil {
		add("web-2", limits[1], n.dial, "--envoy="+n.wrapped(t, needTools(t).envoy))
	}
	for _, p := range out {
		eventually(t, siteTimeout, p.ready)
	}
	return out
}

// send sends requests to the proxies in turn, several at a time, and returns how often there was
// which answer from each.
func (f *countingFleet) send(t *testing.T, proxies []countedProxy, requests int) (total map[int]int, each []map[int]int) {
	t.Helper()
	total, each = map[int]int{}, make([]map[int]int, len(proxies))
	for i := range each {
		each[i] = map[int]int{}
	}
	var mu sync.Mutex
	var senders sync.WaitGroup
	const parallel = 8
	for s := range parallel {
		senders.Go(func() {
			for i := s; i < requests; i += parallel {
				which := i / parallel % len(proxies)
				at := f.listeners[i/parallel/len(proxies)%len(f.listeners)]
				res, err := proxies[which].web.Get("http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(at)) + "/")
				if err != nil {
					t.Error(err)
					return
				}
				_ = res.Body.Close()
				mu.Lock()
				total[res.StatusCode]++
				each[which][res.StatusCode]++
				mu.Unlock()
			}
		})
	}
	senders.Wait()
	return total, each
}

// exactly checks that of 1,000 requests a hundred pass, and that each proxy had its share.
func (f *countingFleet) exactly(t *testing.T, proxies []countedProxy) {
	t.Helper()
	got, each := f.send(t, proxies, 1000)
	if got[http.StatusServiceUnavailable] != 100 || got[http.StatusTooManyRequests] != 900 {
		t.Errorf("of 1,000 requests to %d proxies on two ports were answered: %v", len(proxies), got)
	}
	t.Logf("of 1,000 requests were answered %v, by each proxy %v", got, each)
}

// TestFleetCounts protects that the proxies of a fleet count together: each knows the pod that
// counts, and that one the proxies, by the certificates that the controller has given them.
func TestFleetCounts(t *testing.T) {
	t.Parallel()
	f := startCountingFleet(t)
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(port.OfTest(t)))
	proxies := f.proxies(t, at, at)
	f.programmed(t, metav1.ConditionFalse, "Nobody counts requests for all proxies of Gateway shop/web")

	counts := f.deployment(t, "gatehouse-limits")
	counter := f.startPod(t, counts.Spec.Template, "limits-1", f.ports, "--listen="+at)
	eventually(t, siteTimeout, counter.ready)
	f.available(t, counts, 1)
	f.programmed(t, metav1.ConditionTrue, "All rules of the policy are in force")
	// One that is asked for before there was somebody to ask has passed uncounted.
	f.exactly(t, proxies)

	// Without somebody who counts all pass, and they don't wait for it. It is found again.
	counter.signal(t)
	counter.ends(t)
	if got, _ := f.send(t, proxies, 20); got[http.StatusServiceUnavailable] != 20 {
		t.Errorf("while nobody counts: %v", got)
	}
	counter = f.startPod(t, counts.Spec.Template, "limits-2", f.ports, "--listen="+at)
	eventually(t, siteTimeout, counter.ready)
	eventually(t, siteTimeout, func() error {
		if got, _ := f.send(t, proxies, 150); got[http.StatusTooManyRequests] == 0 {
			return fmt.Errorf("nobody is found who counts: %v", got)
		}
		return nil
	})
	for _, p := range proxies {
		p.signal(t)
		p.ends(t)
	}
	f.controller.stop(t)
}
