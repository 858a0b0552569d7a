//go:build linux

package e2e

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// badSite is a site with an HTTPS listener whose certificate is good.
func badSite(t *testing.T) *site {
	t.Helper()
	good, err := secretManifest(siteNamespace, "good", "", "*.example")
	if err != nil {
		t.Fatal(err)
	}
	return startSite(t, map[string]string{
		"good.yaml":    good,
		"gateway.yaml": siteGateway(httpListener, tlsListener("good", "good.example")),
	})
}

const httpListener = "{name: http, port: 80, protocol: HTTP}"

// tlsListener is a listener named like its Secret.
func tlsListener(secret, host string) string {
	return "{name: " + secret + ", port: 443, protocol: HTTPS, hostname: " + host + ", tls: {certificateRefs: [{name: " + secret + "}]}}"
}

// innocent is a route that comes in the same change as something bad; it must
// be live although the other is not.
func (s *site) innocent(name string) (manifest string, check func(*testing.T)) {
	host := name + ".innocent.example"
	return siteRoute(name+"-innocent", host, "v2"), func(t *testing.T) {
		t.Helper()
		s.serves(t, host, "v2")
		s.serves(t, "home.example", "v1")
	}
}

// TestBadSecrets protects everything else from a Secret that is of no use: only
// its listener suffers, it says why, the rest of the same change is live, and
// mending the Secret heals without a restart.
func TestBadSecrets(t *testing.T) {
	t.Parallel()
	s := badSite(t)
	s.answers(t, "https://good.example/", http.StatusNotFound)
	for _, flaw := range []string{secretMismatched, secretGarbage, secretEmpty, secretUsage, secretStaple} {
		t.Run(flaw, func(t *testing.T) {
			host := flaw + ".example"
			bad, err := secretManifest(siteNamespace, flaw, flaw, host)
			if err != nil {
				t.Fatal(err)
			}
			route, innocent := s.innocent(flaw)
			s.write(t, "bad.yaml", bad+siteRoute(flaw, host, "v1")+route)
			s.write(t, "gateway.yaml", siteGateway(httpListener, tlsListener("good", "good.example"), tlsListener(flaw, host)))
			innocent(t)
			s.conditions(t, "Gateway gw", flaw, "ResolvedRefs=False/InvalidCertificateRef", "Programmed=False")
			s.conditions(t, "Gateway gw", "good", "Programmed=True")
			s.says(t, "Gateway gw", siteNamespace+"/"+flaw)
			s.answers(t, "https://good.example/", http.StatusNotFound)
			s.serves(t, host, "v1") // over plain HTTP

			mended, err := secretManifest(siteNamespace, flaw, "", host)
			if err != nil {
				t.Fatal(err)
			}
			s.write(t, "bad.yaml", mended+siteRoute(flaw, host, "v1")+route)
			s.answers(t, "https://"+host+"/", http.StatusOK)
			s.conditions(t, "Gateway gw", flaw, "ResolvedRefs=True", "Programmed=True")
		})
	}
}

// TestExpiredCertificate protects the other listeners, and the one who has to
// find out why clients complain: the status says since when, and the certificate is
// served all the same, since it is for the clients to judge it.
func TestExpiredCertificate(t *testing.T) {
	t.Parallel()
	s := badSite(t)
	old, err := secretManifest(siteNamespace, "old", secretExpired, "old.example")
	if err != nil {
		t.Fatal(err)
	}
	route, innocent := s.innocent("old")
	s.write(t, "bad.yaml", old+siteRoute("old", "old.example", "v1")+route)
	s.write(t, "gateway.yaml", siteGateway(httpListener, tlsListener("good", "good.example"), tlsListener("old", "old.example")))
	innocent(t)
	s.answers(t, "https://good.example/", http.StatusNotFound)
	s.conditions(t, "Gateway gw", "old", "ResolvedRefs=False/InvalidCertificateRef", "Programmed=True")
	s.says(t, "Gateway gw", "Secret "+siteNamespace+"/old: the certificate expired at ")
	s.conditions(t, "Gateway gw", "good", "ResolvedRefs=True", "Programmed=True")

	client := s.client(t, "old.example", 443)
	// Envoy's workers take a listener some time after Envoy has acknowledged it.
	eventually(t, callTimeout, func() error {
		var refusal x509.CertificateInvalidError
		if _, _, err := client.works(); !errors.As(err, &refusal) || refusal.Reason != x509.Expired {
			return fmt.Errorf("a client that looks at the time: %w", err)
		}
		return nil
	})
	client.config.Time = func() time.Time { return time.Now().Add(-2 * time.Hour) }
	if _, _, err := client.works(); err != nil {
		t.Errorf("a client whose clock is slow: %v", err)
	}

	mended, err := secretManifest(siteNamespace, "old", "", "old.example")
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, "bad.yaml", mended+siteRoute("old", "old.example", "v1")+route)
	s.answers(t, "https://old.example/", http.StatusOK)
	s.conditions(t, "Gateway gw", "old", "ResolvedRefs=True", "Programmed=True")
}

// TestBadValues protects everything else from values that the API's schema lets
// through and Envoy would not: the rule that has one does not serve, the other
// rules of the route do, and so does the rest of the same change.
func TestBadValues(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil)
	for name, rule := range map[string]string{
		"regex":           `- {matches: [{path: {type: RegularExpression, value: "/bad(?=x)"}}], backendRefs: [{name: v1, port: 8080}]}`,
		"unclosed-regex":  `- {matches: [{path: {type: RegularExpression, value: "/bad("}}], backendRefs: [{name: v1, port: 8080}]}`,
		"class-regex":     `- {matches: [{path: {type: RegularExpression, value: '/bad\p{Letter}+'}}], backendRefs: [{name: v1, port: 8080}]}`,
		"header-regex":    `- {matches: [{path: {type: PathPrefix, value: /bad}, headers: [{name: x, type: RegularExpression, value: "[a"}]}], backendRefs: [{name: v1, port: 8080}]}`,
		"huge-regex":      `- {matches: [{path: {type: RegularExpression, value: "/bad` + strings.Repeat(`(\\pL|\\pN){900}`, 20) + `"}}], backendRefs: [{name: v1, port: 8080}]}`,
		"reserved-header": `- {matches: [{path: {type: PathPrefix, value: /bad}}], filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: Host, value: x}]}}], backendRefs: [{name: v1, port: 8080}]}`,
		"header-value":    `- {matches: [{path: {type: PathPrefix, value: /bad}}], filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-A, value: "a\nb"}]}}], backendRefs: [{name: v1, port: 8080}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			route, innocent := s.innocent(name)
			host := name + ".example"
			good := "\n- {matches: [{path: {type: PathPrefix, value: /good}}], backendRefs: [{name: v2, port: 8080}]}"
			s.write(t, name+".yaml", siteRules(name, host, rule+good)+route)
			innocent(t)
			s.answers(t, "http://"+host+"/good", http.StatusOK)
			s.conditions(t, "HTTPRoute "+name, "gw", "Accepted=True", "PartiallyInvalid=True/UnsupportedValue")
			if o, err := s.call("http://" + host + "/bad"); err != nil || o.status == http.StatusOK {
				t.Errorf("the bad rule answers %+v, %v", o, err)
			}
			s.write(t, name+".yaml", siteRules(name, host, "- {matches: [{path: {type: PathPrefix, value: /bad}}], backendRefs: [{name: v1, port: 8080}]}"+good)+route)
			s.answers(t, "http://"+host+"/bad", http.StatusOK)
			s.conditions(t, "HTTPRoute "+name, "gw", "Accepted=True", "!PartiallyInvalid")
		})
	}
}

// TestBrokenMatchBlocks protects what a match guards that can't be compiled: a wider rule,
// of another route too, does not pass it. What can't be about it is served.
func TestBrokenMatchBlocks(t *testing.T) {
	t.Parallel()
	s := startSite(t, map[string]string{
		"open.yaml": siteRoute("open", "guarded.example", "v1"),
		"all.yaml":  siteRoute("all", "unknown.example", "v1"),
	})
	s.answers(t, "http://guarded.example/admin/users", http.StatusOK)
	login := "  filters: [{type: RequestRedirect, requestRedirect: {path: {type: ReplaceFullPath, replaceFullPath: /login}}}]\n"
	s.write(t, "guard.yaml",
		siteRules("guard", "guarded.example", "- matches: [{path: {type: RegularExpression, value: '/admin/([a-z]*'}}]\n"+login+
			"- matches: [{path: {value: /}, headers: [{name: x-user, type: RegularExpression, value: '['}]}]\n"+login)+
			siteRules("unknown", "unknown.example", "- matches: [{path: {type: RegularExpression, value: '(?i)/admin/('}}]\n"+login))
	s.answers(t, "http://guarded.example/admin/users", http.StatusInternalServerError)
	s.answers(t, "http://guarded.example/adminfree", http.StatusOK)
	s.serves(t, "guarded.example", "v1")
	s.says(t, "HTTPRoute guard", `requests for paths that begin with "/admin/" are refused`)
	s.answers(t, "http://unknown.example/admin/users", http.StatusInternalServerError)
	s.answers(t, "http://unknown.example/", http.StatusInternalServerError)
	s.says(t, "HTTPRoute unknown", "all requests of its hosts are refused")
	s.serves(t, "home.example", "v1")
}

// TestNothingLeftOfRoute protects the reader of the status: a route whose only
// rule is bad is not accepted.
func TestNothingLeftOfRoute(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil)
	s.write(t, "bad.yaml", siteRules("bad", "bad.example", `- {matches: [{path: {type: RegularExpression, value: "/(bad"}}], backendRefs: [{name: v1, port: 8080}]}`))
	s.conditions(t, "HTTPRoute bad", "gw", "Accepted=False/UnsupportedValue")
	s.says(t, "HTTPRoute bad", "spec.rules[0].matches[0].path.value")
	s.serves(t, "home.example", "v1")
}

// refusedRegex is fine for our checks and for Envoy as Gatehouse starts it. The
// Envoy of strictEnvoy refuses it, and stands for whatever our checks don't know.
const refusedRegex = "/abc[a-z]{900}"

// strictEnvoy returns a program that runs the real Envoy with a lower limit for
// regular expressions, laid over the bootstrap that it is given.
func strictEnvoy(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "envoy")
	script := "#!/bin/sh\nexec '" + needTools(t).envoy + `' "$@" --config-yaml ` +
		"'{layered_runtime: {layers: [{name: strict, static_layer: {re2.max_program_size.error_level: 500}}]}}'\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil { //nolint:gosec // it is to be executed
		t.Fatal(err)
	}
	return path
}

// TestEnvoyRefusesRoute protects everything else from a configuration that
// passes our checks and that Envoy refuses: the rest of the same change is live,
// the route says why in Envoy's words, a version that worked stays in force, and
// mending it heals without a restart.
func TestEnvoyRefusesRoute(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil, "--envoy", strictEnvoy(t))
	bad := "- {matches: [{path: {type: RegularExpression, value: '" + refusedRegex + "'}}], backendRefs: [{name: v1, port: 8080}]}"
	route, innocent := s.innocent("nack")
	s.write(t, "nack.yaml", siteRules("nack", "nack.example", bad)+route+
		siteRoute("one", "one.example", "v1")+siteRoute("two", "two.example", "v2"))
	innocent(t)
	s.serves(t, "one.example", "v1")
	s.serves(t, "two.example", "v2")
	s.conditions(t, "HTTPRoute nack", "gw", "Programmed=False/RejectedByProxy")
	s.says(t, "HTTPRoute nack", "RE2 program size")
	s.conditions(t, "HTTPRoute one", "gw", "Accepted=True", "!Programmed")
	if o, err := s.call("http://nack.example/a"); err != nil || o.status == http.StatusOK {
		t.Errorf("the refused host answers %+v, %v", o, err)
	}

	// Changes of others go on while it is held back.
	s.write(t, "home.yaml", siteRoute("home", "home.example", "v2"))
	s.serves(t, "home.example", "v2")

	// A new proxy finds the same.
	s.write(t, "home.yaml", siteRoute("home", "home.example", "v1"))
	pid := s.envoyPID(t)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, siteTimeout, func() error {
		if pids := s.envoys(); len(pids) != 1 || pids[0] == pid {
			return fmt.Errorf("Envoys: %v", pids)
		}
		return nil
	})
	innocent(t)
	s.conditions(t, "HTTPRoute nack", "gw", "Programmed=False/RejectedByProxy")

	s.write(t, "nack.yaml", siteRoute("nack", "nack.example", "v1")+route)
	s.serves(t, "nack.example", "v1")
	s.conditions(t, "HTTPRoute nack", "gw", "Accepted=True", "!Programmed")

	// Bad again, over a version that worked: that one stays.
	s.write(t, "nack.yaml", siteRules("nack", "nack.example", bad)+route)
	s.conditions(t, "HTTPRoute nack", "gw", "Programmed=False/RejectedByProxy")
	s.serves(t, "nack.example", "v1")
	innocent(t)
	_, page, err := s.get("/debug/fallback")
	for _, part := range []string{`"triggered": true`, `"part": "nack.example"`, `"instead": "last good"`, `"HTTPRoute site/nack"`, "RE2 program size", `"since": "20`} {
		if err != nil || !strings.Contains(page, part) {
			t.Errorf("no %s in what is in force instead: %v\n%s", part, err, page)
		}
	}

	// A policy that comes with it closes it, since the version that worked stops nobody.
	s.write(t, "policy.yaml", authPolicy("nack", "kind: HTTPRoute, name: nack", needsOffice))
	s.answers(t, "http://nack.example/a", http.StatusInternalServerError)
	s.says(t, "AuthPolicy nack", "it is not in force until that is mended")
	s.remove(t, "policy.yaml")
	s.write(t, "nack.yaml", siteRoute("nack", "nack.example", "v2")+route)
	s.serves(t, "nack.example", "v2")
	innocent(t)
}

// TestEnvoyRefusesCertificate is the same for a Secret. Its key is one that our checks
// know nothing against: what says that Envoy has seen it is Envoy's message.
func TestEnvoyRefusesCertificate(t *testing.T) {
	t.Parallel()
	s := badSite(t)
	bad, err := secretManifest(siteNamespace, "nack", secretForeign, "nack.example")
	if err != nil {
		t.Fatal(err)
	}
	route, innocent := s.innocent("nack")
	s.write(t, "nack.yaml", bad+siteRoute("nack", "nack.example", "v1")+route)
	s.write(t, "gateway.yaml", siteGateway(httpListener, tlsListener("good", "good.example"), tlsListener("nack", "nack.example")))
	innocent(t)
	s.answers(t, "https://good.example/", http.StatusNotFound)
	s.conditions(t, "Gateway gw", "nack", "ResolvedRefs=True", "Programmed=False")
	s.conditions(t, "Gateway gw", "good", "Programmed=True")
	s.says(t, "Gateway gw", "the certificate in Secret "+siteNamespace+"/nack")
	s.says(t, "Gateway gw", "Failed to load private key")

	mended, err := secretManifest(siteNamespace, "nack", "", "nack.example")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	s.write(t, "nack.yaml", mended+siteRoute("nack", "nack.example", "v1")+route)
	s.answers(t, "https://nack.example/", http.StatusOK)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("healing took %s", took)
	}
	s.conditions(t, "Gateway gw", "nack", "Programmed=True")
}
