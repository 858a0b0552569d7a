//go:build linux

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// sharedClass is a class whose Gateways share a fleet.
const sharedClass = `---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: shared}
spec:
  controllerName: gatehouse.dev/controller
  parametersRef: {group: gatehouse.dev, kind: GatewayParameters, namespace: platform, name: shared}
---
apiVersion: gatehouse.dev/v1alpha1
kind: GatewayParameters
metadata: {name: shared, namespace: platform}
spec: {mergeGateways: true}
`

// sharingGateway is a Gateway of that class, made on a day of January, with a host on the ports 80 and 443.
func sharingGateway(name string, day int, host string) string {
	return strings.NewReplacer("gatewayClassName: gatehouse", "gatewayClassName: shared",
		"{name: gw, namespace: "+siteNamespace+"}",
		fmt.Sprintf(`{name: %s, namespace: %s, creationTimestamp: "2026-01-%02dT00:00:00Z"}`, name, siteNamespace, day),
	).Replace(siteGateway(
		fmt.Sprintf("{name: http, port: 80, protocol: HTTP, hostname: %s}", host),
		fmt.Sprintf("{name: https, port: 443, protocol: HTTPS, hostname: %s, tls: {certificateRefs: [{name: cert}]}}", host)))
}

// sharingRoute is a route of a Gateway to one Service.
func sharingRoute(name, gateway, service string) string {
	return fmt.Sprintf(`---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: %s, namespace: %s}
spec:
  parentRefs: [{name: %s}]
  rules: [{backendRefs: [{name: %s, port: 8080}]}]
`, name, siteNamespace, gateway, service)
}

// TestSharedFleet protects Gateways that share an Envoy from each other: the guard of one is around its hosts,
// however a request gets there, and around no other's, and hosts are the older Gateway's.
func TestSharedFleet(t *testing.T) {
	t.Parallel()
	secret, err := secretManifest(siteNamespace, "cert", "", "*.example")
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, map[string]string{
		"class.yaml":   sharedClass,
		"secret.yaml":  secret,
		"gateway.yaml": sharingGateway("gw", 1, "home.example") + sharingGateway("other", 2, "other.example"),
		"home.yaml":    sharingRoute("home", "gw", "v1") + sharingRoute("other", "other", "v2"),
	})
	over := func(sni, host, want string) {
		t.Helper()
		eventually(t, siteTimeout, func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if got := s.tried(ctx, 443, sni, host, ""); !strings.Contains(got, want) {
				return fmt.Errorf("%s by way of %s: %s, want %s", host, sni, got, want)
			}
			return nil
		})
	}
	s.serves(t, "home.example", "v1")
	s.serves(t, "other.example", "v2")
	s.answers(t, "http://nobody.example/", http.StatusNotFound)
	over("home.example", "home.example", "200")
	over("other.example", "home.example", "421")
	for _, name := range []string{"gw", "other"} {
		s.conditions(t, "Gateway "+name, "", "Accepted=True", "Programmed=True")
	}

	s.write(t, "policy.yaml", authPolicy("office", onGateway, needsOffice))
	s.says(t, "AuthPolicy office", "All rules of the policy are in force")
	s.answers(t, "http://home.example/", http.StatusForbidden)
	s.serves(t, "other.example", "v2")
	s.answers(t, "http://nobody.example/", http.StatusNotFound)
	over("home.example", "home.example", "403")
	over("other.example", "home.example", "421")
	over("home.example", "other.example", "421")
	over("other.example", "other.example", "200")

	// The younger Gateway wants the guarded host, and its route answers there without the guard if it gets it.
	s.write(t, "thief.yaml", sharingGateway("thief", 3, "home.example")+sharingRoute("thief", "thief", "v2"))
	s.says(t, "Gateway thief", `listener "http" of the older Gateway `+siteNamespace+"/gw")
	s.conditions(t, "Gateway thief", "http", "Conflicted=True", "Programmed=False")
	s.answers(t, "http://home.example/", http.StatusForbidden)
	over("home.example", "home.example", "403")

	// When the older one goes, so does its guard's target.
	s.write(t, "gateway.yaml", sharingGateway("other", 2, "other.example"))
	s.serves(t, "home.example", "v2")
	s.conditions(t, "Gateway thief", "", "Programmed=True")
	s.serves(t, "other.example", "v2")
}

// TestSharedFleetTenants protects the hosts of Gateways on a shared fleet from other namespaces: the class says
// who may have which, and a Gateway that is refused keeps what it has from the wildcards of others.
func TestSharedFleetTenants(t *testing.T) {
	t.Parallel()
	of := func(namespace, manifest string) string {
		return strings.ReplaceAll(manifest, "namespace: "+siteNamespace, "namespace: "+namespace)
	}
	to := func(route, service string) string {
		return strings.Replace(route, "{name: "+service+", port", "{namespace: "+siteNamespace+", name: "+service+", port", 1)
	}
	plain := func(namespace, name string, day int, hosts ...string) string {
		listeners := make([]string, len(hosts))
		for i, host := range hosts {
			listeners[i] = fmt.Sprintf("{name: l%d, port: 80, protocol: HTTP, hostname: %q}", i, host)
		}
		return of(namespace, strings.NewReplacer("gatewayClassName: gatehouse", "gatewayClassName: shared",
			"{name: gw, namespace: "+siteNamespace+"}",
			fmt.Sprintf(`{name: %s, namespace: %s, creationTimestamp: "2026-01-%02dT00:00:00Z"}`, name, siteNamespace, day),
		).Replace(siteGateway(listeners...)))
	}
	rules := `{mergeGateways: true, allow: {quotas: {listeners: 2}, hostnames: [
  {namespaces: {names: [site]}, hostnames: ["*.example", "home.example"]},
  {namespaces: {names: [tenant]}, hostnames: ["*.tenant.example"]}]}}`
	s := newSite(t, map[string]string{
		"class.yaml":   strings.Replace(sharedClass, "{mergeGateways: true}", rules, 1),
		"gateway.yaml": plain(siteNamespace, "gw", 2, "*.example", "a.tenant.example"),
		"wide.yaml":    sharingRoute("wide", "gw", "v1"),
		"grant.yaml": `---
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: tenant, namespace: ` + siteNamespace + `}
spec:
  from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: tenant}]
  to: [{group: "", kind: Service}]
`,
		"tenant.yaml": plain("tenant", "gw", 1, "b.tenant.example", "home.example") + to(of("tenant", sharingRoute("own", "gw", "v2")), "v2"),
	})
	s.serves(t, "home.example", "v1")
	s.serves(t, "b.tenant.example", "v2")
	s.serves(t, "a.tenant.example", "v1")
	s.serves(t, "c.tenant.example", "v1")
	s.saysOf(t, "tenant", "Gateway gw", `may not use hostname "home.example"`)

	// Beyond what it may have, a Gateway has nothing, and it takes nothing.
	s.write(t, "more.yaml", plain("tenant", "more", 3, "c.tenant.example"))
	s.saysOf(t, "tenant", "Gateway more", "quotas.listeners")
	s.serves(t, "c.tenant.example", "v1")
	s.remove(t, "more.yaml")

	// A mistake costs its Gateway's hosts, and hands them to nobody.
	s.write(t, "tenant.yaml", strings.Replace(plain("tenant", "gw", 1, "b.tenant.example"), "spec:", "spec:\n  addresses: [{value: 127.0.0.1}]", 1)+
		to(of("tenant", sharingRoute("own", "gw", "v2")), "v2"))
	s.saysOf(t, "tenant", "Gateway gw", "spec.addresses")
	s.answers(t, "http://b.tenant.example/", http.StatusNotFound)
	s.serves(t, "home.example", "v1")
}

// TestOneMoreOnSharedFleet protects two hundred Gateways on one fleet from one more that comes and goes: no listener is
// made anew, and no connection of theirs drained.
func TestOneMoreOnSharedFleet(t *testing.T) {
	t.Parallel()
	secret, err := secretManifest(siteNamespace, "cert", "", "*.example")
	if err != nil {
		t.Fatal(err)
	}
	gateways, routes := sharingGateway("gw", 1, "home.example"), sharingRoute("home", "gw", "v1")
	for i := range 200 {
		name := fmt.Sprintf("g%d", i)
		gateways += sharingGateway(name, 2, name+".example")
		routes += sharingRoute(name, name, "v2")
	}
	s := newSite(t, map[string]string{"class.yaml": sharedClass, "secret.yaml": secret, "gateway.yaml": gateways, "routes.yaml": routes})
	s.serves(t, "home.example", "v1")
	s.serves(t, "g199.example", "v2")
	before := s.envoyStats(t, "listener_manager")
	for range 3 {
		s.write(t, "more.yaml", sharingGateway("more", 3, "more.example")+sharingRoute("more", "more", "v1"))
		s.serves(t, "more.example", "v1")
		eventually(t, siteTimeout, func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if got := s.tried(ctx, 443, "more.example", "more.example", ""); !strings.Contains(got, "200") {
				return fmt.Errorf("over TLS: %s", got)
			}
			return nil
		})
		s.remove(t, "more.yaml")
		s.answers(t, "http://more.example/", http.StatusNotFound)
	}
	after := s.envoyStats(t, "listener_manager")
	t.Logf("before %v\nafter %v", before, after)
	if err := sameStats(before, after, "listener_manager.listener_added", "listener_manager.listener_modified",
		"listener_manager.listener_removed", "listener_manager.total_filter_chains_draining"); err != nil {
		t.Error(err)
	}
}
