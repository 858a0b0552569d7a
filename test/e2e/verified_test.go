//go:build linux

package e2e

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// keptClients are clients with a connection each, over which they ask again and again.
type keptClients struct {
	stop     context.CancelFunc
	running  sync.WaitGroup
	mu       sync.Mutex
	statuses map[int]int // of answers without credentials
}

// keepAsking opens connections of both versions of HTTP with a key, and then asks over them without one. Where
// they are ended, new ones are opened.
func keepAsking(t *testing.T, as *tlsClient, key string) *keptClients {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	k := &keptClients{stop: stop, statuses: map[int]int{}}
	t.Cleanup(func() { stop(); k.running.Wait() })
	for i := range 12 {
		transport := &http.Transport{
			TLSClientConfig: as.config.Clone(), ForceAttemptHTTP2: i%2 == 0, MaxConnsPerHost: 1,
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, as.address)
			},
		}
		ask := func(query string) (int, error) {
			ctx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+as.config.ServerName+"/"+query, nil)
			if err != nil {
				return 0, err
			}
			res, err := transport.RoundTrip(req)
			if err != nil {
				return 0, err
			}
			_, _ = io.Copy(io.Discard, res.Body)
			return res.StatusCode, res.Body.Close()
		}
		if status, err := ask("?key=" + key); err != nil || status != http.StatusOK {
			t.Fatalf("with the key: %d, %v", status, err)
		}
		k.running.Go(func() {
			defer transport.CloseIdleConnections()
			for ctx.Err() == nil {
				status, _ := ask("")
				k.mu.Lock()
				k.statuses[status]++
				k.mu.Unlock()
				select {
				case <-ctx.Done():
				case <-time.After(2 * time.Millisecond):
				}
			}
		})
	}
	return k
}

// seen returns the answers so far.
func (k *keptClients) seen() map[int]int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.statuses)
}

// TestCertificatesInPlaceOfAPolicy protects what an AuthPolicy guards when certificates of clients take its place in
// one edit, and the other way round: no request passes without either, over connections from before too.
func TestCertificatesInPlaceOfAPolicy(t *testing.T) {
	t.Parallel()
	const asks = `  tls: {frontend: {default: {validation: {caCertificateRefs: [{group: "", kind: ConfigMap, name: clients}]}}}}
`
	gateway := withShards(siteGateway("{name: http, port: 80, protocol: HTTP}",
		"{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}",
		"{name: own, port: 443, protocol: HTTPS, hostname: own.example, tls: {certificateRefs: [{name: cert}]}}"))
	policy := authPolicy("robots", onGateway, needsKeys)
	const anyone = "authentication: {anyone: {anonymous: {}}}"
	open := authPolicy("open", "kind: HTTPRoute, name: open", anyone) + authPolicy("home", onHome, anyone)
	var many strings.Builder
	for i := range 12 {
		many.WriteString(siteRoute(fmt.Sprintf("many-%d", i), fmt.Sprintf("h%d.example", i), "v1"))
	}
	for name, settings := range map[string]string{"whole": shardAbove(1000), "divided": shardAbove(4), "on demand": onDemandAbove(1)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startSite(t, map[string]string{
				"cert.yaml": mustSecret(t, "cert", "*.example"), "keys.yaml": keysSecret("keys", "alice", "k1"),
				"clients.yaml": caManifest(clientAuthority, siteNamespace, "clients"), "shards.yaml": settings,
				"many.yaml":    many.String() + siteRoute("own", "own.example", "v1") + siteRoute("open", "open.example", "v1"),
				"gateway.yaml": gateway + policy + open,
			})
			s.conditions(t, "Gateway gw", "https", "Programmed=True")
			s.says(t, "AuthPolicy robots", "The policy is in force, except where others take its place")
			for _, host := range []string{"h3.example", "own.example"} {
				t.Run(host, func(t *testing.T) {
					joe := s.client(t, host, 443).shows(t, clientWith(clientAuthority, func(*x509.Certificate) {}))
					k := keepAsking(t, s.client(t, host, 443), "k1")
					eventually(t, siteTimeout, func() error {
						if n := k.seen()[http.StatusUnauthorized]; n < 24 {
							return fmt.Errorf("%d are refused", n)
						}
						return nil
					})
					was := keepAsking(t, s.client(t, "open.example", 443), "k1") // guarded by nothing now
					s.write(t, "gateway.yaml", gateway+asks+open)
					eventually(t, siteTimeout, func() error { _, _, err := joe.works(); return err })
					eventually(t, siteTimeout, func() error {
						if err := s.client(t, host, 443).refused(); err != nil {
							return err
						}
						for _, of := range []*keptClients{k, was} {
							if of.seen()[http.StatusForbidden] == 0 {
								return fmt.Errorf("no connection from before is refused: %v", of.seen())
							}
						}
						return nil
					})
					was.stop()

					// And back: who has no certificate goes on trying.
					s.write(t, "gateway.yaml", gateway+policy+open)
					eventually(t, siteTimeout, func() error {
						o, _, err := s.client(t, host, 443).get()
						if err == nil && o.status != http.StatusUnauthorized {
							err = fmt.Errorf("status %d", o.status)
						}
						return err
					})
					n := k.seen()[http.StatusUnauthorized]
					eventually(t, siteTimeout, func() error {
						if k.seen()[http.StatusUnauthorized] < n+24 {
							return fmt.Errorf("%v, after %d", k.seen(), n)
						}
						return nil
					})
					k.stop()
					if seen := k.seen(); seen[http.StatusOK] > 0 {
						t.Errorf("requests without credentials have passed: %v", seen)
					} else {
						t.Logf("answers: %v, and of what is open: %v", seen, was.seen())
					}
				})
			}
		})
	}
}
