//go:build linux

package e2e

import (
	"crypto/tls"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// leaks says what there is of a session in a text that somebody has got who is to have none of it; empty
// for nothing.
func leaks(text string, session map[string]string) string {
	for _, part := range []string{"__host-gatehouse-", passedHeader, programHeader} {
		if strings.Contains(strings.ToLower(text), part) {
			return part
		}
	}
	if strings.Contains(text, "eyJ") { // as a JWT begins
		return "a token"
	}
	for name, value := range session {
		if strings.Contains(text, name) || strings.Contains(text, value) {
			return "the cookie " + name
		}
	}
	return ""
}

// The headers between the filters of a login.
const passedHeader, programHeader = "x-gatehouse-passed", "x-gatehouse-program"

// loginRules is a route of home.example with one rule where people log in and one that nothing guards, each
// with more in flow notation.
func loginRules(app, open, service string) string {
	return siteRules("home", "home.example", fmt.Sprintf(`- name: app
  matches: [{path: {value: /app}}]
  backendRefs: [{name: %[3]s, port: 8080}]
  filters: [%[1]s]
- backendRefs: [{name: %[3]s, port: 8080}]
  filters: [%[2]s]
`, app, open, service))
}

const (
	atApp      = onHome + ", sectionName: app"
	appPaths   = "      callbackPath: /app/back\n      logoutPath: /app/leave\n"
	appLanding = "home.example/app/back" // to register, behind a scheme
)

// withoutSession sends to the rule of a login what nobody without a session may have answered otherwise.
func withoutSession(t *testing.T, s *site) {
	t.Helper()
	for path, c := range map[string]struct {
		headers map[string]string
		want    int
	}{
		"/app/nothing":               {nil, http.StatusFound},
		"/app/passed":                {map[string]string{passedHeader: "1"}, http.StatusFound},
		"/app/token":                 {map[string]string{"Authorization": "Bearer x"}, http.StatusUnauthorized},
		"/app/script":                {map[string]string{"Sec-Fetch-Mode": "cors", programHeader: "1"}, http.StatusUnauthorized},
		"/app/back?code=x&state=e30": {nil, http.StatusUnauthorized},
		"/app/back?error=x":          {nil, http.StatusUnauthorized},
	} {
		if res, body := newBrowser(t, s.listener()).send(http.MethodGet, "http://home.example"+path, nil, c.headers); res.StatusCode != c.want {
			t.Errorf("%s is answered %d without a session, want %d: %q", path, res.StatusCode, c.want, clipped([]byte(body)))
		}
	}
}

// TestLogInOverHTTP2 protects sessions of browsers as they are today: over TLS and HTTP/2, where each cookie
// may have a header of its own (RFC 9113, section 8.2.3).
func TestLogInOverHTTP2(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	issuer := startProvider(t, 5*time.Minute, "https://"+appLanding)
	backend := startRecorder(t, "backend")
	s := newSite(t, map[string]string{
		"cert.yaml":    mustSecret(t, "cert", "home.example"),
		"gateway.yaml": siteGateway("{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}"),
		"keys.yaml":    loginSecretOf(loginSecret) + keysSecret("keys", "robot", "k3y"),
		"backend.yaml": httpBackend.leading(siteNamespace, "recorder", backend.port),
		"home.yaml": loginRules("", "", "recorder") + `  - name: keys
    matches: [{path: {value: /keys}}]
    backendRefs: [{name: recorder, port: 8080}]
`,
		"policy.yaml": authPolicy("staff", atApp, loginPolicy(issuer, appPaths)) + authPolicy("robots", onHome+", sectionName: keys", needsKeys),
	})
	for _, policy := range []string{"staff", "robots"} {
		s.says(t, "AuthPolicy "+policy, "All rules of the policy are in force")
	}
	s.conditions(t, "Gateway gw", "https", "Programmed=True")
	var names []string
	config, err := clientTLS("home.example", []string{"h2"}, "", &names)
	if err != nil {
		t.Fatal(err)
	}
	person := newBrowser(t, s.port(443))
	transport := person.client.Transport.(*http.Transport)
	transport.TLSClientConfig, transport.ForceAttemptHTTP2 = config, true
	const page = "https://home.example/app/page?of=mine"
	eventually(t, siteTimeout, func() error { // Envoy listens when it has the certificate, too
		conn, err := tls.Dial("tcp", s.port(443), config)
		if err != nil {
			return err
		}
		return conn.Close()
	})
	eventually(t, siteTimeout, func() error {
		if res, _ := newBrowserLike(person).send(http.MethodGet, page, nil, nil); res.StatusCode != http.StatusFound || res.ProtoMajor != 2 {
			return fmt.Errorf("without a session the answer is %d of HTTP/%d", res.StatusCode, res.ProtoMajor)
		}
		return nil
	})
	if res, body := person.opens(page); res.StatusCode != http.StatusOK || res.ProtoMajor != 2 || res.Request.URL.String() != page {
		t.Fatalf("whoever logs in is answered %d %q of HTTP/%d at %s; %q", res.StatusCode, body, res.ProtoMajor, res.Request.URL, person.trace)
	}
	session := person.cookies["home.example"]
	if got, _ := backend.at("/app/page"); got.headers.Get("X-User") != "id1" || leaks(got.text, session) != "" {
		t.Errorf("the backend gets %q", got.text)
	}

	// Each cookie in a header of its own, all of them in one, some twice, and with spaces that HTTP/1 allows.
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(session)) {
		pairs = append(pairs, name+"="+session[name])
	}
	if len(pairs) < 4 {
		t.Fatalf("the session has the cookies %v", session)
	}
	ways := map[string][]string{
		"one":    {"a=1; " + strings.Join(pairs, "; ") + "; b=2"},
		"each":   slices.Concat([]string{"a=1"}, pairs, []string{"b=2"}),
		"behind": slices.Concat([]string{"b=2"}, reversed(pairs), []string{"a=1"}),
		"packed": {"a=1;" + strings.Join(pairs, ";"), "b=2"},
		"twice":  slices.Concat([]string{"a=1"}, pairs, []string{"b=2"}, pairs),
	}
	for way, lines := range ways {
		for rule, guarded := range map[string]bool{"/app/": true, "/open/": false, "/keys/": false} {
			path := rule + way
			f := s.framerTLS(t, config)
			headers := get("home.example", path+"?key=k3y")
			headers[3] = "https"
			for _, line := range lines {
				headers = append(headers, "cookie", line)
			}
			if guarded { // what clients say under the header's name is no answer
				headers = append(headers, "x-user", "mallory", passedHeader, "1")
			}
			if err := f.open(true, headers...); err != nil {
				t.Fatal(err)
			}
			if status := f.answer(); status != "200" {
				t.Errorf("%s is answered %s", path, status)
				continue
			}
			got, ok := backend.at(path)
			if what := leaks(got.text, session); !ok || what != "" {
				t.Errorf("%s: the backend gets %s: %q", path, what, got.text)
			}
			cookies := strings.Split(strings.Join(got.headers.Values("Cookie"), "; "), "; ")
			slices.Sort(cookies) // Envoy orders those of guarded rules at random
			if want := []string{"a=1", "b=2"}; !slices.Equal(cookies, want) {
				t.Errorf("%s: the backend gets the cookies %q, want %q", path, cookies, want)
			}
			if guarded && got.headers.Get("X-User") != "id1" {
				t.Errorf("%s: the backend is told of user %q", path, got.headers.Values("X-User"))
			}
		}
	}
}

func reversed(list []string) []string {
	out := slices.Clone(list)
	slices.Reverse(out)
	return out
}

// newBrowserLike is a browser of somebody else, who comes to the same site in the same way.
func newBrowserLike(b *browser) *browser {
	return &browser{t: b.t, user: loginUser, client: b.client, cookies: map[string]map[string]string{}}
}

// framerTLS is a connection over TLS on which every frame is possible.
func (s *site) framerTLS(t *testing.T, config *tls.Config) *framer {
	t.Helper()
	conn := tls.Client(s.open(t, 443), config)
	if err := conn.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return framerOn(t, conn)
}

// TestLogInIsNotMirrored protects that whoever gets copies of requests gets those alone of people who have
// logged in, and nothing of their sessions.
func TestLogInIsNotMirrored(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	issuer := startProvider(t, 5*time.Minute, "http://"+appLanding)
	mirror := startRecorder(t, "mirror")
	const copied = "{type: RequestMirror, requestMirror: {backendRef: {name: recorder, port: 8080}}}"
	s := newSite(t, map[string]string{
		"keys.yaml":   loginSecretOf(loginSecret),
		"mirror.yaml": httpBackend.leading(siteNamespace, "recorder", mirror.port),
		"home.yaml":   loginRules(copied, copied, "v1"),
		"policy.yaml": authPolicy("staff", atApp, loginPolicy(issuer, appPaths)),
	})
	s.says(t, "AuthPolicy staff", "All rules of the policy are in force")
	s.answers(t, "http://home.example/app/x", http.StatusFound)
	withoutSession(t, s)

	person := newBrowser(t, s.listener())
	for _, page := range []string{"/app/page", "/open/page"} {
		if res, body := person.opens("http://home.example" + page); res.StatusCode != http.StatusOK {
			t.Fatalf("%s is answered %d %q; %q", page, res.StatusCode, body, person.trace)
		}
		if got := mirror.gets(t, page); leaks(got.text, person.cookies["home.example"]) != "" || got.headers.Get("Authorization") != "" {
			t.Errorf("the mirror gets %q", got.text)
		}
	}
	if user := mirror.gets(t, "/app/page").headers.Get("X-User"); user != "id1" {
		t.Errorf("the mirror is told of user %q", user)
	}
	if res, _ := person.send(http.MethodGet, "http://home.example/app/leave", nil, nil); res.StatusCode != http.StatusFound {
		t.Errorf("logging out is answered %d", res.StatusCode)
	}
	person.opens("http://home.example/open/last")
	mirror.gets(t, "/open/last")
	if got, want := mirror.paths(), []string{"/app/page", "/open/last", "/open/page"}; !slices.Equal(got, want) {
		t.Errorf("the mirror gets the requests %q, want %q", got, want)
	}
}

// TestLogInBesideServices protects that services which decide who may pass are asked of those alone who have
// logged in, learn nothing of their sessions, and have their say all the same: those of a policy, over HTTP
// and gRPC, and that of a filter, behind a login and beside it.
func TestLogInBesideServices(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	issuer := startProvider(t, 5*time.Minute, "http://"+appLanding)
	web, grpc, filter := startRecorder(t, "web"), startAuthRecorder(t, "grpc"), startRecorder(t, "filter")
	const seen = "[Cookie, X-User, X-Gatehouse-Passed, X-Gatehouse-Program]"
	const asked = "{type: ExternalAuth, externalAuth: {protocol: HTTP, backendRef: {name: filter, port: 8080}, http: {allowedHeaders: " + seen + "}}}"
	policy := func(more string) string {
		return authPolicy("staff", atApp, loginPolicy(issuer, appPaths+more+"authorization:\n  grpc: {"+externalRule("GRPC", "grpc", "")+
			"}\n  web: {"+externalRule("HTTP", "web", ", http: {allowedHeaders: "+seen+"}")+"}\n"))
	}
	s := newSite(t, map[string]string{
		"keys.yaml": loginSecretOf(loginSecret),
		"services.yaml": httpBackend.leading(siteNamespace, "web", web.port) + authBackend.leading(siteNamespace, "grpc", grpc.port) +
			httpBackend.leading(siteNamespace, "filter", filter.port),
		"home.yaml":   loginRules(asked, asked, "v1"),
		"policy.yaml": policy(""),
	}, "--experimental")
	s.says(t, "AuthPolicy staff", "All rules of the policy are in force")
	s.answers(t, "http://home.example/app/x", http.StatusFound)
	withoutSession(t, s)

	const page = "http://home.example/app/page"
	person := newBrowser(t, s.listener())
	if res, body := person.opens(page); res.StatusCode != http.StatusOK {
		t.Fatalf("whoever logs in is answered %d %q; %q", res.StatusCode, body, person.trace)
	}
	session := maps.Clone(person.cookies["home.example"])
	person.cookies["home.example"]["a"] = "1"
	person.headers = map[string]string{"X-User": "mallory"}
	for _, path := range []string{"/app/with", "/open/with"} {
		if res, body := person.send(http.MethodGet, "http://home.example"+path, nil, nil); res.StatusCode != http.StatusOK {
			t.Errorf("%s is answered %d %q", path, res.StatusCode, body)
		}
	}
	for _, r := range []*recorder{web, grpc, filter} {
		got := r.gets(t, "/app/with")
		if what := leaks(got.text, session); what != "" || got.headers.Get("Authorization") != "" {
			t.Errorf("the service %s gets %s: %q", r.name, what, got.text)
		}
		if cookies, user := got.headers.Values("Cookie"), got.headers.Values("X-User"); !slices.Equal(cookies, []string{"a=1"}) || !slices.Equal(user, []string{"id1"}) {
			t.Errorf("the service %s gets the cookies %q of user %q", r.name, cookies, user)
		}
	}
	if got := filter.gets(t, "/open/with"); leaks(got.text, session) != "" || got.headers.Get("Cookie") != "a=1" {
		t.Errorf("beside the login the service of a filter gets %q", got.text)
	}
	for name, want := range map[string]int{"web": http.StatusForbidden, "grpc": http.StatusUnauthorized, "filter": http.StatusForbidden} {
		if res, body := person.send(http.MethodGet, page+"?refuse="+name, nil, nil); res.StatusCode != want || strings.TrimSpace(body) != name+" says no" {
			t.Errorf("with a session whom %s refuses is answered %d %q, want %d", name, res.StatusCode, body, want)
		}
	}
	if res, _ := person.send(http.MethodGet, "http://home.example/open?refuse=filter", nil, nil); res.StatusCode != http.StatusForbidden {
		t.Errorf("beside the login whom the service refuses is answered %d", res.StatusCode)
	}
	// They get the access token where the backend does.
	s.write(t, "policy.yaml", policy("      forwardAccessToken: true\n"))
	eventually(t, siteTimeout, func() error {
		person.cookies["home.example"] = map[string]string{} // sessions from before have none until they are renewed
		if res, body := person.opens(page); res.StatusCode != http.StatusOK || !strings.HasPrefix(accessToken(t, body), "Bearer ") {
			return fmt.Errorf("the backend is told %d %q", res.StatusCode, clipped([]byte(body)))
		}
		return nil
	})
	for _, r := range []*recorder{web, grpc, filter} {
		if got := r.gets(t, "/app/page"); !strings.HasPrefix(got.headers.Get("Authorization"), "Bearer ") || leaks(strings.ReplaceAll(got.text, got.headers.Get("Authorization"), ""), person.cookies["home.example"]) != "" {
			t.Errorf("with the access token the service %s gets %q", r.name, got.text)
		}
	}

	// Nobody is asked whether people may log in or out.
	if res, _ := person.send(http.MethodGet, "http://home.example/app/leave?refuse=web", nil, nil); res.StatusCode != http.StatusFound {
		t.Errorf("logging out is answered %d", res.StatusCode)
	}
	withoutSession(t, s)
	for r, want := range map[*recorder][]string{web: {"/app/page", "/app/with"}, grpc: {"/app/page", "/app/with"}, filter: {"/app/page", "/app/with", "/open", "/open/with"}} {
		if got := r.paths(); !slices.Equal(got, want) {
			t.Errorf("the service %s is asked of %q, want %q", r.name, got, want)
		}
	}
}

// TestLogInBesideUpgrades protects that who asks for another protocol gets past a login no better than others,
// and takes no session to a backend.
func TestLogInBesideUpgrades(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	issuer := startProvider(t, 5*time.Minute, "http://"+appLanding)
	backend := startRecorder(t, "backend") // which agrees to no upgrade
	s := newSite(t, map[string]string{
		"keys.yaml":    loginSecretOf(loginSecret),
		"backend.yaml": httpBackend.leading(siteNamespace, "recorder", backend.port),
		"home.yaml":    loginRules("", "", "recorder"),
		"policy.yaml":  authPolicy("staff", atApp, loginPolicy(issuer, appPaths)),
	})
	s.says(t, "AuthPolicy staff", "All rules of the policy are in force")
	s.answers(t, "http://home.example/app/x", http.StatusFound)
	person := newBrowser(t, s.listener())
	if res, body := person.opens("http://home.example/app/page"); res.StatusCode != http.StatusOK {
		t.Fatalf("whoever logs in is answered %d %q; %q", res.StatusCode, body, person.trace)
	}
	upgrade := map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version": "13", "Sec-Fetch-Mode": "websocket",
	}
	for _, path := range []string{"/app/with", "/open/with"} {
		person.send(http.MethodGet, "http://home.example"+path, nil, upgrade)
		if got := backend.gets(t, path); got.headers.Get("Upgrade") != "websocket" || leaks(got.text, person.cookies["home.example"]) != "" {
			t.Errorf("the backend gets %q", got.text)
		}
	}
	if user := backend.gets(t, "/app/with").headers.Get("X-User"); user != "id1" {
		t.Errorf("the backend is told of user %q", user)
	}
	if res, body := newBrowser(t, s.listener()).send(http.MethodGet, "http://home.example/app/without", nil, upgrade); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a session an upgrade is answered %d %q", res.StatusCode, body)
	}
	if got, want := backend.paths(), []string{"/app/page", "/app/with", "/open/with"}; !slices.Equal(got, want) {
		t.Errorf("the backend gets the requests %q, want %q", got, want)
	}
}
