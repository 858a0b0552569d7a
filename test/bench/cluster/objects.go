package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// ports of a Service, and those of the backend behind them.
var ports = []struct {
	name            string
	service, target int32
}{{"http", 80, 8080}, {"other", 8080, 8081}}

// createService makes a Service of the backend and its EndpointSlice. It is headless:
// Gateways don't go over a cluster IP, and kube-proxy has no work then.
func (b *bench) createService(ctx context.Context, name string) error {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: loadNamespace},
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone},
	}
	for _, p := range ports {
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Name: p.name, Port: p.service, TargetPort: intstr.FromInt32(p.target)})
	}
	return errors.Join(b.create(ctx, service), b.create(ctx, b.slice(name, b.backend)))
}

// slice is the EndpointSlice of a Service.
func (b *bench) slice(service string, addresses ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: service + "-1", Namespace: loadNamespace,
			Labels: map[string]string{discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "gatehouse-bench"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for _, address := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		})
	}
	for _, p := range ports {
		s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: new(p.name), Port: new(p.target), Protocol: new(corev1.ProtocolTCP)})
	}
	return s
}

// route is attached to all targets, and has the host of its name.
func route(name string, targets []*target, rules ...gwv1.HTTPRouteRule) *gwv1.HTTPRoute {
	r := &gwv1.HTTPRoute{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: loadNamespace},
		Spec:       gwv1.HTTPRouteSpec{Hostnames: []gwv1.Hostname{gwv1.Hostname(host(name))}, Rules: rules},
	}
	for _, t := range targets {
		r.Spec.ParentRefs = append(r.Spec.ParentRefs, gwv1.ParentReference{
			Namespace: new(gwv1.Namespace(t.key.Namespace)), Name: gwv1.ObjectName(t.key.Name),
		})
	}
	return r
}

func host(route string) string { return route + ".example.com" }

// to is a rule that sends a path to a Service.
func to(path, service string, port int32, filters ...gwv1.HTTPRouteFilter) gwv1.HTTPRouteRule {
	return gwv1.HTTPRouteRule{
		Matches: []gwv1.HTTPRouteMatch{{Path: &gwv1.HTTPPathMatch{Type: new(gwv1.PathMatchPathPrefix), Value: &path}}},
		Filters: filters,
		BackendRefs: []gwv1.HTTPBackendRef{{BackendRef: gwv1.BackendRef{
			BackendObjectReference: gwv1.BackendObjectReference{Name: gwv1.ObjectName(service), Port: new(gwv1.PortNumber(port))},
		}}},
	}
}

// probe is the route of the public benchmark: one rule to a Service, and one to a
// Service that does not exist, both with filters.
func probe(i int, service string, targets []*target) *gwv1.HTTPRoute {
	filters := []gwv1.HTTPRouteFilter{
		{Type: gwv1.HTTPRouteFilterRequestHeaderModifier, RequestHeaderModifier: &gwv1.HTTPHeaderFilter{
			Add: []gwv1.HTTPHeader{{Name: "added-header", Value: "added-value"}},
		}},
		setsHeader("added-resp-header"),
	}
	return route(fmt.Sprintf("%d-route", i), targets,
		to(fmt.Sprintf("/%d", i), service, 80, filters...), to("/", "invalid-backend", 80, filters...))
}

func setsHeader(name gwv1.HTTPHeaderName) gwv1.HTTPRouteFilter {
	return gwv1.HTTPRouteFilter{Type: gwv1.HTTPRouteFilterResponseHeaderModifier, ResponseHeaderModifier: &gwv1.HTTPHeaderFilter{
		Add: []gwv1.HTTPHeader{{Name: name, Value: "added-resp-value"}},
	}}
}
