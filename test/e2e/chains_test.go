//go:build linux

package e2e

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// hasty starts the processes of a test with an Envoy that gives connections of what was
// replaced one second, and not ten minutes.
func hasty(t *testing.T) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "envoy")
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' \"$@\" --drain-time-s 1\n", needTools(t).envoy)
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	return []string{"--envoy", path}
}

// door is where a client comes in whose connection stays open.
type door struct {
	port int
	sni  string
	to   string // the backend at the beginning; empty for a website
}

// crowd has a connection open at each door.
type crowd struct {
	site  *site
	doors map[string]door
	open  map[string]*stream
}

// enter connects at a door, when that leads where it led in the beginning.
func (c *crowd) enter(t *testing.T, name string) *stream {
	t.Helper()
	d := c.doors[name]
	if d.to != "" {
		return c.site.reaches(t, d.port, d.sni, d.to)
	}
	var out *stream
	eventually(t, siteTimeout, func() (err error) {
		if out, err = c.site.stream(d.port, d.sni); err != nil {
			return err
		}
		return out.get()
	})
	t.Cleanup(func() { _ = out.conn.Close() })
	return out
}

// fill connects wherever no connection is open, and once more where one is.
func (c *crowd) fill(t *testing.T) {
	t.Helper()
	for name := range c.doors {
		if s := c.enter(t, name); c.open[name] == nil {
			c.open[name] = s
		} else {
			_ = s.conn.Close()
		}
	}
}

// missing returns those whose connections are cut, or told to end, once nothing drains any
// longer.
func (c *crowd) missing(t *testing.T) []string {
	t.Helper()
	eventually(t, siteTimeout, func() error {
		now := c.site.envoyStats(t, "listener_manager")
		for _, name := range []string{"listener_manager.total_filter_chains_draining", "listener_manager.total_listeners_draining"} {
			if n, ok := now[name]; n != 0 || !ok {
				return fmt.Errorf("%s is %d", name, n)
			}
		}
		return nil
	})
	cut := []string{}
	for _, name := range slices.Sorted(maps.Keys(c.open)) {
		var err error
		_ = c.open[name].conn.SetDeadline(time.Now().Add(time.Minute))
		if d := c.doors[name]; d.to == "" {
			err = c.open[name].get()
		} else if got, failed := c.open[name].ask(); failed != nil {
			err = failed
		} else if got != d.to {
			t.Errorf("the open connection %s reaches %q, want %q", name, got, d.to)
		}
		if err != nil {
			cut = append(cut, name)
			_ = c.open[name].conn.Close()
			delete(c.open, name)
		}
	}
	return cut
}

const (
	chainsPass = `{name: pass, port: 443, protocol: TLS, hostname: "*.pass.test", tls: {mode: Passthrough}}`
	chainsTerm = `{name: term, port: 443, protocol: TLS, hostname: "*.term.test", tls: {certificateRefs: [{name: %s}]}}`
	chainsTwo  = "{name: two, port: 9001, protocol: TCP}"
	chainsWeb  = "{name: web, port: 443, protocol: HTTPS, hostname: web.test, tls: {certificateRefs: [{name: cert}]}}"
)

func chainsGateway(more ...string) string {
	return siteGateway(append([]string{
		"{name: http, port: 80, protocol: HTTP}", chainsWeb, chainsPass,
		"{name: one, port: 9000, protocol: TCP}", chainsTwo,
	}, more...)...)
}

// TestWhatDrains protects open connections from edits of what they don't use, and those of a
// route from edits of its backends, on ports where names have chains of their own and on
// ports of TCP. Each edit says whose connections end: within the drain time, not before.
func TestWhatDrains(t *testing.T) {
	t.Parallel()
	term := fmt.Sprintf(chainsTerm, "cert")
	hosts := []string{"web.test", "a.pass.test", "c.term.test", "d.term.test", "e.term.test", "x.extra.test"}
	extra := `{name: extra, port: 443, protocol: TLS, hostname: "*.extra.test", tls: {mode: Passthrough}}`
	tlsRoute := func(name, section string, hosts string, backends ...string) string {
		return forwardRoute("TLSRoute", name, section, "hostnames: ["+hosts+"]", backends...)
	}
	tcpRoute := func(name, section string, backends ...string) string {
		return forwardRoute("TCPRoute", name, section, "", backends...)
	}
	secured := func(n int) string { return fmt.Sprintf("{name: s%d, port: 8443}", n) }
	plain := func(n int) string { return fmt.Sprintf("{name: t%d, port: 9000}", n) }
	weighed := func(ref string, weight int) string {
		return strings.TrimSuffix(ref, "}") + ", weight: " + strconv.Itoa(weight) + "}"
	}
	first, renewed, other := issue(func(*x509.Certificate) {}, hosts...), issue(func(*x509.Certificate) {}, hosts...), issue(func(*x509.Certificate) {}, hosts...)
	before := map[string]string{
		"gateway.yaml": chainsGateway(term),
		"cert.yaml":    first.manifest(siteNamespace, "cert"),
		"other.yaml":   other.manifest(siteNamespace, "other"),
		"backends.yaml": mustBackend(t, siteNamespace, "v1", "v1") + mustBackend(t, siteNamespace, "v2", "v2") +
			tlsBackend.must(t, "s1", "pass.test") + tlsBackend.must(t, "s2", "pass.test") +
			tcpBackend.must(t, "t1", "") + tcpBackend.must(t, "t2", "") + udpBackend.must(t, "u1", ""),
		"site.yaml": siteRoute("site", "web.test", "v1"),
		"a.yaml":    tlsRoute("a", "pass", "a.pass.test", secured(1)),
		"b.yaml":    tlsRoute("b", "pass", "b.pass.test", secured(2)),
		"c.yaml":    tlsRoute("c", "term", "c.term.test", plain(1)),
		"d.yaml":    tlsRoute("d", "term", "d.term.test", plain(2)),
		"one.yaml":  tcpRoute("one", "one", plain(1)),
		"two.yaml":  tcpRoute("two", "two", plain(2)),
		// What follows has no listener in the beginning.
		"extra.yaml":      tlsRoute("extra", "extra", "x.extra.test", secured(1)),
		"udp.yaml":        forwardRoute("UDPRoute", "udp", "udp", "", "{name: u1, port: 5353}"),
		"parameters.yaml": siteParameters("client: {limits: {bufferKiB: 64}}"),
	}
	s := startSite(t, before, hasty(t)...)
	c := &crowd{s, map[string]door{
		"a": {443, "a.pass.test", "s1"}, "b": {443, "b.pass.test", "s2"},
		"c": {443, "c.term.test", "t1"}, "d": {443, "d.term.test", "t2"},
		"one": {9000, "", "t1"}, "two": {9001, "", "t2"}, "site": {443, "web.test", ""},
	}, map[string]*stream{}}
	reaches := func(port int, sni, name string) func() {
		return func() { _ = s.reaches(t, port, sni, name).conn.Close() }
	}
	shows := func(host string, p pair) func() {
		return func() {
			eventually(t, siteTimeout, func() error {
				client := s.client(t, host, 443)
				conn, err := tls.Dial("tcp", client.address, client.config)
				if err != nil {
					return err
				}
				defer func() { _ = conn.Close() }()
				if block, _ := pem.Decode(p.cert); !bytes.Equal(conn.ConnectionState().PeerCertificates[0].Raw, block.Bytes) {
					return errors.New("another certificate is in use")
				}
				return nil
			})
		}
	}
	for _, e := range []struct {
		what, file, text string
		done             func()
		cut              []string
	}{
		{"another backend of a TCPRoute", "one.yaml", tcpRoute("one", "one", plain(2)), reaches(9000, "", "t2"), nil},
		{"weights of a TCPRoute", "one.yaml", tcpRoute("one", "one", weighed(plain(1), 1), weighed(plain(2), 999999)), reaches(9000, "", "t2"), nil},
		{"a TCPRoute that can't be served", "one.yaml", tcpRoute("one", "one", "{name: nobody, port: 1}"), reaches(9000, "", ""), nil},
		{"a TCPRoute in the place of another", "one.yaml", tcpRoute("first", "one", plain(2)), reaches(9000, "", "t2"), nil},
		{"a TCPRoute's removal", "one.yaml", "", reaches(9000, "", ""), []string{"one"}},

		{"another backend of a TLSRoute, passed through", "a.yaml", tlsRoute("a", "pass", "a.pass.test", secured(2)), reaches(443, "a.pass.test", "s2"), nil},
		{"another backend of a TLSRoute, terminated", "c.yaml", tlsRoute("c", "term", "c.term.test", plain(2)), reaches(443, "c.term.test", "t2"), nil},
		{"weights of a TLSRoute", "c.yaml", tlsRoute("c", "term", "c.term.test", weighed(plain(1), 1), weighed(plain(2), 999999)), reaches(443, "c.term.test", "t2"), nil},
		{"a hostname more", "c.yaml", tlsRoute("c", "term", "c.term.test, e.term.test", plain(1)), reaches(443, "e.term.test", "t1"), nil},
		{"a TLSRoute more", "e.yaml", tlsRoute("e", "pass", "e.pass.test", secured(2)), reaches(443, "e.pass.test", "s2"), nil},
		{"another hostname", "a.yaml", tlsRoute("a", "pass", "f.pass.test", secured(1)), reaches(443, "f.pass.test", "s1"), []string{"a"}},
		{"a TLSRoute's removal", "b.yaml", "", reaches(443, "b.pass.test", ""), []string{"b"}},

		{"another backend of the website", "site.yaml", siteRoute("site", "web.test", "v2"), func() {
			eventually(t, siteTimeout, func() error {
				o, _, err := s.client(t, "web.test", 443).works()
				if err == nil {
					err = (&expectation{Backend: "v2"}).check(o)
				}
				return err
			})
		}, nil},
		{"a renewed certificate", "cert.yaml", renewed.manifest(siteNamespace, "cert"), shows("web.test", renewed), nil},
		{"another listener of TLS", "gateway.yaml", chainsGateway(term, extra), reaches(443, "x.extra.test", "s1"), nil},
		{"another listener of HTTPS", "gateway.yaml", chainsGateway(term, "{name: https, port: 443, protocol: HTTPS, hostname: x.extra.test, tls: {certificateRefs: [{name: cert}]}}"), shows("x.extra.test", first), nil},
		{"a listener of another port", "gateway.yaml", chainsGateway(term, "{name: three, port: 9002, protocol: TCP}"), reaches(9002, "", ""), nil},
		{"a listener of UDP", "gateway.yaml", chainsGateway(term, "{name: udp, port: 443, protocol: UDP}"), func() {
			eventually(t, siteTimeout, func() error {
				o, err := (&datagramCall{address: s.address, port: 443, send: "hello", timeout: silence}).do(t.Context())
				if err == nil && o.answer.Name != "u1" {
					err = fmt.Errorf("datagrams reach %q", o.answer.Name)
				}
				return err
			})
		}, nil},
		{"a wider hostname of a listener", "gateway.yaml", chainsGateway(strings.Replace(term, "*.term.test", "*.test", 1), extra), reaches(443, "x.extra.test", "s1"), nil},
		{"another mode of a listener", "gateway.yaml", strings.Replace(before["gateway.yaml"], "mode: Passthrough", "mode: Terminate, certificateRefs: [{name: cert}]", 1), shows("a.pass.test", first), []string{"a", "b"}},
		{"another certificate of a listener", "gateway.yaml", chainsGateway(fmt.Sprintf(chainsTerm, "other")), shows("c.term.test", other), []string{"c", "d"}},
		{"a port's removal", "gateway.yaml", strings.Replace(before["gateway.yaml"], "  - "+chainsTwo+"\n", "", 1), func() { s.refuses(t, 9001, "") }, []string{"two"}},
		{"a listener's removal", "gateway.yaml", chainsGateway(), func() { s.refuses(t, 443, "c.term.test") }, []string{"c", "d"}},
	} {
		c.fill(t)
		if e.text == "" {
			s.remove(t, e.file)
		} else {
			s.write(t, e.file, e.text)
		}
		e.done()
		if d := cmp.Diff(append([]string{}, e.cut...), c.missing(t)); d != "" {
			t.Errorf("%s: connections that end (-want +got):\n%s", e.what, d)
		}
		if text, ok := before[e.file]; ok {
			s.write(t, e.file, text)
		} else {
			s.remove(t, e.file)
		}
		if len(e.cut) > 0 {
			shows("c.term.test", first)()
		}
		c.fill(t)
		if cut := c.missing(t); len(cut) > 0 {
			t.Errorf("%s, taken back: connections that end: %v", e.what, cut)
		}
	}
	s.kill()
	s.again(t)
	s.write(t, "one.yaml", tcpRoute("one", "one", plain(2)))
	reaches(9000, "", "t2")()
	if cut := c.missing(t); len(cut) > 0 {
		t.Errorf("after a restart of the control plane: connections that end: %v", cut)
	}

	// What is said of clients is said of ports.
	s.write(t, "one.yaml", before["one.yaml"])
	c.fill(t)
	modified := func() int64 { return s.envoyStats(t, "listener_manager")["listener_manager.listener_modified"] }
	was := modified()
	s.write(t, "gateway.yaml", before["gateway.yaml"]+"  infrastructure: {parametersRef: {group: gatehouse.dev, kind: GatewayParameters, name: edge}}\n")
	eventually(t, siteTimeout, func() error {
		if n := modified() - was; n != 4 {
			return fmt.Errorf("%d listeners of 4 are modified", n)
		}
		return nil
	})
	if d := cmp.Diff(slices.Sorted(maps.Keys(c.doors)), c.missing(t)); d != "" {
		t.Errorf("other settings for clients: connections that end (-want +got):\n%s", d)
	}
}

// refuses waits until clients that ask for a name reach nobody.
func (s *site) refuses(t *testing.T, port int, sni string) {
	t.Helper()
	eventually(t, siteTimeout, func() error {
		conn, err := s.stream(port, sni)
		if err != nil {
			return nil //nolint:nilerr // nobody listens
		}
		defer func() { _ = conn.conn.Close() }()
		if name, err := conn.ask(); err == nil {
			return fmt.Errorf("%s reaches %s", sni, name)
		}
		return nil
	})
}
