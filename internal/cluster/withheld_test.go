package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What guards a Gateway outside of its proxies stays as it is while it can't be computed: a controller that starts
// anew, and can't, neither opens a Service nor forgets what is kept. Other Gateways get what they ask for.
func TestFleetsStayWhileWithheld(t *testing.T) {
	in := install(t)
	r := in.start()
	in.apply(`{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayParameters, metadata: {namespace: team, name: p},
		spec: {client: {proxyProtocol: true}, service: {loadBalancerSourceRanges: [192.0.2.0/24]}}}`, parametrizedGateway)
	ranges := func(gateway string) []string {
		var list corev1.ServiceList
		if err := in.client.List(in.Context(), &list, client.InNamespace("team"), client.MatchingLabels{"gateway.networking.k8s.io/gateway-name": gateway}); err != nil {
			in.Fatal(err)
		}
		if len(list.Items) != 1 {
			return nil
		}
		return append([]string{"a Service"}, list.Items[0].Spec.LoadBalancerSourceRanges...)
	}
	guarded := func() bool { return slices.Equal(ranges("web"), []string{"a Service", "192.0.2.0/24"}) }
	in.until("the Service lets few in", guarded)
	in.until("the settings are kept", func() bool { return strings.Contains(in.memory(), "team/web") })
	kept := in.memory()
	r.end()

	in.prepare = func(c *Cluster) {
		c.pipeline.Engine.Trip(func(table string, key any) {
			if table == "topology-parameters" && fmt.Sprint(key) == "team/web" {
				panic("told to")
			}
		})
	}
	r = in.start()
	in.until("the next replica leads", func() bool { return r.leads.Load() != nil })
	other := strings.ReplaceAll(parametrizedGateway, "name: web", "name: other")
	in.apply(other)
	in.until("the other Gateway has its fleet", func() bool { return len(ranges("other")) == 2 })
	if !guarded() {
		t.Errorf("the Service has %v", ranges("web"))
	}
	if now := in.memory(); now != kept {
		t.Errorf("what is kept is %s", now)
	}

	r.pipeline.Engine.Trip(nil)
	in.apply(`{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayParameters, metadata: {namespace: team, name: p},
		spec: {service: {loadBalancerSourceRanges: [192.0.2.0/25]}}}`)
	in.until("the Service is what it should be", func() bool { return slices.Equal(ranges("web"), []string{"a Service", "192.0.2.0/25"}) })
	in.until("both are kept", func() bool {
		return strings.Contains(in.memory(), "team/other") && !strings.Contains(in.memory(), "proxyProtocol")
	})
}
