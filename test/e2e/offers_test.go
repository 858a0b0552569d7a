//go:build linux

package e2e

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/http2"
)

// TestOffers protects clients from what a listener says that it can and can't do: browsers send a
// WebSocket over the connection that they have where HTTP/2 or HTTP/3 offers it (RFC 8441, 9220).
func TestOffers(t *testing.T) {
	t.Parallel()
	s := startSite(t, secureSite(t, "home.example"), "--http3")
	f := s.framer(t)
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		settings, ok := frame.(*http2.SettingsFrame)
		if !ok {
			continue
		}
		if v, said := settings.Value(http2.SettingEnableConnectProtocol); said && v != 0 {
			t.Error("HTTP/2 offers WebSockets")
		}
		break
	}
	call := &clientCall{url: &url.URL{Scheme: "https", Host: "home.example", Path: "/"}, address: s.address, http3: true}
	config, err := call.tlsConfig(new([]string))
	if err != nil {
		t.Fatal(err)
	}
	transport := call.quic(config)
	defer func() { _ = transport.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
	defer cancel()
	config.NextProtos = []string{"h3"}
	conn, err := transport.Dial(ctx, "", config, transport.QUICConfig)
	if err != nil {
		t.Fatal(err)
	}
	client := transport.NewClientConn(conn)
	select {
	case <-client.ReceivedSettings():
		if client.Settings().EnableExtendedConnect {
			t.Error("HTTP/3 offers WebSockets")
		}
	case <-ctx.Done():
		t.Error("HTTP/3 has no settings")
	}
	// HTTP/1.1 offers nothing, and has them.
	for _, u := range []string{"http://home.example/", "https://home.example/"} {
		u, _ := url.Parse(u)
		o, err := (&clientCall{method: http.MethodGet, url: u, address: s.address, websocket: "hello"}).do(ctx)
		if err != nil || o.status != http.StatusSwitchingProtocols || o.answer.Body != "hello" {
			t.Errorf("a WebSocket at %s: %+v, %v", u, o, err)
		}
	}
}

// TestHosts protects routes for a wildcard and for all hosts from requests whose Host says two
// things, or is none: backends would take another one than the route was chosen by.
func TestHosts(t *testing.T) {
	t.Parallel()
	s := startSite(t, map[string]string{"any.yaml": siteRoute("any", `"*.home.example"`, "v2") + strings.Replace(siteRoute("all", "x", "v2"), "  hostnames: [x]\n", "", 1)})
	s.serves(t, "any.example", "v2")
	s.serves(t, "a.home.example", "v2")
	for _, c := range []struct {
		hosts  string // lines
		status int
	}{
		{"Host: home.example", 200},
		{"Host: HOME.example:8080", 200},
		{"Host: home.example.", 200},
		{"Host: home.example.:80", 200},
		{"Host: under_score.home.example", 200},
		{"Host: 192.0.2.1:80", 200},
		{"Host: [2001:db8::1]", 200},
		{"Host: [2001:db8::1]:80", 200},
		{"Host: home.example\r\nHost: home.example", 400},
		{"Host: other.example\r\nHost: home.example", 400},
		{"Host: other.example\r\nHost: a.home.example", 400},
		{"Host: other.example,a.home.example", 400},
		{"Host:", 400},
		{"X: y", 400},
		{"Host: a b.home.example", 400},
		{"Host: user@a.home.example", 400},
		{"Host: a.home.example:80:80", 400},
		{"Host: a.home.example:x", 400},
		{"Host: a..home.example", 400},
		{"Host: .home.example", 400},
		{"Host: a.home.example..", 400},
		{"Host: %61.home.example", 400},
		{"Host: *.home.example", 400},
		{"Host: a;b.home.example", 400},
		{"Host: [2001:db8::1", 400},
	} {
		if a := s.raw(t, "GET / HTTP/1.1\r\nConnection: close\r\n"+c.hosts+"\r\n\r\n"); a.status != c.status {
			t.Errorf("%q: %d, want %d", c.hosts, a.status, c.status)
		}
	}
	for host, want := range map[string]string{"home.example": "200", "a.home.example:80": "200", "other.example,a.home.example": "400", "*": "400"} {
		f := s.framer(t)
		if err := f.open(true, get(host, "/")...); err != nil {
			t.Fatal(err)
		}
		if got := f.answer(); got != want {
			t.Errorf("HTTP/2, %q: %s, want %s", host, got, want)
		}
	}
}

// TestHTTP10 protects clients of HTTP/1.0: they are served where somebody has said so, and
// refused elsewhere.
func TestHTTP10(t *testing.T) {
	t.Parallel()
	const request = "GET / HTTP/1.0\r\nHost: home.example\r\n\r\n"
	refusing := startSite(t, nil)
	if a := refusing.raw(t, request); a.status != http.StatusUpgradeRequired {
		t.Errorf("not served: %d, want 426", a.status)
	}
	s := startSite(t, map[string]string{"all.yaml": strings.Replace(siteRoute("all", "x", "v2"), "  hostnames: [x]\n", "", 1)}, "--http10")
	s.serves(t, "any.example", "v2")
	if a := s.raw(t, request); a.status != http.StatusOK || !strings.Contains(a.body, `"v1"`) {
		t.Errorf("served: %d %s", a.status, a.body)
	}
	if a := s.raw(t, "GET / HTTP/1.0\r\n\r\n"); a.status != http.StatusOK || !strings.Contains(a.body, `"v2"`) {
		t.Errorf("without a host: %d %s", a.status, a.body)
	}
	if a := s.raw(t, "GET / HTTP/1.1\r\n\r\n"); a.status != http.StatusBadRequest {
		t.Errorf("HTTP/1.1 without a host: %d, want 400", a.status)
	}
}
