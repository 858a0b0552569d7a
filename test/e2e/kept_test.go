//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"os"
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

	// Without its channel, the guard can't ask, and nothing passes.
	s.write(t, "guard.yaml", guard("ExternalAuth"))
	if _, err := s.terminate(); err != nil {
		t.Fatal(err)
	}
	flags := s.args
	s.args = nil
	for _, arg := range flags {
		if arg != "--experimental" {
			s.args = append(s.args, arg)
		}
	}
	s.again(t)
	s.answers(t, guarded, http.StatusInternalServerError)
	s.problem(t, "guard.yaml", "--experimental", "answers 500")
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

// TestNeverValid protects what a route was to guard that has a mistake from the beginning.
func TestNeverValid(t *testing.T) {
	t.Parallel()
	redirect := func(kind string) string {
		return siteRules("guard", "home.example", fmt.Sprintf(`- matches: [{path: {value: /admin}}]
  filters: [{type: %s, requestRedirect: {path: {type: ReplaceFullPath, replaceFullPath: /login}}}]`, kind))
	}
	s := startSite(t, map[string]string{"guard.yaml": redirect("Redirect")})
	s.answers(t, guarded, http.StatusInternalServerError)
	s.problem(t, "guard.yaml", "spec.rules[0].filters[0].type", "answers 500")
	s.kill()
	s.write(t, "guard.yaml", mistake)
	s.again(t)
	s.answers(t, guarded, http.StatusInternalServerError)
	s.serves(t, "home.example", "v1")
	// A path that can't be read doesn't put the route behind the one for everything.
	s.write(t, "guard.yaml", strings.Replace(redirect("RequestRedirect"), "/admin", "admin", 1))
	s.problem(t, "guard.yaml", "spec.rules[0].matches[0].path", "answers 500")
	s.answers(t, guarded, http.StatusInternalServerError)
	s.write(t, "guard.yaml", redirect("RequestRedirect"))
	s.answers(t, guarded, http.StatusFound)
	s.healed(t, "guard.yaml")
	s.remove(t, "guard.yaml")
	s.answers(t, guarded, http.StatusOK)
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
