package envoy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/proxy"
)

// The tests here run the real Envoy with a static bootstrap, made of the very
// bytes that this package produces. The only changes: tables, endpoints and
// certificates are put in place of the names by which ADS would bring them.

// binary returns the Envoy to test with.
func binary(t testing.TB) string {
	t.Helper()
	b, err := proxy.Find(t.Context(), proxy.FindOptions{})
	if err != nil {
		t.Fatalf("this test needs the real Envoy: %v", err)
	}
	return b.Path
}

// setup is everything that one Envoy is to serve.
type setup struct {
	listeners []*ir.Listener
	tables    map[string][]*ir.Host
	backends  []*ir.Backend
	endpoints []*ir.Endpoints
	secrets   []*ir.Secret
	limits    []ir.RateLimit
	adjust    func(*hcmv3.HttpConnectionManager) // nil to leave it as it is

	adjustCluster func(*clusterv3.Cluster) // likewise

	// verified has all tables be those of listeners whose clients need certificates, as connections from
	// before meet them.
	verified bool
}

func decode[T proto.Message](t testing.TB, r *Resource, m T) T {
	t.Helper()
	if err := proto.Unmarshal(r.Body(), m); err != nil {
		t.Fatalf("%s %s: %v", r.Type, r.Name, err)
	}
	return m
}

// around returns the filters of the listener in front of a table, and whether its clients are verified.
func (s *setup) around(table string) (of *ir.Filters, verified bool) {
	for _, l := range s.listeners {
		for _, c := range l.Chains {
			if c.Table == table {
				return l.Filters, s.verified || c.TLS.Verifies()
			}
		}
	}
	return nil, false
}

// bootstrap returns the static form of a setup.
func (s *setup) bootstrap(t testing.TB, adminSocket string) *bootstrapv3.Bootstrap {
	t.Helper()
	tables := map[string]*routev3.RouteConfiguration{}
	for name, hosts := range s.tables {
		var parts []*Part
		for _, h := range hosts {
			h.Around, h.Verified = s.around(name)
			// Errors are the business of the caller: what is left must serve.
			if p, _ := HostPart(h); p != nil {
				parts = append(parts, p)
			}
		}
		table, _ := BundledRouteTable(name, AroundTables(s.around(name)), []*Bundle{NewBundle(parts)})
		tables[name] = decode(t, table, &routev3.RouteConfiguration{})
	}
	static := &bootstrapv3.Bootstrap_StaticResources{}
	for _, l := range s.listeners {
		r, errs := Listener(l.Name, l)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		m := decode(t, r, &listenerv3.Listener{})
		for _, c := range m.FilterChains {
			s.inlineTable(t, c, tables)
			staticSecrets(t, c)
		}
		static.Listeners = append(static.Listeners, m)
	}
	assignments := map[string]*endpointv3.ClusterLoadAssignment{}
	for _, e := range s.endpoints {
		r, err := LoadAssignment(ClusterName(e.Backend), e.Endpoints)
		if err != nil {
			t.Fatal(err)
		}
		assignments[r.Name] = decode(t, r, &endpointv3.ClusterLoadAssignment{})
	}
	for _, b := range s.backends {
		r, err := Cluster(b)
		if err != nil {
			t.Fatal(err)
		}
		c := decode(t, r, &clusterv3.Cluster{})
		staticUpstreamSecrets(t, c)
		if c.EdsClusterConfig != nil {
			c.EdsClusterConfig = nil
			c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}
			c.LoadAssignment = assignments[c.Name]
			if c.LoadAssignment == nil {
				c.LoadAssignment = decode(t, EmptyEndpoints(c.Name), &endpointv3.ClusterLoadAssignment{})
			}
		}
		if s.adjustCluster != nil {
			s.adjustCluster(c)
		}
		static.Clusters = append(static.Clusters, c)
	}
	for _, sec := range s.secrets {
		r, err := Secret(sec)
		if err != nil {
			t.Fatal(err)
		}
		static.Secrets = append(static.Secrets, decode(t, r, &tlsv3.Secret{}))
	}
	layer, err := structpb.NewStruct(map[string]any{
		"re2.max_program_size.error_level":                                                 1 << 20,
		"envoy.reloadable_features.enable_formatter_for_ratelimit_action_descriptor_value": true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return &bootstrapv3.Bootstrap{
		Node:            &corev3.Node{Id: "test", Cluster: "test"},
		StaticResources: static,
		Admin: &bootstrapv3.Admin{Address: &corev3.Address{Address: &corev3.Address_Pipe{
			Pipe: &corev3.Pipe{Path: adminSocket},
		}}},
		LayeredRuntime: &bootstrapv3.LayeredRuntime{Layers: []*bootstrapv3.RuntimeLayer{{
			Name:           "test",
			LayerSpecifier: &bootstrapv3.RuntimeLayer_StaticLayer{StaticLayer: layer},
		}}},
	}
}

func (s *setup) inlineTable(t testing.TB, c *listenerv3.FilterChain, tables map[string]*routev3.RouteConfiguration) {
	t.Helper()
	m := &hcmv3.HttpConnectionManager{}
	if err := c.Filters[0].GetTypedConfig().UnmarshalTo(m); err != nil {
		t.Fatal(err)
	}
	name := m.GetRds().RouteConfigName
	table, ok := tables[name]
	if !ok {
		table = decode(t, EmptyRoutes(name), &routev3.RouteConfiguration{})
	}
	// As with RDS: a table may name clusters that are not there.
	table.ValidateClusters = wrapperspb.Bool(false)
	m.RouteSpecifier = &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: table}
	s.inlineLimits(t, m)
	if s.adjust != nil {
		s.adjust(m)
	}
	if err := c.Filters[0].GetTypedConfig().MarshalFrom(m); err != nil {
		t.Fatal(err)
	}
}

// inlineLimits gives the filters that count their limits, which would come by themselves.
func (s *setup) inlineLimits(t testing.TB, m *hcmv3.HttpConnectionManager) {
	t.Helper()
	for _, f := range m.HttpFilters {
		if d := f.GetConfigDiscovery(); d != nil {
			f.ConfigType = &hcmv3.HttpFilter_TypedConfig{TypedConfig: s.limitFilter(t, f.Name).TypedConfig}
		}
	}
}

// limitFilter returns the configuration of a filter that counts.
func (s *setup) limitFilter(t testing.TB, name string) *corev3.TypedExtensionConfig {
	t.Helper()
	r := EmptyExtension(name)
	for slot := range RateLimitSlots {
		var limits []ir.RateLimit
		for _, l := range s.limits {
			if RateLimitSlot(l.Key) == slot {
				limits = append(limits, l)
			}
		}
		if RateLimitFilter(slot) == name && len(limits) > 0 {
			var err error
			if r, err = LimitFilter(slot, limits); err != nil {
				t.Fatal(err)
			}
		}
	}
	return decode(t, r, &corev3.TypedExtensionConfig{})
}

func staticSecrets(t testing.TB, c *listenerv3.FilterChain) {
	t.Helper()
	if c.TransportSocket == nil {
		return
	}
	m := &tlsv3.DownstreamTlsContext{}
	if err := c.TransportSocket.GetTypedConfig().UnmarshalTo(m); err != nil {
		t.Fatal(err)
	}
	for _, s := range m.CommonTlsContext.TlsCertificateSdsSecretConfigs {
		s.SdsConfig = nil
	}
	if c := m.CommonTlsContext.GetCombinedValidationContext(); c != nil {
		c.ValidationContextSdsSecretConfig.SdsConfig = nil
	}
	if err := c.TransportSocket.GetTypedConfig().MarshalFrom(m); err != nil {
		t.Fatal(err)
	}
}

// write puts a bootstrap where Envoy can read it.
func write(t testing.TB, dir string, b *bootstrapv3.Bootstrap) string {
	t.Helper()
	raw, err := proto.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "bootstrap.pb")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// socketDir is a temporary directory with a name short enough for a socket.
func socketDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gh")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// validate asks Envoy whether it would load a setup.
func (s *setup) validate(t testing.TB) error {
	t.Helper()
	dir := socketDir(t)
	path := write(t, dir, s.bootstrap(t, filepath.Join(dir, "admin")))
	out, err := exec.CommandContext(t.Context(), binary(t), "--mode", "validate", "-c", path, "--log-level", "error").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// running is an Envoy that serves a setup.
type running struct {
	addrs map[string]string // by listener
	log   *bytes.Buffer
	admin *http.Client
}

// stat is a statistic of Envoy's; 0 for one that there isn't yet.
func (r *running) stat(t testing.TB, name string) int {
	t.Helper()
	resp, err := r.admin.Get("http://admin/stats?filter=^" + name + "$")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	n := 0
	_, _ = fmt.Fscanf(resp.Body, name+": %d", &n)
	return n
}

// start runs Envoy until the test ends.
func (s *setup) start(t testing.TB) *running {
	t.Helper()
	dir := socketDir(t)
	admin := filepath.Join(dir, "admin")
	path := write(t, dir, s.bootstrap(t, admin))
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, binary(t), "-c", path, "--log-level", "warning",
		"--concurrency", "1", "--disable-hot-restart")
	r := &running{addrs: map[string]string{}, log: &bytes.Buffer{}}
	cmd.Stdout, cmd.Stderr = r.log, r.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	t.Cleanup(func() {
		stop()
		<-exited
		if t.Failed() && r.log.Len() > 0 {
			t.Logf("envoy: %s", r.log)
		}
	})
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", admin)
		},
	}}
	r.admin = client
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for len(r.addrs) < len(s.listeners) || !ready(client) {
		select {
		case <-exited:
			t.Fatalf("envoy ended: %s", r.log)
		case <-deadline:
			t.Fatalf("envoy is not ready after 30 s: %s", r.log)
		case <-tick.C:
			readAddresses(client, r.addrs)
		}
	}
	return r
}

func ready(client *http.Client) bool {
	resp, err := client.Get("http://admin/ready")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func readAddresses(client *http.Client, into map[string]string) {
	resp, err := client.Get("http://admin/listeners?format=json")
	if err != nil {
		return
	}
	defer resp.Body.Close()
	var status struct {
		Listeners []struct {
			Name    string `json:"name"`
			Address struct {
				Socket struct {
					Address string `json:"address"`
					Port    int    `json:"port_value"`
				} `json:"socket_address"`
			} `json:"local_address"`
		} `json:"listener_statuses"`
	}
	if json.NewDecoder(resp.Body).Decode(&status) != nil {
		return
	}
	for _, l := range status.Listeners {
		into[l.Name] = net.JoinHostPort(l.Address.Socket.Address, fmt.Sprint(l.Address.Socket.Port))
	}
}

// seen is a request as a backend gets it.
type seen struct {
	Backend string
	Method  string
	Path    string
	Host    string
	Proto   string
	Header  http.Header
	Body    int
}

// backend is a server that says what it sees.
type backend struct {
	ir  *ir.Backend
	eps *ir.Endpoints

	mu   sync.Mutex
	seen []seen
}

func (b *backend) requests() []seen {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]seen(nil), b.seen...)
}

// newBackend starts a backend; a nil handler echoes.
func newBackend(t testing.TB, name string, protocol ir.Protocol, handler http.Handler) *backend {
	t.Helper()
	b := &backend{}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		s := seen{
			Backend: name, Method: r.Method, Path: r.RequestURI, Host: r.Host,
			Proto: r.Proto, Header: r.Header, Body: body.Len(),
		}
		b.mu.Lock()
		b.seen = append(b.seen, s)
		b.mu.Unlock()
		if handler != nil {
			handler.ServeHTTP(w, r)
			return
		}
		w.Header().Set("X-Backend", name)
		_ = json.NewEncoder(w).Encode(s)
	}))
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetHTTP1(true)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	t.Cleanup(srv.Close)
	addr := netip.MustParseAddrPort(srv.Listener.Addr().String())
	b.ir = &ir.Backend{Named: "default/" + name + ":80", Protocol: protocol, Port: 80}
	b.eps = &ir.Endpoints{Backend: b.ir.Key(), Endpoints: []ir.Endpoint{{Address: addr.Addr().String(), Port: addr.Port()}}}
	return b
}

// plain is a setup with one HTTP listener.
func plain(hosts []*ir.Host, backends ...*backend) *setup {
	s := &setup{
		listeners: []*ir.Listener{{
			Gateway: object.Name{Namespace: "default", Name: "web"}, Name: "http-80", Port: 80,
			Addresses: []string{"127.0.0.1"}, Chains: []ir.Chain{{Table: "http-80"}},
		}},
		tables: map[string][]*ir.Host{"http-80": hosts},
	}
	for _, b := range backends {
		s.backends = append(s.backends, b.ir)
		s.endpoints = append(s.endpoints, b.eps)
	}
	return s
}

// answer is what a client gets.
type answered struct {
	Status int
	Header http.Header
	Seen   seen // by the backend, if it was one of ours
	Body   string
}

// do sends one request. Redirects are not followed.
func (r *running) do(t testing.TB, method, url string, header http.Header, body []byte) answered {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range header {
		req.Header[http.CanonicalHeaderKey(k)] = v
	}
	tr := &http.Transport{
		DisableKeepAlives: true, DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", r.addrs["http-80"])
		},
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	defer resp.Body.Close()
	var raw bytes.Buffer
	if _, err := raw.ReadFrom(resp.Body); err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	a := answered{Status: resp.StatusCode, Header: resp.Header, Body: raw.String()}
	_ = json.Unmarshal(raw.Bytes(), &a.Seen)
	return a
}

func (r *running) get(t testing.TB, url string) answered {
	t.Helper()
	return r.do(t, http.MethodGet, url, nil, nil)
}

// echo is a host with rules on a.example.
func rulesOn(domain string, rules ...*ir.Rule) []*ir.Host {
	for i, r := range rules {
		r.Source = ir.Source{Kind: kind.HTTPRoute, Name: object.Name{Namespace: "default", Name: "web"}, Rule: i}
	}
	return []*ir.Host{{Domain: domain, Rules: rules}}
}

func prefix(p string) ir.Match {
	return ir.Match{Path: ir.PathMatch{Kind: ir.PathPrefix, Value: p}}
}

func to(b *backend) []ir.WeightedBackend {
	return []ir.WeightedBackend{{Backend: b.ir.Key(), Weight: 1}}
}
