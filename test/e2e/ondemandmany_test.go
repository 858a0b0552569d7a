//go:build linux

package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// TestOnDemandMany protects what one more listener costs a port with 2,500 of them, each with a certificate and
// a route of its own: nothing that grows with their number, for the proxy nor for anybody's connections.
func TestOnDemandMany(t *testing.T) {
	slow.Skip(t)
	const n = 2500
	set := func(i int) string {
		return fmt.Sprintf(`---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: set-%d, namespace: %s}
spec:
  parentRef: {name: gw}
  listeners: [{name: https, port: 443, protocol: HTTPS, hostname: h%[1]d.test, tls: {certificateRefs: [{name: c%[1]d}]}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: of-%[1]d, namespace: %[2]s}
spec:
  parentRefs: [{kind: ListenerSet, name: set-%[1]d}]
  rules: [{backendRefs: [{name: v1, port: 8080}]}]
`, i, siteNamespace) + mustSecret(t, fmt.Sprintf("c%d", i), fmt.Sprintf("h%d.test", i))
	}
	var all strings.Builder
	for i := range n {
		all.WriteString(set(i))
	}
	start := time.Now()
	s := startSite(t, map[string]string{
		"gateway.yaml": siteGateway("{name: http, port: 80, protocol: HTTP}") + "  allowedListeners: {namespaces: {from: Same}}\n",
		"sets.yaml":    all.String(),
	})
	serve := func(i int) error {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		host := fmt.Sprintf("h%d.test", i)
		if got, want := s.tried(ctx, 443, host, host, ""), host+" 200 v1"; got != want {
			return fmt.Errorf("%q, want %q", got, want)
		}
		return nil
	}
	var wg sync.WaitGroup
	for part := range 8 {
		wg.Go(func() {
			for i := part; i < n; i += 8 {
				if err := poll(time.Minute, func() error { return serve(i) }); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	memory, _ := s.envoyCost(t)
	t.Logf("%s until each host serves; Envoy has allocated %d MB", time.Since(start), memory>>20)

	var dials atomic.Int64
	var served []string
	client := &http.Client{Timeout: callTimeout, Transport: &http.Transport{
		DialTLSContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			dials.Add(1)
			return dialTLS(ctx, net.JoinHostPort(s.address, strconv.Itoa(443+portOffset)), "h7.test", &served)
		},
	}}
	t.Cleanup(client.CloseIdleConnections)
	keep := func() {
		res, err := client.Get("https://h7.test/")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(res.Status, err)
		}
	}
	keep()
	const adds = 20
	traffic := func() int64 {
		return s.envoyStats(t, "control_plane|cluster.*_rx_bytes")["cluster.gatehouse_xds.upstream_cx_rx_bytes_total"]
	}
	before, bytes := s.sent(t), traffic()
	_, was := s.envoyCost(t)
	for i := range adds {
		s.write(t, fmt.Sprintf("more-%d.yaml", i), set(n+i))
		eventually(t, siteTimeout, func() error { return serve(n + i) })
		keep()
	}
	_, is := s.envoyCost(t)
	t.Logf("one more: %d resources, %d bytes, %s of Envoy's main thread with its handshakes", (s.sent(t)-before)/adds, (traffic()-bytes)/adds, (is-was)/adds)
	if n := dials.Load(); n != 1 {
		t.Errorf("%d connections in place of one", n)
	}
	if sent := (s.sent(t) - before) / adds; sent > 4 { // a scope, its routes, the certificate
		t.Errorf("one more listener is %d resources", sent)
	}
}
