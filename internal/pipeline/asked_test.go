package pipeline

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/proxy"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// certified is a pipeline with a backend, and with listeners that ask for so many
// certificates.
func certified(certificates int) *Pipeline {
	p := New(inExperimental(Provisioned(ControllerName, proxy.DefaultAuthorities, nil)))
	const each = 50 // per Gateway
	batch := source.Batch{Set: []source.Object{
		&gwv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "gatehouse"}, Spec: gwv1.GatewayClassSpec{ControllerName: ControllerName}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "backend"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
		slice("10.1.0.1"),
	}}
	for n := 0; n < certificates; n += each {
		gw := &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprint("gw-", n)}}
		gw.Spec.GatewayClassName = "gatehouse"
		l := gwv1.Listener{Name: "https", Port: 443, Protocol: gwv1.HTTPSProtocolType, TLS: &gwv1.ListenerTLSConfig{}}
		for i := range min(each, certificates-n) {
			l.TLS.CertificateRefs = append(l.TLS.CertificateRefs, gwv1.SecretObjectReference{Name: gwv1.ObjectName(fmt.Sprint("cert-", n+i))})
		}
		gw.Spec.Listeners = []gwv1.Listener{l, {Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType}}
		route := &gwv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprint("route-", n)}}
		route.Spec.ParentRefs = []gwv1.ParentReference{{Name: gwv1.ObjectName(gw.Name)}}
		backend := gwv1.HTTPBackendRef{}
		backend.Name, backend.Port = "backend", new(gwv1.PortNumber(80))
		route.Spec.Rules = []gwv1.HTTPRouteRule{{BackendRefs: []gwv1.HTTPBackendRef{backend}}}
		batch.Set = append(batch.Set, gw, route)
	}
	p.Apply(batch)
	return p
}

// slice is the backend's one endpoint.
func slice(address string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "team", Name: "backend-1", Labels: map[string]string{discoveryv1.LabelServiceName: "backend"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: new(int32(80))}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}}},
	}
}

// TestEndpointsAskForNothing protects the way of an endpoint from what other objects
// cost.
func TestEndpointsAskForNothing(t *testing.T) {
	p := certified(50)
	if secrets, _, changed := p.Asked(); !changed || len(secrets) != 50 {
		t.Fatalf("%d Secrets are asked for, changed %t", len(secrets), changed)
	}
	commit := p.Apply(source.Batch{Set: []source.Object{slice("10.1.0.2")}})
	if len(p.Updates(commit)) == 0 {
		t.Error("the endpoint is not heard of")
	}
	if allocs := testing.AllocsPerRun(10, func() {
		if _, _, changed := p.Asked(); changed {
			t.Error("an endpoint changes what is asked for")
		}
	}); allocs > 4 {
		t.Errorf("%v allocations to find that nothing is asked for", allocs)
	}
	p.Apply(source.Batch{Deleted: []object.Key{{Kind: kind.Gateway, Name: object.Name{Namespace: "team", Name: "gw-0"}}}})
	if secrets, _, changed := p.Asked(); !changed || len(secrets) != 0 {
		t.Errorf("without a Gateway %d Secrets are asked for, changed %t", len(secrets), changed)
	}
}

// BenchmarkAsked measures what a transaction that asks for nothing new pays for the
// certificates that there are.
func BenchmarkAsked(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint("certificates=", n), func(b *testing.B) {
			p := certified(n)
			p.Asked()
			for b.Loop() {
				p.Asked()
			}
		})
	}
}

// inExperimental returns the options with the fields of the experimental channel.
func inExperimental(o Options) Options {
	o.Topology.Experimental = true
	return o
}
