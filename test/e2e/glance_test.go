//go:build linux

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestAtAGlance protects who looks at the status: endpoints that are ready, policies in force, a route that is served
// in clear text though others of its host are sent on to HTTPS, and policies of other implementations are told there.
func TestAtAGlance(t *testing.T) {
	t.Parallel()
	slice := func(ready string) string {
		return `
apiVersion: v1
kind: Service
metadata: {name: half, namespace: ` + siteNamespace + `}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: half-1, namespace: ` + siteNamespace + `, labels: {kubernetes.io/service-name: half}}
addressType: IPv4
ports: [{port: 3000}]
endpoints: [{addresses: [127.0.0.11]}, {addresses: [127.0.0.12], conditions: {ready: ` + ready + `}}, {addresses: [127.0.0.12], conditions: {ready: false}}]
`
	}
	s := startSite(t, map[string]string{
		"cert.yaml":    mustSecret(t, "cert", "*.example"),
		"gateway.yaml": siteGateway("{name: http, port: 80, protocol: HTTP}", "{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}"),
		"half.yaml":    slice("false"),
		"routes.yaml": siteRules("shop", "shop.example", "- backendRefs: [{name: half, port: 80}, {name: v1, port: 8080}]") +
			siteRules("moved", "shop.example", "- {matches: [{path: {value: /login}}], filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]}"),
		"policy.yaml": `{apiVersion: gatehouse.dev/v1alpha1, kind: TrafficPolicy, metadata: {name: sizes, namespace: ` + siteNamespace + `},
			spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}], request: {maxBodySize: 1Mi}}}`,
		"theirs.yaml": `{apiVersion: gateway.envoyproxy.io/v1alpha1, kind: SecurityPolicy, metadata: {name: jwt, namespace: ` + siteNamespace + `},
			spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}]}}`,
	})
	says := func(route, endpoints string, policies []string, words string) {
		t.Helper()
		eventually(t, siteTimeout, func() error {
			report, err := s.status()
			if err != nil {
				return err
			}
			item, err := report.find("HTTPRoute "+route, siteNamespace)
			if err != nil {
				return err
			}
			got := ""
			if e := item.Summary.Endpoints; e != nil {
				got = fmt.Sprintf("%d/%d", e.Ready, e.All)
			}
			if got != endpoints || !slices.Equal(item.Summary.Policies, policies) || !strings.Contains(item.Summary.Message, words) || words == "" && item.Summary.Message != "" {
				return fmt.Errorf("%s: %+v with endpoints %q", route, item.Summary, got)
			}
			return nil
		})
	}
	says("shop", "2/3", []string{"TrafficPolicy"}, "over plain HTTP too, on host shop.example")
	says("moved", "", nil, "")
	says("home", "1/1", nil, "")
	s.problem(t, "theirs.yaml", "Envoy Gateway", "HTTPRoute "+siteNamespace+"/shop", "AuthPolicy")

	s.write(t, "half.yaml", slice("true"))
	says("shop", "3/3", []string{"TrafficPolicy"}, "over plain HTTP too")
	s.write(t, "theirs.yaml", "")
	s.healed(t, "theirs.yaml")
}
