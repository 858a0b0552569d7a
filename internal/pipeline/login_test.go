package pipeline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/keyset"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// TestLoginGoesWhereTheClassSays protects a cluster from the endpoints of whatever issuer a tenant names:
// proxies ask for tokens where the class lets routes lead by name. Where they may, they have a
// cluster, the two secrets, and the paths by which people come back, for a Gateway as for a rule.
func TestLoginGoesWhereTheClassSays(t *testing.T) {
	for target, name := range map[string]string{"Gateway": "web", "HTTPRoute": "app"} {
		t.Run(target, func(t *testing.T) {
			p := newProvisioned(t)
			p.set(`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: team, name: web},
  spec: {gatewayClassName: gatehouse, listeners: [{name: http, port: 80, protocol: HTTP}]}}`)
			for _, route := range []string{"app", "other"} {
				p.set(fmt.Sprintf(`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: team, name: %s},
  spec: {parentRefs: [{name: web}], hostnames: [%[1]s.example.com], rules: [{matches: [{path: {value: /x}}], backendRefs: [{name: s, port: 80}]}]}}`, route))
			}
			p.set(`{apiVersion: v1, kind: Secret, metadata: {namespace: team, name: client}, data: {client-secret: Z2VoZWlt}}`)
			p.set(fmt.Sprintf(`{apiVersion: gatehouse.dev/v1alpha1, kind: AuthPolicy, metadata: {namespace: team, name: login},
  spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: %s, name: %s}],
    authentication: {people: {oidc: {issuer: "https://id.example.com", clientID: shop, clientSecretRef: {name: client}}}}}}`, target, name))
			answer := keyset.Answer{Keys: `{"keys":[]}`, Endpoints: keyset.Endpoints{Authorization: "https://id.example.com/a", Token: "https://id.example.com/t"}}
			p.Update(func(tx *flow.Tx) {
				p.TakeKeySets(tx, map[keyset.Key]*keyset.Answer{{Location: keyset.Location{Issuer: "https://id.example.com"}}: &answer})
			})
			look := func() (message string, clusters, secrets int, paths string) {
				p.Engine.View(func(c *flow.Ctx) {
					if s, ok := flow.Get(c, p.AuthPolicyStatus, object.Name{Namespace: "team", Name: "login"}); ok && len(s.Ancestors) > 0 {
						message = string(s.Ancestors[0].Conditions[0].Status) + " " + s.Ancestors[0].Conditions[0].Message
					}
					for k, m := range flow.All(c, p.Members) {
						if strings.HasPrefix(k.Backend.String(), "AuthPolicy/team/login:443") && m.Cluster != nil {
							clusters++
						}
					}
					for k := range flow.All(c, p.Secrets) {
						if strings.HasPrefix(k.Secret.String(), "oidc-") {
							secrets++
						}
					}
					for _, h := range flow.All(c, p.Hosts) {
						for _, r := range h.Rules {
							if r.Match.Path.Kind == ir.PathExact {
								paths += h.Domain + r.Match.Path.Value + " "
							}
						}
					}
				})
				return message, clusters, secrets, paths
			}
			if message, clusters, secrets, paths := look(); !strings.HasPrefix(message, "False ") || !strings.Contains(message, "externalNames") || clusters+secrets != 0 || paths != "" {
				t.Errorf("without the class's word: %q, %d clusters, %d secrets, %q", message, clusters, secrets, paths)
			}
			p.set(`{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayParameters, metadata: {namespace: platform, name: class}, spec: {backends: {externalNames: [id.example.com]}}}`)
			p.set(`{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: gatehouse}, spec: {controllerName: gatehouse.dev/controller,
  parametersRef: {group: gatehouse.dev, kind: GatewayParameters, namespace: platform, name: class}}}`)
			message, clusters, secrets, paths := look()
			if !strings.HasPrefix(message, "True ") || clusters != 1 || secrets != 2 || !strings.Contains(paths, "app.example.com/oauth2/callback app.example.com/oauth2/logout") {
				t.Errorf("with it: %q, %d clusters, %d secrets, %q", message, clusters, secrets, paths)
			}
			if both := strings.Contains(paths, "other.example.com/oauth2"); both != (target == "Gateway") {
				t.Errorf("paths %q", paths)
			}
			p.set(`{apiVersion: v1, kind: Secret, metadata: {namespace: team, name: client}, data: {}}`)
			if message, clusters, secrets, paths := look(); !strings.HasPrefix(message, "False ") || clusters+secrets != 0 || paths != "" {
				t.Errorf("without the client's secret: %q, %d clusters, %d secrets, %q", message, clusters, secrets, paths)
			}
		})
	}
}
