package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/infra"
)

// A Gateway that asks for nothing but to be reached within the cluster has a Service
// without another way in, and its ClusterIP as its address. Beside other entries it is
// one address of several.
func TestRoutabilityCluster(t *testing.T) {
	in := install(t)
	in.start()
	gateway := func(addresses string) string {
		return `{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: team, name: web},
			spec: {gatewayClassName: gatehouse, listeners: [{name: http, port: 80, protocol: HTTP}], addresses: [` + addresses + `]}}`
	}
	service := func() *corev1.Service {
		s := &corev1.Service{}
		if in.client.Get(in.Context(), client.ObjectKey{Namespace: "team", Name: infra.Name(webGateway, "gatehouse")}, s) != nil {
			return nil
		}
		return s
	}
	addresses := func() []gwv1.GatewayStatusAddress {
		web := &gwv1.Gateway{}
		if err := in.client.Get(in.Context(), client.ObjectKey{Namespace: "team", Name: "web"}, web); err != nil {
			t.Fatal(err)
		}
		return web.Status.Addresses
	}

	in.apply(gateway(`{routability: Cluster}`))
	in.until("the Service is of type ClusterIP", func() bool { s := service(); return s != nil && s.Spec.Type == corev1.ServiceTypeClusterIP })
	in.until("the ClusterIP is the Gateway's address", func() bool {
		a := addresses()
		return len(a) == 1 && a[0].Value == service().Spec.ClusterIP && a[0].Routability != nil && *a[0].Routability == gwv1.GatewayAddressRoutabilityCluster
	})

	in.apply(gateway(`{routability: Cluster}, {value: 192.0.2.1}`))
	in.until("the Service is of type LoadBalancer", func() bool { return service().Spec.Type == corev1.ServiceTypeLoadBalancer })
	s := service()
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	if err := in.client.Status().Update(in.Context(), s); err != nil {
		t.Fatal(err)
	}
	in.until("both are the Gateway's addresses", func() bool {
		a := addresses()
		return len(a) == 2 && a[0].Value != a[1].Value && (a[0].Value == "192.0.2.1" || a[1].Value == "192.0.2.1")
	})

	in.until("the class claims it", func() bool {
		for _, f := range in.class("gatehouse").Status.SupportedFeatures {
			if f.Name == "GatewayAddressRoutabilityCluster" {
				return true
			}
		}
		return false
	})
}
