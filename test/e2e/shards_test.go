//go:build linux

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// TestShardsUnderLoad protects requests while a table becomes sharded, whole, and sharded
// again, and while its listener changes: each time Envoy gets another listener.
func TestShardsUnderLoad(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	// An Envoy whose connections drain for a short time only.
	envoy := filepath.Join(t.TempDir(), "envoy")
	script := "#!/bin/sh\nexec \"" + needTools(t).envoy + "\" \"$@\" --drain-time-s 3\n"
	if err := os.WriteFile(envoy, []byte(script), 0o755); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	const few, lots = 128, 612
	gateway := func(listeners ...string) string {
		g := siteGateway(append(listeners, "{name: http, port: 80, protocol: HTTP}",
			"{name: side, port: 81, protocol: HTTP, hostname: '*.side.example'}")...)
		return withShards(g)
	}
	s := startSite(t, map[string]string{
		"wild.yaml":    siteRoute("wild", `"*.wild.example"`, "v2"),
		"side.yaml":    siteRoute("side", "one.side.example", "v1"),
		"gateway.yaml": gateway(),
		"shards.yaml":  shardAbove(512),
	}, "--envoy", envoy)
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			host := fmt.Sprintf("h%d.example", i)
			if i%2 > 0 {
				host = fmt.Sprintf("h%d.wild.example", i)
			}
			b.WriteString(siteRoute(fmt.Sprintf("many-%d", i), host, "v1"))
		}
		return b.String()
	}
	var asks atomic.Int64
	l := startLoad(t, s.listener(), loadClients, func() string {
		return []string{"home.example", "HOME.example:80", "one.wild.example", "h1.wild.example.other.wild.example"}[asks.Add(1)%4]
	})
	l.more(t, 50)
	side := startLoad(t, net.JoinHostPort(s.address, strconv.Itoa(81+portOffset)), loadClients, func() string { return "one.side.example" })
	side.more(t, 50)
	fresh := func(n int) error { // by a connection of its own
		o, err := s.call([]string{"http://home.example/", "http://one.side.example:81/"}[n%2])
		if err == nil && o.status != http.StatusOK {
			err = fmt.Errorf("status %d", o.status)
		}
		return err
	}
	change := func(round, n int) {
		s.write(t, "many.yaml", many(n))
		last := n - 1 // odd, so that a wildcard has an answer for it as well
		s.serves(t, fmt.Sprintf("H%d.wild.EXAMPLE", last), "v1")
		s.serves(t, fmt.Sprintf("h%d.wild.example", lots+1), "v2")
		s.answers(t, fmt.Sprintf("http://h%d.example/", lots), http.StatusNotFound)
		s.write(t, "gateway.yaml", gateway(fmt.Sprintf("{name: more, port: 80, protocol: HTTP, hostname: more%d.example}", round)))
		s.write(t, "more.yaml", siteRoute("more", fmt.Sprintf("more%d.example", round), "v1"))
		s.serves(t, fmt.Sprintf("more%d.example", round), "v1")
		if got := s.shards(t); n == lots && got == 0 {
			t.Errorf("%d routes are in no shards", n)
		}
		// The table of another port is divided while this one is.
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.Replace(siteRoute(fmt.Sprintf("side-%d", i), fmt.Sprintf("h%d.side.example", i), "v2"),
				"name: gw", "name: gw, sectionName: side", 1))
		}
		s.write(t, "sides.yaml", b.String())
		eventually(t, siteTimeout, func() error {
			o, err := s.call(fmt.Sprintf("http://h%d.side.example:81/", n-1))
			if err != nil {
				return err
			}
			return (&expectation{Status: codes{http.StatusOK}, Backend: "v2"}).check(o)
		})
		l.more(t, 200)
		side.more(t, 200)
	}
	beside(t, fresh, func() {
		for round, n := range []int{lots, few, lots, few} {
			change(round, n)
		}
		// What was sharded is gone, and Envoy has forgotten its scopes.
		eventually(t, time.Minute, func() error {
			for name, count := range s.envoyStats(t, "draining") {
				if count > 0 {
					return fmt.Errorf("%s is %d", name, count)
				}
			}
			return nil
		})
		change(4, lots)
	})
	for _, l := range []*load{l, side} {
		if wrong := l.end(); len(wrong) > 0 {
			t.Errorf("of %d requests, not 200: %v", l.sent.Load(), wrong)
		}
	}
}

// withShards returns a site's Gateway that follows shardAbove.
func withShards(gateway string) string {
	return strings.Replace(gateway, "spec:\n", "spec:\n  infrastructure: {parametersRef: {group: gatehouse.dev, kind: GatewayParameters, name: shards}}\n", 1)
}

// shardAbove returns the parameters that say above how many routes a site's tables are divided.
func shardAbove(routes int) string {
	return fmt.Sprintf(`---
apiVersion: gatehouse.dev/v1alpha1
kind: GatewayParameters
metadata: {name: shards, namespace: %s}
spec: {routeTables: {shardAbove: %d}}
`, siteNamespace, routes)
}
