//go:build linux

package e2e

import (
	"crypto/x509"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/policy/traffic"
)

// trafficPolicy is a TrafficPolicy for a target in flow notation, with a spec behind its targets.
func trafficPolicy(name, target, spec string) string {
	return strings.Replace(authPolicy(name, target, spec), "kind: AuthPolicy", "kind: TrafficPolicy", 1)
}

// trafficTests protect each setting of TrafficPolicies with the real Envoy.
var trafficTests = map[string]func(*testing.T, *site){
	"backend.circuitBreaker":           testCircuitBreaker,
	"backend.clusters":                 testBackendClusters,
	"backend.connectTimeout":           testConnectTimeout,
	"backend.connections":              testConnections,
	"backend.healthCheck":              testHealthCheck,
	"backend.loadBalancing":            testLoadBalancing,
	"backend.outlierDetection":         testOutlierDetection,
	"backend.retryBudget":              testTrafficRetryBudget,
	"backend.routingType":              testRoutingType,
	"request.admissionControl":         testAdmissionControl,
	"request.bandwidth":                testRequestBandwidth,
	"request.buffering":                testBuffering,
	"request.faults":                   testFaults,
	"request.idleTimeout":              testIdleTimeout,
	"request.maxBodySize":              testMaxBodySize,
	"request.retry":                    testTrafficRetry,
	"request.timeout":                  testTrafficTimeout,
	"response.bandwidth":               testResponseBandwidth,
	"response.compression":             testCompression,
	"response.errorPages":              testErrorPages,
	"response.headers":                 testAnswerHeaders,
	"response.securityHeaders":         testSecurityHeaders,
	"response.strictTransportSecurity": testStrictTransportSecurity,
}

const homeURL = "http://home.example/"

// TestTrafficPolicy protects that settings come into force and go again by files, and with no listener
// changed for them.
func TestTrafficPolicy(t *testing.T) {
	t.Parallel()
	for _, name := range traffic.Settings() {
		t.Run(name, func(t *testing.T) {
			test := trafficTests[name]
			if test == nil {
				t.Fatal("there is no test of the setting")
			}
			t.Parallel()
			s := startSite(t, map[string]string{
				"cert.yaml": issue(func(*x509.Certificate) {}, "home.example", "pair.example").manifest(siteNamespace, "cert"),
				"gateway.yaml": siteGateway("{name: http, port: 80, protocol: HTTP}",
					"{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}"),
			})
			s.conditions(t, "Gateway gw", "https", "Programmed=True")
			listeners := s.envoyStats(t, "listener_manager")
			test(t, s)
			s.remove(t, "traffic.yaml")
			s.serves(t, "home.example", "v1")
			if err := sameStats(listeners, s.envoyStats(t, "listener_manager"), "listener_manager.listener_added", "listener_manager.listener_modified",
				"listener_manager.listener_removed", "listener_manager.listener_in_place_updated"); err != nil {
				t.Error(err)
			}
		})
	}
}

// set writes a policy in place of the last one, and waits until proxies have it. Its name follows from what
// it says, so that no status is the last one's.
func (s *site) set(t *testing.T, file, target, spec string) (name string) {
	t.Helper()
	name = fmt.Sprintf("p%x", crc32.ChecksumIEEE([]byte(target+spec)))
	s.write(t, file, trafficPolicy(name, target, spec))
	s.conditions(t, "TrafficPolicy "+name, "gw", "Programmed=True")
	return name
}

// send sends a request with a body, whose length is told before or not, and returns the answer.
func (s *site) send(t *testing.T, target string, body io.Reader, headers map[string]string) *outcome {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.listener(), body)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	req.Host, req.URL.Path, req.URL.RawQuery = u.Host, u.Path, u.RawQuery
	req.Header.Set("Accept-Encoding", "identity")
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	out := &outcome{}
	if err := out.take(transport.RoundTrip(req)); err != nil {
		t.Fatal(err)
	}
	return out
}

func testMaxBodySize(t *testing.T, s *site) {
	sized := func(n int) io.Reader { return strings.NewReader(strings.Repeat("x", n)) }
	streamed := func(n int) io.Reader { return io.MultiReader(sized(n)) }
	sends := func(when string, body io.Reader, status int) {
		t.Helper()
		if got := s.send(t, homeURL, body, nil).status; got != status {
			t.Errorf("%s: %d, want %d", when, got, status)
		}
	}
	sends("without a policy", sized(2000), http.StatusOK)
	s.set(t, "traffic.yaml", onGateway, "request: {maxBodySize: 1k}")
	sends("as large as may be", sized(1000), http.StatusOK)
	sends("a byte more", sized(1001), http.StatusRequestEntityTooLarge)
	sends("streamed, as large as may be", streamed(1000), http.StatusOK)
	sends("streamed, a byte more", streamed(1001), http.StatusRequestEntityTooLarge)
	sends("streamed, much more", streamed(1<<20), http.StatusRequestEntityTooLarge)
	s.answers(t, homeURL, http.StatusOK)

	// A rule's own policy has the last word, and an override of the Gateway has it before.
	own := s.set(t, "own.yaml", onHome, "request: {maxBodySize: Unlimited}")
	sends("unlimited", sized(2000), http.StatusOK)
	override := s.set(t, "traffic.yaml", onGateway, "overrides: {strategy: merge, request: {maxBodySize: 1500}}")
	s.says(t, "TrafficPolicy "+own, "Overridden by TrafficPolicy "+siteNamespace+"/"+override)
	sends("overridden", streamed(2000), http.StatusRequestEntityTooLarge)
	s.remove(t, "own.yaml")
}

func testCompression(t *testing.T, s *site) {
	large := strings.Repeat("compress me ", 100)
	encoding := func(accept string, query string) string {
		t.Helper()
		o := s.send(t, homeURL+query, strings.NewReader(large), map[string]string{"Accept-Encoding": accept})
		if o.status != http.StatusOK {
			t.Errorf("%s of %q: %d", accept, query, o.status)
		}
		return o.headers.Get("Content-Encoding")
	}
	told := func(when string, want map[string]string) {
		t.Helper()
		for accept, encoded := range want {
			if got := encoding(accept, ""); got != encoded {
				t.Errorf("%s: to who accepts %q it is %q, want %q", when, accept, got, encoded)
			}
		}
	}
	told("without a policy", map[string]string{"gzip, br, zstd": ""})
	s.set(t, "traffic.yaml", onGateway, "response: {compression: {}}")
	told("by default", map[string]string{"gzip, br, zstd": "br", "gzip": "gzip", "zstd": "zstd", "gzip;q=1, br;q=0.5": "gzip", "identity": "", "deflate": ""})
	o := s.send(t, homeURL+"?header="+url.QueryEscape(`ETag:"v1"`), strings.NewReader(large), map[string]string{"Accept-Encoding": "gzip"})
	if tag, vary := o.headers.Get("ETag"), o.headers.Get("Vary"); tag != `W/"v1"` || !strings.EqualFold(vary, "Accept-Encoding") {
		t.Errorf("the answer has ETag %s and Vary %s", tag, vary)
	}
	if got := s.send(t, homeURL, strings.NewReader(large), map[string]string{"Accept-Encoding": "br"}); len(got.body) >= len(large) {
		t.Errorf("an answer with %d bytes of the request's body has %d bytes", len(large), len(got.body))
	}

	s.set(t, "traffic.yaml", onGateway, "response: {compression: {algorithms: [{type: Zstd, level: 19}, {type: Gzip, level: 9}], minSize: 100}}")
	told("by two", map[string]string{"gzip, br, zstd": "zstd", "gzip": "gzip", "br": ""})
	s.set(t, "traffic.yaml", onGateway, "response: {compression: {contentTypes: [text/*]}}")
	told("of other types", map[string]string{"gzip": ""})
	s.set(t, "traffic.yaml", onGateway, "response: {compression: {minSize: 100k}}")
	told("that are small", map[string]string{"gzip": ""})

	// What the Gateway says gives way to a route's own, of which no algorithm of the Gateway is left.
	s.set(t, "traffic.yaml", onGateway, "response: {compression: {}}")
	const own = "own.yaml"
	write := func(spec string) {
		t.Helper()
		s.set(t, own, onHome+", sectionName: some", spec)
	}
	s.write(t, "home.yaml", siteRules("home", "home.example", `- name: some
  matches: [{path: {value: /some}}]
  backendRefs: [{name: v1, port: 8080}]
- backendRefs: [{name: v1, port: 8080}]`))
	write("response: {compression: {algorithms: [{type: Gzip}]}}")
	for accept, want := range map[string]string{"br, gzip": "gzip", "br": "", "br;q=1, gzip;q=0.5": "gzip"} {
		if got := encoding(accept, "some"); got != want {
			t.Errorf("of the rule, to who accepts %q it is %q, want %q", accept, got, want)
		}
	}
	told("beside the rule", map[string]string{"br, gzip": "br"})
	write("response: {compression: {disabled: true}}")
	if got := encoding("br, gzip", "some"); got != "" {
		t.Errorf("switched off it is %q", got)
	}
	s.remove(t, own)
}

// pairURL is served by the servers v1 and v2, behind one Service.
const pairURL = "http://pair.example/"

// pair writes what pairURL is, with more to say of the Service.
func (s *site) pair(t *testing.T, more string) {
	t.Helper()
	port := func(name string) int {
		p, err := backendPort(name, 0)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	s.write(t, "pair.yaml", fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata: {name: pair, namespace: %[1]s}
spec: {ports: [{name: http, port: 8080}]%[4]s}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: pair-1, namespace: %[1]s, labels: {kubernetes.io/service-name: pair}}
addressType: IPv4
ports: [{name: http, port: %[2]d}]
endpoints: [{addresses: [127.0.0.1]}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: pair-2, namespace: %[1]s, labels: {kubernetes.io/service-name: pair}}
addressType: IPv4
ports: [{name: http, port: %[3]d}]
endpoints: [{addresses: [127.0.0.1]}]
`, siteNamespace, port("v1"), port("v2"), more)+siteRoute("pair", "pair.example", "pair"))
	s.answers(t, pairURL, http.StatusOK)
}

// servers are those that answer so many requests.
func (s *site) servers(t *testing.T, n int, target string, headers map[string]string) (servers []string) {
	t.Helper()
	for range n {
		servers = append(servers, s.answer(t, target, "", headers).answer.Name)
	}
	return servers
}

// both reports whether both servers of the pair have answered.
func both(servers []string) error {
	if all := strings.Join(servers, " "); !strings.Contains(all, "v1") || !strings.Contains(all, "v2") {
		return fmt.Errorf("not both have answered: %s", all)
	}
	return nil
}

// single protects that one server alone has answered, and returns it.
func single(t *testing.T, how string, servers []string) string {
	t.Helper()
	for _, name := range servers {
		if name != servers[0] || name == "" {
			t.Errorf("%s: not one endpoint has answered: %s", how, servers)
			break
		}
	}
	return servers[0]
}

// distinct protects that requests which differ come to both servers of the pair, and equal ones to one.
func (s *site) distinct(t *testing.T, how string, target func(i int) (string, map[string]string)) {
	t.Helper()
	var servers []string
	for i := range 30 {
		url, headers := target(i)
		servers = append(servers, single(t, how, s.servers(t, 4, url, headers)))
	}
	if err := both(servers); err != nil {
		t.Errorf("%s: %v", how, err)
	}
}

func testLoadBalancing(t *testing.T, s *site) {
	s.pair(t, "")
	const pair = pairURL
	ask := func(n int, target string, headers map[string]string) []string {
		t.Helper()
		return s.servers(t, n, target, headers)
	}
	one := func(how string, servers []string) string {
		t.Helper()
		return single(t, how, servers)
	}
	distinct := func(how string, target func(i int) (string, map[string]string)) {
		t.Helper()
		s.distinct(t, how, target)
	}
	s.set(t, "traffic.yaml", onGateway, "backend: {loadBalancing: {type: RoundRobin}}")
	s.answers(t, pair, http.StatusOK)
	// By turns, for each of Envoy's threads.
	eventually(t, siteTimeout, func() error { return both(ask(20, pair, nil)) })
	s.set(t, "traffic.yaml", onGateway, "backend: {loadBalancing: {type: Random}}")
	eventually(t, siteTimeout, func() error { return both(ask(20, pair, nil)) })

	hash := func(spec string) {
		t.Helper()
		s.set(t, "traffic.yaml", onGateway, "backend: {loadBalancing: {type: ConsistentHash, consistentHash: {"+spec+"}}}")
	}
	hash("type: Header, header: {name: X-User}")
	distinct("by a header", func(i int) (string, map[string]string) { return pair, map[string]string{"X-User": fmt.Sprint("u", i)} })
	hash("type: Header, header: {name: X-User}, algorithm: Maglev")
	distinct("by Maglev", func(i int) (string, map[string]string) { return pair, map[string]string{"X-User": fmt.Sprint("u", i)} })
	hash("type: Header, header: {name: X-User}, ringSize: 4096")
	distinct("by a large ring", func(i int) (string, map[string]string) { return pair, map[string]string{"X-User": fmt.Sprint("u", i)} })
	s.set(t, "traffic.yaml", onGateway, "backend: {loadBalancing: {type: RoundRobin, slowStart: 1s}}")
	eventually(t, siteTimeout, func() error { return both(ask(20, pair, nil)) })
	hash("type: Header, header: {name: X-User}")
	clusters := s.envoyStats(t, "cluster_manager")
	hash("type: QueryParam, queryParam: {name: user}")
	distinct("by a query", func(i int) (string, map[string]string) { return fmt.Sprint(pair, "?user=u", i), nil })
	hash("type: SourceIP")
	one("by the client's address", ask(20, pair, nil))
	hash("type: Cookie, cookie: {name: place, ttl: 1h}")
	o := s.answer(t, pair, "", nil)
	cookie, err := http.ParseSetCookie(o.headers.Get("Set-Cookie"))
	if err != nil || cookie.Name != "place" || cookie.MaxAge != 3600 || !cookie.HttpOnly {
		t.Fatalf("the cookie is %v: %v", o.headers["Set-Cookie"], err)
	}
	if cookie.Secure {
		t.Error("over HTTP the cookie is Secure, so that no browser keeps it")
	}
	tls := s.answer(t, "https://pair.example/", "", nil)
	if cookie, err := http.ParseSetCookie(tls.headers.Get("Set-Cookie")); err != nil || !cookie.Secure {
		t.Errorf("over HTTPS the cookie is %v: %v", tls.headers["Set-Cookie"], err)
	}
	if got := one("by a cookie", ask(20, pair, map[string]string{"Cookie": "place=" + cookie.Value})); got != o.answer.Name {
		t.Errorf("the cookie of %s leads to %s", o.answer.Name, got)
	}
	hash("type: Cookie, cookie: {name: place, path: /shop, domain: pair.example, sameSite: Strict}")
	cookie, err = http.ParseSetCookie(s.answer(t, pair, "", nil).headers.Get("Set-Cookie"))
	if err != nil || cookie.Path != "/shop" || cookie.Domain != "pair.example" || cookie.SameSite != http.SameSiteStrictMode || cookie.MaxAge != 0 {
		t.Errorf("the cookie with attributes is %v: %v", cookie, err)
	}
	// What is hashed is the route's: no connection to a backend ends for it.
	if err := sameStats(clusters, s.envoyStats(t, "cluster_manager"), "cluster_manager.cluster_added", "cluster_manager.cluster_modified",
		"cluster_manager.cluster_removed"); err != nil {
		t.Error(err)
	}
	// What requests don't have leads anywhere.
	hash("type: Header, header: {name: X-Nonesuch}")
	eventually(t, siteTimeout, func() error { return both(ask(20, pair, nil)) })
}

// TestServiceSettings protects that settings of a Service are those of all routes to it, with the rank of the most
// specific target; and that what Services say of sessionAffinity is done.
func TestServiceSettings(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil)
	const ofService = `spec:
  targetRefs: [{group: "", kind: Service, name: pair}]
`
	byUser := func(i int) (string, map[string]string) {
		return pairURL, map[string]string{"X-User": fmt.Sprint("u", i)}
	}
	write := func(name, spec string) {
		t.Helper()
		s.write(t, "service.yaml", fmt.Sprintf("apiVersion: gatehouse.dev/v1alpha1\nkind: TrafficPolicy\nmetadata: {name: %s, namespace: %s}\n%s%s\n",
			name, siteNamespace, ofService, indent(spec)))
	}
	s.pair(t, ", sessionAffinity: ClientIP")
	single(t, "by sessionAffinity", s.servers(t, 20, pairURL, nil))

	write("users", "backend: {loadBalancing: {type: ConsistentHash, consistentHash: {type: Header, header: {name: X-User}}}}")
	s.conditions(t, "TrafficPolicy users", "gw", "Programmed=True")
	s.distinct(t, "by a header", byUser)
	// A default of the Gateway gives way, and an override doesn't.
	s.set(t, "traffic.yaml", onGateway, "backend: {loadBalancing: {type: RoundRobin}}")
	s.distinct(t, "by a header, beside a default", byUser)
	override := s.set(t, "traffic.yaml", onGateway, "overrides: {strategy: merge, backend: {loadBalancing: {type: RoundRobin}}}")
	s.says(t, "TrafficPolicy users", "Overridden by TrafficPolicy "+siteNamespace+"/"+override)
	eventually(t, siteTimeout, func() error { return both(s.servers(t, 20, pairURL, map[string]string{"X-User": "u"})) })
	s.remove(t, "traffic.yaml")

	write("random", "backend: {loadBalancing: {type: Random}}")
	s.conditions(t, "TrafficPolicy random", "gw", "Programmed=True")
	eventually(t, siteTimeout, func() error { return both(s.servers(t, 20, pairURL, nil)) })
	write("cookies", "backend: {loadBalancing: {type: ConsistentHash, consistentHash: {type: Cookie, cookie: {name: place, ttl: 1h}}}}")
	s.conditions(t, "TrafficPolicy cookies", "gw", "Programmed=True")
	s.distinct(t, "by a cookie", func(i int) (string, map[string]string) {
		return pairURL, map[string]string{"Cookie": fmt.Sprint("place=p", i)}
	})
	if o := s.answer(t, pairURL, "", nil); o.headers.Get("Set-Cookie") == "" {
		t.Error("nobody is given a cookie")
	}
	s.remove(t, "service.yaml")
	eventually(t, siteTimeout, func() error { // of the Service's own again
		servers := s.servers(t, 20, pairURL, nil)
		if both(servers) == nil {
			return errors.New("both still answer")
		}
		return nil
	})
}

// TestBadTrafficPolicies protects that a setting with a mistake says why, and costs no request.
func TestBadTrafficPolicies(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil)
	for name, c := range map[string]struct{ spec, says string }{
		"brotli quality 99":   {"response: {compression: {algorithms: [{type: Brotli, level: 99}]}}", "level"},
		"gzip level 0":        {"response: {compression: {algorithms: [{type: Gzip, level: 0}]}}", "a level is 1 to 9 for Gzip"},
		"unknown algorithm":   {"response: {compression: {algorithms: [{type: Deflate}]}}", "Deflate"},
		"algorithm twice":     {"response: {compression: {algorithms: [{type: Gzip}, {type: Gzip}]}}", "algorithms"},
		"no content type":     {"response: {compression: {contentTypes: [html]}}", "contentTypes"},
		"minimum size of 0":   {"response: {compression: {minSize: 0}}", "a number is 1 to 2147483647"},
		"off and on":          {"response: {compression: {disabled: true, minSize: 1k}}", "disabled: true has nothing beside it"},
		"size of 0":           {"request: {maxBodySize: 0}", "a number is 1 to 2147483647"},
		"negative size":       {"request: {maxBodySize: -1}", "a number is 1 to 2147483647"},
		"more than 32 bits":   {"request: {maxBodySize: 3000000000}", "write a larger size as a text"},
		"size of 1 elephant":  {"request: {maxBodySize: 1 elephant}", "maxBodySize"},
		"unknown balancer":    {"backend: {loadBalancing: {type: Fair}}", "Fair"},
		"hash of nothing":     {"backend: {loadBalancing: {type: ConsistentHash}}", "consistentHash"},
		"hash beside another": {"backend: {loadBalancing: {type: Random, consistentHash: {type: SourceIP}}}", "consistentHash"},
		"empty header name":   {"backend: {loadBalancing: {type: ConsistentHash, consistentHash: {type: Header, header: {name: ''}}}}", "header.name"},
		"header by cookie":    {"backend: {loadBalancing: {type: ConsistentHash, consistentHash: {type: Header, cookie: {name: c}}}}", "header stands with type: Header"},
		"nothing":             {"defaults: {}", "has no settings"},
		"timeout of -1s":      {"request: {timeout: -1s}", "timeout"},
		"idle for ever":       {"request: {idleTimeout: ever}", "idleTimeout"},
		"1000 attempts":       {"request: {retry: {attempts: 1000}}", "attempts"},
		"repeated success":    {"request: {retry: {codes: [200]}}", "codes"},
		"5 GB in memory":      {"request: {buffering: {maxSize: 5G}}", `is "5G"`},
		"5 MB error page":     {"response: {errorPages: {pages: [{statuses: ['404'], body: '" + strings.Repeat("x", 5<<20) + "'}]}}", "body"},
		"page of a success":   {"response: {errorPages: {pages: [{statuses: ['200'], body: x}]}}", "statuses"},
		"page of no text":     {"response: {errorPages: {pages: [{statuses: ['404']}]}}", "a page has body, configMapRef or backendRef"},
		"page without a map":  {"response: {errorPages: {pages: [{statuses: ['404'], configMapRef: {name: nonesuch}}]}}", "names ConfigMap " + siteNamespace + "/nonesuch, which does not exist"},
		"asked and from":      {"response: {errorPages: {pages: [{statuses: ['404'], backendRef: {name: v1, port: 8080}, from: Gateway}]}}", "don't go with backendRef"},
		"page of no backend":  {"response: {errorPages: {pages: [{statuses: ['404'], backendRef: {name: nonesuch, port: 8080}}]}}", "pages[0].backendRef"},
		"password page":       {"response: {errorPages: {pages: [{statuses: ['401'], body: x}]}}", "ask for a password"},
		"framing":             {"response: {headers: {set: [{name: Content-Length, value: '0'}]}}", "which is the Gateway's own to write"},
		"header twice":        {"response: {headers: {set: [{name: A, value: b}], remove: [a]}}", "another action already"},
		"preload of a day":    {"response: {strictTransportSecurity: {maxAge: 24h, preload: true}}", "needs includeSubDomains: true"},
		"slow random":         {"backend: {loadBalancing: {type: Random, slowStart: 1s}}", "slowStart stands with"},
		"ring of 0":           {"backend: {loadBalancing: {type: ConsistentHash, consistentHash: {type: SourceIP, ringSize: 0}}}", "ringSize"},
		"ring of Maglev":      {"backend: {loadBalancing: {type: ConsistentHash, consistentHash: {type: SourceIP, algorithm: Maglev, ringSize: 9}}}", "has no ring"},
		"connect in 0s":       {"backend: {connectTimeout: 0s}", "write a time such as 500ms"},
		"limit of 0":          {"backend: {circuitBreaker: {maxRequests: 0}}", "maxRequests"},
		"0 requests":          {"backend: {connections: {maxRequests: 0}}", "maxRequests"},
		"check without slash": {"backend: {healthCheck: {type: HTTP, http: {path: healthz}}}", "http.path"},
		"check of another":    {"backend: {healthCheck: {type: TCP, http: {path: /}}}", "http stands with type: HTTP"},
		"check of nothing":    {"backend: {healthCheck: {interval: 1s}}", "there is a type"},
		"checks without end":  {"backend: {healthCheck: {type: TCP, interval: 0s}}", `is "0s"`},
		"120 % ejected":       {"backend: {outlierDetection: {maxEjectedPercent: 120}}", "maxEjectedPercent"},
		"120 % retries":       {"backend: {retryBudget: {percent: 120}}", "percent"},
		"120 % faults":        {"request: {faults: {abort: {percent: 120}}}", "percent"},
		"a slow bandwidth":    {"request: {bandwidth: 10}", "1024"},
		"success over 100":    {"request: {admissionControl: {successRate: 101}}", "successRate"},
		"window of an hour":   {"request: {admissionControl: {window: 1h}}", "from 1s to 10m"},
		"delay of a day":      {"request: {faults: {delay: {duration: 24h}}}", "a request is delayed by 1m at most"},
		"unknown frames":      {"response: {securityHeaders: {frameOptions: Perhaps}}", "Perhaps"},
		"unknown field":       {"request: {maxBody: 1k}", "maxBody"},
	} {
		t.Run(name, func(t *testing.T) {
			s.write(t, "traffic.yaml", trafficPolicy("web", onGateway, c.spec))
			eventually(t, siteTimeout, func() error {
				report, err := s.status()
				if err != nil {
					return err
				}
				var all []string
				for _, p := range report.Problems {
					all = append(all, p.Field+" "+p.Message)
				}
				if item, err := report.find("TrafficPolicy web", siteNamespace); err == nil {
					for _, part := range item.parts() {
						for _, condition := range part.conditions {
							all = append(all, condition.Message)
						}
					}
				}
				if !strings.Contains(strings.Join(all, "\n"), c.says) {
					return fmt.Errorf("nothing speaks of %q: %q", c.says, all)
				}
				return nil
			})
			s.answers(t, homeURL, http.StatusOK)
			s.remove(t, "traffic.yaml")
			eventually(t, siteTimeout, func() error {
				report, err := s.status()
				if err == nil && len(report.Problems) > 0 {
					err = errors.New("there are problems left")
				}
				return err
			})
		})
	}
}
