//go:build linux

package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stream/v3" // named by JSON
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/identity"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

// A pod of the fleet of the Gateway infra/edge, whose ServiceAccount is edge-fleet.
var fleetGateway = object.Name{Namespace: "infra", Name: "edge"}

const fleetAccount = "edge-fleet"

// certificateLife is that of proxies' certificates here, for a few to come and go.
const certificateLife = 6 * time.Second

// fleetController is what a controller has for proxies: identity and xDS.
type fleetController struct {
	api, xds int // ports
	server   *xds.Server
	stop     func()
}

func startFleetController(t *testing.T, c client.WithWatch, api, port int) *fleetController {
	t.Helper()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	authority := identity.NewAuthority(identity.Options{
		Client: c, Namespace: "gatehouse-system", Pod: "controller-0", Service: "gatehouse", Life: certificateLife, Log: log,
	})
	certificates := identity.NewServer(identity.ServerOptions{
		Authority: authority, Client: c, Log: log,
		Fleet: func(gateway object.Name) (object.Name, bool) {
			return object.Name{Namespace: fleetGateway.Namespace, Name: fleetAccount}, gateway == fleetGateway
		},
	})
	f := &fleetController{api: api, xds: port, server: xds.New(xds.Options{Log: log})}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { authority.Run(ctx) })
	<-authority.Ready()
	all.Go(func() {
		if err := certificates.Serve(ctx, listenOn(t, api)); err != nil {
			t.Error(err)
		}
	})
	all.Go(func() {
		err := f.server.ServeTLS(ctx, listenOn(t, port), xds.TLS{
			Config: authority.ServerTLS(tls.RequireAndVerifyClientCert, "h2"), Changed: authority.Next,
			Identify: authority.Proxy,
		})
		if err != nil {
			t.Error(err)
		}
	})
	f.stop = sync.OnceFunc(func() { cancel(); all.Wait(); f.server.Stop() })
	t.Cleanup(f.stop)
	return f
}

func listenOn(t *testing.T, number int) net.Listener {
	return port.Listen(t, net.JoinHostPort("127.0.0.1", strconv.Itoa(number)))
}

func (f *fleetController) apply(t *testing.T, port int) {
	t.Helper()
	f.server.Apply([]xds.Update{{Gateway: fleetGateway, Set: []*envoy.Resource{fleetListener(t, port)}}})
}

// sent counts the resources that connected proxies were sent.
func (f *fleetController) sent() (n uint64) {
	for _, s := range f.server.Sessions() {
		for _, t := range s.Types {
			n += t.Sent
		}
	}
	return n
}

// fleetListener answers all with 200, and prints a line for each to standard output.
func fleetListener(t *testing.T, port int) *envoy.Resource {
	t.Helper()
	l := &listenerv3.Listener{}
	err := protojson.Unmarshal(fmt.Appendf(nil, `{"name": "edge",
		"address": {"socket_address": {"address": "127.0.0.1", "port_value": %d}},
		"filter_chains": [{"filters": [{"name": "http", "typed_config": {
			"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
			"stat_prefix": "edge",
			"access_log": [{"name": "stdout", "typed_config": {
				"@type": "type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog",
				"log_format": {"text_format_source": {"inline_string": "%%RESPONSE_CODE%% %%REQ(:PATH)%%\n"}}}}],
			"http_filters": [{"name": "router", "typed_config": {
				"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}],
			"route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
				{"match": {"prefix": "/"}, "direct_response": {"status": 200}}]}]}}}]}]}`, port), l)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	return envoy.NewResource(envoy.Listeners, l.Name, raw)
}

// fleetPod makes a pod of the fleet, as far as the API server knows, and returns a
// token that is bound to it.
func fleetPod(t *testing.T, c client.WithWatch, clients kubernetes.Interface) string {
	t.Helper()
	ctx := t.Context()
	for _, namespace := range []string{"gatehouse-system", fleetGateway.Namespace} {
		if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
			t.Fatal(err)
		}
	}
	here := metav1.ObjectMeta{Namespace: fleetGateway.Namespace, Name: fleetAccount}
	pod := &corev1.Pod{ObjectMeta: here}
	pod.Name = "edge-1"
	pod.Labels = map[string]string{"gateway.networking.k8s.io/gateway-name": fleetGateway.Name}
	pod.Spec = corev1.PodSpec{ServiceAccountName: fleetAccount, Containers: []corev1.Container{{Name: "proxy", Image: "gatehouse"}}}
	for _, o := range []client.Object{&corev1.ServiceAccount{ObjectMeta: here}, pod} {
		if err := c.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	pod.Status.PodIP = "127.0.0.1"
	pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
	if err := c.Status().Update(ctx, pod); err != nil {
		t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences:      []string{identity.Audience},
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}
	token, err := clients.CoreV1().ServiceAccounts(fleetGateway.Namespace).CreateToken(ctx, fleetAccount, request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return token.Status.Token
}

// fleetProxy is the process in such a pod.
type fleetProxy struct{ pod }

func startFleetProxy(t *testing.T, f *fleetController, ca, token, drainDelay string) *fleetProxy {
	t.Helper()
	tools := needTools(t)
	dir, err := os.MkdirTemp(scratch, "p")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"token": token, "ca.crt": ca} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := &fleetProxy{pod{health: net.JoinHostPort("127.0.0.1", strconv.Itoa(port.OfTest(t)))}}
	p.Cmd = exec.Command(tools.gatehouse, "proxy", "--gateway", fleetGateway.String(), "--controller", "localhost",
		"--xds-port", strconv.Itoa(f.xds), "--api-port", strconv.Itoa(f.api),
		"--token-file", filepath.Join(dir, "token"), "--ca-file", filepath.Join(dir, "ca.crt"),
		"--state-dir", filepath.Join(dir, "state"), "--health", p.health, "--concurrency", "1", "--drain-timeout", "20s")
	// What is not on the command line comes from the environment.
	p.Env = append(os.Environ(), "GATEHOUSE_ENVOY="+tools.envoy, "GATEHOUSE_DRAIN_DELAY="+drainDelay, "GATEHOUSE_DRAIN_TIMEOUT=nonsense")
	p.run(t)
	return p
}

func (p *fleetProxy) draining() error {
	if code, text := p.get("/readyz"); code != http.StatusServiceUnavailable || text != "draining\n" {
		return fmt.Errorf("/readyz: %d %s", code, text)
	}
	return nil
}

// metric returns the value of a metric without labels other than those given.
func (p *fleetProxy) metric(t *testing.T, name, result string) float64 {
	t.Helper()
	name += fmt.Sprintf(`{gateway="%s",result="%s"}`, fleetGateway, result)
	_, text := p.get("/metrics")
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no metric %s", name)
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestProxyCommand protects a pod's life: it gets its certificate for its token and
// its configuration for the certificate, outlives several certificates without
// being sent anything again, and ends without a request lost.
func TestProxyCommand(t *testing.T) {
	t.Parallel()
	needTools(t)
	server := apiserver.Start(t, apiserver.Options{})
	c, err := client.NewWithWatch(server.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	clients, err := kubernetes.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	token := fleetPod(t, c, clients)
	f := startFleetController(t, c, port.OfTest(t), port.OfTest(t))
	var root corev1.Secret
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "gatehouse-system", Name: "gatehouse-ca"}, &root); err != nil {
		t.Fatal(err)
	}
	p := startFleetProxy(t, f, string(root.Data["tls.crt"]), token, "1s")
	port := port.OfTest(t)
	f.apply(t, port)
	eventually(t, siteTimeout, p.ready)
	if n := f.sent(); n == 0 {
		t.Error("the first configuration was not counted")
	}

	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	load := startLoad(t, address, 2, func() string { return "edge.example" })
	issued := func() float64 { return p.metric(t, "gatehouse_proxy_certificate_requests_total", "issued") }
	const enough = 4
	eventually(t, enough*certificateLife+siteTimeout, func() error {
		if n := issued(); n < enough {
			return fmt.Errorf("%g certificates", n)
		}
		return p.ready()
	})
	eventually(t, siteTimeout, func() error { // between two connections there is none
		if n := len(f.server.Sessions()); n != 1 {
			return fmt.Errorf("%d sessions", n)
		}
		return nil
	})
	if n := p.metric(t, "gatehouse_proxy_controller_connections_total", "ok"); n < 2 {
		t.Errorf("%g connections: none has ended with its certificate", n)
	}
	if n := f.sent(); n != 0 {
		t.Errorf("%d resources were sent again", n)
	}

	// The controller is restarted, with the same authority.
	f.stop()
	again := startFleetController(t, c, f.api, f.xds)
	again.apply(t, port)
	eventually(t, siteTimeout, func() error {
		if g, ok := again.server.Gateway(fleetGateway); !ok || !g.State.Synced {
			return fmt.Errorf("not connected to the new controller")
		}
		return nil
	})
	if n := again.sent(); n != 0 {
		t.Errorf("the new controller has sent %d resources", n)
	}
	load.end()
	if len(load.wrong) > 0 {
		t.Errorf("of %d requests: %v", load.sent.Load(), load.wrong)
	}

	p.signal(t)
	eventually(t, siteTimeout, p.draining)
	if err := answersOn(address); err != nil {
		t.Errorf("while it drains: %v", err)
	}
	p.ends(t)
	if n := strings.Count(p.stdout.String(), "200 /\n"); n < int(load.sent.Load()) {
		t.Errorf("%d lines of access log for %d requests: %.200s", n, load.sent.Load(), p.stdout.String())
	}
	for line := range strings.Lines(p.stderr.String()) {
		if !strings.HasPrefix(line, `{"time":`) {
			t.Errorf("no line of JSON: %s", line)
		}
		if strings.Contains(line, token) {
			t.Error("the log has the token")
		}
	}

	// A second signal ends the wait.
	p = startFleetProxy(t, again, string(root.Data["tls.crt"]), token, "1h")
	eventually(t, siteTimeout, p.ready)
	p.signal(t)
	eventually(t, siteTimeout, p.draining)
	p.signal(t)
	p.ends(t)
}

// TestProxyCommandNeverReady protects those who wait for a pod to end that never
// had a configuration: nobody can have been sent to it.
func TestProxyCommandNeverReady(t *testing.T) {
	t.Parallel()
	needTools(t)
	// Nobody answers on these ports.
	p := startFleetProxy(t, &fleetController{api: port.OfTest(t), xds: port.OfTest(t)}, "no certificate", "no token", "1h")
	eventually(t, siteTimeout, func() error {
		if code, text := p.get("/healthz"); code != http.StatusOK {
			return fmt.Errorf("/healthz: %d %s", code, text)
		}
		return nil
	})
	if code, text := p.get("/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("/readyz: %d %s", code, text)
	}
	p.signal(t)
	p.ends(t)
}
