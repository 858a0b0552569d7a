package loop

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// to sends the requests of a Gateway's host to a Service.
func to(gateway, host, service string) *gwv1.HTTPRoute {
	o := &gwv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Name: host}}
	o.Spec.ParentRefs = []gwv1.ParentReference{{Name: gwv1.ObjectName(gateway)}}
	o.Spec.Hostnames = []gwv1.Hostname{gwv1.Hostname(host)}
	o.Spec.Rules = []gwv1.HTTPRouteRule{{BackendRefs: []gwv1.HTTPBackendRef{{BackendRef: gwv1.BackendRef{
		BackendObjectReference: gwv1.BackendObjectReference{Name: gwv1.ObjectName(service), Port: new(gwv1.PortNumber(80))},
	}}}}}
	return o
}

func service(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
}

func endpoints(service string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: service, Labels: map[string]string{discoveryv1.LabelServiceName: service}}}
}

// served waits until two Gateways are served, and begins to count what proxies of web are told.
func (r *running) served() (told func() bool) {
	r.t.Helper()
	r.set(gateway("web", 8080, ""), gateway("other", 8090, ""), route("web", "first.test"), route("other", "first.test"))
	r.until("both are served", func() bool { return r.versions("web", "routes") != "" && r.versions("other", "routes") != "" })
	web := r.versions("web", "routes")
	return func() bool { return r.versions("web", "routes") != web }
}

// A Gateway waits for a Service that comes after the route, and for its endpoints; another one doesn't.
func TestLateServicesAreWaitedFor(t *testing.T) {
	r := runLate(t, longestWait)
	told := r.served()
	r.set(to("web", "new.test", "new"))
	r.until("the Gateway waits", r.waits)
	other := r.versions("other", "routes")
	r.set(to("other", "known.test", "known"), service("known"), endpoints("known"))
	r.until("the other Gateway has its route", func() bool { return r.versions("other", "routes") != other })
	if told() || !r.waits() {
		t.Error("the route hasn't waited for its Service")
	}
	r.set(service("new"))
	if told() || !r.waits() {
		t.Error("the route hasn't waited for its endpoints")
	}
	r.set(endpoints("new"))
	r.until("the route is in force", told)
	if r.waits() {
		t.Error("something is waited for still")
	}
	if cluster := r.versions("web", "cluster"); !strings.Contains(cluster, "new") {
		t.Errorf("the clusters are %q", cluster)
	}
}

// What is missing is waited for once, and all who come meanwhile have the same deadline.
func TestMissingServicesAreWaitedForOnce(t *testing.T) {
	const late = 200 * time.Millisecond
	r := runLate(t, late)
	told := r.served()
	begun := time.Now()
	r.set(to("web", "first.test", "none"))
	tick := time.NewTicker(late / 10)
	defer tick.Stop()
	for i := 0; !told(); i++ {
		if time.Since(begun) > longestWait {
			t.Fatal("the route waits still")
		}
		<-tick.C
		r.set(to("web", "next"+strings.Repeat("x", i)+".test", "none"+strings.Repeat("x", i)))
	}
	if waited := time.Since(begun); waited < late {
		t.Errorf("nothing was waited for: %s", waited)
	}
	r.until("nothing is waited for", func() bool { return !r.waits() })
	r.set(to("web", "another.test", "none"))
	if r.waits() {
		t.Error("what is known to be missing is waited for again")
	}
}

// Nobody waits where objects come in their order.
func TestNothingIsLate(t *testing.T) {
	r := run(t)
	told := r.served()
	r.set(to("web", "new.test", "new"))
	if r.waits() {
		t.Error("the route waits")
	}
	r.until("the route is in force", told)
}
