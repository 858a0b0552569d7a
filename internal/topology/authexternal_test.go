package topology

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

const (
	authService = "kind: Service\nmetadata: {namespace: default, name: auth}\nspec: {ports: [{name: http, port: 80}]}"
	farService  = "kind: Service\nmetadata: {namespace: far, name: auth}\nspec: {ports: [{port: 80}]}"
)

// A service that can't be asked lets nobody pass, whatever is to become of requests when it fails.
func TestExternalRules(t *testing.T) {
	const grant = "kind: ReferenceGrant\nmetadata: {namespace: far, name: g}\nspec: {from: [{group: gatehouse.dev, kind: AuthPolicy, namespace: default}], to: [{group: '', kind: Service}]}"
	const routes = "kind: ReferenceGrant\nmetadata: {namespace: far, name: h}\nspec: {from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: default}], to: [{group: '', kind: Service}]}"
	for name, c := range map[string]struct {
		external string
		more     []string
		backend  string // "" where nobody passes
		problem  string
	}{
		"http":             {"protocol: HTTP, backendRef: {name: auth, port: 80}", nil, "default/auth:80/auth", ""},
		"grpc":             {"protocol: GRPC, backendRef: {name: auth, port: 80}", nil, "default/auth:80/grpc", ""},
		"no such Service":  {"protocol: HTTP, backendRef: {name: none, port: 80}, failureMode: Open", nil, "", "spec.authorization[x].external.backendRef: Service default/none does not exist"},
		"no such port":     {"protocol: HTTP, backendRef: {name: auth, port: 81}", nil, "", "Service default/auth has no TCP port 81; it has 80"},
		"no permission":    {"protocol: HTTP, backendRef: {name: auth, namespace: far, port: 80}", []string{farService, routes}, "", "from: [{group: gatehouse.dev, kind: AuthPolicy, namespace: default}], to: [{group: \"\", kind: Service, name: auth}]"},
		"a permission":     {"protocol: HTTP, backendRef: {name: auth, namespace: far, port: 80}", []string{farService, grant}, "far/auth:80/auth", ""},
		"another kind":     {"protocol: HTTP, backendRef: {kind: Pod, name: auth, port: 80}", nil, "", `Pod "auth" can't be a backend`},
		"no protocol":      {"backendRef: {name: auth, port: 80}", nil, "", `external.protocol is ""; it must be HTTP or GRPC`},
		"another's fields": {"protocol: HTTP, grpc: {}, backendRef: {name: auth, port: 80}", nil, "", "external has fields of another protocol than HTTP"},
		"a long time":      {"protocol: HTTP, timeout: 2m, backendRef: {name: auth, port: 80}", nil, "", `external.timeout is "2m"; it must be from 1ms to 1m`},
		"a large body":     {"protocol: HTTP, forwardBody: {maxSize: 16777217}, backendRef: {name: auth, port: 80}", nil, "", "forwardBody.maxSize is 16777217"},
		"no message":       {"protocol: GRPC, failureMode: Open, forwardBody: {maxSize: 4194304}, backendRef: {name: auth, port: 80}", nil, "", "forwardBody.maxSize is 4194304; with protocol GRPC it must be from 0 to 3932160"},
		"a large message":  {"protocol: GRPC, failureMode: Open, forwardBody: {maxSize: 3932160}, backendRef: {name: auth, port: 80}", nil, "default/auth:80/grpc", ""},
		"another mode":     {"protocol: HTTP, failureMode: Ajar, backendRef: {name: auth, port: 80}", nil, "", `failureMode is "Ajar"`},
		"a path upwards":   {"protocol: HTTP, http: {path: /a/%2e./b}, backendRef: {name: auth, port: 80}", nil, "", "http.path is"},
		"a header of the transport": {
			"protocol: HTTP, http: {allowedResponseHeaders: [X-User, Content-Length]}, backendRef: {name: auth, port: 80}", nil, "",
			`allowedResponseHeaders[1] can't be "Content-Length"`,
		},
		"the host":           {"protocol: HTTP, http: {allowedResponseHeaders: [Host]}, backendRef: {name: auth, port: 80}", nil, "", `allowedResponseHeaders[0] can't be "Host"`},
		"a path as a header": {"protocol: HTTP, http: {allowedResponseHeaders: [':path']}, backendRef: {name: auth, port: 80}", nil, "", "allowedResponseHeaders[0] is \":path\""},
		"a name that is none": {
			"protocol: GRPC, grpc: {allowedHeaders: ['a b']}, backendRef: {name: auth, port: 80}", nil, "", `grpc.allowedHeaders[0] is "a b", which is no name of a header`,
		},
	} {
		_, look := authWorld(t, "authorization: {x: {when: \"request.path == '/'\", external: {"+c.external+"}}}", append(c.more, authService)...)
		p, a := look()
		if a == nil || len(a.Conditions) != 1 {
			t.Fatalf("%s: %+v", name, a)
		}
		switch got := a.Conditions[0]; {
		case c.backend == "" && !got.Never:
			t.Errorf("%s: somebody passes: %+v", name, got)
		case c.backend != "" && (got.External == nil || !strings.HasPrefix(got.External.Backend.String(), c.backend+"#") || got.When == ""):
			t.Errorf("%s: %+v, want %s", name, got, c.backend)
		}
		switch {
		case c.problem == "" && p.Refused != nil:
			t.Errorf("%s: refused: %s", name, p.Refused.Message)
		case c.problem != "" && (p.Refused == nil || !strings.Contains(p.Refused.Message, c.problem)):
			t.Errorf("%s: %+v, want %q", name, p.Refused, c.problem)
		}
	}
}

// Headers that a service alone may set are taken from clients; those that it is sent aren't.
func TestExternalHeaders(t *testing.T) {
	_, look := authWorld(t, "authorization: {x: {external: {protocol: HTTP, backendRef: {name: auth, port: 80}, http: {"+
		"allowedHeaders: [X-Told], allowedResponseHeaders: [X-User, x-told, Authorization]}}}}", authService)
	if _, a := look(); strings.Join(a.Hidden, " ") != "x-user" {
		t.Errorf("hidden are %q", a.Hidden)
	}
}

// A BackendTLSPolicy of a service that only an AuthPolicy asks is one of the Gateways that this is for, and
// without what it trusts the service isn't asked.
func TestExternalTLS(t *testing.T) {
	w, look := authWorld(t, "authorization: {x: {external: {protocol: HTTP, backendRef: {name: auth, port: 80}, failureMode: Open}}}", authService,
		"kind: BackendTLSPolicy\nmetadata: {namespace: default, name: tls}\nspec: {targetRefs: [{group: '', kind: Service, name: auth}], validation: {hostname: a.test, caCertificateRefs: [{group: '', kind: ConfigMap, name: ca}]}}")
	if _, a := look(); !a.Conditions[0].Never {
		t.Errorf("somebody passes: %+v", a.Conditions[0])
	}
	gateway := object.Name{Namespace: "default", Name: "g"}
	w.engine.View(func(c *flow.Ctx) {
		if list, _ := flow.Get(c, w.graph.Ancestors, object.Name{Namespace: "default", Name: "tls"}); len(list) != 1 || list[0].Gateway != gateway {
			t.Errorf("the policy is for %v", list)
		}
		read := false
		w.graph.Contents(c, gateway, func(k object.Key) { read = read || k.Name.Name == "ca" })
		if !read {
			t.Error("its authorities are not read")
		}
	})
}
