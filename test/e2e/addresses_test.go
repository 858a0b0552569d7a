//go:build linux

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestAddressesMove protects a Gateway that moves between one address and all
// from an outage: Envoy still has the old socket when it is to open the new one.
func TestAddressesMove(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil)
	const url = "http://home.example:977/" // a port of its own: 0.0.0.0 meets everybody's
	at := func(address string) string {
		return strings.Replace(siteGateway("{name: http, port: 977, protocol: HTTP}"),
			"  listeners:", "  addresses: [{type: IPAddress, value: "+address+"}]\n  listeners:", 1)
	}
	s.write(t, "gateway.yaml", at(s.address))
	s.answers(t, url, http.StatusOK)
	for _, address := range []string{"0.0.0.0", s.address, "0.0.0.0", s.address} {
		s.write(t, "gateway.yaml", at(address))
		var down time.Duration // the longest time without an answer
		last := time.Now()
		eventually(t, siteTimeout, func() error {
			if _, err := s.call(url); err == nil {
				down = max(down, time.Since(last))
				last = time.Now()
			}
			report, err := s.status()
			if err != nil {
				return err
			}
			return (&step{
				Conditions: "Gateway gw", Addresses: &[]string{address}, Are: []string{"Programmed=True"},
			}).checkStatus(report, siteNamespace)
		})
		s.answers(t, url, http.StatusOK)
		if down = max(down, time.Since(last)); down > 2*time.Second {
			t.Errorf("no answers for %s after the move to %s", down, address)
		}
	}
}

// TestBackendKeepsItsPort protects routes to a backend from another Gateway that asks for its port,
// by a slip: that one alone is told, and no request is lost.
func TestBackendKeepsItsPort(t *testing.T) {
	t.Parallel()
	backend := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(backend.Close)
	port := backend.Listener.Addr().(*net.TCPAddr).Port
	s := startSite(t, map[string]string{"app.yaml": httpBackend.leading(siteNamespace, "app", port) + siteRoute("app", "app.example", "app")})
	s.answers(t, "http://app.example/", http.StatusOK)
	l := startLoad(t, s.listener(), loadClients, func() string { return "app.example" })
	s.write(t, "mistyped.yaml", strings.NewReplacer("name: gw,", "name: mistyped,", "  listeners:", "  addresses: [{value: 127.0.0.1}]\n  listeners:").
		Replace(siteGateway(fmt.Sprintf("{name: http, port: %d, protocol: HTTP}", port-portOffset))))
	s.conditions(t, "Gateway mistyped", "http", "Accepted=False/PortUnavailable")
	s.conditions(t, "HTTPRoute app", "gw", "ResolvedRefs=True")
	l.more(t, 50)
	if wrong := l.end(); len(wrong) > 0 {
		t.Errorf("of %d requests, not 200: %v", l.sent.Load(), wrong)
	}
}
