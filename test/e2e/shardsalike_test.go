//go:build linux

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/echo"
	"github.com/gatehouse-dev/gatehouse/test/slow"
)

var (
	alikeRequests = flag.Int("alike-requests", 6000, "how many requests TestShardsAnswerAlike sends to each of its Gateways")
	alikeSeed     = flag.Uint64("alike-seed", 1, "which requests, and routes, these are")
)

// Random hosts of routes, and what requests ask for.
var (
	alikeHosts = []string{
		"a.test", "b.test", "c.a.test", "d.c.a.test", "x-1.test", "1.2.3.test",
		"*.test", "*.a.test", "*.c.a.test", "*.b.test", "*.other", "",
	}
	alikePaths = []string{"/", "/x", "/x/y", "/X", "/y", "/x/y/z", "/xy", "/y/../x", "/x%2Fy", "//x"}
)

// TestShardsAnswerAlike protects that whether its tables are divided, and certificates asked for, changes no answer
// of a Gateway, nor anything that a backend gets: two with the same random routes and policies, one of them with
// shards and certificates on demand, are sent the same random requests.
func TestShardsAnswerAlike(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	const requestsOfRoutes = 2000
	random := rand.New(rand.NewPCG(*alikeSeed, 0))
	whole, divided := startAlike(t, 0), startAlike(t, 1)
	for round := range (*alikeRequests + requestsOfRoutes - 1) / requestsOfRoutes {
		routes := alikeRoutes(random, round)
		for _, s := range []*alikeSite{whole, divided} {
			s.write(t, "routes.yaml", routes)
		}
		for _, s := range []*alikeSite{whole, divided} {
			eventually(t, siteTimeout, func() error { // whoever may pass
				if o, err := s.call(fmt.Sprintf("http://round-%d.example/", round)); err != nil || o.status == http.StatusNotFound {
					return fmt.Errorf("%+v, %w", o, err)
				}
				return nil
			})
		}
		var all []*alikeRequest
		for range requestsOfRoutes {
			all = append(all, newAlikeRequest(random))
		}
		answered := map[int]int{}
		var mu sync.Mutex
		var wg sync.WaitGroup
		for part := range slices.Chunk(all, requestsOfRoutes/4) {
			wg.Go(func() {
				for _, r := range part {
					// Tables come one by one, and some may still be those of the round before.
					if err := poll(siteTimeout, func() error {
						one, other := whole.answer(r), divided.answer(r)
						if a, b := one.text(), other.text(); a != b {
							return fmt.Errorf("\none table: %s\nshards:    %s", a, b)
						}
						mu.Lock()
						answered[one.Status]++
						mu.Unlock()
						return nil
					}); err != nil {
						t.Errorf("seed %d, round %d: %s: %v\nroutes:\n%s", *alikeSeed, round, r, err, routes)
						return
					}
				}
			})
		}
		wg.Wait()
		t.Logf("round %d: %v", round, answered)
		if t.Failed() {
			return
		}
	}
	for s, want := range map[*alikeSite]bool{whole: false, divided: true} {
		if sharded := s.shards(t) > 0; sharded != want {
			t.Errorf("a table is divided: %t, want %t", sharded, want)
		}
	}
}

// alikeClients are the server names that clients send, for HTTP/2 behind h2.
var alikeClients = []string{"", "a.test", "b.test", "x.a.test", "zz.other", "h2:a.test", "h2:b.test", "h2:1.other"}

type alikeSite struct {
	*site
	clients map[string]*http.Transport // by scheme
}

func startAlike(t *testing.T, above int) *alikeSite {
	t.Helper()
	gateway := siteGateway(
		"{name: http, port: 80, protocol: HTTP}",
		"{name: of-a, port: 80, protocol: HTTP, hostname: '*.a.test'}",
		"{name: side, port: 81, protocol: HTTP, hostname: '*.test'}",
		"{name: https, port: 443, protocol: HTTPS, hostname: '*.test', tls: {certificateRefs: [{name: cert}]}}",
		"{name: https-a, port: 443, protocol: HTTPS, hostname: 'a.test', tls: {certificateRefs: [{name: cert}]}}",
		"{name: https-other, port: 443, protocol: HTTPS, hostname: 'zz.other', tls: {certificateRefs: [{name: cert}]}}",
		"{name: https-one, port: 443, protocol: HTTPS, hostname: '1.other', tls: {certificateRefs: [{name: cert}]}}")
	s := &alikeSite{site: startSite(t, map[string]string{
		"gateway.yaml": withShards(gateway),
		"cert.yaml":    mustSecret(t, "cert", "*.test", "*.a.test", "a.test", "*.other"),
		"keys.yaml":    keysSecret("keys", "alice", "k"),
		"shards.yaml":  strings.Replace(shardAbove(above), "spec: {", fmt.Sprintf("spec: {certificates: {onDemandAbove: %d}, ", above), 1),
	}, "--experimental"), clients: map[string]*http.Transport{}}
	for _, client := range alikeClients {
		sni, http2 := strings.CutPrefix(client, "h2:")
		config, err := clientTLS(sni, nil, "", new([]string))
		if err != nil {
			t.Fatal(err)
		}
		c := &http.Transport{
			MaxIdleConnsPerHost: 8, DisableCompression: true, TLSClientConfig: config, ForceAttemptHTTP2: http2,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				_, port, _ := net.SplitHostPort(address)
				n, err := strconv.Atoi(port)
				if err != nil {
					return nil, err
				}
				return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(s.address, strconv.Itoa(n+portOffset)))
			},
		}
		s.clients[client] = c
		t.Cleanup(c.CloseIdleConnections)
	}
	return s
}

// alikeRoutes returns random routes.
func alikeRoutes(random *rand.Rand, round int) string {
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	var b strings.Builder
	b.WriteString(siteRoute("round", fmt.Sprintf("round-%d.example", round), "v1"))
	for n := range 3 + random.IntN(60) {
		var hosts []string
		for range 1 + random.IntN(2) {
			if h := pick(alikeHosts...); h != "" && !slices.Contains(hosts, strconv.Quote(h)) {
				hosts = append(hosts, strconv.Quote(h))
			}
		}
		var rules []string
		for range 1 + random.IntN(2) {
			rules = append(rules, alikeRule(random, pick))
		}
		text := siteRules(fmt.Sprintf("r%d", n), strings.Join(hosts, ", "), strings.Join(rules, "\n"))
		if of := pick("", "", "http", "side", "https", "https-a", "of-a"); of != "" {
			text = strings.Replace(text, "name: gw", "name: gw, sectionName: "+of, 1)
		}
		b.WriteString(text)
		if random.IntN(6) == 0 {
			b.WriteString(alikePolicy(fmt.Sprintf("of-r%d", n), fmt.Sprintf("kind: HTTPRoute, name: r%d", n), pick))
		}
	}
	for _, of := range []string{"", "http", "side", "https", "https-a", "of-a", "https-other"} {
		if of == "" && random.IntN(2) == 0 {
			b.WriteString(alikePolicy("of-gateway", onGateway, pick))
		} else if of != "" && random.IntN(5) == 0 {
			b.WriteString(alikePolicy("of-listener-"+of, onGateway+", sectionName: "+of, pick))
		}
	}
	return b.String()
}

// alikePolicy returns a random policy of who may pass.
func alikePolicy(name, target string, pick func(...string) string) string {
	rules := pick(
		needsKeys, needsKeys+"\nauthorization: {get: {methods: [GET]}}",
		"authorization: {get: {methods: [GET, HEAD]}}", "authorization: {x: {when: request.path.startsWith('/x'), headers: {v: ['1']}}}",
		"authentication: {none: {apiKey: {secretRef: {name: nonesuch}}}}", "authentication: {all: {anonymous: {}}}", needsOffice,
	)
	switch layer := pick("", "defaults", "overrides"); {
	case layer == "":
		return authPolicy(name, target, rules)
	case pick("", "", "", "open") == "open":
		return authPolicy(name, target, layer+": {}")
	default:
		return authPolicy(name, target, layer+":\n"+indent(pick("strategy: atomic\n", "strategy: merge\n")+rules))
	}
}

func alikeRule(random *rand.Rand, pick func(...string) string) string {
	kind := pick("PathPrefix", "PathPrefix", "Exact", "RegularExpression")
	match := fmt.Sprintf("path: {type: %s, value: %q}", kind, pick("/", "/", "/x", "/x/y", "/y"))
	match += pick("", "", `, headers: [{name: v, value: "1"}]`, `, queryParams: [{name: q, value: "1"}]`, ", method: POST")
	filters := []string{pick("", "",
		`{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-set, value: s}], add: [{name: v, value: more}], remove: [x-gone]}}`,
		`{type: RequestMirror, requestMirror: {backendRef: {name: v2, port: 8080}}}`,
	), pick("", "",
		fmt.Sprintf(`{type: ResponseHeaderModifier, responseHeaderModifier: {add: [{name: x-rule, value: "%d"}]}}`, random.IntN(1000)),
	)}
	backends := fmt.Sprintf("backendRefs: [{name: %s, port: 8080}]", pick("v1", "v1", "v2", "v2", "missing"))
	switch {
	case random.IntN(6) == 0:
		filters = append(filters, pick(
			`{type: RequestRedirect, requestRedirect: {hostname: b.test, statusCode: 301}}`,
			`{type: RequestRedirect, requestRedirect: {scheme: https, statusCode: 302}}`,
			`{type: RequestRedirect, requestRedirect: {port: 81, statusCode: 302}}`))
		backends = "backendRefs: []"
	case kind == "PathPrefix":
		filters = append(filters, pick("", "",
			`{type: URLRewrite, urlRewrite: {hostname: c.a.test}}`,
			`{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /z}}}`))
	}
	filters = slices.DeleteFunc(filters, func(f string) bool { return f == "" })
	more := pick("", "", "", "\n  retry: {attempts: 1, codes: [503]}", "\n  timeouts: {request: 10s}", "\n  sessionPersistence: {sessionName: s}")
	return fmt.Sprintf("- matches: [{%s}]\n  filters: [%s]\n  %s%s", match, strings.Join(filters, ", "), backends, more)
}

// alikeRequest is a request for both.
type alikeRequest struct {
	client, url, host, method string
	headers                   http.Header
}

func (r *alikeRequest) String() string {
	return fmt.Sprintf("%s %s of host %q by %q with %v", r.method, r.url, r.host, r.client, r.headers)
}

func newAlikeRequest(random *rand.Rand) *alikeRequest {
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	host := strings.Replace(pick(alikeHosts...), "*", pick("a", "zz", "1", "q.r", "c", "b"), 1)
	host = strings.Map(func(c rune) rune {
		if random.IntN(8) == 0 {
			return []rune(strings.ToUpper(string(c)))[0]
		}
		return c
	}, host)
	if host == "" {
		host = pick("nobody", "127.0.0.1", "[::1]")
	}
	r := &alikeRequest{host: host + pick("", "", "", ":80", ":81", ":8443", "."), method: pick("GET", "GET", "GET", "POST", "HEAD"), headers: http.Header{}}
	r.client = pick(alikeClients...)
	r.url = pick("http://gateway", "http://gateway", "http://gateway:81") + pick(alikePaths...) + pick("", "?key=k", "?q=1&key=k", "?q=2&q=1")
	if r.client != "" && random.IntN(2) == 0 {
		r.url = strings.Replace(strings.Replace(r.url, "http://", "https://", 1), ":81", "", 1)
	}
	for _, h := range []string{pick("", "v: 1", "v: 2"), pick("", "x-gone: 1"), pick("", "", "x-forwarded-host: a.test"),
		pick("", "", "x-envoy-gatehouse-shard: http-80/"+strconv.Itoa(random.IntN(128)), "X-Envoy-Gatehouse-Shard: side-81/3", "x-envoy-original-path: /x")} {
		if name, value, ok := strings.Cut(h, ": "); ok {
			r.headers.Set(name, value)
		}
	}
	return r
}

// alikeAnswer is what must be alike.
type alikeAnswer struct {
	Status  int
	Headers http.Header
	Body    string       `json:",omitempty"`
	Backend *echo.Answer `json:",omitempty"`
	Err     string       `json:",omitempty"`
}

func (a *alikeAnswer) text() string {
	text, _ := json.Marshal(a)
	return string(text)
}

func (s *alikeSite) answer(r *alikeRequest) *alikeAnswer {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.method, r.url, http.NoBody)
	if err != nil {
		return &alikeAnswer{Err: err.Error()}
	}
	req.Host, req.Header = r.host, maps.Clone(r.headers)
	res, err := s.clients[r.client].RoundTrip(req)
	if err != nil {
		return &alikeAnswer{Err: strings.ReplaceAll(err.Error(), s.address, "ADDRESS")}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return &alikeAnswer{Err: err.Error()}
	}
	a := &alikeAnswer{Status: res.StatusCode, Headers: res.Header}
	for _, name := range []string{"Date", "X-Envoy-Upstream-Service-Time", "Content-Length"} {
		a.Headers.Del(name)
	}
	for i, cookie := range a.Headers["Set-Cookie"] { // it has the address of a backend
		before, _, _ := strings.Cut(cookie, "=")
		_, after, _ := strings.Cut(cookie, ";")
		a.Headers["Set-Cookie"][i] = before + ";" + after
	}
	if !bytes.HasPrefix(body, []byte("{")) {
		a.Body = string(body)
		return a
	}
	if err := json.Unmarshal(body, &a.Backend); err != nil {
		a.Err = err.Error()
		return a
	}
	a.Backend.Remote, a.Backend.Attempt = "", 0
	for _, name := range []string{"X-Request-Id", "X-Forwarded-For", "X-Gatehouse-Hop"} {
		a.Backend.Headers.Del(name)
	}
	return a
}
