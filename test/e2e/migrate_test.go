//go:build linux

package e2e

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// ingressOf is an Ingress with rules and annotations as lines of flow notation.
func ingressOf(name, created string, annotations []string, spec string) string {
	for i, a := range annotations {
		key, value, _ := strings.Cut(a, ": ")
		annotations[i] = "nginx.ingress.kubernetes.io/" + key + ": " + strconv.Quote(value)
	}
	return fmt.Sprintf("---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: %s\n  namespace: %s\n  creationTimestamp: %q\n  annotations: {%s}\nspec:\n  ingressClassName: nginx\n%s\n",
		name, siteNamespace, created, strings.Join(annotations, ", "), indent(spec))
}

// hostPaths are the rules of a host, each "TYPE PATH SERVICE".
func hostPaths(host string, paths ...string) string {
	var b strings.Builder
	b.WriteString("- ")
	if host != "" {
		fmt.Fprintf(&b, "host: %q\n  ", host)
	}
	b.WriteString("http:\n    paths:\n")
	for _, p := range paths {
		kind, rest, _ := strings.Cut(p, " ")
		path, service, _ := strings.Cut(rest, " ")
		kind = map[string]string{"=": "Exact", "/": "Prefix", "~": "ImplementationSpecific"}[kind]
		fmt.Fprintf(&b, "    - {path: %q, pathType: %s, backend: {service: {name: %s, port: {number: 8080}}}}\n", path, kind, service)
	}
	return b.String()
}

const (
	early, later = "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"
)

// What becomes of Ingresses answers as ingress-nginx does, by its documentation and its source: servers
// and locations of nginx, regular expressions of whole hosts, redirects, canaries, and what protects.
func TestMigrate(t *testing.T) {
	t.Parallel()
	manifests := strings.Join([]string{
		ingressOf("paths", early, nil, "rules:\n"+
			hostPaths("paths.example", "/ /api v1", "= /api/exact v2", "/ /slash/ v2", "~ /raw v1", "~ /rawslash/ v2")),
		ingressOf("paths-later", later, nil, "rules:\n"+hostPaths("paths.example", "/ /api v2", "/ /more v2")),
		ingressOf("everything", early, nil, "rules:\n"+hostPaths("", "/ / v2")),
		ingressOf("rewrites", early, []string{"rewrite-target: /$2"}, "rules:\n"+hostPaths("rewrites.example", "~ /shop(/|$)(.*) v1")),
		ingressOf("beside", later, nil, "rules:\n"+hostPaths("rewrites.example", "= /Beside v2")),
		ingressOf("whole", early, []string{"rewrite-target: /fixed", "upstream-vhost: inside.example"}, "rules:\n"+hostPaths("whole.example", "/ /any v1")),
		ingressOf("expressions", early, []string{"use-regex: true"}, "rules:\n"+hostPaths("expressions.example", "~ /v[0-9]+/items v1", "~ /v[0-9]+ v2")),
		ingressOf("secure", early, []string{"from-to-www-redirect: true", "server-alias: alias.example"}, "tls: [{hosts: [secure.example, www.secure.example], secretName: cert}]\nrules:\n"+hostPaths("secure.example", "/ / v1")),
		ingressOf("both", early, []string{"ssl-redirect: false"}, "tls: [{hosts: [both.example], secretName: cert}]\nrules:\n"+hostPaths("both.example", "/ / v1")),
		ingressOf("allowed", early, []string{"whitelist-source-range: 127.0.0.0/8"}, "rules:\n"+hostPaths("allowed.example", "/ / v1")),
		ingressOf("barred", early, []string{"allowlist-source-range: 10.0.0.0/8, 192.0.2.7"}, "rules:\n"+hostPaths("barred.example", "/ / v1")),
		ingressOf("deny", early, []string{"denylist-source-range: 127.0.0.0/8"}, "rules:\n"+hostPaths("deny.example", "/ / v1")),
		ingressOf("login", early, []string{"auth-type: basic", "auth-secret: users", "auth-realm: Staff"}, "rules:\n"+hostPaths("login.example", "/ / v1")),
		ingressOf("either", early, []string{"auth-type: basic", "auth-secret: users", "auth-realm: Staff", "satisfy: any", "allowlist-source-range: 127.0.0.0/8"}, "rules:\n"+hostPaths("either.example", "/ / v1")),
		ingressOf("either-not", early, []string{"auth-type: basic", "auth-secret: users", "satisfy: any", "whitelist-source-range: 10.0.0.0/8"}, "rules:\n"+hostPaths("either-not.example", "/ / v1")),
		ingressOf("either-denied", early, []string{"auth-type: basic", "auth-secret: users", "satisfy: any", "denylist-source-range: 192.0.2.0/24"}, "rules:\n"+hostPaths("either-denied.example", "/ / v1")),
		ingressOf("asked", early, []string{"auth-url: http://v2." + siteNamespace + ".svc.cluster.local:8080/check"}, "rules:\n"+hostPaths("asked.example", "/ / v1")),
		ingressOf("nobody", early, []string{"auth-url: http://v3." + siteNamespace + ".svc.cluster.local:8080/check"}, "rules:\n"+hostPaths("nobody.example", "/ / v1")),
		ingressOf("answers", early, []string{"custom-headers: " + siteNamespace + "/answers", "proxy-read-timeout: 1"}, "rules:\n"+hostPaths("answers.example", "/ / v1")),
		ingressOf("certificates", early, []string{"auth-tls-secret: " + siteNamespace + "/clients"}, "tls: [{hosts: [certificates.example], secretName: cert}]\nrules:\n"+hostPaths("certificates.example", "/ /one v1")),
		ingressOf("certificates-too", later, nil, "rules:\n"+hostPaths("certificates.example", "/ /two v2")),
		ingressOf("small", early, []string{"proxy-body-size: 1k"}, "rules:\n"+hostPaths("small.example", "/ / v1")),
		ingressOf("moved", early, []string{"permanent-redirect: https://new.example/there"}, "rules:\n"+hostPaths("moved.example", "/ / v1")),
		ingressOf("kept", early, []string{"temporal-redirect: https://new.example$request_uri"}, "rules:\n"+hostPaths("kept.example", "/ / v1")),
		ingressOf("root", early, []string{"app-root: /app"}, "rules:\n"+hostPaths("root.example", "/ / v1")),
		ingressOf("cors", early, []string{"enable-cors: true", "cors-allow-origin: https://page.example"}, "rules:\n"+hostPaths("cors.example", "/ / v1")),
		ingressOf("main", early, nil, "rules:\n"+hostPaths("canary.example", "/ / v1")),
		ingressOf("main-canary", later, []string{"canary: true", "canary-by-header: X-Try", "canary-by-cookie: try"}, "rules:\n"+hostPaths("canary.example", "/ / v2")),
		ingressOf("limited", early, []string{"limit-rpm: 1", "limit-burst-multiplier: 2"}, "rules:\n"+hostPaths("limited.example", "/ / v1")),
		ingressOf("default", early, nil, "defaultBackend: {service: {name: v2, port: {number: 8080}}}\nrules:\n"+hostPaths("default.example", "/ /own v1")),
	}, "")
	users := "---\napiVersion: v1\nkind: Secret\nmetadata: {name: users, namespace: " + siteNamespace + "}\nstringData: {auth: \"ann:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=\"}\n" // "test"
	headers := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: answers, namespace: " + siteNamespace + "}\ndata: {X-Team: shop}\n"
	result := migrated(t, manifests+users+headers, "--gateway", siteNamespace+"/gw")
	s := newSite(t, map[string]string{
		"gateway.yaml": result, "home.yaml": "", "users.yaml": users,
		"clients.yaml": strings.NewReplacer("kind: ConfigMap", "kind: Secret", "\ndata:", "\nstringData:").Replace(caManifest(clientAuthority, siteNamespace, "clients")),
		"cert.yaml":    mustSecret(t, "cert", "*.example", "www.secure.example"),
	})
	for _, c := range []struct{ request, want string }{
		{"http://paths.example/api", "200 v1 /api"},
		{"http://paths.example/api/x", "200 v1 /api/x"},
		{"http://paths.example/api/exact", "200 v2 /api/exact"},
		{"http://paths.example/apix", "404"},
		{"http://paths.example/slash/x", "200 v2 /slash/x"},
		{"http://paths.example/slash", "301 /slash/"},
		{"http://paths.example/raw/x", "200 v1 /raw/x"},
		{"http://paths.example/rawslash", "301 /rawslash/"},
		{"http://paths.example/rawslash/x", "200 v2 /rawslash/x"},
		{"http://paths.example/more", "200 v2 /more"},
		{"http://paths.example/", "404"}, // and not what the server for all other hosts has
		{"http://other.example/anything", "200 v2 /anything"},

		{"http://rewrites.example/shop/a/b?c=d", "200 v1 /a/b"},
		{"http://rewrites.example/shop", "200 v1 /"},
		{"http://rewrites.example/SHOP/a", "200 v1 /a"},
		{"http://rewrites.example/shopping", "404"},
		{"http://rewrites.example/beside", "200 v2 /beside"}, // Exact is no more than a beginning there
		{"http://rewrites.example/BESIDE/x", "200 v2 /BESIDE/x"},
		{"http://whole.example/any/thing", "200 v1 /fixed inside.example"},
		{"http://whole.example/anything", "200 v1 /fixed inside.example"},

		{"http://expressions.example/v1/items/7", "200 v1 /v1/items/7"},
		{"http://expressions.example/V12/ITEMS", "200 v1 /V12/ITEMS"},
		{"http://expressions.example/v2/other", "200 v2 /v2/other"},
		{"http://expressions.example/x", "404"},

		{"http://secure.example/a?b=c", "308 https://secure.example/a?b=c"},
		{"https://secure.example/a", "200 v1 /a max-age=31536000; includeSubDomains"},
		{"http://alias.example/a", "308 https://alias.example/a"},
		{"https://alias.example/a", "200 v1 /a max-age=31536000; includeSubDomains"},
		{"https://www.secure.example/a", "308 https://secure.example/a"},
		{"http://www.secure.example/a", "308 https://secure.example/a"},
		{"http://both.example/a", "200 v1 /a"},
		{"https://both.example/a", "200 v1 /a max-age=31536000; includeSubDomains"},
		{"http://answers.example/", "200 v1 / shop"},
		{"http://answers.example/?delay=3s", "504"},

		{"http://allowed.example/", "200 v1 /"},
		{"http://barred.example/", "403"},
		{"http://deny.example/", "403"},
		{"http://login.example/", `401 Basic realm="Staff", charset="UTF-8"`},
		{"http://ann:test@login.example/", "200 v1 /"},
		{"http://either.example/", "200 v1 /"},
		{"http://ann:test@either-not.example/", "200 v1 /"},
		{"http://either-not.example/", `401 Basic realm="Authentication Required"`},
		{"http://either-denied.example/", `401 Basic realm="people", charset="UTF-8"`},
		{"http://ann:test@either-denied.example/", "200 v1 /"},
		{"http://ann:wrong@either-not.example/", `401 Basic realm="Authentication Required"`},
		{"http://ann:wrong@login.example/", `401 Basic realm="Staff", charset="UTF-8"`},
		{"http://asked.example/a", "200 v1 /a"},
		{"http://nobody.example/a", "403"}, // a service that doesn't exist permits nobody
		{"POST:1000 http://small.example/", "200 v1 /"},
		{"POST:1100 http://small.example/", "413"},
		{"POST:1048000 http://allowed.example/", "200 v1 /"},
		{"POST:1049000 http://allowed.example/", "413"}, // nginx's own bound

		{"http://moved.example/a", "301 https://new.example/there"},
		{"http://kept.example/a?b=c", "302 https://new.example/a?b=c"},
		{"http://root.example/", "302 /app"},
		{"http://root.example/app", "200 v1 /app"},
		{"Origin=https://page.example http://cors.example/", "200 v1 / https://page.example"},
		{"Origin=https://other.example http://cors.example/", "200 v1 /"},

		{"http://canary.example/", "200 v1 /"},
		{"X-Try=always http://canary.example/", "200 v2 /"},
		{"X-Try=never http://canary.example/", "200 v1 /"},
		{"Cookie=a=b;try=always http://canary.example/", "200 v2 /"},
		{"X-Try=never;Cookie=try=always http://canary.example/", "200 v1 /"},

		{"http://default.example/own", "200 v1 /own"},
		{"http://default.example/x", "200 v2 /x"},
		{"http://limited.example/", "200 v1 /"},
		{"http://limited.example/", "200 v1 /"},
		{"http://limited.example/", "429"},

		{"https://certificates.example/one", "401"},
		{"https://certificates.example/two", "401"}, // nginx asks for the whole host
	} {
		var got string
		ask := func() error {
			var err error
			got, err = s.asNginx(c.request)
			return err
		}
		eventually(t, siteTimeout, ask)
		if got != c.want {
			t.Errorf("%s is answered %s, want %s", c.request, got, c.want)
		}
	}
	known := s.client(t, "certificates.example", 443).shows(t, clientWith(clientAuthority, func(*x509.Certificate) {}))
	if o, _, err := known.get(); err != nil || o.status != http.StatusNotFound { // of path /, with a certificate
		t.Errorf("a client with a certificate: %v, %+v", err, o)
	}
}

// asNginx sends a request, "METHOD:BYTES URL" or "HEADER=VALUE;… URL", and says in a line what came.
func (s *site) asNginx(request string) (string, error) {
	call := &clientCall{method: http.MethodGet, address: s.address, headers: map[string]string{}}
	how, target, ok := strings.Cut(request, " ")
	if !ok {
		target = how
	} else if method, n, body := strings.Cut(how, ":"); body && method == http.MethodPost {
		size, err := strconv.Atoi(n)
		if err != nil {
			return "", err
		}
		call.method, call.body = method, strings.Repeat("x", size)
	} else {
		name, value, _ := strings.Cut(how, "=")
		if strings.HasPrefix(value, "never;") {
			value, how, _ = strings.Cut(value, ";")
			more, other, _ := strings.Cut(how, "=")
			call.headers[more] = other
		}
		call.headers[name] = strings.ReplaceAll(value, ";", "; ")
	}
	u, err := url.Parse(target)
	if err != nil {
		return "", err
	}
	if u.User != nil {
		password, _ := u.User.Password()
		call.headers["Authorization"] = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))
		u.User = nil
	}
	call.url = u
	o, err := call.do(context.Background())
	if err != nil {
		return "", err
	}
	words := []string{strconv.Itoa(o.status)}
	add := func(w string) {
		if w != "" {
			words = append(words, w)
		}
	}
	switch {
	case o.status >= 300 && o.status < 400:
		to, err := url.Parse(o.headers.Get("Location"))
		if err != nil {
			return "", err
		}
		host := to.Hostname()
		if to.Scheme != "" && !strings.HasPrefix(o.headers.Get("Location"), "http://"+u.Hostname()) {
			add(to.Scheme + "://" + host + to.RequestURI())
		} else {
			add(to.RequestURI())
		}
	case o.status == http.StatusOK:
		add(o.answer.Name)
		add(o.answer.Path)
		if o.answer.Host != "" && !strings.HasPrefix(o.answer.Host, u.Hostname()) {
			add(o.answer.Host)
		}
		for _, name := range []string{"Access-Control-Allow-Origin", "Strict-Transport-Security", "X-Team"} {
			add(o.headers.Get(name))
		}
	case o.status == http.StatusUnauthorized:
		add(o.headers.Get("Www-Authenticate"))
	}
	return strings.Join(words, " "), nil
}

// migrated is what `gatehouse migrate` makes of a file.
func migrated(t *testing.T, manifests string, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ingresses.yaml")
	if err := os.WriteFile(file, []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, told bytes.Buffer
	cmd := exec.Command(needTools(t).gatehouse, append([]string{"migrate", file}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &told
	if err := cmd.Run(); err != nil {
		t.Fatalf("gatehouse migrate: %v\n%s", err, told.String())
	}
	return out.String()
}
