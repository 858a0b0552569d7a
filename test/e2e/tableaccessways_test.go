//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
)

// TestEveryWayIntoADividedTable protects what stands in front of a table in shards from requests of other kinds
// than most: upgrades, HTTP/2 and HTTP/3, hosts as they may be written, and what chooses the shard, said by a client.
func TestEveryWayIntoADividedTable(t *testing.T) {
	t.Parallel()
	s := startDivided(t, map[string]string{
		"gateway.yaml": withShards(siteGateway("{name: http, port: 80, protocol: HTTP}",
			`{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}], options: {gatehouse.dev/http3: "true"}}}`)),
		"cert.yaml": mustSecret(t, "cert", "*.example"), "keys.yaml": keysSecret("keys", "alice", "k0"),
		// Whoever comes past an exact host meets this one.
		"wild.yaml": siteRules("wild", "'*.example'", "- backendRefs: [{name: v2, port: 8080}]") + authPolicy("open", "kind: HTTPRoute, name: wild", "authentication: {all: {anonymous: {}}}"),
	})
	s.write(t, "policy.yaml", authPolicy("robots", onGateway, needsKeys))
	s.answers(t, "http://h1.example/", http.StatusUnauthorized)
	s.serves(t, "nobody.example", "v2")
	for name, call := range map[string]clientCall{
		"HTTP/1": {url: &url.URL{Scheme: "http"}}, "HTTP/2": {url: &url.URL{Scheme: "http"}, http2: true},
		"HTTP/1 over TLS": {url: &url.URL{Scheme: "https"}}, "HTTP/2 over TLS": {url: &url.URL{Scheme: "https"}, http2: true}, "HTTP/3": {url: &url.URL{Scheme: "https"}, http3: true},
		"WebSocket": {url: &url.URL{Scheme: "http"}, websocket: "hello"}, "WebSocket over TLS": {url: &url.URL{Scheme: "https"}, websocket: "hello"},
	} {
		for _, host := range []string{"h1.example", "H2.Example", "h3.EXAMPLE:80", "h4.example.", "h5.example.:80"} {
			for key, status := range map[string]int{"": http.StatusUnauthorized, "key=wrong": http.StatusUnauthorized, "key=k0": http.StatusOK} {
				c := call
				c.method, c.address, c.sni = http.MethodGet, s.address, new("nobody.example")
				c.url = &url.URL{Scheme: call.url.Scheme, Host: "h1.example", Path: "/", RawQuery: key}
				c.headers = map[string]string{"Host": host, "X-Envoy-Gatehouse-Shard": "http-80/0"}
				if c.websocket != "" && status == http.StatusOK {
					status = http.StatusSwitchingProtocols
				}
				o, err := c.do(t.Context())
				if err != nil || o.status != status {
					t.Errorf("%s, host %s, %q: %+v, %v, want %d", name, host, key, o, err, status)
				}
			}
		}
	}
	for name, headers := range map[string][]string{
		"no upgrade":     get("h1.example", "/"),
		"two shards":     append(get("h1.example", "/"), "x-envoy-gatehouse-shard", "http-80/0", "x-envoy-gatehouse-shard", "http-80/1"),
		"a host besides": append(get("h1.example", "/"), "host", "nobody.example"),
	} {
		f := s.framer(t)
		if err := f.open(true, headers...); err != nil {
			t.Fatal(err)
		}
		if got := f.answer(); got != fmt.Sprint(http.StatusUnauthorized) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
