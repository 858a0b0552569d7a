package envoy

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// The client is whom proxies of known addresses tell of, by X-Forwarded-For alone. Others are believed nothing.
func TestEnvoyAccessTrustedAddresses(t *testing.T) {
	b := newBackend(t, "echo", ir.HTTP1, nil)
	only := netip.MustParsePrefix("192.0.2.1/32")
	allowed := &ir.Access{Conditions: []ir.AccessCondition{{Name: "a", Allow: []netip.Prefix{only}}}}
	peers := &ir.Access{Conditions: []ir.AccessCondition{{Name: "a", Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}}
	s := plain(rulesOn("*",
		&ir.Rule{Match: prefix("/peer"), Backends: to(b), Filters: ir.Filters{Access: peers}},
		&ir.Rule{Match: prefix("/"), Backends: to(b), Filters: ir.Filters{Access: allowed}}), b)
	s.listeners[0].Client.TrustedAddresses = []netip.Prefix{netip.MustParsePrefix("127.0.0.9/32"), netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")}
	r := s.start(t)
	const lies = "X-Forwarded-Proto: https\r\nX-Forwarded-Host: b.example\r\nX-Real-IP: 192.0.2.1\r\nX-Request-Id: a\r\nX-Envoy-Decorator-Operation: a\r\nX-Envoy-External-Address: 192.0.2.1\r\n"
	for what, c := range map[string]struct {
		peer, path, forwarded string
		want                  int
	}{
		"a proxy":                             {"127.0.0.9", "/", "192.0.2.1", 200},
		"a proxy behind proxies":              {"127.0.0.9", "/", "192.0.2.1, 10.1.1.1, 2001:db8::7", 200},
		"a client that lies to a proxy":       {"127.0.0.9", "/", "192.0.2.1, 192.0.2.2", 403},
		"a client that lies of a proxy":       {"127.0.0.9", "/", "192.0.2.1, 192.0.2.2, 10.1.1.1", 403},
		"a client that lies to the last one":  {"127.0.0.9", "/", "10.1.1.1, 192.0.2.1", 200},
		"nobody but proxies":                  {"127.0.0.9", "/", "10.1.1.1", 403},
		"a proxy that says nothing":           {"127.0.0.9", "/peer", "", 200},
		"a proxy that says something else":    {"127.0.0.9", "/peer", "192.0.2.1, unknown", 200},
		"something else where it matters":     {"127.0.0.9", "/", "192.0.2.1, unknown", 403},
		"a stranger":                          {"127.0.0.8", "/", "192.0.2.1", 403},
		"a stranger who says he is a proxy":   {"127.0.0.8", "/", "192.0.2.1, 10.1.1.1", 403},
		"a stranger who lies, is who he is":   {"127.0.0.8", "/peer", "192.0.2.1, 127.0.0.9", 200},
		"a proxy that tells of a port":        {"127.0.0.9", "/", "192.0.2.1:5678", 200},
		"proxies that tell of ports":          {"127.0.0.9", "/", "192.0.2.2, 192.0.2.1:5678,10.1.1.1:443 , [2001:db8::7]:1, 2001:db8::1", 200},
		"lies before ports":                   {"127.0.0.9", "/", "192.0.2.1, 192.0.2.2:1, 10.1.1.1:443", 403},
		"many ports":                          {"127.0.0.9", "/", "192.0.2.1:1, 10.1.1.1:1, 10.1.1.2:2, 10.1.1.3:3", 200},
		"more ports than are read":            {"127.0.0.9", "/", "192.0.2.1:1, 10.1.1.1:1, 10.1.1.2:2, 10.1.1.3:3, 10.1.1.4:4", 403},
		"a port alone":                        {"127.0.0.9", "/peer", "192.0.2.1, :5678", 200},
		"a proxy that tells of none, is none": {"127.0.0.9", "/", "", 403},
	} {
		more := lies
		if c.forwarded != "" {
			more += "X-Forwarded-For: " + c.forwarded + "\r\n"
		}
		a := r.raw(t, c.peer, "GET "+c.path+" HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n"+more+"\r\n")
		if a == nil || a.Status != c.want {
			t.Errorf("%s: %+v, want %d", what, a, c.want)
			continue
		}
		if a.Status != 200 {
			continue
		}
		h := a.Seen.Header
		if got := h.Get("X-Forwarded-Proto"); got != "http" {
			t.Errorf("%s: X-Forwarded-Proto is %q", what, got)
		}
		if got := strings.Join(h.Values("X-Forwarded-For"), ","); !strings.HasSuffix(got, c.peer) {
			t.Errorf("%s: X-Forwarded-For is %q", what, got)
		}
		for _, name := range []string{"X-Forwarded-Host", "X-Real-Ip", "X-Envoy-Decorator-Operation", "X-Envoy-External-Address"} {
			if h.Get(name) != "" {
				t.Errorf("%s: %s is believed", what, name)
			}
		}
		if h.Get("X-Request-Id") == "a" {
			t.Errorf("%s: the request's ID is the client's", what)
		}
	}
}

// The header of a CDN is believed of proxies of known addresses alone, and X-Forwarded-For of nobody then.
func TestEnvoyAccessAddressHeader(t *testing.T) {
	b := newBackend(t, "echo", ir.HTTP1, nil)
	allowed := &ir.Access{Conditions: []ir.AccessCondition{{Name: "a", Allow: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}}}}
	peers := &ir.Access{Conditions: []ir.AccessCondition{{Name: "a", Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}}
	s := plain(rulesOn("*",
		&ir.Rule{Match: prefix("/peer"), Backends: to(b), Filters: ir.Filters{Access: peers}},
		&ir.Rule{Match: prefix("/"), Backends: to(b), Filters: ir.Filters{Access: allowed}}), b)
	s.listeners[0].Client.TrustedAddresses = []netip.Prefix{netip.MustParsePrefix("127.0.0.9/32"), netip.MustParsePrefix("10.0.0.0/8")}
	s.listeners[0].Client.AddressHeader = "cf-connecting-ip"
	r := s.start(t)
	for what, c := range map[string]struct {
		peer, path, headers string
		want                int
	}{
		"the CDN":                            {"127.0.0.9", "/", "CF-Connecting-IP: 192.0.2.1", 200},
		"the CDN, and a lie beside":          {"127.0.0.9", "/", "CF-Connecting-IP: 192.0.2.2\r\nX-Forwarded-For: 192.0.2.1", 403},
		"the CDN, which has lists of others": {"127.0.0.9", "/", "CF-Connecting-IP: 192.0.2.1\r\nX-Forwarded-For: 192.0.2.2, 10.0.0.1", 200},
		"the CDN without its header":         {"127.0.0.9", "/", "X-Forwarded-For: 192.0.2.1", 403},
		"without it, it is the client":       {"127.0.0.9", "/peer", "X-Forwarded-For: 192.0.2.1", 200},
		"the CDN, with what is no address":   {"127.0.0.9", "/peer", "CF-Connecting-IP: unknown", 200},
		"the CDN, with nothing":              {"127.0.0.9", "/peer", "CF-Connecting-IP: ", 200},
		"the CDN, with a port":               {"127.0.0.9", "/", "CF-Connecting-IP: 192.0.2.1:5678", 200},
		"the header twice":                   {"127.0.0.9", "/", "CF-Connecting-IP: 192.0.2.1\r\nCF-Connecting-IP: 192.0.2.2", 403},
		"a stranger":                         {"127.0.0.8", "/", "CF-Connecting-IP: 192.0.2.1", 403},
		"a stranger who says both":           {"127.0.0.8", "/", "CF-Connecting-IP: 192.0.2.1\r\nX-Forwarded-For: 192.0.2.1, 127.0.0.9", 403},
		"a stranger is who he is":            {"127.0.0.8", "/peer", "CF-Connecting-IP: 192.0.2.1", 200},
	} {
		a := r.raw(t, c.peer, "GET "+c.path+" HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n"+c.headers+"\r\n\r\n")
		if a == nil || a.Status != c.want {
			t.Errorf("%s: %+v, want %d", what, a, c.want)
			continue
		}
		if a.Status != 200 {
			continue
		}
		if got := a.Seen.Header.Get("Cf-Connecting-Ip"); got != "" {
			t.Errorf("%s: the backend gets the header, %q", what, got)
		}
		if got := strings.Join(a.Seen.Header.Values("X-Forwarded-For"), ","); !strings.HasSuffix(got, c.peer) {
			t.Errorf("%s: X-Forwarded-For is %q", what, got)
		}
	}
}
