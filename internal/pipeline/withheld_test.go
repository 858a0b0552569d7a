package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/test/certs"
)

// TestWithheldFromThoseConcerned protects tenants from each other: what of one can't be computed holds up the
// Gateways that it may concern, and no other.
func TestWithheldFromThoseConcerned(t *testing.T) {
	const (
		policy = `{apiVersion: gateway.networking.k8s.io/v1, kind: BackendTLSPolicy, metadata: {namespace: default, name: p},
  spec: {targetRefs: [{group: "", kind: Service, name: s}], validation: {hostname: s.test, caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]}}}`
		traffic = `{apiVersion: gateway.networking.x-k8s.io/v1alpha1, kind: XBackendTrafficPolicy, metadata: {namespace: default, name: p},
  spec: {targetRefs: [{group: "", kind: Service, name: s}], retryConstraint: {budget: {percent: 20}}}}`
		gateway = `{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: default, name: web}, spec: {gatewayClassName: gatehouse, listeners: [
  {name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: pair}]}}]}}`
		slice = `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {namespace: default, name: s, labels: {kubernetes.io/service-name: s}},
  addressType: IPv4, ports: [{port: 80}], endpoints: [{addresses: [192.0.2.1]}]}`
		namespace = `{apiVersion: v1, kind: Namespace, metadata: {name: default, labels: {a: b}}}`
	)
	// Objects of the namespace third may refer to what is in default.
	own, ours, all := []string{"default/web"}, []string{"default/web", "third/web"}, []string{"default/web", "other/web", "third/web"}
	for table, c := range map[string]struct {
		about, object string
		want          []string
	}{
		"topology-backend-tls-policies":           {"default/p", policy, ours},
		"topology-policy-authorities":             {"default/p", policy, ours},
		"topology-backend-tls-policy-says":        {"default/p", policy, ours},
		"topology-policy-ancestors":               {"default/p", policy, ours},
		"topology-authorities":                    {"default/ca", policy, ours},
		"topology-backend-traffic-policies":       {"default/p", traffic, ours},
		"topology-backend-traffic-policy-says":    {"default/p", traffic, ours},
		"topology-certificates":                   {"default/pair", gateway, ours},
		"secret-resources":                        {"default/pair", gateway, own},
		"backend-resources":                       {"default/s", slice, ours},
		"gateway-backends":                        {"default/s", slice, own},
		"topology-backend-tls-policy-attachments": {"default/s", policy, ours},
		"topology-namespaces":                     {"default", namespace, all},
	} {
		t.Run(table, func(t *testing.T) {
			p := newProvisioned(t)
			for _, ns := range []string{"default", "other", "third"} {
				p.set(fmt.Sprintf(`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: %s, name: web}, spec: {gatewayClassName: gatehouse,
  listeners: [{name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {a: b}}}}}, {name: own, port: 81, protocol: HTTP}]}}`, ns))
				p.set(fmt.Sprintf(`{apiVersion: v1, kind: Service, metadata: {namespace: %s, name: s}, spec: {ports: [{port: 80}]}}`, ns))
				p.set(fmt.Sprintf(`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: %s, name: r},
  spec: {parentRefs: [{name: web}], rules: [{backendRefs: [{name: s, port: 80}]}]}}`, ns))
			}
			p.set(`{apiVersion: gateway.networking.k8s.io/v1, kind: ReferenceGrant, metadata: {namespace: default, name: g},
  spec: {from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: third}], to: [{group: "", kind: Service}]}}`)
			p.set(strings.ReplaceAll(policy, "namespace: default, name: p", "namespace: other, name: p"))
			p.Apply(source.Batch{Set: []source.Object{pastSecret("pair", certs.For("a.test"))}})
			p.Engine.Trip(func(of string, key any) {
				if of == table && strings.Contains(fmt.Sprint(key), c.about) {
					panic("told to")
				}
			})
			o := p.object(c.object)
			o.SetGeneration(2)
			p.Apply(source.Batch{Set: []source.Object{o}})
			held := p.Withheld()
			if held == nil {
				t.Fatal("nothing fails")
			}
			if diff := cmp.Diff(c.want, heldOf(held)); diff != "" {
				t.Errorf("Gateways (-want +got):\n%s", diff)
			}
			// What is gone, and what is computed, holds up nobody.
			p.Engine.Trip(nil)
			p.Apply(source.Batch{Deleted: []object.Key{source.KeyOf(o)}})
			p.set(c.object)
			if held := p.Withheld(); held != nil {
				t.Errorf("Gateways wait still: %v", heldOf(held))
			}
		})
	}
}

// heldOf are those of the test's Gateways that are held up.
func heldOf(held func(object.Name) bool) (out []string) {
	for _, ns := range []string{"default", "other", "third"} {
		if name := (object.Name{Namespace: ns, Name: "web"}); held(name) {
			out = append(out, name.String())
		}
	}
	return out
}

// What a ReferenceGrant permits is what objects of the namespaces that it names refer to, whosesoever Gateways
// they are of.
func TestWithheldOfGrant(t *testing.T) {
	p := newProvisioned(t)
	for _, ns := range []string{"default", "other", "third"} {
		p.set(fmt.Sprintf(`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: %s, name: web}, spec: {gatewayClassName: gatehouse,
  listeners: [{name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]}}`, ns))
	}
	p.set(`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: team, name: r},
  spec: {parentRefs: [{name: web, namespace: other}], rules: [{backendRefs: [{name: s, namespace: far, port: 80}]}]}}`)
	for from, want := range map[string][]string{"team": {"other/web"}, "third": {"third/web"}, "nobody": nil} {
		grant := p.object(fmt.Sprintf(`{apiVersion: gateway.networking.k8s.io/v1, kind: ReferenceGrant, metadata: {namespace: far, name: g},
  spec: {from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: %s}], to: [{group: "", kind: Service}]}}`, from))
		var got []string
		p.Engine.View(func(c *flow.Ctx) {
			s := p.suspects(c, []flow.Failure{{Key: object.Name{Namespace: "far", Name: "g"}, Value: grant}})
			for gateway := range s.gateways {
				got = append(got, gateway.String())
			}
			if s.all {
				t.Errorf("%s: all Gateways are held up", from)
			}
		})
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: Gateways (-want +got):\n%s", from, diff)
		}
	}
}

// A route that asks for default Gateways may be meant for those that are one, and for no others.
func TestWithheldOfDefaultGateways(t *testing.T) {
	p := newProvisioned(t)
	for ns, scope := range map[string]string{"default": "All", "other": "None", "third": ""} {
		p.set(fmt.Sprintf(`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: %s, name: web}, spec: {gatewayClassName: gatehouse,
  defaultScope: %q, listeners: [{name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]}}`, ns, scope))
	}
	p.Engine.Trip(func(_ string, key any) {
		if strings.Contains(fmt.Sprint(key), "HTTPRoute team/r") {
			panic("told to")
		}
	})
	p.Apply(source.Batch{Set: []source.Object{p.object(`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: team, name: r},
  spec: {useDefaultGateways: All, rules: [{backendRefs: [{name: s, port: 80}]}]}}`)}})
	held := p.Withheld()
	if held == nil {
		t.Fatal("nothing fails")
	}
	if diff := cmp.Diff([]string{"default/web"}, heldOf(held)); diff != "" {
		t.Errorf("Gateways (-want +got):\n%s", diff)
	}
}
