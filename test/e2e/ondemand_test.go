//go:build linux

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// onDemandAbove returns the parameters that say above how many certificates a site's ports serve them on
// demand.
func onDemandAbove(certificates int) string {
	return strings.Replace(shardAbove(1000), "routeTables: {shardAbove: 1000}", fmt.Sprintf("certificates: {onDemandAbove: %d}", certificates), 1)
}

// onDemandSite is what both forms serve.
func onDemandSite(t *testing.T, above int) *site {
	t.Helper()
	https := func(name, hostname, certificate, more string) string {
		return fmt.Sprintf("{name: %s, port: 443, protocol: HTTPS, hostname: %q, tls: {certificateRefs: [{name: %s}]%s}}", name, hostname, certificate, more)
	}
	client := func(n int) string {
		return fmt.Sprintf("{name: c%d, port: 8443, protocol: HTTPS, hostname: c%[1]d.test, tls: {certificateRefs: [{name: c}]}}", n)
	}
	gateway := siteGateway(
		"{name: http, port: 80, protocol: HTTP}",
		https("a", "a.test", "a", ""), https("b", "b.test", "b", ""), https("deep", "x.a.test", "deep", ""),
		https("other", "1.2.3.test", "other", ""),
		https("wild", "*.wild.test", "wild", ""), https("inside", "in.wild.test", "inside", ""),
		https("new", "new.test", "a", ", options: {gatehouse.dev/min-tls-version: \"1.3\"}"),
		https("missing", "missing.test", "nowhere", ""),
		"{name: two, port: 443, protocol: HTTPS, hostname: two.test, tls: {certificateRefs: [{name: a}, {name: b}]}}",
		"{name: pass, port: 443, protocol: TLS, hostname: pass.test, tls: {mode: Passthrough}}",
		client(1), client(2),
		// Another certificate for a name than port 443 has, and the same.
		"{name: a-again, port: 8443, protocol: HTTPS, hostname: a.test, tls: {certificateRefs: [{name: other}]}}",
		"{name: b-again, port: 8443, protocol: HTTPS, hostname: b.test, tls: {certificateRefs: [{name: b}]}}",
	) + `  tls:
    frontend:
      default: {}
      perPort:
      - {port: 8443, tls: {validation: {caCertificateRefs: [{group: "", kind: ConfigMap, name: clients}]}}}
`
	routes := siteRoute("home", "home.example", "v1")
	for i, section := range []string{"a", "b", "deep", "other", "wild", "inside", "new", "two", "c1", "a-again"} {
		routes += strings.Replace(strings.Replace(siteRoute("of-"+section, "x", []string{"v1", "v2"}[i%2]), "  hostnames: [x]\n", "", 1),
			"{name: gw}", "{name: gw, sectionName: "+section+"}", 1)
	}
	return startSite(t, map[string]string{
		"gateway.yaml": withShards(gateway), "shards.yaml": onDemandAbove(above), "home.yaml": routes,
		"secrets.yaml": mustSecret(t, "a", "a.test") + mustSecret(t, "b", "b.test") + mustSecret(t, "deep", "x.a.test") + mustSecret(t, "other", "other.test") +
			mustSecret(t, "wild", "*.wild.test") + mustSecret(t, "inside", "in.wild.test") + mustSecret(t, "c", "c.test"),
		"clients.yaml": caManifest(clientAuthority, siteNamespace, "clients"),
	}, "--experimental")
}

// rawName replaces a placeholder in what a client sends first, for server names that no client of ours sends.
type rawName struct {
	net.Conn
	from, to []byte
}

func (c *rawName) Write(p []byte) (int, error) {
	n := len(p)
	_, err := c.Conn.Write(bytes.Replace(p, c.from, c.to, 1))
	return n, err
}

// says is what becomes of a request for a host on a connection for a server name: the certificate, and the
// status and the backend.
func (s *site) tried(ctx context.Context, port int, sni, host, client string) string {
	d := new(net.Dialer)
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(s.address, strconv.Itoa(port+portOffset)))
	if err != nil {
		return "no connection"
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	var served []string
	var config *tls.Config
	if raw, is := strings.CutPrefix(sni, "raw:"); is {
		placeholder := strings.Repeat("q", len(raw))
		conn = &rawName{conn, []byte(placeholder), []byte(raw)}
		sni = placeholder
	}
	if config, err = clientTLS(sni, []string{"http/1.1"}, client, &served); err != nil {
		return err.Error()
	}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		if ctx.Err() != nil || strings.Contains(err.Error(), "timeout") {
			return "handshake: too slow"
		}
		return "handshake: refused"
	}
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+"/", http.NoBody)
	res, err := exchange(secure, req)
	if err != nil {
		return fmt.Sprintf("%v: closed", served)
	}
	o := strings.Join(served, ",") + " " + strconv.Itoa(res.status)
	if i := strings.Index(res.body, `"name":"`); i >= 0 {
		o += " " + strings.SplitN(res.body[i+8:], `"`, 2)[0]
	}
	return o
}

// dialTLS opens a connection for a server name.
func dialTLS(ctx context.Context, address, sni string, served *[]string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	config, err := clientTLS(sni, nil, "", served)
	if err != nil {
		return nil, err
	}
	secure := tls.Client(conn, config)
	return secure, secure.HandshakeContext(ctx)
}

type exchanged struct {
	status int
	body   string
}

func exchange(conn net.Conn, req *http.Request) (out exchanged, err error) {
	client := &http.Client{Transport: &http.Transport{
		DialTLSContext:    func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		DisableKeepAlives: true,
	}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return out, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return exchanged{res.StatusCode, string(body)}, err
}

// TestOnDemandAnswersAlike protects that it changes nothing for clients whether the certificates of a port are
// asked for: which one they get, whose routes, 421, who needs a certificate, and who reaches nobody.
func TestOnDemandAnswersAlike(t *testing.T) {
	t.Parallel()
	chains, demand := onDemandSite(t, 0), onDemandSite(t, 1)
	random := rand.New(rand.NewPCG(1, 2))
	names := []string{
		"a.test", "b.test", "x.a.test", "1.2.3.test", "one.wild.test", "in.wild.test", "new.test", "missing.test", "two.test", "c1.test", "c2.test", "pass.test",
		"nobody.test", "test", "y.a.test", "wild.test", "d.one.wild.test", "A.TEST", "A.test", "X.a.Test", "In.Wild.Test", "Nobody.TEST", "a_b.test", "*.test", "*",
		"", "raw:a.test.", "raw:10.1.2.3", "raw:\xff\xfe.test", "raw:a.te\xffst", "raw:gateway-infra/a", "raw:ca:x", "raw:\xff.wild.test", "raw:a\x00b.test", "raw:..", "raw:-",
		siteNamespace + "/a", siteNamespace + "/c",
	}
	seen := map[string]int{}
	ask := func(port int, sni, host, client string) {
		t.Helper()
		var one, other string
		if err := poll(siteTimeout, func() error {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			if one, other = chains.tried(ctx, port, sni, host, client), demand.tried(ctx, port, sni, host, client); one != other {
				return fmt.Errorf("chains say %q, on demand %q", one, other)
			}
			return nil
		}); err != nil {
			t.Errorf("port %d, server name %q, host %q, client %q: %v", port, sni, host, client, err)
		}
		seen[one]++
	}
	for _, sni := range names {
		for _, port := range []int{443, 8443} {
			for _, client := range []string{"", "joe", unknownAuthority + "eve"} {
				if client != "" && port == 443 {
					continue
				}
				hosts := []string{strings.ToLower(strings.TrimPrefix(sni, "raw:")), "a.test", "nobody.test"}
				for range 3 {
					hosts = append(hosts, names[random.IntN(24)])
				}
				for _, host := range hosts {
					if host == "" || !utf8.ValidString(host) || strings.ContainsAny(host, "\x00/*") {
						host = "b.test"
					}
					ask(port, sni, host, client)
					if t.Failed() {
						return
					}
				}
			}
		}
	}
	t.Log(seen)
	for form, s := range map[string]*site{"chains": chains, "on demand": demand} {
		stats := s.envoyStats(t, "on_demand_secret")
		on := false
		for name, n := range stats {
			on = on || strings.HasSuffix(name, "cert_requested") && n > 0
		}
		if on != (form == "on demand") {
			t.Errorf("%s: certificates are asked for: %t", form, on)
		}
	}
}

// TestOnDemandChanges protects connections to other hosts while listeners come and go and certificates are
// rotated, and that what was open for a host that has gone gets nothing of it any more.
func TestOnDemandChanges(t *testing.T) {
	t.Parallel()
	gateway := func(hosts ...string) string {
		var l []string
		for _, h := range append([]string{"keep", "more"}, hosts...) {
			l = append(l, fmt.Sprintf("{name: %s, port: 443, protocol: HTTPS, hostname: %s.test, tls: {certificateRefs: [{name: %s}]}}", h, h, h))
		}
		return withShards(siteGateway(append(l, "{name: http, port: 80, protocol: HTTP}")...))
	}
	s := startSite(t, map[string]string{
		"gateway.yaml": gateway("gone"), "shards.yaml": onDemandAbove(1),
		"secrets.yaml": mustSecret(t, "keep", "keep.test") + mustSecret(t, "more", "more.test"),
		"gone.yaml":    mustSecret(t, "gone", "gone.test"), "come.yaml": mustSecret(t, "come", "come.test"),
		"home.yaml": siteRoute("home", "home.example", "v1") + siteRoute("all", "keep.test, more.test, gone.test, come.test", "v2"),
	})
	answer := func(sni, want string) {
		t.Helper()
		eventually(t, siteTimeout, func() error {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			if got := s.tried(ctx, 443, sni, strings.ToLower(sni), ""); got != want {
				return fmt.Errorf("%s: %q, want %q", sni, got, want)
			}
			return nil
		})
	}
	for _, h := range []string{"keep", "gone", "more"} {
		answer(h+".test", h+".test 200 v2")
	}
	answer("GONE.test", "gone.test 200 v2")
	open := func(host string) func(want int) {
		t.Helper()
		var served []string
		dials := 0
		client := &http.Client{Timeout: callTimeout, Transport: &http.Transport{
			DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				if dials++; dials > 1 {
					return nil, fmt.Errorf("the connection for %s has been closed", host)
				}
				return dialTLS(ctx, net.JoinHostPort(s.address, strconv.Itoa(443+portOffset)), host, &served)
			},
		}}
		t.Cleanup(client.CloseIdleConnections)
		return func(want int) {
			t.Helper()
			eventually(t, siteTimeout, func() error {
				res, err := client.Get("https://" + host + "/")
				if err != nil {
					return permanent(err)
				}
				defer res.Body.Close()
				if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != want {
					return fmt.Errorf("%s is answered %d, want %d: %w", host, res.StatusCode, want, err)
				}
				return nil
			})
		}
	}
	kept, gone := open("keep.test"), open("gone.test")
	kept(http.StatusOK)
	gone(http.StatusOK)
	modified := func() int64 {
		stats := s.envoyStats(t, "listener_manager")
		return stats["listener_manager.listener_modified"] + stats["listener_manager.listener_in_place_updated"]
	}
	was := modified()

	s.write(t, "gateway.yaml", gateway("gone", "come"))
	answer("come.test", "come.test 200 v2")
	s.write(t, "gateway.yaml", gateway("come"))
	answer("gone.test", "handshake: refused")
	answer("GONE.test", "handshake: refused")
	gone(http.StatusNotFound)
	kept(http.StatusOK)
	if n := modified() - was; n != 0 {
		t.Errorf("listeners have changed %d times", n)
	}
	// What goes with a change of the listener goes as well.
	come := open("come.test")
	come(http.StatusOK)
	wild := strings.Replace(gateway(), "{name: http,", "{name: wild, port: 443, protocol: HTTPS, hostname: '*.wild.test', tls: {certificateRefs: [{name: keep}]}}\n  - {name: http,", 1)
	s.write(t, "gateway.yaml", wild)
	answer("come.test", "handshake: refused")
	come(http.StatusNotFound)
	kept(http.StatusOK)

	// Another certificate for the same host, in each spelling.
	answer("KEEP.test", "keep.test 200 v2")
	s.write(t, "secrets.yaml", mustSecret(t, "keep", "keep.test", "rotated.test")+mustSecret(t, "more", "more.test"))
	answer("keep.test", "keep.test,rotated.test 200 v2")
	answer("KEEP.test", "keep.test,rotated.test 200 v2")
	kept(http.StatusOK)

	// Names that clients make up leave nothing.
	for i := range 600 {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		if got := s.tried(ctx, 443, fmt.Sprintf("made-up-%d.test", i), "x.test", ""); got != "handshake: refused" {
			t.Errorf("a name that nobody has: %q", got)
		}
		name := []byte("keep.test")
		for bit, at := range []int{0, 1, 2, 3, 5, 6, 7, 8} {
			if i>>bit&1 == 1 {
				name[at] -= 'a' - 'A'
			}
		}
		if got := s.tried(ctx, 443, string(name), "keep.test", ""); got != "keep.test,rotated.test 200 v2" {
			t.Errorf("%s: %q", name, got)
		}
		name = bytes.ToUpper([]byte("more.test"))
		for bit, at := range []int{0, 1, 2, 3, 5, 6, 7, 8} {
			if i>>bit&1 == 1 {
				name[at] += 'a' - 'A'
			}
		}
		if got := s.tried(ctx, 443, string(name), "more.test", ""); got != "more.test 200 v2" {
			t.Errorf("%s: %q", name, got)
		}
		cancel()
	}
	active := int64(0)
	for name, n := range s.envoyStats(t, "on_demand_secret") {
		if strings.HasSuffix(name, "cert_active") {
			active += n
		}
	}
	if active > 256+8 {
		t.Errorf("Envoy keeps %d certificates", active)
	}
	t.Logf("Envoy keeps %d certificates", active)
	kept(http.StatusOK)

	// And back.
	s.write(t, "shards.yaml", onDemandAbove(0))
	eventually(t, siteTimeout, func() error {
		if !slices.Contains(s.chains(t), "tls-443-keep.test") {
			return fmt.Errorf("chains %v", s.chains(t))
		}
		return nil
	})
	answer("keep.test", "keep.test,rotated.test 200 v2")
	kept(http.StatusOK) // which drains
}

// TestOnDemandClients protects hosts whose clients need certificates: what a proxy has fetched for a host asks for
// those of the authorities in force, by each spelling, also when these change, and after a restart of the controller.
func TestOnDemandClients(t *testing.T) {
	t.Parallel()
	gateway := siteGateway("{name: http, port: 80, protocol: HTTP}",
		"{name: a, port: 443, protocol: HTTPS, hostname: a.test, tls: {certificateRefs: [{name: a}]}}",
		"{name: b, port: 443, protocol: HTTPS, hostname: b.test, tls: {certificateRefs: [{name: b}]}}") + `  tls:
    frontend: {default: {validation: {caCertificateRefs: [{group: "", kind: ConfigMap, name: clients}]}}}
`
	s := startSite(t, map[string]string{
		"gateway.yaml": withShards(gateway), "shards.yaml": onDemandAbove(1),
		"home.yaml":    siteRoute("home", "home.example", "v1") + siteRoute("all", "a.test, b.test", "v2"),
		"secrets.yaml": mustSecret(t, "a", "a.test") + mustSecret(t, "b", "b.test"),
		"clients.yaml": caManifest(clientAuthority, siteNamespace, "clients"),
	})
	const joe, eve = "joe", unknownAuthority + "eve"
	lets := func(in, out string) {
		t.Helper()
		for _, sni := range []string{"a.test", "A.test", "b.test"} {
			host := strings.ToLower(sni)
			for client, want := range map[string]string{in: host + " 200 v2", out: "[" + host + "]: closed", "": "[" + host + "]: closed"} {
				eventually(t, siteTimeout, func() error {
					ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
					defer cancel()
					if got := s.tried(ctx, 443, sni, host, client); got != want {
						return fmt.Errorf("%s, %q: %q, want %q", sni, client, got, want)
					}
					return nil
				})
			}
		}
	}
	lets(joe, eve)
	s.write(t, "clients.yaml", caManifest(otherAuthority, siteNamespace, "clients"))
	lets(eve, joe)
	s.kill()
	s.again(t)
	lets(eve, joe)
	s.write(t, "clients.yaml", caManifest(clientAuthority, siteNamespace, "clients"))
	lets(joe, eve)
	if chains := s.chains(t); !slices.Contains(chains, "tls-443/on-demand") {
		t.Errorf("chains %v", chains)
	}
}

// chains are the names of the filter chains of port 443.
func (s *site) chains(t *testing.T) (out []string) {
	t.Helper()
	var dump struct {
		Configs []struct {
			ActiveState struct {
				Listener struct {
					FilterChains []struct{ Name string } `json:"filter_chains"`
				}
			} `json:"active_state"`
		}
	}
	s.askEnvoy(t, "/config_dump?resource=dynamic_listeners", &dump)
	for _, c := range dump.Configs {
		for _, f := range c.ActiveState.Listener.FilterChains {
			out = append(out, f.Name)
		}
	}
	return out
}
