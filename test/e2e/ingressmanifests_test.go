//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// manifest is an Ingress of host NAME.example, with the annotations that charts, the documentation of ingress-nginx
// and suites of converters have together, and what ingress-nginx answers by its documentation.
type manifest struct {
	name        string
	annotations []string
	spec        string // the rules; empty for path / to v1
	// asks are "REQUEST -> ANSWER", where / stands for the host over HTTP and https:/ over HTTPS. Where the answer is
	// another one here, " | ANSWER by ANNOTATION" says so: the report must tell of that annotation of the Ingress.
	asks []string
}

// tlsOf is the part of a spec by which a host has a certificate.
func tlsOf(host string) string { return "tls: [{hosts: [" + host + "], secretName: cert}]\n" }

func rulesOf(name string, paths ...string) string {
	return "rules:\n" + hostPaths(name+".example", paths...)
}

const service = "." + siteNamespace + ".svc.cluster.local:8080"

var manifestsOfCharts = []manifest{
	// Charts and what people write beside them.
	{"grafana", nil, "", []string{"/ -> 200 v1 /", "/d/x?orgId=1 -> 200 v1 /d/x"}},
	{"grafana-sub", []string{"rewrite-target: /$2"}, rulesOf("grafana-sub", "~ /grafana(/|$)(.*) v1"), []string{"/grafana -> 200 v1 /", "/grafana/api/x -> 200 v1 /api/x", "/ -> 404"}},
	{"jenkins", []string{"proxy-body-size: 50m", "proxy-request-buffering: off", "ssl-redirect: true"}, tlsOf("jenkins.example") + rulesOf("jenkins", "/ / v1"), []string{"/job -> 308 https://jenkins.example/job", "POST:2000000 https:/job -> 200 v1 /job max-age=31536000; includeSubDomains"}},
	{"nexus", []string{"proxy-body-size: 0", "proxy-read-timeout: 900"}, "", []string{"POST:3000000 /repository -> 200 v1 /repository"}},
	{"harbor", []string{"ssl-redirect: true", "proxy-body-size: 0"}, tlsOf("harbor.example") + rulesOf("harbor", "/ /api/ v1", "/ /service/ v1", "/ /v2/ v1", "/ /c/ v1", "/ / v2"), []string{"https:/v2/_catalog -> 200 v1 /v2/_catalog max-age=31536000; includeSubDomains", "https:/v2 -> 301 https://harbor.example/v2/", "https:/x -> 200 v2 /x max-age=31536000; includeSubDomains", "/v2/ -> 308 https://harbor.example/v2/"}},
	{"dashboard-oauth", []string{"auth-url: https://$host/oauth2/auth", "auth-signin: https://$host/oauth2/start?rd=$escaped_request_uri"}, "", []string{"/ -> 302 | 200 v1 / by auth-url"}},
	{"authelia", []string{"auth-url: http://v2" + service + "/api/verify", "auth-method: GET", "auth-response-headers: Remote-User,Remote-Groups"}, "", []string{"/a -> 200 v1 /a"}},
	{"kubernetes-dashboard", []string{"backend-protocol: HTTPS"}, rulesOf("kubernetes-dashboard", "/ / v3"), []string{"/ -> 502 | 500 by backend-protocol"}},
	{"kibana", []string{"backend-protocol: HTTPS", "proxy-ssl-verify: false", "proxy-body-size: 100m", "proxy-connect-timeout: 100", "proxy-buffering: on"}, rulesOf("kibana", "/ / v3"), []string{"/ -> 502 | 500 by backend-protocol"}},
	{"registry", []string{"proxy-body-size: 0", "proxy-read-timeout: 600", "proxy-send-timeout: 600"}, tlsOf("registry.example") + rulesOf("registry", "/ / v1"), []string{"POST:2000000 https:/v2/x -> 200 v1 /v2/x max-age=31536000; includeSubDomains"}},
	{"gitlab", []string{"proxy-body-size: 512m", "proxy-read-timeout: 3600", "proxy-connect-timeout: 15", "service-upstream: true"}, "", []string{"POST:2000000 /group -> 200 v1 /group"}},
	{"nextcloud", []string{"proxy-body-size: 10G", "proxy-buffering: off", "server-snippet: location = /.well-known/carddav { return 301 $scheme://$host/remote.php/dav; }"}, "", []string{"/x -> 200 v1 /x", "/.well-known/carddav -> 301 /remote.php/dav | 200 v1 /.well-known/carddav by server-snippet"}},
	{"wordpress", []string{"proxy-body-size: 64m", "proxy-buffer-size: 128k", "proxy-buffers-number: 4", "proxy-busy-buffers-size: 256k", "client-body-buffer-size: 1m"}, "", []string{"POST:2000000 /wp-admin -> 200 v1 /wp-admin"}},
	{"argocd-webhook", []string{"configuration-snippet: if ($request_method != POST) { return 405; }"}, rulesOf("argocd-webhook", "= /api/webhook v1"), []string{"POST:10 /api/webhook -> 200 v1 /api/webhook", "/api/webhook -> 405 | 200 v1 /api/webhook by configuration-snippet", "/api/webhook/x -> 404"}},
	{"identity", []string{"rewrite-target: /", "force-ssl-redirect: true", "proxy-buffer-size: 32k", "proxy-buffers-number: 8", "configuration-snippet: more_set_input_headers 'from-ingress: true';"}, tlsOf("identity.example") + rulesOf("identity", "/ / v1"), []string{"/a -> 308 https://identity.example/a", "https:/a -> 200 v1 /a max-age=31536000; includeSubDomains"}},
	{"websocket", []string{"proxy-read-timeout: 3600", "proxy-send-timeout: 3600", "websocket-services: v1", "upstream-hash-by: $http_x_room"}, "", []string{"/ws -> 200 v1 /ws", "POST:1100000 /ws -> 413"}},
	{"minio", []string{"proxy-body-size: 5g", "proxy-http-version: 1.1", "ssl-redirect: false"}, tlsOf("minio.example") + rulesOf("minio", "/ / v1"), []string{"/bucket -> 200 v1 /bucket", "https:/bucket -> 200 v1 /bucket max-age=31536000; includeSubDomains"}},
	{"prometheus", []string{"auth-type: basic", "auth-secret: users", "auth-realm: Authentication Required - ops"}, "", []string{"/ -> 401", "ann:test@/graph -> 200 v1 /graph", "ann:wrong@/graph -> 401"}},
	{"vault", []string{"whitelist-source-range: 10.0.0.0/8,127.0.0.0/8", "proxy-body-size: 8m"}, "", []string{"/ui -> 200 v1 /ui"}},
	{"rabbitmq", []string{"whitelist-source-range: 192.168.1.0/24,10.0.0.0/8"}, "", []string{"/ -> 403"}},
	{"keycloak", []string{"proxy-buffer-size: 128k", "affinity: cookie", "session-cookie-name: route", "session-cookie-max-age: 3600", "affinity-mode: persistent"}, "", []string{"/realms -> 200 v1 /realms"}},
	{"sonarqube", []string{"proxy-body-size: 64m", "app-root: /sonar"}, "", []string{"/ -> 302 /sonar", "/sonar -> 200 v1 /sonar"}},
	{"airflow", []string{"rewrite-target: /$1", "use-regex: true", "proxy-body-size: 10m"}, rulesOf("airflow", "~ /airflow/(.*) v1", "~ /flower/(.*) v2"), []string{"/airflow/home -> 200 v1 /home", "/FLOWER/x -> 200 v2 /x", "/x -> 404"}},
	{"pixyz", []string{"enable-cors: true", "cors-allow-origin: *", "cors-allow-methods: PUT, GET, POST, OPTIONS, DELETE"}, "", []string{"Origin=https://a.example / -> 200 v1 / * | 200 v1 / https://a.example by enable-cors"}},
	{"security-headers", []string{"configuration-snippet: more_set_headers \"X-Team: shop\"; more_set_headers \"X-Frame-Options: DENY\";"}, "", []string{"/ -> 200 v1 / shop"}},
	{"hsts-snippet", []string{"configuration-snippet: more_set_headers \"Strict-Transport-Security: max-age=1\";"}, "", []string{"/ -> 200 v1 / max-age=1 | 200 v1 / by configuration-snippet"}},
	{"rewrites-misused", []string{"rewrite-target: /"}, rulesOf("rewrites-misused", "/ /api v1", "/ /web v2"), []string{"/api/users -> 200 v1 /", "/web -> 200 v2 /"}},
	{"monolith", []string{"rewrite-target: /$2", "proxy-body-size: 200m", "proxy-read-timeout: 120", "proxy-buffering: off"}, rulesOf("monolith", "~ /app(/|$)(.*) v1"), []string{"/app/x/y?z=1 -> 200 v1 /x/y", "/apple -> 404"}},
	{"unlimited", []string{"limit-rps: 1", "limit-burst-multiplier: 1", "limit-allowlist: 127.0.0.0/8"}, "", []string{"/ -> 200 v1 /", "/ -> 200 v1 /", "/ -> 200 v1 /"}},
	{"limited", []string{"limit-rps: 10", "limit-connections: 20", "limit-burst-multiplier: 3"}, "", []string{"/ -> 200 v1 /"}},
	{"waf", []string{"enable-modsecurity: true", "enable-owasp-core-rules: true", "modsecurity-transaction-id: $request_id"}, "", []string{"/ -> 200 v1 /", "/?q=../../etc/passwd -> 403 | 200 v1 / by enable-modsecurity"}},
	{"traced", []string{"enable-opentelemetry: true", "opentelemetry-operation-name: web", "opentelemetry-trust-incoming-span: true", "enable-access-log: false"}, "", []string{"/ -> 200 v1 /"}},

	// Examples and pages of ingress-nginx's documentation.
	{"doc-rewrite", []string{"use-regex: true", "rewrite-target: /$2"}, rulesOf("doc-rewrite", "~ /something(/|$)(.*) v1"), []string{"/something -> 200 v1 /", "/something/ -> 200 v1 /", "/something/new -> 200 v1 /new"}},
	{"doc-app-root", []string{"app-root: /app1"}, tlsOf("doc-app-root.example") + rulesOf("doc-app-root", "/ / v1"), []string{"https:/ -> 302 https://doc-app-root.example/app1"}},
	{"doc-order", []string{"use-regex: true"}, rulesOf("doc-order", "~ /foo/bar v1", "~ /foo/bar/ v2"), []string{"/foo/bar -> 200 v1 /foo/bar", "/foo/bar/ -> 200 v2 /foo/bar/", "/FOO/BAR/x -> 200 v2 /FOO/BAR/x"}},
	{"doc-warning", []string{"use-regex: true"}, rulesOf("doc-warning", "~ /foo/bar/bar v1", "~ /foo/bar/[A-Z0-9]{3} v2"), []string{"/foo/bar/bar -> 200 v2 /foo/bar/bar", "/foo/bar/x -> 404"}},
	{"doc-affinity", []string{"affinity: cookie", "session-cookie-name: route", "session-cookie-expires: 172800", "session-cookie-max-age: 172800"}, "", []string{"/ -> 200 v1 /"}},
	{"doc-samesite", []string{"affinity: cookie", "session-cookie-name: hello", "session-cookie-samesite: Strict", "session-cookie-path: /app"}, "", []string{"/ -> 200 v1 /"}},
	{"doc-basic", []string{"auth-type: basic", "auth-secret: users", "auth-realm: Authentication Required - foo"}, "", []string{"/ -> 401", "ann:test@/ -> 200 v1 /"}},
	{"doc-auth-map", []string{"auth-type: basic", "auth-secret: users", "auth-secret-type: auth-map"}, "", []string{"/ -> 401 | 200 v1 / by auth-type"}},
	{"doc-external", []string{"auth-url: https://httpbin.org/basic-auth/user/passwd"}, "", []string{"/ -> 401 | 200 v1 / by auth-url"}},
	{"doc-certs", []string{"auth-tls-verify-client: on", "auth-tls-secret: " + siteNamespace + "/clients", "auth-tls-verify-depth: 1", "auth-tls-error-page: https://pages.example/cert", "auth-tls-pass-certificate-to-upstream: true"}, tlsOf("doc-certs.example") + rulesOf("doc-certs", "/ / v1"), []string{"https:/a -> 302 https://pages.example/cert"}},
	{"doc-headers", []string{"custom-headers: " + siteNamespace + "/answers"}, "", []string{"/ -> 200 v1 / shop"}},
	{"doc-request-id", []string{"configuration-snippet: more_set_headers \"Request-Id: $req_id\";"}, "", []string{"/ -> 200 v1 /"}},
	{"doc-cors", []string{"enable-cors: true", "cors-allow-origin: https://page.example", "cors-allow-credentials: true", "cors-max-age: 600"}, "", []string{"Origin=https://page.example / -> 200 v1 / https://page.example", "Origin=https://other.example / -> 200 v1 /"}},
	{"doc-alias", []string{"server-alias: doc-alias-too.example"}, "", []string{"/a -> 200 v1 /a", "http://doc-alias-too.example/a -> 200 v1 /a"}},
	{"doc-permanent", []string{"permanent-redirect: https://www.google.example"}, "", []string{"/a -> 301 https://www.google.example/"}},
	{"doc-permanent-308", []string{"permanent-redirect: https://www.google.example/there", "permanent-redirect-code: 308"}, "", []string{"/a -> 308 https://www.google.example/there"}},
	{"doc-temporal", []string{"temporal-redirect: https://www.google.example/x", "temporal-redirect-code: 307"}, "", []string{"/a -> 307 https://www.google.example/x"}},
	{"doc-www", []string{"from-to-www-redirect: true"}, "", []string{"/a -> 200 v1 /a", "http://www.doc-www.example/a -> 308 http://doc-www.example/a"}},
	{"doc-vhost", []string{"upstream-vhost: inside.example"}, "", []string{"/ -> 200 v1 / inside.example"}},
	{"doc-hash", []string{"upstream-hash-by: $request_uri"}, "", []string{"/ -> 200 v1 /"}},
	{"doc-errors", []string{"custom-http-errors: 404,415", "default-backend: v2"}, "", []string{"/ -> 200 v1 /", "/x?status=404 -> 404 v2 | 404 by custom-http-errors"}},
	{"doc-mirror", []string{"mirror-target: http://v2" + service + "$request_uri"}, "", []string{"/a -> 200 v1 /a"}},
	{"doc-deny", []string{"denylist-source-range: 127.0.0.0/8"}, "", []string{"/ -> 403"}},
	{"doc-redirects-off", []string{"proxy-redirect-from: off", "proxy-cookie-path: off", "proxy-cookie-domain: off", "http2-push-preload: true"}, "", []string{"/ -> 200 v1 /"}},
	{"doc-ciphers", []string{"ssl-ciphers: ALL:!aNULL", "ssl-prefer-server-ciphers: true"}, tlsOf("doc-ciphers.example") + rulesOf("doc-ciphers", "/ / v1"), []string{"https:/ -> 200 v1 / max-age=31536000; includeSubDomains"}},
	{"doc-next", []string{"proxy-next-upstream: error timeout http_502", "proxy-next-upstream-tries: 3", "proxy-next-upstream-timeout: 5"}, "", []string{"/ -> 200 v1 /"}},
	{"doc-prefix", []string{"rewrite-target: /$1", "x-forwarded-prefix: /front"}, rulesOf("doc-prefix", "~ /front/(.*) v1"), []string{"/front/a -> 200 v1 /a"}},
	{"doc-rate", []string{"limit-rate: 100", "limit-rate-after: 1000"}, "", []string{"/ -> 200 v1 /"}},

	// What suites of converters ask about.
	{"suite-exact", nil, rulesOf("suite-exact", "= /exact v1", "/ /exact/ v2"), []string{"/exact -> 200 v1 /exact", "/exact/x -> 200 v2 /exact/x", "/Exact -> 404"}},
	{"suite-longest", nil, rulesOf("suite-longest", "/ / v1", "/ /a v1", "/ /a/b v2"), []string{"/a/b/c -> 200 v2 /a/b/c", "/a/bc -> 200 v1 /a/bc", "/z -> 200 v1 /z"}},
	{"suite-dot", nil, rulesOf("suite-dot", "/ /v1.0 v1"), []string{"/v1.0/x -> 200 v1 /v1.0/x", "/v1x0/x -> 404"}},
	{"suite-default", nil, "defaultBackend: {service: {name: v2, port: {number: 8080}}}\n" + rulesOf("suite-default", "/ /own v1"), []string{"/own -> 200 v1 /own", "/else -> 200 v2 /else"}},
	{"suite-satisfy", []string{"satisfy: any", "auth-type: basic", "auth-secret: users", "whitelist-source-range: 10.0.0.0/8"}, "", []string{"/ -> 401", "ann:test@/ -> 200 v1 /"}},
	{"suite-return", []string{"configuration-snippet: return 403;"}, "", []string{"/a -> 403"}},
	{"suite-moved", []string{"configuration-snippet: return 302 https://new.example$request_uri;"}, "", []string{"/a?b=c -> 302 https://new.example/a?b=c"}},
	{"suite-allow", []string{"configuration-snippet: allow 10.0.0.0/8; deny all;"}, "", []string{"/a -> 403"}},
	{"suite-allowed", []string{"configuration-snippet: allow 127.0.0.0/8; deny all; add_header X-Team shop always;"}, "", []string{"/a -> 200 v1 /a shop"}},
	{"suite-weight", nil, "", []string{"/a -> 200 v2 /a"}},
	{"suite-weight-canary", []string{"canary: true", "canary-weight: 100"}, rulesOf("suite-weight", "/ / v2"), nil},
	{"suite-pattern", nil, "", []string{"/a -> 200 v1 /a", "X-Region=eu-west /a -> 200 v2 /a", "X-Region=us /a -> 200 v1 /a"}},
	{"suite-pattern-canary", []string{"canary: true", "canary-by-header: X-Region", "canary-by-header-pattern: eu-.*"}, rulesOf("suite-pattern", "/ / v2"), nil},
	{"suite-value", nil, "", []string{"X-Canary=yes /a -> 200 v2 /a", "X-Canary=always /a -> 200 v1 /a"}},
	{"suite-value-canary", []string{"canary: true", "canary-by-header: X-Canary", "canary-by-header-value: yes"}, rulesOf("suite-value", "/ / v2"), nil},
}

// What becomes of Ingresses as people have them answers as ingress-nginx does by its documentation, or the report tells
// of what differs.
func TestIngressManifests(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for _, m := range manifestsOfCharts {
		if m.spec == "" {
			m.spec = rulesOf(m.name, "/ / v1")
		}
		text.WriteString(ingressOf(m.name, early, slices.Clone(m.annotations), m.spec))
	}
	users := "---\napiVersion: v1\nkind: Secret\nmetadata: {name: users, namespace: " + siteNamespace + "}\nstringData: {auth: \"ann:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=\"}\n" // "test"
	headers := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: answers, namespace: " + siteNamespace + "}\ndata: {X-Team: shop}\n"
	reportFile := filepath.Join(t.TempDir(), "report.json")
	result := migrated(t, text.String()+users+headers, "--gateway", siteNamespace+"/gw", "--allow-opened", "--report", reportFile)
	content, err := os.ReadFile(reportFile)
	if err != nil {
		t.Fatal(err)
	}
	var report []struct{ Ingress, Annotation, Verdict string }
	if err := json.Unmarshal(content, &report); err != nil {
		t.Fatal(err)
	}
	tells := func(name, annotation string) bool {
		for _, f := range report {
			if f.Ingress == siteNamespace+"/"+name && f.Annotation == annotation && (f.Verdict == "NotPossible" || f.Verdict == "Differs") {
				return true
			}
		}
		return false
	}
	s := newSite(t, map[string]string{
		"gateway.yaml": result, "home.yaml": "", "users.yaml": users,
		"clients.yaml": strings.NewReplacer("kind: ConfigMap", "kind: Secret", "\ndata:", "\nstringData:").Replace(caManifest(clientAuthority, siteNamespace, "clients")),
		"cert.yaml":    mustSecret(t, "cert", "*.example"),
		"v3.yaml":      mustBackend(t, siteNamespace, "v3", "v3"),
	})
	asked, announced := 0, 0
	for _, m := range manifestsOfCharts {
		for _, ask := range m.asks {
			request, want, _ := strings.Cut(ask, " -> ")
			want, here, differs := strings.Cut(want, " | ")
			if differs {
				var by string
				here, by, _ = strings.Cut(here, " by ")
				if !tells(m.name, by) {
					t.Errorf("%s: %s differs, and the report doesn't tell of %s", m.name, request, by)
				}
				want = here
				announced++
			}
			asked++
			var got string
			eventually(t, siteTimeout, func() error {
				var err error
				got, err = s.asNginx(requestOf(m.name, request))
				if err == nil && strings.HasPrefix(got, "401 ") {
					got = "401" // a challenge is checked where passwords are
				}
				return err
			})
			if got != want {
				t.Errorf("%s: %s is answered %s, want %s", m.name, request, got, want)
			}
		}
	}
	t.Logf("%d Ingresses, %d requests, %d of which are answered otherwise, as announced", len(manifestsOfCharts), asked, announced)
}

// requestOf completes a request with the host of a manifest.
func requestOf(name, request string) string {
	how, target, ok := strings.Cut(request, " ")
	if !ok {
		how, target = "", request
	}
	switch {
	case strings.HasPrefix(target, "http://"):
	case strings.HasPrefix(target, "https:/"):
		target = "https://" + name + ".example" + strings.TrimPrefix(target, "https:")
	default:
		user, path, ok := strings.Cut(target, "@")
		if !ok {
			user, path = "", target
		} else {
			user += "@"
		}
		target = fmt.Sprintf("http://%s%s.example%s", user, name, path)
	}
	return strings.TrimSpace(how + " " + target)
}
