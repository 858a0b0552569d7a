//go:build linux

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/echo"
	"github.com/gatehouse-dev/gatehouse/test/port"
	"github.com/gatehouse-dev/gatehouse/test/slow"
)

const (
	loginClient, loginSecret = "web", "s3cret-of-the-client"
	loginUser, loginPassword = "test-user@127.0.0.1", "verysecure"
)

// startProvider starts an OpenID Provider, and returns its issuer.
func startProvider(t *testing.T, life time.Duration, redirects ...string) string {
	t.Helper()
	return startProviderWith(t, "-client", loginClient, "-secret", loginSecret, "-life", life.String(), "-redirects", strings.Join(redirects, ","))
}

// startProviderWith starts one with arguments.
func startProviderWith(t *testing.T, arguments ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "oidc")
	build := exec.CommandContext(t.Context(), "go", "build", "-C", filepath.Join("..", "oidc"), "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	address := port.AddressOfTest(t)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, append([]string{"-listen", address}, arguments...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	issuer := "http://" + address
	eventually(t, siteTimeout, func() error {
		res, err := http.Get(issuer + "/.well-known/openid-configuration")
		if err != nil {
			return err
		}
		return res.Body.Close()
	})
	return issuer
}

// browser is a person's: it keeps cookies by host, and follows redirects, of sites too.
type browser struct {
	t       *testing.T
	client  *http.Client
	cookies map[string]map[string]string // by host, or .domain, and name, whatever else is said of them
	headers map[string]string            // of each request
	user    string
	lines   []string // of cookies, in place of those kept
	trace   []string
}

// newBrowser returns one for which all hosts of .example are at an address.
func newBrowser(t *testing.T, listener string) *browser {
	b := &browser{t: t, user: loginUser, cookies: map[string]map[string]string{}}
	b.client = &http.Client{
		Timeout:       siteTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if host, _, _ := net.SplitHostPort(address); strings.HasSuffix(host, ".example") {
				address = listener
			}
			return new(net.Dialer).DialContext(ctx, network, address)
		}},
	}
	return b
}

// send sends one request, with the cookies of its host, and takes those of the answer.
func (b *browser) send(method, target string, form url.Values, headers map[string]string) (*http.Response, string) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, target, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, some := range []map[string]string{b.headers, headers} {
		for name, value := range some {
			req.Header.Set(name, value)
		}
	}
	jar := b.cookies[req.URL.Host]
	if jar == nil {
		jar = map[string]string{}
		b.cookies[req.URL.Host] = jar
	}
	for domain, some := range b.cookies {
		if domain == req.URL.Host || strings.HasPrefix(domain, ".") && strings.HasSuffix("."+req.URL.Hostname(), domain) {
			for name, value := range some {
				req.AddCookie(&http.Cookie{Name: name, Value: value})
			}
		}
	}
	if b.lines != nil {
		req.Header["Cookie"] = b.lines
	}
	res, err := b.client.Do(req)
	if err != nil {
		b.t.Fatalf("%v, after %q", err, b.trace)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	for _, c := range res.Cookies() {
		jar := jar
		if c.Domain != "" {
			domain := "." + c.Domain
			if b.cookies[domain] == nil {
				b.cookies[domain] = map[string]string{}
			}
			jar = b.cookies[domain]
		}
		if c.MaxAge < 0 || c.Value == "" || c.Value == "deleted" {
			delete(jar, c.Name)
		} else {
			jar[c.Name] = c.Value
		}
	}
	b.trace = append(b.trace, fmt.Sprintf("%s %s: %d", method, target, res.StatusCode))
	return res, string(body)
}

// opens goes to a page, and follows where it is led to, logging in where it is asked to.
func (b *browser) opens(target string) (*http.Response, string) {
	b.t.Helper()
	for range 12 {
		res, body := b.send(http.MethodGet, target, nil, nil)
		if strings.Contains(target, "/login/username") && res.StatusCode == http.StatusOK {
			res, body = b.send(http.MethodPost, strings.Split(target, "?")[0], url.Values{
				"username": {b.user}, "password": {loginPassword}, "id": {res.Request.URL.Query().Get("authRequestID")},
			}, nil)
		}
		next, err := res.Location()
		if err != nil {
			return res, body
		}
		target = next.String()
	}
	b.t.Fatalf("too many redirects: %q", b.trace)
	return nil, ""
}

func loginPolicy(issuer, more string) string {
	return fmt.Sprintf(`authentication:
  staff:
    oidc:
      issuer: %s
      clientID: %s
      clientSecretRef: {name: oidc}
      scopes: [profile, email, offline_access]
      claimsToHeaders: [{claim: sub, header: X-User}]
%s`, issuer, loginClient, more)
}

func loginSecretOf(value string) string { return keysSecret("oidc", "client-secret", value) }

// TestLogIn has people log in at a real OpenID Provider, and protects that nobody else passes.
func TestLogIn(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	issuer := startProvider(t, 5*time.Minute, "http://home.example/oauth2/callback", "http://home.example/back")
	s := startSite(t, map[string]string{"keys.yaml": loginSecretOf(loginSecret) + keysSecret("keys", "robot", "k3y")})
	const page = "http://home.example/page?of=mine"
	s.write(t, "policy.yaml", authPolicy("staff", onHome, loginPolicy(issuer, "      logoutPath: /leave\n")))
	s.says(t, "AuthPolicy staff", "All rules of the policy are in force")
	s.answers(t, page, http.StatusFound)

	person := newBrowser(t, s.listener())
	res, body := person.opens(page)
	var got echo.Answer
	if err := json.Unmarshal([]byte(body), &got); err != nil || res.StatusCode != http.StatusOK || res.Request.URL.String() != page {
		t.Fatalf("whoever logs in is answered %d %q at %s; %q", res.StatusCode, body, res.Request.URL, person.trace)
	}
	if user := got.Headers.Get("X-User"); user != "id1" {
		t.Errorf("the backend is told of user %q", user)
	}
	for name := range got.Headers {
		if strings.HasPrefix(strings.ToLower(name), "x-gatehouse-passed") {
			t.Errorf("the backend sees the header %s", name)
		}
	}
	if cookies := got.Headers.Get("Cookie"); strings.Contains(cookies, "gatehouse") {
		t.Errorf("the backend sees the cookies of the session: %q", cookies)
	}
	if a := got.Headers.Get("Authorization"); a != "" {
		t.Errorf("the backend is told %q", a)
	}

	t.Run("others", func(t *testing.T) { refusesOthers(t, s, person, page) })

	// The session lives through edits of the policy, of routes and of the proxies' process.
	s.write(t, "policy.yaml", authPolicy("staff", onHome, loginPolicy(issuer, "      logoutPath: /oauth2/logout\n")))
	s.answers(t, "http://home.example/oauth2/logout", http.StatusFound)
	if res, body := person.send(http.MethodGet, page, nil, nil); res.StatusCode != http.StatusOK {
		t.Errorf("after an edit the session is answered %d %q", res.StatusCode, body)
	}

	// Other credentials suffice as well, and lead nobody to log in.
	s.write(t, "policy.yaml", authPolicy("staff", onHome, loginPolicy(issuer, "  robots: {apiKey: {secretRef: {name: keys}, identityHeader: X-Robot}}\n")))
	eventually(t, siteTimeout, func() error {
		res, body := newBrowser(t, s.listener()).send(http.MethodGet, page, nil, map[string]string{"X-API-Key": "k3y"})
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("a key is answered %d %q", res.StatusCode, body)
		}
		return nil
	})

	if res, _ := person.send(http.MethodGet, page, nil, nil); res.StatusCode != http.StatusOK {
		t.Errorf("beside another rule the session is answered %d", res.StatusCode)
	}

	// Logging out takes the session away, and a new secret of the client ends all there are.
	kept := maps.Clone(person.cookies["home.example"])
	res, _ = person.send(http.MethodGet, "http://home.example/oauth2/logout", nil, nil)
	if res.StatusCode != http.StatusFound {
		t.Errorf("logging out is answered %d", res.StatusCode)
	}
	if res, _ := person.send(http.MethodGet, page, nil, nil); res.StatusCode != http.StatusFound {
		t.Errorf("after logging out the answer is %d", res.StatusCode)
	}
	takesNobodysPlace(t, s, page, res)
	person.cookies["home.example"] = kept
	if res, _ := person.send(http.MethodGet, page, nil, nil); res.StatusCode != http.StatusOK {
		t.Fatalf("the session that was kept is answered %d", res.StatusCode)
	}
	listeners := s.envoyStats(t, "listener_manager")
	s.write(t, "keys.yaml", loginSecretOf("another secret")+keysSecret("keys", "robot", "k3y"))
	eventually(t, siteTimeout, func() error {
		drop(kept, "-refresh")
		person.cookies["home.example"] = maps.Clone(kept)
		if res, _ := person.send(http.MethodGet, page, nil, nil); res.StatusCode != http.StatusFound {
			return fmt.Errorf("with a new secret the session is answered %d", res.StatusCode)
		}
		return nil
	})
	if now := s.envoyStats(t, "listener_manager"); !maps.Equal(now, listeners) {
		t.Errorf("a new secret changes listeners: %v, then %v", listeners, now)
	}

	// A Secret that goes closes, and says so.
	s.remove(t, "keys.yaml")
	s.says(t, "AuthPolicy staff", "names Secret site/oidc, which does not exist")
	s.answers(t, page, http.StatusUnauthorized)
}

// TestLogInAtAPath protects that whoever guards a part of a host sees people come back, that a
// session goes on by refresh tokens, and that the backend gets the access token where that is asked for.
func TestLogInAtAPath(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	const life = 2 * time.Second
	issuer := startProvider(t, life, "http://home.example/app/back")
	s := newSite(t, map[string]string{
		"keys.yaml": loginSecretOf(loginSecret),
		"home.yaml": siteRules("home", "home.example", `- name: app
  matches: [{path: {value: /app}, headers: [{name: X-Beta, value: "1"}]}]
  backendRefs: [{name: v1, port: 8080}]
- backendRefs: [{name: v2, port: 8080}]
`),
	})
	s.write(t, "policy.yaml", authPolicy("staff", onHome+", sectionName: app", loginPolicy(issuer, "      callbackPath: /app/back\n      forwardAccessToken: true\n")))
	s.says(t, "AuthPolicy staff", "All rules of the policy are in force")
	const page = "http://home.example/app/x"
	if o := s.answers(t, page, http.StatusOK); o.who() != "v2" {
		t.Errorf("a page that nothing guards is answered by %s", o.who())
	}
	person := newBrowser(t, s.listener())
	person.headers = map[string]string{"X-Beta": "1"}
	eventually(t, siteTimeout, func() error { // Envoy has acknowledged it, and its workers may not have it yet
		if res, _ := person.send(http.MethodGet, page, nil, nil); res.StatusCode != http.StatusFound {
			return fmt.Errorf("without a session the answer is %d", res.StatusCode)
		}
		return nil
	})
	see := func(when string) string {
		t.Helper()
		res, body := person.send(http.MethodGet, page, nil, nil)
		var got echo.Answer
		if err := json.Unmarshal([]byte(body), &got); err != nil || res.StatusCode != http.StatusOK || got.Headers.Get("X-User") != "id1" {
			t.Fatalf("%s: %d %q, %q", when, res.StatusCode, body, person.trace)
		}
		return got.Headers.Get("Authorization")
	}
	person.opens(page)
	first := see("after the login")
	if !strings.HasPrefix(first, "Bearer ") {
		t.Errorf("the backend gets the access token %q", first)
	}
	eventually(t, siteTimeout, func() error {
		if again := see("until the access token has ended"); again == first || !strings.HasPrefix(again, "Bearer ") {
			return fmt.Errorf("the backend gets the access token %q, and %q before", again, first)
		}
		return nil
	})
}

// refusesOthers sends what somebody without a session may try.
func refusesOthers(t *testing.T, s *site, person *browser, page string) {
	session := person.cookies["home.example"]
	if len(session) < 3 {
		t.Fatalf("the session has the cookies %v", session)
	}
	try := func(what string, cookies map[string]string, headers map[string]string, want int) {
		t.Helper()
		b := newBrowser(t, s.listener())
		b.cookies["home.example"] = cookies
		if res, body := b.send(http.MethodGet, page, nil, headers); res.StatusCode != want {
			t.Errorf("%s is answered %d, want %d: %q", what, res.StatusCode, want, clipped([]byte(body)))
		}
	}
	with := func(change func(map[string]string)) map[string]string {
		out := maps.Clone(session)
		change(out)
		return out
	}
	try("the session itself", with(func(map[string]string) {}), nil, http.StatusOK)
	try("nothing", nil, nil, http.StatusFound)
	try("the header between filters", nil, map[string]string{"X-Gatehouse-Passed": "1"}, http.StatusFound)
	for name := range session {
		if strings.HasSuffix(name, "-refresh") {
			continue // makes a new session
		}
		short := name[strings.LastIndex(name, "-")+1:]
		if short == "nonce" || short == "verifier" {
			continue // none of a session
		}
		try("a session without "+short, with(func(c map[string]string) { delete(c, name); drop(c, "-refresh") }), nil, http.StatusFound)
		try("a session with a changed "+short, with(func(c map[string]string) { c[name] = changed(c[name]); drop(c, "-refresh") }), nil, http.StatusFound)
		try("the header between filters and a changed "+short,
			with(func(c map[string]string) { c[name] = changed(c[name]); drop(c, "-refresh") }), map[string]string{"X-Gatehouse-Passed": "1"}, http.StatusFound)
	}
	for what, headers := range map[string]map[string]string{
		"with a token": {"Authorization": "Bearer x"}, "of a script": {"X-Requested-With": "XMLHttpRequest"},
		"of a page's script": {"Sec-Fetch-Mode": "cors"}, "of gRPC": {"Content-Type": "application/grpc"},
	} {
		want := http.StatusUnauthorized
		if what == "of gRPC" {
			want = http.StatusOK // with the code in a header
		}
		try("a request "+what, nil, headers, want)
	}
	for _, c := range []struct {
		method, mode string
		want         int
	}{
		{http.MethodPost, "navigate", http.StatusFound}, {http.MethodHead, "", http.StatusFound},
		{http.MethodPost, "", http.StatusUnauthorized}, {http.MethodPost, "same-origin", http.StatusUnauthorized}, {http.MethodPut, "", http.StatusUnauthorized},
		{http.MethodPatch, "cors", http.StatusUnauthorized}, {http.MethodDelete, "", http.StatusUnauthorized},
	} {
		headers := map[string]string{}
		if c.mode != "" {
			headers["Sec-Fetch-Mode"] = c.mode
		}
		if res, _ := newBrowser(t, s.listener()).send(c.method, page, nil, headers); res.StatusCode != c.want {
			t.Errorf("%s of mode %q is answered %d, want %d", c.method, c.mode, res.StatusCode, c.want)
		}
	}
}

// takesNobodysPlace has another person, with a session of her own, send the ID token of the first one,
// which whoever sees the URL of a logout has.
func takesNobodysPlace(t *testing.T, s *site, page string, logout *http.Response) {
	t.Helper()
	to, err := logout.Location()
	if err != nil {
		t.Fatal(err)
	}
	token := to.Query().Get("id_token_hint")
	if strings.Count(token, ".") != 2 {
		t.Fatalf("logging out leads to %s, without an ID token", to)
	}
	other := newBrowser(t, s.listener())
	other.user = "test-user2"
	if res, body := other.opens(page); res.StatusCode != http.StatusOK || !strings.Contains(body, `"id2"`) {
		t.Fatalf("the other person is answered %d %q", res.StatusCode, body)
	}
	var own, name string
	for cookie, value := range other.cookies["home.example"] {
		own += cookie + "=" + value + "; "
		if strings.HasSuffix(cookie, "-id") {
			name = cookie
		}
	}
	forged := name + "=" + token
	for what, lines := range map[string][]string{
		"alone": {forged}, "before": {forged + "; " + own}, "behind": {own + forged}, "in a line before": {forged, own},
		"in a line behind": {own, forged}, "with quotes": {own + name + `="` + token + `"`}, "with a space": {own + name + " =" + token},
		"in parts": {own + name + "_1=" + token}, "in parts with dots": {own + name + ".1=" + token}, "in part 0": {own + name + "_0=" + token},
		"in capitals": {own + strings.ToUpper(name) + "=" + token},
	} {
		b := newBrowser(t, s.listener())
		b.lines = lines
		for _, headers := range []map[string]string{nil, {"X-Gatehouse-Passed": "1"}, {"X-API-Key": "k3y"}} {
			res, body := b.send(http.MethodGet, page, nil, headers)
			if strings.Contains(body, `"id1"`) || what == "alone" && headers["X-API-Key"] == "" && res.StatusCode != http.StatusFound {
				t.Errorf("the ID token of somebody else %s, with %v, is answered %d %q", what, headers, res.StatusCode, body)
			}
		}
	}
}

func drop(cookies map[string]string, suffix string) {
	for name := range cookies {
		if strings.HasSuffix(name, suffix) {
			delete(cookies, name)
		}
	}
}

// changed is a text with another letter in its middle.
func changed(text string) string {
	middle := len(text) / 2
	letter := byte('1')
	if text[middle] == letter {
		letter = '2'
	}
	return text[:middle] + string(letter) + text[middle+1:]
}
