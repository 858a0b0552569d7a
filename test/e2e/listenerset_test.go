//go:build linux

package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// TestListenerSetsComeAndGo protects the connections of one team from what others
// do: while HTTPS listeners of ListenerSets are added to the port and removed
// again, requests over a connection to another listener are all answered, and the
// connection stays.
func TestListenerSetsComeAndGo(t *testing.T) {
	t.Parallel()
	const rounds = 20
	secret, err := secretManifest(siteNamespace, "cert", "", "*.sets.test")
	if err != nil {
		t.Fatal(err)
	}
	listener := func(host string) string {
		return fmt.Sprintf("{name: https, port: 443, protocol: HTTPS, hostname: %s, tls: {certificateRefs: [{name: cert}]}}", host)
	}
	set := func(name string) string {
		return fmt.Sprintf(`---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: %s, namespace: %s}
spec:
  parentRef: {name: gw}
  listeners: [%s]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: on-%[1]s, namespace: %[2]s}
spec:
  parentRefs: [{kind: ListenerSet, name: %[1]s}]
  rules: [{backendRefs: [{name: v1, port: 8080}]}]
`, name, siteNamespace, listener(name+".sets.test"))
	}
	s := startSite(t, map[string]string{
		"gateway.yaml": siteGateway("{name: http, port: 80, protocol: HTTP}") +
			"  allowedListeners: {namespaces: {from: Same}}\n",
		"secret.yaml": secret,
		"keep.yaml":   set("keep"),
	})

	address := net.JoinHostPort(s.address, strconv.Itoa(443+portOffset))
	ask := func(client *http.Client, name string) error {
		res, err := client.Get("https://" + name + ".sets.test/")
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			return err
		}
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d", res.StatusCode)
		}
		return nil
	}
	clientOf := func() (*http.Client, *atomic.Int64) {
		var dials atomic.Int64
		transport := &http.Transport{
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // who serves is not what this is about
			ForceAttemptHTTP2: true,
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				dials.Add(1)
				return new(net.Dialer).DialContext(ctx, network, address)
			},
		}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport, Timeout: 10 * time.Second}, &dials
	}
	client, dials := clientOf()
	eventually(t, siteTimeout, func() error { return ask(client, "keep") })

	before := dials.Load()
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if err := ask(client, "keep"); err != nil {
				done <- err
				return
			}
		}
	}()
	for i := range rounds {
		name := fmt.Sprintf("set-%d", i)
		s.write(t, name+".yaml", set(name))
		other, _ := clientOf()
		eventually(t, siteTimeout, func() error { return ask(other, name) })
		s.remove(t, name+".yaml")
	}
	eventually(t, siteTimeout, func() error {
		other, _ := clientOf()
		if err := ask(other, fmt.Sprintf("set-%d", rounds-1)); err == nil {
			return fmt.Errorf("the listener that was removed still serves")
		}
		return nil
	})
	close(stop)
	if err := <-done; err != nil {
		t.Errorf("a request to another listener failed: %v", err)
	}
	if n := dials.Load(); n != before {
		t.Errorf("%d connections were opened beside the first", n-before)
	}
}
