package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/test/certs"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

const secure = "secure.test"

// site is a configuration with something of each kind that proxies are sent.
type site struct {
	t           *testing.T
	c           *controller
	plain, tls  string // addresses
	certificate *certs.Certificate
	backend     string
	stateDir    string
}

func newSite(t *testing.T) *site {
	t.Helper()
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "backend") }))
	t.Cleanup(backend.Close)
	dir, err := os.MkdirTemp("/dev/shm", "gh")
	if err != nil {
		t.Skip("nothing is kept without a file system in memory:", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return &site{
		t: t, c: newController(t), plain: port.AddressOfTest(t), tls: port.AddressOfTest(t),
		certificate: certs.For(secure), backend: backend.Listener.Addr().String(), stateDir: dir,
	}
}

func (s *site) file() string { return filepath.Join(s.stateDir, "envoy", "last-good") }

func (s *site) start(change func(*Config)) *pod {
	s.t.Helper()
	p := startPod(s.t, s.c, func(c *Config) {
		c.StateDir = s.stateDir
		if change != nil {
			change(c)
		}
	})
	p.address = s.plain
	return p
}

// end ends an agent and its Envoy.
func (p *pod) end() {
	p.t.Helper()
	p.Hurry()
	p.stop()
}

func (s *site) resource(typ envoy.Type, name string, m proto.Message) *envoy.Resource {
	s.t.Helper()
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		s.t.Fatal(err)
	}
	return envoy.NewResource(typ, name, raw)
}

// serve has the controller serve everything, with a route that answers a text by itself.
func (s *site) serve(text string) {
	s.t.Helper()
	ads := &corev3.ConfigSource{
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}, ResourceApiVersion: corev3.ApiVersion_V3,
	}
	prefix := func(p string) *routev3.RouteMatch {
		return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: p}}
	}
	table := func(name, text string) *envoy.Resource {
		return s.resource(envoy.Routes, name, &routev3.RouteConfiguration{Name: name, VirtualHosts: []*routev3.VirtualHost{{
			Name: "all", Domains: []string{"*"}, Routes: []*routev3.Route{{
				Match: prefix("/text"),
				Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{
					Status: 200, Body: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: text}},
				}},
			}, {
				Match: prefix("/"),
				Action: &routev3.Route_Route{Route: &routev3.RouteAction{
					ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: "backend"},
				}},
			}},
		}}})
	}
	edge := func(name, address string, socket *corev3.TransportSocket) *envoy.Resource {
		hcm := &hcmv3.HttpConnectionManager{
			StatPrefix:     name,
			RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{ConfigSource: ads, RouteConfigName: name}},
			HttpFilters:    []*hcmv3.HttpFilter{{Name: "router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: pack(s.t, &routerv3.Router{})}}},
		}
		return s.resource(envoy.Listeners, name, &listenerv3.Listener{
			Name: name, Address: socketAddress(s.t, address),
			FilterChains: []*listenerv3.FilterChain{{TransportSocket: socket, Filters: []*listenerv3.Filter{{
				Name: "http", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: pack(s.t, hcm)},
			}}}},
		})
	}
	inline := func(b []byte) *corev3.DataSource {
		return &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: b}}
	}
	s.c.apply(
		s.resource(envoy.Clusters, "backend", &clusterv3.Cluster{
			Name: "backend", ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
			EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: ads},
		}),
		s.resource(envoy.Endpoints, "backend", &endpointv3.ClusterLoadAssignment{
			ClusterName: "backend", Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{
				HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: socketAddress(s.t, s.backend)}},
			}}}},
		}),
		s.resource(envoy.Secrets, "pair", &tlsv3.Secret{Name: "pair", Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
			CertificateChain: inline(s.certificate.PEM()), PrivateKey: inline(s.certificate.KeyPEM()),
		}}}),
		edge("plain", s.plain, nil),
		edge("tls", s.tls, &corev3.TransportSocket{Name: "tls", ConfigType: &corev3.TransportSocket_TypedConfig{
			TypedConfig: pack(s.t, &tlsv3.DownstreamTlsContext{CommonTlsContext: &tlsv3.CommonTlsContext{
				TlsCertificateSdsSecretConfigs: []*tlsv3.SdsSecretConfig{{Name: "pair", SdsConfig: ads}},
			}}),
		}}),
		table("plain", text), table("tls", "secret text"),
	)
}

func socketAddress(t *testing.T, address string) *corev3.Address {
	t.Helper()
	a, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: a.IP.String(), PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(a.Port)},
	}}}
}

func (s *site) get(url string) (string, error) {
	client := http.Client{Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: s.certificate.Pool(), ServerName: secure},
	}}
	resp, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		err = errors.Join(err, fmt.Errorf("status %d", resp.StatusCode))
	}
	return string(body), err
}

// check looks at all that is served.
func (s *site) check(text string) {
	s.t.Helper()
	for url, want := range map[string]string{
		"http://" + s.plain + "/text": text, "http://" + s.plain + "/": "backend",
		"https://" + s.tls + "/text": "secret text", "https://" + s.tls + "/": "backend",
	} {
		if got, err := s.get(url); got != want || err != nil {
			s.t.Errorf("%s: %q %v, not %q", url, got, err, want)
		}
	}
}

// untilKept waits until something newer than before is in the file.
func (p *pod) untilKept(s *site, than time.Time) {
	p.t.Helper()
	until(p.t, "kept", func() bool {
		_, err := os.Stat(s.file())
		return err == nil && p.kept.Report().KeptAt.After(than)
	})
}

// A proxy that starts while no control plane is there serves what its Envoy has had last. The control
// plane goes on from there: it sends what has changed, and nothing else.
func TestLastGood(t *testing.T) {
	s := newSite(t)
	s.serve("one")
	first := s.start(nil)
	first.untilReady()
	s.check("one")
	first.untilKept(s, time.Time{})
	before := first.kept.Report().KeptAt
	s.serve("two")
	first.untilKept(s, before)
	info, err := os.Stat(s.file())
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("the file: %v %v", info.Mode(), err)
	}
	s.c.stop()
	first.end()

	again := s.start(nil)
	again.untilReady()
	s.check("two")
	if _, text := again.get("/readyz"); !strings.Contains(text, "serving its last good configuration, kept at 20") {
		t.Errorf("ready: %s", text)
	}
	_, page := again.get("/lastgood")
	_, metrics := again.get("/metrics")
	if !strings.Contains(page, "servedSince") || strings.Contains(metrics, `last_good_served_since_seconds{gateway="default/edge"} 0`+"\n") {
		t.Errorf("it is not told that it serves by itself: %s", page)
	}
	// It doesn't need this process to have had an Envoy before.
	pid := again.supervisor.Snapshot().PID
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "another Envoy", func() bool { return again.supervisor.Snapshot().PID != pid })
	again.untilReady()
	s.check("two")

	s.c.start()
	s.serve("three")
	until(t, "changed", func() bool {
		text, err := s.get("http://" + s.plain + "/text")
		return err == nil && text == "three"
	})
	s.check("three")
	if n := s.c.sent(); n != 1 {
		t.Errorf("%d resources were sent, of which one has changed", n)
	}
	if report := again.kept.Report(); !report.ServedSince.IsZero() {
		t.Errorf("a control plane is back: %+v", report)
	}
	for _, line := range []string{"no control plane answers; serving the last good configuration", "a control plane is back"} {
		if n := strings.Count(again.log.String(), line); n != 1 {
			t.Errorf("%d lines: %s", n, line)
		}
	}
	before = again.kept.Report().KeptAt
	again.untilKept(s, before)
}

// A control plane that takes connections and has nothing to say is like none.
func TestLastGoodBesideASilentController(t *testing.T) {
	s := newSite(t)
	s.serve("one")
	first := s.start(nil)
	first.untilKept(s, time.Time{})
	first.end()
	s.c.stop()
	s.c.start()
	again := s.start(nil)
	again.untilReady()
	s.check("one")
	s.serve("two")
	until(t, "changed", func() bool {
		text, err := s.get("http://" + s.plain + "/text")
		return err == nil && text == "two"
	})
}

// What can't be used is said, and does no harm.
func TestLastGoodThatIsNotUsed(t *testing.T) {
	s := newSite(t)
	s.serve("one")
	first := s.start(nil)
	first.untilKept(s, time.Time{})
	first.end()
	raw, err := os.ReadFile(s.file())
	if err != nil {
		t.Fatal(err)
	}
	s.c.stop()
	refused := func(context.Context) (net.Conn, error) { return nil, errors.New("nobody is there") }
	for name, c := range map[string]struct {
		raw    []byte
		change func(*Config)
		line   string
	}{
		"cut":             {raw[:len(raw)-5], nil, "its checksum is wrong"},
		"not a head":      {raw[5:], nil, "the file is damaged"},
		"empty":           {nil, nil, "the file is damaged"},
		"another Gateway": {raw, func(c *Config) { c.Gateway.Name = "other" }, "it is of Gateway default/edge"},
		"another Envoy":   {raw, func(c *Config) { c.Binary.Version = "1.2.3" }, "and this is 1.2.3"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(s.file(), c.raw, 0o600); err != nil {
				t.Fatal(err)
			}
			s := *s
			s.t = t
			p := s.start(func(config *Config) {
				config.Dial = refused
				if c.change != nil {
					c.change(config)
				}
			})
			until(t, "told", func() bool { return p.log.Has(c.line) })
			until(t, "trying", func() bool { return p.relay.state().failed > 0 })
			if _, starts := p.kept.Wait(); starts {
				t.Error("it is used")
			}
			p.end()
		})
	}
	s.c.start()
	s.serve("two")
	last := s.start(nil)
	last.untilReady()
	s.check("two")
}
