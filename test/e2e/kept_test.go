//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// guardedSite has a rule for everything on home.example, and a route that asks for permission
// on /admin, which is denied to requests with guardedQuery.
func guardedSite(t *testing.T) *site {
	t.Helper()
	auth, err := authBackend.manifest(siteNamespace, "auth", "auth", "")
	if err != nil {
		t.Fatal(err)
	}
	s := startSite(t, map[string]string{"auth.yaml": auth, "guard.yaml": guard("ExternalAuth")}, "--experimental")
	s.answers(t, guarded, http.StatusUnauthorized)
	return s
}

// guard is the route with a filter of a type.
func guard(filter string) string {
	return siteRules("guard", "home.example", fmt.Sprintf(`- matches: [{path: {value: /admin}}]
  filters:
  - externalAuth: {protocol: GRPC, backendRef: {name: auth, port: 9000}, grpc: {}}
    type: %s
  backendRefs: [{name: v1, port: 8080}]`, filter))
}

const (
	guardedPath = "home.example/admin?auth=deny"
	guarded     = "http://" + guardedPath
	mistake     = "apiVersion: v1\nkind: {"
)

// again starts the process once more, after a kill or an orderly end.
func (s *site) again(t *testing.T) {
	t.Helper()
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	if err := s.waitReady(); err != nil {
		t.Fatal(err)
	}
}

// keepsOld checks that the problem of a file says that an earlier version is in force.
func (s *site) keepsOld(t *testing.T, file string) {
	t.Helper()
	if p := s.problem(t, file); !p.Stale {
		t.Errorf("no earlier version is in force: %+v", p)
	}
}

// TestGuardStays protects what a route guards from mistakes in it, through restarts and
// kills: no request passes the guard before it is deleted on purpose.
func TestGuardStays(t *testing.T) {
	t.Parallel()
	s := guardedSite(t)
	l := startLoad(t, s.listener(), 1, func() string { return guardedPath + "&rest=" })
	l.more(t, 20)

	s.write(t, "guard.yaml", guard("ExternalAut"))
	s.keepsOld(t, "guard.yaml")
	s.answers(t, guarded, http.StatusUnauthorized)
	if _, err := s.terminate(); err != nil {
		t.Fatal(err)
	}
	s.again(t)
	s.answers(t, guarded, http.StatusUnauthorized)
	s.keepsOld(t, "guard.yaml")

	s.kill()
	s.write(t, "guard.yaml", mistake)
	s.again(t)
	s.answers(t, guarded, http.StatusUnauthorized)
	s.serves(t, "home.example", "v1")

	l.more(t, 20)
	passed, wrong := l.passed()
	if passed != 0 {
		t.Errorf("%d of %d requests passed the guard: %v", passed, l.sent.Load(), wrong)
	}

	// What is deleted is gone, also with a mistake in its place.
	s.remove(t, "guard.yaml")
	s.answers(t, guarded, http.StatusOK)
	s.kill()
	s.write(t, "guard.yaml", mistake)
	s.again(t)
	s.answers(t, guarded, http.StatusOK)
}

// TestFirstStart protects from serving a part of what is written without anybody knowing: mistakes
// end a first start, with all of them told, and --lenient serves the rest. An AuthPolicy with one
// closes its targets.
func TestFirstStart(t *testing.T) {
	t.Parallel()
	bad := authPolicy("guard", onHome, "authentication: {k: {apiKeyy: {secretRef: {name: keys}}}}")
	s := startSite(t, map[string]string{"late.yaml": siteRoute("late", "late.example", "v1")})
	if _, err := s.terminate(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(s.state, "kept")); err != nil {
		t.Fatal(err)
	}
	s.write(t, "guard.yaml", bad)
	s.write(t, "late.yaml", siteRules("late", "late.example", "- {backendRef: [{name: v1, port: 8080}]}"))
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	<-s.finished
	if code := s.cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("it ends with %d", code)
	}
	for _, told := range []string{"guard.yaml:", "apiKeyy: unknown field", "late.yaml:", "backendRef: unknown field", "--lenient"} {
		if text := s.log.Tail(20); !strings.Contains(text, told) {
			t.Errorf("%q is not told:\n%s", told, text)
		}
	}
	s.args = append(s.args, "--lenient")
	s.again(t)
	s.answers(t, "http://home.example/", http.StatusForbidden)
	s.answers(t, "http://late.example/", http.StatusNotFound)
	s.conditions(t, "AuthPolicy guard", "gw", "Accepted=False/Invalid")
	s.says(t, "AuthPolicy guard", "apiKeyy: unknown field")
	s.write(t, "guard.yaml", authPolicy("guard", onHome, "authentication: {k: {anonymous: {}}}"))
	s.serves(t, "home.example", "v1")
}

// TestDeletedIsGone protects from a policy that was deleted, in an edit that breaks another one of
// its file.
func TestDeletedIsGone(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil)
	opening := authPolicy("opening", "kind: Gateway, name: gw", "overrides: {authentication: {all: {anonymous: {}}}}")
	s.write(t, "policies.yaml", opening)
	s.says(t, "AuthPolicy opening", "in force")
	s.write(t, "policies.yaml", keysSecret("keys", "alice", "first")+authPolicy("keys", onHome, needsKeys)+
		authPolicy("third", "kind: HTTPRoute, name: elsewhere", "authentication: {k: {apiKeyy: {secretRef: {name: keys}}}}"))
	s.answers(t, "http://home.example/", http.StatusUnauthorized)
	s.answers(t, "http://home.example/?key=first", http.StatusOK)
}

// TestEnvoyOutlivesBrokenFiles protects the traffic from a restart that finds its files
// broken, or not at all: the Envoy of the process before goes on with what it has.
func TestEnvoyOutlivesBrokenFiles(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil)
	pid := s.envoyPID(t)
	l := startLoad(t, s.listener(), loadClients, func() string { return "home.example" })
	l.more(t, 50)

	s.kill()
	for _, name := range []string{"gateway.yaml", "backends.yaml", "home.yaml"} {
		s.write(t, name, mistake)
	}
	s.again(t)
	s.serves(t, "home.example", "v1")
	s.keepsOld(t, "gateway.yaml")
	l.more(t, 50)

	s.kill()
	aside := s.dir + ".aside"
	if err := os.Rename(s.dir, aside); err != nil {
		t.Fatal(err)
	}
	s.again(t)
	s.serves(t, "home.example", "v1")
	l.more(t, 50)

	s.kill()
	if err := os.Rename(aside, s.dir); err != nil {
		t.Fatal(err)
	}
	s.again(t)
	s.write(t, "home.yaml", siteRoute("home", "home.example", "v2"))
	s.serves(t, "home.example", "v2")
	if wrong := l.end(); len(wrong) > 0 {
		t.Errorf("of %d requests, not 200: %v", l.sent.Load(), wrong)
	}
	if now := s.envoyPID(t); now != pid {
		t.Errorf("Envoy %d was replaced by %d", pid, now)
	}
}

// TestKindsShareAHost protects a page from a GRPCRoute of its host, whose name comes first, and
// the other way round: what they get doesn't depend on names, nor on a restart.
func TestKindsShareAHost(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil)
	calls := strings.NewReplacer("HTTPRoute", "GRPCRoute", "port: 8080", "port: 9000").Replace(siteRoute("a-call", "home.example", "v1"))
	s.write(t, "a-call.yaml", calls)
	for range 2 {
		s.conditions(t, "GRPCRoute a-call", "gw", "Accepted=True")
		s.conditions(t, "HTTPRoute home", "gw", "Accepted=True")
		s.serves(t, "home.example", "v1")
		s.kill()
		s.write(t, "home.yaml", siteRoute("home", "home.example, other.example", "v1"))
		s.again(t)
	}
}
