package schema

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
)

// standInOf returns the stand-in of a manifest, which has to be refused.
func standInOf(t *testing.T, text string) (o any, unread []string) {
	t.Helper()
	v, err := New(kind.All, false)
	if err != nil {
		t.Fatal(err)
	}
	var content map[string]any
	if text, err := yaml.YAMLToJSON([]byte(text)); err != nil || utiljson.Unmarshal(text, &content) != nil {
		t.Fatal(err)
	}
	id, err := v.Identify(content)
	if err != nil {
		t.Fatal(err)
	}
	_, errs := v.Decode(id, content)
	if len(errs) == 0 {
		t.Fatalf("valid:\n%s", text)
	}
	standIn, unread := v.StandIn(id, content, errs)
	if standIn == nil {
		return nil, unread
	}
	return standIn, unread
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
		"a path that can't be read":     {"parentRefs: [{name: gw}], rules: [{matches: [{path: {value: admin}}]}]", "[gw] [] [.*]"},
		"a path with a mistake":         {"parentRefs: [{name: gw}], rules: [{matches: [{path: {value: /a.b//c}}]}]", "[gw] [] [/a.*]"},
		"a path that is none":           {"parentRefs: [{name: gw}], rules: [{matches: [{path: /admin, method: GET}]}]", "[gw] [] [.*]"},
		"a misspelt type, plain value":  {"parentRefs: [{name: gw}], rules: [{matches: [{path: {type: Prefix, value: /admin}}]}]", "[gw] [] [/admin.* | Exact /admin]"},
		"a misspelt type, a pattern":    {"parentRefs: [{name: gw}], rules: [{matches: [{path: {type: Regex, value: /admin/.*}}]}]", "[gw] [] [/admin/.* | Exact /admin/.*]"},
		"a misspelt type and path":      {"parentRefs: [{name: gw}], rules: [{matches: [{path: {type: Regex, value: /admin//.*}}]}]", "[gw] [] [/admin.* | /admin.*]"},
		"a misspelt type, an option":    {"parentRefs: [{name: gw}], rules: [{matches: [{path: {type: Regex, value: '/admins?(/.*)?'}}]}]", "[gw] [] [/admin.* | /admins.*]"},
		"a misspelt type, choices":      {"parentRefs: [{name: gw}], rules: [{matches: [{path: {type: Regex, value: '/api/v1?|/admin'}}]}]", "[gw] [] [.* | /api/v1.*]"},
		"a misspelt type, far choices":  {"parentRefs: [{name: gw}], rules: [{matches: [{path: {type: Regex, value: '/" + strings.Repeat("a", mostRead) + "|/admin'}}]}]", "[gw] [] [.* | /" + strings.Repeat("a", mostRead-1) + ".*]"},
		"a misspelt field of a path":    {"parentRefs: [{name: gw}], rules: [{matches: [{path: {valu: /admin}}]}]", "[gw] [] [.*]"},
		"a misspelt path":               {"parentRefs: [{name: gw}], rules: [{matches: [{pth: {value: /admin}, headers: [{name: x, value: y}]}]}]", "[gw] [] [.* host=.*]"},
		"a misspelt field of a match":   {"parentRefs: [{name: gw}], rules: [{matches: [{path: {value: /a}, header: [{name: x, value: y}]}]}]", "[gw] [] [PathPrefix /a host=.*]"},
		"a misspelt list of matches":    {"parentRefs: [{name: gw}], rules: [{match: [{path: {value: /admin}}]}]", "[gw] [] [.*]"},
		"a misspelt list of filters":    {"parentRefs: [{name: gw}], rules: [{filter: [{type: RequestRedirect}]}]", "[gw] [] [PathPrefix /]"},
		"one match of two":              {"parentRefs: [{name: gw}], rules: [{matches: [{path: {value: /a}}, 7]}]", "[gw] [] [PathPrefix /a | .*]"},
		"matches that are none":         {"parentRefs: [{name: gw}], rules: [{matches: 7}]", "[gw] [] [.*]"},
		"a header's type":               {"parentRefs: [{name: gw}], rules: [{matches: [{path: {value: /a}, headers: [{name: x, type: Glob, value: y}]}]}]", "[gw] [] [PathPrefix /a x=.*]"},
		"a header's misspelt type":      {"parentRefs: [{name: gw}], rules: [{matches: [{path: {value: /a}, headers: [{name: x, typ: RegularExpression, value: y.*}]}]}]", "[gw] [] [PathPrefix /a x=.*]"},
		"a header's name":               {"parentRefs: [{name: gw}], rules: [{matches: [{path: {value: /a}, headers: [{name: 'x y', value: z}]}]}]", "[gw] [] [PathPrefix /a host=.*]"},
		"a header twice":                {"parentRefs: [{name: gw}], rules: [{matches: [{path: {value: /a}, headers: [{name: x, value: y}, {name: x, value: z}]}]}]", "[gw] [] [PathPrefix /a x=.*]"},
		"a query parameter":             {"parentRefs: [{name: gw}], rules: [{matches: [{path: {value: /a}, queryParams: [{name: q, value: [y]}, {value: z}]}]}]", "[gw] [] [PathPrefix /a host=.* ?q=.*]"},
		"headers that are none":         {"parentRefs: [{name: gw}], rules: [{matches: [{path: {value: /a}, headers: {x: y}}]}]", "[gw] [] [.* host=.*]"},
		"a method":                      {"parentRefs: [{name: gw}], rules: [{matches: [{path: {value: /a}, method: get}]}]", "[gw] [] [PathPrefix /a GET | PathPrefix /a HEAD | PathPrefix /a POST | PathPrefix /a PUT | PathPrefix /a DELETE | PathPrefix /a CONNECT | PathPrefix /a OPTIONS | PathPrefix /a TRACE | PathPrefix /a PATCH | PathPrefix /a host=.*]"},
		"a host with a port":            {"parentRefs: [{name: gw}], hostnames: ['A.example:8080', 'b_c'], rules: [{matches: [{path: {value: /a}}]}]", "[gw] [a.example] [PathPrefix /a] without spec.hostnames[1]"},
		"a host with other letters":     {"parentRefs: [{name: gw}], hostnames: ['a_b.c.example', 'x.*.example'], rules: [{matches: [{path: {value: /a}}]}]", "[gw] [*.c.example *.example] [PathPrefix /a]"},
		"no host that can be read":      {"parentRefs: [{name: gw}], hostnames: [7], rules: [{matches: [{path: {value: /a}}]}]", "[gw] [] [PathPrefix /a] without spec.hostnames[0]"},
		"a parent with a mistake":       {"parentRefs: [{name: gw, port: many}, {sectionName: x}]", "[gw] [] [PathPrefix /] without spec.parentRefs[1]"},
		"a parent's namespace":          {"parentRefs: [{name: gw, namespace: Infra}, {name: gw, namespace: 7}, {name: gw, namespace: a/b}, {name: own, namespace: ''}]", "[infra/gw 7/gw own] [] [PathPrefix /] without spec.parentRefs[2]"},
		"the same parent twice":         {"parentRefs: [{name: gw}, {name: gw}], hostnames: [a.example], rules: [{matches: [{path: {value: /a}}]}]", "[gw] [a.example] [PathPrefix /a]"},
		"rules that are none":           {"parentRefs: [{name: gw}], hostnames: [a.example], rules: none", "[gw] [a.example] [.*]"},
		"a rule that is none":           {"parentRefs: [{name: gw}], rules: [7, {matches: [{path: {value: /a}}]}]", "[gw] [] [.*] [PathPrefix /a]"},
		"a regular expression too long": {"parentRefs: [{name: gw}], rules: [{matches: [{path: {type: RegularExpression, value: 7}}]}]", "[gw] [] [.*]"},
	} {
		t.Run(name, func(t *testing.T) {
			o, unread := standInOf(t, "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r, namespace: ns, labels: {a: b}}, spec: {"+c.spec+"}}")
			route, ok := o.(*gwv1.HTTPRoute)
			if !ok {
				t.Fatal("there is none")
			}
			got := httpTaken(route)
			if len(unread) > 0 {
				got += " without " + strings.Join(unread, " ")
			}
			if got != c.want {
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
		if p.Namespace != nil {
			parents += string(*p.Namespace) + "/"
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
			if *m.Path.Type != gwv1.PathMatchRegularExpression {
				text += string(*m.Path.Type) + " "
			}
			text += plainly(*m.Path.Value)
			for _, h := range m.Headers {
				text += " " + string(h.Name) + "=" + h.Value
			}
			for _, q := range m.QueryParams {
				text += " ?" + string(q.Name) + "=" + q.Value
			}
			if m.Method != nil {
				text += " " + string(*m.Method)
			}
		}
		text += "]"
	}
	return text
}

// plainly is an expression without what makes it long.
func plainly(expression string) string { return strings.ReplaceAll(expression, "(?:)", "") }

// The other kinds of routes have stand-ins as well. What takes no requests has none.
func TestStandInKinds(t *testing.T) {
	o, _ := standInOf(t, "{apiVersion: gateway.networking.k8s.io/v1, kind: GRPCRoute, metadata: {name: r}, spec: {parentRefs: [{name: gw}], rules: [{matches: [{method: {service: a.B, method: C}}, {method: {type: Glob, service: d.E}}, {method: {service: f.G, method: H/i}}, {method: {service: j-k, method: L}}, {method: 7}], filters: [{type: x}]}]}}")
	var taken []string
	for _, m := range o.(*gwv1.GRPCRoute).Spec.Rules[0].Matches {
		text := ""
		for _, part := range []*string{m.Method.Service, m.Method.Method} {
			if text += "/"; part != nil {
				text += plainly(*part)
			}
		}
		for _, h := range m.Headers {
			text += " " + string(h.Name) + "=" + h.Value
		}
		taken = append(taken, string(*m.Method.Type)+" "+text)
	}
	if diff := cmp.Diff([]string{
		"Exact /a.B/C", "RegularExpression /d.*/", "Exact /f.G/ host=.*", "RegularExpression /j-k.*/L.*", "RegularExpression /.*/", "Exact /d.E/",
	}, taken); diff != "" {
		t.Error(diff)
	}
	o, _ = standInOf(t, "{apiVersion: gateway.networking.k8s.io/v1, kind: TLSRoute, metadata: {name: r}, spec: {parentRefs: [{name: gw}], hostnames: [a.example], rules: [{backendRefs: [{name: v1, port: 80, weight: many}]}]}}")
	tls := o.(*gwv1.TLSRoute)
	if b := tls.Spec.Rules[0].BackendRefs; tls.Spec.Hostnames[0] != "a.example" || *b[0].Weight != 0 {
		t.Errorf("TLSRoute: %+v", tls.Spec)
	}
	for _, text := range []string{
		"{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r}, spec: {rules: 7}}",
		"{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r}, spec: 7}",
		"{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r}, spec: {parentRefs: [{name: gw, namespace: a/b}]}}",
		"{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: r}, spec: {}}",
		"{apiVersion: v1, kind: Service, metadata: {name: r}, spec: {ports: 7}}",
	} {
		if o, _ := standInOf(t, text); o != nil {
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
