package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// What guards a Gateway outside of its proxies stays as it is while it can't be computed, and so do the proxies: a
// controller that starts anew, and can't, neither opens a Service nor forgets what is kept, takes away no fleet, and
// knows whose certificates to renew. Other Gateways get what they ask for.
func TestFleetsStayWhileWithheld(t *testing.T) {
	for _, table := range []string{"topology-gateways", "topology-parameters", "topology-listeners", "topology-rate-limit-policies", "infrastructure", "kept-settings"} {
		t.Run(table, func(t *testing.T) { testFleetStaysWithout(t, table) })
	}
}

func testFleetStaysWithout(t *testing.T, table string) {
	in := install(t)
	r := in.start()
	in.apply(`{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayParameters, metadata: {namespace: team, name: p},
		spec: {client: {proxyProtocol: true}, service: {loadBalancerSourceRanges: [192.0.2.0/24]}}}`, parametrizedGateway,
		limitedTo(10))
	ranges := func(namespace string) []string {
		var list corev1.ServiceList
		if err := in.client.List(in.Context(), &list, client.InNamespace(namespace), client.MatchingLabels{"gateway.networking.k8s.io/gateway-name": "web"}); err != nil {
			in.Fatal(err)
		}
		for _, s := range list.Items {
			if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
				return append([]string{"a Service"}, s.Spec.LoadBalancerSourceRanges...)
			}
		}
		return nil
	}
	guarded := func() bool { return slices.Equal(ranges("team"), []string{"a Service", "192.0.2.0/24"}) }
	in.until("the Service lets few in", guarded)
	in.until("the settings are kept", func() bool { return strings.Contains(in.memory(), "team/web") })
	kept := in.memory()
	web := object.Name{Namespace: "team", Name: "web"}
	known := func(r *replica) string {
		fleets := &r.proxies.(*provisioned).fleets
		account, ok := fleets.serviceAccount(web)
		return fmt.Sprint(account, ok, fleets.limitsAccount(web))
	}
	accounts := known(r)
	var trusted corev1.ConfigMap // by the proxies, as controllers
	authorities := func() string {
		if err := in.client.Get(in.Context(), client.ObjectKey{Namespace: "team", Name: "web-gatehouse"}, &trusted); err != nil {
			in.Fatal(err)
		}
		return trusted.Data["ca.crt"]
	}
	in.until("the proxies know their controller", func() bool { return authorities() != "" })
	r.end()
	trusted.Data["ca.crt"] = "of long ago"
	if err := in.client.Update(in.Context(), &trusted); err != nil {
		in.Fatal(err)
	}

	in.prepare = func(c *Cluster) {
		c.pipeline.Engine.Trip(func(of string, key any) {
			if of == table && strings.Contains(fmt.Sprint(key), "team/web") {
				panic("told to")
			}
		})
	}
	r = in.start()
	in.until("the next replica leads", func() bool { return r.leads.Load() != nil })
	in.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: others}}`,
		`{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayParameters, metadata: {namespace: others, name: p}, spec: {accessLog: []}}`,
		strings.ReplaceAll(parametrizedGateway, "namespace: team", "namespace: others"))
	in.until("the other Gateway has its fleet", func() bool { return ranges("others") != nil })
	if !guarded() {
		t.Errorf("the Service has %v", ranges("team"))
	}
	if now := in.memory(); now != kept {
		t.Errorf("what is kept is %s", now)
	}
	if now := known(r); now != accounts {
		t.Errorf("the proxies' ServiceAccounts are %s, and not %s", now, accounts)
	}
	if account, ok := r.proxies.(*provisioned).fleets.serviceAccount(object.Name{Namespace: "team", Name: "none"}); ok {
		t.Errorf("a Gateway that doesn't exist has a fleet of %s", account)
	}
	in.until("the proxies know their controller again", func() bool { return authorities() != "of long ago" })

	r.pipeline.Engine.Trip(nil)
	in.apply(limitedTo(20), `{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayParameters, metadata: {namespace: team, name: p},
		spec: {service: {loadBalancerSourceRanges: [192.0.2.0/25]}}}`)
	in.until("the Service is what it should be", func() bool { return slices.Equal(ranges("team"), []string{"a Service", "192.0.2.0/25"}) })
	in.until("both are kept", func() bool {
		return strings.Contains(in.memory(), "others/web") && !strings.Contains(in.memory(), "proxyProtocol")
	})
}

// limitedTo limits requests to a Gateway, by what counts for all of its proxies.
func limitedTo(requests int) string {
	return fmt.Sprintf(`{apiVersion: gatehouse.dev/v1alpha1, kind: RateLimitPolicy, metadata: {namespace: team, name: web}, spec: {
		targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}],
		limits: {all: {rates: [{limit: %d, window: 1s}], scope: Global}}}}`, requests)
}
