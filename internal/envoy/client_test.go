package envoy

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// raw sends bytes over a connection from an address of this machine, and returns
// the answer, nil where there is none.
func (r *running) raw(t *testing.T, from, bytes string) *answered {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := d.DialContext(t.Context(), "tcp", r.addrs["http-80"])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	_, _ = io.WriteString(conn, bytes)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		if nerr := net.Error(nil); errors.As(err, &nerr) && nerr.Timeout() {
			t.Fatalf("%q: no answer, and not closed", bytes)
		}
		return nil
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	a := &answered{Status: resp.StatusCode, Header: resp.Header, Body: string(body)}
	_ = json.Unmarshal(body, &a.Seen)
	return a
}

// Who the client is, in every arrangement of proxies.
func TestEnvoyClientAddress(t *testing.T) {
	const get = "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n"
	const v1 = "PROXY TCP4 198.51.100.7 203.0.113.1 5555 80\r\n"
	v2 := "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c" + "\xc6\x33\x64\x08" + "\xcb\x00\x71\x01" + "\x15\xb3\x00\x50"
	for _, c := range []struct {
		name   string
		client ir.Client
		send   string
		// What the backend sees; the whole answer is missing where forwarded is "".
		forwarded, proto, host string
		external               string // whom Envoy takes for the client
	}{
		{
			"direct", ir.Client{}, get + "\r\n",
			"127.0.0.9", "http", "", "127.0.0.9",
		},
		{
			"direct, lies", ir.Client{}, get + "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: b.example\r\n\r\n",
			"192.0.2.1,127.0.0.9", "http", "", "127.0.0.9",
		},
		{
			"PROXY 1", ir.Client{ProxyProtocol: true}, v1 + get + "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\n\r\n",
			"192.0.2.1,198.51.100.7", "http", "", "198.51.100.7",
		},
		{
			"PROXY 2", ir.Client{ProxyProtocol: true}, v2 + get + "\r\n",
			"198.51.100.8", "http", "", "198.51.100.8",
		},
		{
			"PROXY, IPv6", ir.Client{ProxyProtocol: true}, "PROXY TCP6 2001:db8::7 2001:db8::1 5555 80\r\n" + get + "\r\n",
			"2001:db8::7", "http", "", "2001:db8::7",
		},
		{
			"PROXY of a health check", ir.Client{ProxyProtocol: true}, "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00" + get + "\r\n",
			"127.0.0.9", "http", "", "127.0.0.9",
		},
		{name: "no PROXY", client: ir.Client{ProxyProtocol: true}, send: get + "\r\n"},
		{name: "broken PROXY", client: ir.Client{ProxyProtocol: true}, send: "PROXY TCP4 nonsense\r\n" + get + "\r\n"},
		{
			"one hop", ir.Client{TrustedHops: 1}, get + "X-Forwarded-For: 192.0.2.1, 192.0.2.2\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: b.example\r\n\r\n",
			"192.0.2.1, 192.0.2.2,127.0.0.9", "https", "b.example", "192.0.2.2",
		},
		{
			"two hops", ir.Client{TrustedHops: 2}, get + "X-Forwarded-For: 192.0.2.1, 192.0.2.2\r\n\r\n",
			"192.0.2.1, 192.0.2.2,127.0.0.9", "http", "", "192.0.2.1",
		},
		{
			"a hop that says nothing", ir.Client{TrustedHops: 1}, get + "\r\n",
			"127.0.0.9", "http", "", "127.0.0.9",
		},
		{
			"fewer than trusted", ir.Client{TrustedHops: 2}, get + "X-Forwarded-For: 192.0.2.2\r\n\r\n",
			"192.0.2.2,127.0.0.9", "http", "", "127.0.0.9",
		},
		{
			"a hop that says the port", ir.Client{TrustedHops: 1}, get + "X-Forwarded-For: 192.0.2.1:1\r\nX-Forwarded-For: 192.0.2.2:5678\r\n\r\n",
			"192.0.2.1:1,192.0.2.2,127.0.0.9", "http", "", "192.0.2.2",
		},
		{
			"hops that say ports", ir.Client{TrustedHops: 2}, get + "X-Forwarded-For: 192.0.2.1,[2001:DB8::7]:5678, 192.0.2.2:1\r\n\r\n",
			"192.0.2.1,2001:DB8::7, 192.0.2.2:1,127.0.0.9", "http", "", "2001:db8::7",
		},
		{
			"an address that ends as if by a port", ir.Client{TrustedHops: 1}, get + "X-Forwarded-For: 192.0.2.1:1, 2001:db8::7:80\r\n\r\n",
			"192.0.2.1:1,2001:db8::7:80,127.0.0.9", "http", "", "2001:db8::7:80",
		},
		{
			"fewer than trusted, with a port", ir.Client{TrustedHops: 3}, get + "X-Forwarded-For: 192.0.2.2:1\r\n\r\n",
			"192.0.2.2:1,127.0.0.9", "http", "", "127.0.0.9",
		},
		{
			"one hop and PROXY", ir.Client{TrustedHops: 1, ProxyProtocol: true}, v1 + get + "X-Forwarded-For: 192.0.2.1\r\n\r\n",
			"192.0.2.1,198.51.100.7", "http", "", "192.0.2.1",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBackend(t, "echo", ir.HTTP1, nil)
			s := plain(rulesOn("*", &ir.Rule{Match: prefix("/"), Backends: to(b)}), b)
			s.listeners[0].Client = c.client
			s.adjust = func(m *hcmv3.HttpConnectionManager) {
				m.HttpFilters = m.HttpFilters[1:] // it would remove X-Envoy-External-Address
			}
			a := s.start(t).raw(t, "127.0.0.9", c.send)
			if c.forwarded == "" {
				if a != nil || len(b.requests()) > 0 {
					t.Errorf("answered: %+v", a)
				}
				return
			}
			if a == nil {
				t.Fatal("no answer")
			}
			h := a.Seen.Header
			for name, want := range map[string]string{
				"X-Forwarded-For": c.forwarded, "X-Forwarded-Proto": c.proto, "X-Forwarded-Host": c.host,
				"X-Envoy-External-Address": c.external,
			} {
				if got := strings.Join(h.Values(name), " and "); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
		})
	}
}
