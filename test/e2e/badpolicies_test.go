//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// badPolicy is a policy that can't do what it says, on a route of its own.
type badPolicy struct {
	spec   string // of an AuthPolicy; its target is the route
	also   string // manifests beside it
	status int    // of the answers
	says   string // by the policy
}

// TestBadPolicies protects that a policy with a mistake blocks what it guards, says why, costs
// nobody else anything, and is in force as soon as it is mended.
func TestBadPolicies(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	done := make(chan struct{})
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/html":
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprint(w, "<html><body>Please log in.</body></html>")
		case "/long":
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"keys": [{"kty": "RSA", "n": "%s"}]}`, strings.Repeat("A", 2<<20))
		case "/silent":
			<-done
		}
	}))
	defer issuer.Close()
	defer close(done)
	jwt := func(path string) string {
		return fmt.Sprintf("authentication: {staff: {jwt: {issuer: 'https://id.example.com', audiences: [a], jwks: {uri: '%s%s'}}}}", issuer.URL, path)
	}
	s := startSite(t, map[string]string{"keys.yaml": keysSecret("keys", "alice", "first")})
	for name, c := range map[string]badPolicy{
		"expression": {
			spec: `authorization: {some: {when: "request.path.startsWith(", methods: [GET]}}`, status: http.StatusForbidden, says: "spec.authorization[some].when",
		},
		"type": {
			spec: `authorization: {some: {when: request.path, methods: [GET]}}`, status: http.StatusForbidden, says: "spec.authorization[some].when",
		},
		"html":   {spec: jwt("/html"), status: http.StatusUnauthorized, says: "text/html"},
		"long":   {spec: jwt("/long"), status: http.StatusUnauthorized, says: "more than 262144 bytes"},
		"silent": {spec: jwt("/silent"), status: http.StatusUnauthorized, says: "it took too long"},
		"hash": {
			spec: "authentication: {staff: {basic: {secretRef: {name: bad}}}}", also: keysSecret("bad", ".htpasswd", "alice:$2y$05$c4WoMPo3SXsafkva.HHa6uXQZWr7oboPiC2bT/r7q1BB8I2s0BRqC"),
			status: http.StatusUnauthorized, says: "htpasswd -s",
		},
		"missing": {spec: "authentication: {robots: {apiKey: {secretRef: {name: nonesuch}}}}", status: http.StatusUnauthorized, says: "nonesuch, which does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			host, target := name+".example", "kind: HTTPRoute, name: "+name
			route, innocent := s.innocent(name)
			s.write(t, name+".yaml", siteRoute(name, host, "v1")+authPolicy(name, target, c.spec)+c.also+route)
			innocent(t)
			s.answers(t, "http://"+host+"/", c.status)
			s.says(t, "AuthPolicy "+name, c.says)
			s.write(t, name+".yaml", siteRoute(name, host, "v1")+authPolicy(name, target, needsKeys)+route)
			s.answers(t, "http://"+host+"/?key=first", http.StatusOK)
			s.answers(t, "http://"+host+"/", http.StatusUnauthorized)
			innocent(t)
		})
	}
}

// TestMisplacedPolicies protects what guards a route from what else is there, is not there, or
// goes away.
func TestMisplacedPolicies(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	s := startSite(t, map[string]string{
		"gateway.yaml": siteGateway(httpListener, "{name: narrow, port: 81, protocol: HTTP, hostname: narrow.example}"),
	})
	const home = "http://home.example/"

	// Many keys.
	var keys strings.Builder
	fmt.Fprintf(&keys, "---\napiVersion: v1\nkind: Secret\nmetadata: {name: keys, namespace: %s}\nstringData:\n", siteNamespace)
	for i := range 10_000 {
		fmt.Fprintf(&keys, "  client-%d: key-%d\n", i, i)
	}
	s.write(t, "keys.yaml", keys.String())
	s.write(t, "policy.yaml", authPolicy("robots", onHome, needsKeys))
	s.answers(t, home+"?key=key-9999", http.StatusOK)
	s.answers(t, home+"?key=key-10000", http.StatusUnauthorized)

	// Another policy on the same target: the younger takes the place of defaults, and of no overrides.
	s.write(t, "second.yaml", authPolicy("second", onHome, needsOffice))
	s.answers(t, home+"?key=key-9999", http.StatusForbidden)
	s.says(t, "AuthPolicy robots", "Overridden by AuthPolicy "+siteNamespace+"/second")
	s.write(t, "policy.yaml", authPolicy("robots", onHome, "overrides: {"+needsKeys+"}"))
	s.answers(t, home+"?key=key-9999", http.StatusOK)
	s.says(t, "AuthPolicy second", "Overridden by AuthPolicy "+siteNamespace+"/robots")
	s.remove(t, "second.yaml")

	// Of a policy without its Secret nobody passes, until it goes as well.
	s.remove(t, "keys.yaml")
	s.answers(t, home+"?key=key-9999", http.StatusUnauthorized)
	s.remove(t, "policy.yaml")
	s.serves(t, "home.example", "v1")

	// A target that doesn't exist yet, and one that no listener takes.
	s.write(t, "policy.yaml", authPolicy("early", "kind: HTTPRoute, name: late", needsOffice)+authPolicy("narrow", "kind: HTTPRoute, name: refused", needsOffice)+
		strings.Replace(siteRoute("refused", "wide.example", "v1"), "{name: gw}", "{name: gw, sectionName: narrow}", 1))
	s.says(t, "AuthPolicy early", "late")
	s.says(t, "AuthPolicy narrow", "No listener and no route is served that the policy could be for")
	s.serves(t, "home.example", "v1")
	s.write(t, "late.yaml", siteRoute("late", "late.example", "v1"))
	s.answers(t, "http://late.example/", http.StatusForbidden)
	s.says(t, "AuthPolicy early", "All rules of the policy are in force")
}
