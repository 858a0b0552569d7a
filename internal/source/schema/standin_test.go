package schema

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
)

// standInOf returns the stand-in of a manifest, which has to be refused.
func standInOf(t *testing.T, text string) any {
	t.Helper()
	v, err := New(kind.All, false)
	if err != nil {
		t.Fatal(err)
	}
	var content map[string]any
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		t.Fatal(err)
	}
	id, err := v.Identify(content)
	if err != nil {
		t.Fatal(err)
	}
	if _, errs := v.Decode(id, content); len(errs) == 0 {
		t.Fatalf("valid:\n%s", text)
	}
	if o := v.StandIn(id, content); o != nil {
		return o
	}
	return nil
}

// A stand-in takes what the route was to take, as far as that can be read, and no less; it
// leads nowhere.
func TestStandIn(t *testing.T) {
	for name, c := range map[string]struct{ spec, want string }{
		"a mistake in a filter": {
			"parentRefs: [{name: gw}], hostnames: [a.example], rules: [{matches: [{path: {value: /admin}}], filters: [{type: Redirect}]}, {matches: [{path: {type: Exact, value: /b}, method: GET}]}]",
			"[gw] [a.example] [PathPrefix /admin] [Exact /b GET]",
		},
		"an experimental filter": {
			"parentRefs: [{name: gw}], rules: [{matches: [{path: {value: /admin}}], filters: [{type: ExternalAuth, externalAuth: {protocol: HTTP, backendRef: {name: auth, port: 80}}}], backendRefs: [{name: v1, port: 80}]}]",
			"[gw] [] [PathPrefix /admin]",
		},
		"a path that can't be read":     {"parentRefs: [{name: gw}], rules: [{matches: [{path: {value: admin}}]}]", "[gw] [] [PathPrefix /]"},
		"a misspelt type, plain value":  {"parentRefs: [{name: gw}], rules: [{matches: [{path: {type: Prefix, value: /admin}}]}]", "[gw] [] [PathPrefix /admin]"},
		"a misspelt type, a pattern":    {"parentRefs: [{name: gw}], rules: [{matches: [{path: {type: Regex, value: /admin/.*}}]}]", "[gw] [] [PathPrefix /]"},
		"a misspelt field":              {"parentRefs: [{name: gw}], rules: [{match: [{path: {value: /admin}}]}]", "[gw] [] [PathPrefix /]"},
		"one match of two":              {"parentRefs: [{name: gw}], rules: [{matches: [{path: {value: /a}}, 7]}]", "[gw] [] [PathPrefix /a | PathPrefix /]"},
		"a header's type":               {"parentRefs: [{name: gw}], rules: [{matches: [{path: {value: /a}, headers: [{name: x, type: Glob, value: y}]}]}]", "[gw] [] [PathPrefix /a]"},
		"a method":                      {"parentRefs: [{name: gw}], rules: [{matches: [{path: {value: /a}, method: get}]}]", "[gw] [] [PathPrefix /a]"},
		"a host with a port":            {"parentRefs: [{name: gw}], hostnames: ['A.example:8080', 'b_c'], rules: [{matches: [{path: {value: /a}}]}]", "[gw] [a.example] [PathPrefix /a]"},
		"no host that can be read":      {"parentRefs: [{name: gw}], hostnames: [7], rules: [{matches: [{path: {value: /a}}]}]", "[gw] [] [PathPrefix /a]"},
		"a parent with a mistake":       {"parentRefs: [{name: gw, port: many}, {sectionName: x}]", "[gw] [] [PathPrefix /]"},
		"the same parent twice":         {"parentRefs: [{name: gw}, {name: gw}], hostnames: [a.example], rules: [{matches: [{path: {value: /a}}]}]", "[gw] [a.example] [PathPrefix /]"},
		"rules that are none":           {"parentRefs: [{name: gw}], hostnames: [a.example], rules: none", "[gw] [a.example] [PathPrefix /]"},
		"a rule that is none":           {"parentRefs: [{name: gw}], rules: [7, {matches: [{path: {value: /a}}]}]", "[gw] [] [PathPrefix /] [PathPrefix /a]"},
		"a regular expression too long": {"parentRefs: [{name: gw}], rules: [{matches: [{path: {type: RegularExpression, value: 7}}]}]", "[gw] [] [PathPrefix /]"},
	} {
		t.Run(name, func(t *testing.T) {
			route, ok := standInOf(t, "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r, namespace: ns, labels: {a: b}}, spec: {"+c.spec+"}}").(*gwv1.HTTPRoute)
			if !ok {
				t.Fatal("there is none")
			}
			if got := httpTaken(route); got != c.want {
				t.Error(cmp.Diff(c.want, got))
			}
		})
	}
}

func httpTaken(route *gwv1.HTTPRoute) string {
	parents := "["
	for i, p := range route.Spec.ParentRefs {
		if i > 0 {
			parents += " "
		}
		parents += string(p.Name)
	}
	text := parents + "] ["
	for i, h := range route.Spec.Hostnames {
		if i > 0 {
			text += " "
		}
		text += string(h)
	}
	text += "]"
	for _, rule := range route.Spec.Rules {
		if len(rule.BackendRefs)+len(rule.Filters) > 0 {
			text += " leads somewhere"
		}
		text += " ["
		for i, m := range rule.Matches {
			if i > 0 {
				text += " | "
			}
			text += string(*m.Path.Type) + " " + *m.Path.Value
			for _, h := range m.Headers {
				text += " " + string(h.Name)
			}
			if m.Method != nil {
				text += " " + string(*m.Method)
			}
		}
		text += "]"
	}
	return text
}

// The other kinds of routes have stand-ins as well. What takes no requests has none.
func TestStandInKinds(t *testing.T) {
	grpc := standInOf(t, "{apiVersion: gateway.networking.k8s.io/v1, kind: GRPCRoute, metadata: {name: r}, spec: {parentRefs: [{name: gw}], rules: [{matches: [{method: {service: a.B, method: C}}, {method: {type: Glob, service: d}}], filters: [{type: x}]}]}}").(*gwv1.GRPCRoute)
	if m := grpc.Spec.Rules[0].Matches; len(m) != 2 || *m[0].Method.Service != "a.B" || m[1].Method != nil {
		t.Errorf("GRPCRoute: %+v", grpc.Spec)
	}
	tls := standInOf(t, "{apiVersion: gateway.networking.k8s.io/v1, kind: TLSRoute, metadata: {name: r}, spec: {parentRefs: [{name: gw}], hostnames: [a.example], rules: [{backendRefs: [{name: v1, port: 80, weight: many}]}]}}").(*gwv1.TLSRoute)
	if b := tls.Spec.Rules[0].BackendRefs; tls.Spec.Hostnames[0] != "a.example" || *b[0].Weight != 0 {
		t.Errorf("TLSRoute: %+v", tls.Spec)
	}
	for _, text := range []string{
		"{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r}, spec: {rules: 7}}",
		"{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r}, spec: 7}",
		"{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: r}, spec: {}}",
		"{apiVersion: v1, kind: Service, metadata: {name: r}, spec: {ports: 7}}",
	} {
		if o := standInOf(t, text); o != nil {
			t.Errorf("%s: %+v", text, o)
		}
	}
}

// What people write for a hostname is read, so that the host is guarded that is meant.
func TestHostOf(t *testing.T) {
	for text, want := range map[string]string{
		"a.example": "a.example", "A.example:8443": "a.example", "https://admin.example/": "admin.example",
		"admin.example.": "admin.example", " *.b.example/x ": "*.b.example", "https://c.example:443/x?y": "c.example",
	} {
		if got := hostOf(text); got != want {
			t.Errorf("%q is read as %q, want %q", text, got, want)
		}
	}
}
