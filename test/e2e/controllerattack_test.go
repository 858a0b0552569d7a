//go:build linux

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/test/port"
	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// attackTime is how long an attack on the controller goes on.
const attackTime = 15 * time.Second

// fleet is a controller, and a Gateway whose proxy redirects all requests.
type fleet struct {
	*controllers
	process  *controller
	ports    controllerPorts
	template corev1.PodTemplateSpec
	admin    string // of the controller
	address  string // of the proxy
}

func startFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{controllers: startControllers(t, "../../config/namespace.yaml", "../../config/install.yaml"), ports: freePorts(t)}
	f.admin = net.JoinHostPort("127.0.0.1", strconv.Itoa(port.OfTest(t)))
	f.process = f.run(t, nil, "--admin", f.admin, "--config", f.configure(t, "config.yaml", map[string]any{
		"ports": f.ports, "infrastructure": map[string]any{"image": "example.com/gatehouse:test"},
	}))
	f.process.answers(t, f.ports.Health, "/readyz")
	eventually(t, siteTimeout, func() error { return f.accepted(t.Context(), "gatehouse") })

	port := port.OfTest(t)
	f.address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	gateway := &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	gateway.Spec.GatewayClassName = "gatehouse"
	gateway.Spec.Listeners = []gwv1.Listener{{Name: "http", Port: gwv1.PortNumber(port), Protocol: gwv1.HTTPProtocolType}}
	route := &gwv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "home"}}
	route.Spec.ParentRefs = []gwv1.ParentReference{{Name: "web"}}
	route.Spec.Rules = redirectTo("there.example")
	for _, o := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, gateway, route} {
		if err := f.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, siteTimeout, func() error {
		var all appsv1.DeploymentList
		if err := f.List(t.Context(), &all, client.InNamespace("shop")); err != nil || len(all.Items) != 1 {
			return fmt.Errorf("%d Deployments: %w", len(all.Items), err)
		}
		f.template = all.Items[0].Spec.Template
		return nil
	})
	proxy := f.startPod(t, f.template, "web-1", f.ports)
	t.Cleanup(func() { // its Envoy would outlive it otherwise
		proxy.signal(t)
		proxy.ends(t)
	})
	eventually(t, siteTimeout, proxy.ready)
	f.redirects(t, "there.example")
	return f
}

func redirectTo(host string) []gwv1.HTTPRouteRule {
	return []gwv1.HTTPRouteRule{{Filters: []gwv1.HTTPRouteFilter{{
		Type:            gwv1.HTTPRouteFilterRequestRedirect,
		RequestRedirect: &gwv1.HTTPRequestRedirectFilter{Hostname: new(gwv1.PreciseHostname(host))},
	}}}}
}

// ask sends a request, and returns where it is redirected to.
func (f *fleet) ask() (string, error) {
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequest(http.MethodGet, "http://"+f.address+"/", nil)
	if err != nil {
		return "", err
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusFound {
		return "", fmt.Errorf("status %d", res.StatusCode)
	}
	return res.Header.Get("Location"), nil
}

func (f *fleet) redirects(t *testing.T, host string) {
	t.Helper()
	eventually(t, siteTimeout, func() error {
		to, err := f.ask()
		if err == nil && !strings.Contains(to, host) {
			err = fmt.Errorf("redirected to %s", to)
		}
		return err
	})
}

// changes changes the route, and waits until the proxy has it.
func (f *fleet) changes(t *testing.T, host string) {
	t.Helper()
	route := &gwv1.HTTPRoute{}
	eventually(t, siteTimeout, func() error {
		if err := f.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "home"}, route); err != nil {
			return err
		}
		route.Spec.Rules = redirectTo(host)
		return f.Update(t.Context(), route)
	})
	f.redirects(t, host)
}

// beside runs an attack while a client of the proxy goes on, and routes change.
func (f *fleet) beside(t *testing.T, attack func(ctx context.Context)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), attackTime)
	defer cancel()
	beside(t, func(int) error { _, err := f.ask(); return err }, func() {
		var attacker sync.WaitGroup
		attacker.Go(func() { attack(ctx) })
		for i := 0; ctx.Err() == nil; i++ {
			f.changes(t, fmt.Sprintf("place-%d.example", i))
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
		attacker.Wait()
	})
}

// metric is the sum of the controller's metric, of all labels that match.
func (f *fleet) metric(t *testing.T, name string) (sum float64) {
	t.Helper()
	res, err := http.Get("http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(f.ports.Metrics)) + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^`+name+`(?:\{[^}]*\})? (\S+)$`).FindAllStringSubmatch(string(text), -1) {
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += v
	}
	return sum
}

// TestControllerPorts protects proxies, their clients and who changes routes from neighbours
// that take connections of the controller's ports and say nothing, or never enough.
func TestControllerPorts(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	f := startFleet(t)
	hello := clientHello(t, "localhost")
	begin := []string{"", string(hello[:3]), string(hello), "GET /metrics HTTP/1.1\r\nHost: x\r\nX: "}
	const addresses, each = 6, 100
	f.beside(t, func(ctx context.Context) {
		var clients sync.WaitGroup
		defer clients.Wait()
		for _, port := range []int{f.ports.XDS, f.ports.API, f.ports.Metrics, f.ports.Health} {
			for i := range addresses * each {
				clients.Go(func() {
					dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 9, byte(1+i%addresses))}}
					for ctx.Err() == nil { // another one as soon as it is closed
						conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
						if err == nil {
							end := context.AfterFunc(ctx, func() { _ = conn.Close() })
							_, _ = io.WriteString(conn, begin[i%len(begin)])
							_, _ = io.Copy(io.Discard, conn)
							end()
							_ = conn.Close()
						}
						select {
						case <-ctx.Done():
						case <-time.After(time.Second):
						}
					}
				})
			}
		}
	})
	if n := f.metric(t, "gatehouse_connections_refused_total"); n < 4*addresses*(each-64) {
		t.Errorf("%g connections were refused, want those beyond 64 of an address at least", n)
	}
}

// TestNamesOfAProxy protects proxies, their clients and who changes routes from a pod of a
// fleet that names, with its own certificate, whatever it makes up, as long as it may.
func TestNamesOfAProxy(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	f := startFleet(t)
	config := f.certificate(t, "web-2")
	before := f.memory(t)
	f.beside(t, func(ctx context.Context) {
		var streams sync.WaitGroup
		defer streams.Wait()
		for i := range 4 {
			streams.Go(func() {
				for round := 0; ctx.Err() == nil; round++ {
					if err := makeUp(ctx, f.ports.XDS, config, fmt.Sprintf("%d-%d", i, round)); err == nil && ctx.Err() == nil {
						t.Error("a stream that names whatever it likes goes on")
						return
					}
				}
			})
		}
	})
	grown := f.memory(t) - before
	t.Logf("the controller keeps %d MiB more; %g streams were refused", grown>>20, f.metric(t, "gatehouse_xds_refused_total"))
	if grown > 64<<20 {
		t.Errorf("the controller keeps %d MiB more", grown>>20)
	}
	if f.metric(t, "gatehouse_xds_refused_total") == 0 {
		t.Error("nothing was refused")
	}
}

// makeUp names, on a stream of its own, resources that there are not, until it ends.
func makeUp(ctx context.Context, port int, config *tls.Config, prefix string) error {
	conn, err := grpc.NewClient(net.JoinHostPort("localhost", strconv.Itoa(port)), grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	if err != nil {
		return err
	}
	over := make(chan error, 1)
	go func() {
		for {
			if _, err := stream.Recv(); err != nil {
				over <- err
				return
			}
		}
	}()
	const requests, names, length = 40, 1000, 500
	for i := range requests {
		req := &discoveryv3.DeltaDiscoveryRequest{
			Node:    &corev3.Node{Id: "shop/web", Cluster: "shop/web"},
			TypeUrl: "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
		}
		for j := range names {
			name := fmt.Sprintf("%s-%d-%d-", prefix, i, j)
			req.ResourceNamesSubscribe = append(req.ResourceNamesSubscribe, name+strings.Repeat("x", length-len(name)))
		}
		if stream.Send(req) != nil {
			return <-over
		}
	}
	select {
	case err := <-over:
		return err
	case <-time.After(callTimeout):
		return nil
	}
}

// certificate gets a certificate for another pod of the fleet, as its proxy would.
func (f *fleet) certificate(t *testing.T, pod string) *tls.Config {
	t.Helper()
	made := f.makePod(t, f.template, pod)
	files := map[string]string{}
	for _, volume := range made.Spec.Volumes {
		maps.Copy(files, f.contents(t, made, volume))
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(files["ca.crt"])) {
		t.Fatalf("no authority among %d files", len(files))
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]string{"csr": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr}))})
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots, ServerName: "localhost"}
	req, err := http.NewRequest(http.MethodPost, "https://"+net.JoinHostPort("localhost", strconv.Itoa(f.ports.API))+"/v1/certificate", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+files["token"])
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var answer struct{ Certificate, Error string }
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || answer.Certificate == "" {
		t.Fatalf("no certificate: %s %v", answer.Error, err)
	}
	block, _ := pem.Decode([]byte(answer.Certificate))
	config = config.Clone()
	config.Certificates = []tls.Certificate{{Certificate: [][]byte{block.Bytes}, PrivateKey: key}}
	return config
}

// memory is what the controller keeps, in bytes: its heap without garbage.
func (f *fleet) memory(t *testing.T) int64 {
	t.Helper()
	res, err := http.Get("http://" + f.admin + "/debug/pprof/heap?gc=1")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	return int64(f.metric(t, "go_memstats_heap_alloc_bytes"))
}
