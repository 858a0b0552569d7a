package cluster

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// The controller asks neither its API server nor a Service for keys because a policy says so,
// and the policy says why not. A class may allow a name.
func TestKeySetsStayOutside(t *testing.T) {
	in := install(t)
	in.apply(gatewayOf("gatehouse"))
	for name, uri := range map[string]string{
		"api":      in.Config.Host + "/openid/v1/jwks",
		"service":  "https://payments.victim.svc.cluster.local/keys",
		"metadata": "https://169.254.169.254/latest/meta-data",
	} {
		in.apply(`{apiVersion: gatehouse.dev/v1alpha1, kind: AuthPolicy, metadata: {namespace: team, name: ` + name + `}, spec: {
			targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}],
			authentication: {` + name + `: {jwt: {issuer: i, jwks: {uri: "` + uri + `"}}}}}}`)
	}
	in.start()
	accepted := func(name string) string {
		var p v1alpha1.AuthPolicy
		if err := in.client.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: name}, &p); err != nil {
			t.Fatal(err)
		}
		for _, a := range p.Status.Ancestors {
			for _, c := range a.Conditions {
				if c.Type == "Accepted" && c.Status == "False" {
					return c.Reason + ": " + c.Message
				}
			}
		}
		return ""
	}
	for _, name := range []string{"api", "service", "metadata"} {
		in.until(name+" is refused", func() bool {
			return strings.Contains(accepted(name), "which the GatewayClass doesn't allow (allow.keySets)")
		})
	}
	in.apply(`{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayParameters, metadata: {namespace: gatehouse-system, name: class},
			spec: {allow: {keySets: [{names: [payments.victim.svc.cluster.local], addresses: [10.96.0.0/12]}]}}}`,
		`{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: gatehouse}, spec: {controllerName: gatehouse.dev/controller,
			parametersRef: {group: gatehouse.dev, kind: GatewayParameters, namespace: gatehouse-system, name: class}}}`)
	in.until("the name is allowed, and can't be resolved here", func() bool {
		got := accepted("service")
		return strings.Contains(got, "there is no such host") || strings.Contains(got, "can't be resolved") || strings.Contains(got, "it took too long")
	})
}
