package fleet

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/identity"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
	"github.com/gatehouse-dev/gatehouse/test/certs"
	"github.com/gatehouse-dev/gatehouse/test/output"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

// What config/install.yaml installs, and where a test has its own.
const (
	controllers = "gatehouse-system"
	account     = "gatehouse"
	// Namespace has everything that a test makes.
	Namespace = "shop"
	class     = "gatehouse"

	labelGateway = "gateway.networking.k8s.io/gateway-name"
)

// Cluster is a real API server with what the manifests install, of which a test runs controllers.
type Cluster struct {
	client.Client
	*testing.T
	API  *apiserver.Server
	Gate *Gate

	authority *identity.Authority
	binary    string
	pods      int
}

// New returns a cluster without controllers, for the time of a test.
func New(t *testing.T) *Cluster {
	t.Helper()
	c := &Cluster{T: t, API: apiserver.Start(t, apiserver.Options{Channel: apiserver.Standard}), binary: gatehouse(t)}
	kinds := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, gwv1.Install} {
		if err := add(kinds); err != nil {
			t.Fatal(err)
		}
	}
	for _, manifest := range []string{"namespace", "install"} {
		apiserver.Install(t, c.API.Config, "../../config/"+manifest+".yaml")
	}
	var err error
	if c.Client, err = client.New(c.API.Config, client.Options{Scheme: kinds}); err != nil {
		t.Fatal(err)
	}
	c.Gate = newGate(t, c.API.Config)
	c.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}})
	return c
}

// gatehouse is the binary to run.
func gatehouse(t *testing.T) string {
	t.Helper()
	if named := os.Getenv("GATEHOUSE_BIN"); named != "" {
		return named
	}
	path := filepath.Join(t.TempDir(), "gatehouse")
	build := exec.Command("go", "build", "-o", path, "../../cmd/gatehouse")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// Make creates objects.
func (c *Cluster) Make(objects ...client.Object) {
	c.Helper()
	var all errgroup.Group
	all.SetLimit(16)
	for _, o := range objects {
		all.Go(func() error { return c.Create(c.Context(), o) })
	}
	if err := all.Wait(); err != nil {
		c.Fatal(err)
	}
}

// Patience bounds every wait of these tests.
const Patience = time.Minute

// Until polls: most of what a test waits for is done by other processes.
func (c *Cluster) Until(what string, done func() error) {
	c.Helper()
	var err error
	for deadline := time.Now().Add(Patience); ; time.Sleep(10 * time.Millisecond) {
		if err = done(); err == nil {
			return
		}
		if time.Now().After(deadline) {
			c.Fatalf("it didn't happen that %s: %v", what, err)
		}
	}
}

// Controller is a process of `gatehouse controller`.
type Controller struct {
	*exec.Cmd
	XDS string // the address for proxies
	// Log is what it has written.
	Log output.Buffer

	cluster *Cluster
	ports   controllerPorts
	admin   int // its port
	args    []string
	ended   chan struct{}
}

type controllerPorts struct {
	XDS     int `json:"xds"`
	API     int `json:"api"`
	Metrics int `json:"metrics"`
	Health  int `json:"health"`
}

// Start starts a controller, with the rights of the manifest, and returns when it is ready.
func (c *Cluster) Start() *Controller {
	c.Helper()
	p := c.Launch()
	p.Ready()
	return p
}

// Launch is Start without the wait.
func (c *Cluster) Launch() *Controller {
	c.Helper()
	dir := c.TempDir()
	p := &Controller{cluster: c, ports: controllerPorts{XDS: port.OfTest(c.T), API: port.OfTest(c.T), Metrics: port.OfTest(c.T), Health: port.OfTest(c.T)}}
	p.XDS = net.JoinHostPort("127.0.0.1", strconv.Itoa(p.ports.XDS))
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "config.gatehouse.dev/v1alpha1", "kind": "Configuration", "ports": p.ports,
		"infrastructure": map[string]any{"image": "registry.example/gatehouse:test"},
		"leaderElection": map[string]any{"leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "200ms"},
	})
	if err != nil {
		c.Fatal(err)
	}
	config, kubeconfig := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		c.Fatal(err)
	}
	k := clientcmdapi.NewConfig()
	k.Clusters["test"] = &clientcmdapi.Cluster{Server: c.Gate.URL, CertificateAuthorityData: c.Gate.CA}
	k.AuthInfos["test"] = &clientcmdapi.AuthInfo{
		Token: c.API.Config.BearerToken, Impersonate: "system:serviceaccount:" + controllers + ":" + account,
		ImpersonateGroups: []string{"system:serviceaccounts", "system:serviceaccounts:" + controllers, "system:authenticated"},
	}
	k.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	k.CurrentContext = "test"
	if err := clientcmd.WriteToFile(*k, kubeconfig); err != nil {
		c.Fatal(err)
	}
	p.admin = port.OfTest(c.T)
	p.args = []string{"controller", "--kubeconfig", kubeconfig, "--config", config, "--admin", net.JoinHostPort("127.0.0.1", strconv.Itoa(p.admin))}
	c.Cleanup(func() {
		p.Kill()
		if c.Failed() {
			c.Logf("gatehouse controller:\n%s", p.Log.Tail(60))
		}
	})
	p.Run()
	return p
}

// Run starts the process; after Kill at the same addresses.
func (p *Controller) Run() {
	p.cluster.Helper()
	p.Cmd = exec.Command(p.cluster.binary, p.args...)
	name := "controller-" + strconv.Itoa(p.ports.XDS)
	p.Env = append(os.Environ(), "POD_NAMESPACE="+controllers, "POD_NAME="+name, "POD_IP=127.0.0.1")
	p.Stdout, p.Stderr = &p.Log, &p.Log
	if err := p.Cmd.Start(); err != nil {
		p.cluster.Fatal(err)
	}
	ended, cmd := make(chan struct{}), p.Cmd
	p.ended = ended
	go func() { defer close(ended); _ = cmd.Wait() }()
}

// Ready waits until it has the whole configuration and serves it.
func (p *Controller) Ready() {
	p.cluster.Helper()
	p.cluster.Until("the controller is ready", func() error {
		select {
		case <-p.ended:
			p.cluster.Fatalf("the controller has ended: %s\n%s", p.ProcessState, p.Log.Tail(30))
		default:
		}
		_, err := p.page(p.ports.Health, "/readyz")
		return err
	})
}

// Kill ends the process as a crash does.
func (p *Controller) Kill() {
	_ = p.Process.Kill()
	<-p.ended
}

func (p *Controller) page(port int, path string) ([]byte, error) {
	web := http.Client{Timeout: Patience, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := web.Get("http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) + path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, res.Status, text)
	}
	return text, err
}

// Metric is the sum of a metric over its labels.
func (p *Controller) Metric(name string) float64 {
	p.cluster.Helper()
	text, err := p.page(p.ports.Metrics, "/metrics")
	if err != nil {
		p.cluster.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		p.cluster.Fatal(err)
	}
	family, ok := families[name]
	if !ok {
		p.cluster.Fatalf("there is no metric %s", name)
	}
	sum := 0.0
	for _, m := range family.GetMetric() {
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
	}
	return sum
}

// Gateway makes a Gateway with an HTTP listener.
func (c *Cluster) Gateway(name string, port int) *gwv1.Gateway {
	c.Helper()
	g := &gwv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name},
		Spec: gwv1.GatewaySpec{
			GatewayClassName: class,
			Listeners:        []gwv1.Listener{{Name: "http", Port: gwv1.PortNumber(port), Protocol: gwv1.HTTPProtocolType}},
		},
	}
	c.Make(g)
	return g
}

// Nowhere is the endpoint of a route that nobody asks.
var Nowhere = &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}

// RouteName is the name of a route of Routes.
func RouteName(i int) string { return fmt.Sprintf("route-%05d", i) }

// Routes makes so many of them, named by their number.
func (c *Cluster) Routes(gateway string, n int) {
	c.Helper()
	var all []client.Object
	for i := range n {
		all = append(all, c.Route(RouteName(i), gateway, 0, Nowhere)...)
	}
	c.Make(all...)
}

// EditHeader is in each answer of a route of Route, with how often the route was edited.
const EditHeader = "x-edit"

// Host is the host of a route.
func Host(route string) string { return route + ".example.com" }

// Route returns a route of a host of its own, with a Service and an EndpointSlice.
func (c *Cluster) Route(name, gateway string, edit int, backend *net.TCPAddr) []client.Object {
	in := metav1.ObjectMeta{Namespace: Namespace, Name: name}
	slice := in
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: name}
	number := int32(80)
	return []client.Object{
		&gwv1.HTTPRoute{ObjectMeta: in, Spec: gwv1.HTTPRouteSpec{
			CommonRouteSpec: gwv1.CommonRouteSpec{ParentRefs: []gwv1.ParentReference{{Name: gwv1.ObjectName(gateway)}}},
			Hostnames:       []gwv1.Hostname{gwv1.Hostname(Host(name))},
			Rules: []gwv1.HTTPRouteRule{{
				Filters: []gwv1.HTTPRouteFilter{{
					Type:                   gwv1.HTTPRouteFilterResponseHeaderModifier,
					ResponseHeaderModifier: &gwv1.HTTPHeaderFilter{Set: []gwv1.HTTPHeader{{Name: EditHeader, Value: mark(edit)}}},
				}},
				BackendRefs: []gwv1.HTTPBackendRef{{BackendRef: gwv1.BackendRef{BackendObjectReference: gwv1.BackendObjectReference{
					Name: gwv1.ObjectName(name), Port: &number,
				}}}},
			}},
		}},
		&corev1.Service{ObjectMeta: in, Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, // the API server has few addresses
			Ports:     []corev1.ServicePort{{Port: number}},
		}},
		&discoveryv1.EndpointSlice{
			ObjectMeta: slice, AddressType: discoveryv1.AddressTypeIPv4,
			Ports:     []discoveryv1.EndpointPort{{Port: new(int32(backend.Port))}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{backend.IP.String()}}},
		},
	}
}

// Edit changes the header of a route.
func (c *Cluster) Edit(name string, edit int) {
	c.Helper()
	patch := fmt.Appendf(nil, `[{"op":"replace","path":"/spec/rules/0/filters/0/responseHeaderModifier/set/0/value","value":%q}]`, mark(edit))
	route := &gwv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name}}
	if err := c.Patch(c.Context(), route, client.RawPatch("application/json-patch+json", patch)); err != nil {
		c.Fatal(err)
	}
}

// Pods makes pods of a Gateway's fleet, each with an address of its own on loopback.
func (c *Cluster) Pods(gateway string, n int) []*corev1.Pod {
	c.Helper()
	pods := make([]*corev1.Pod, n)
	var all errgroup.Group
	all.SetLimit(16)
	for i := range pods {
		c.pods++
		ip := fmt.Sprintf("127.%d.%d.%d", 100+c.pods/62500, c.pods/250%250, 1+c.pods%250)
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: Namespace, Name: fmt.Sprintf("%s-%d", gateway, c.pods), Labels: map[string]string{labelGateway: gateway},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "proxy", Image: "registry.example/gatehouse:test"}}},
		}
		pods[i] = pod
		all.Go(func() error {
			if err := c.Create(c.Context(), pod); err != nil {
				return err
			}
			pod.Status.Phase = corev1.PodRunning
			pod.Status.PodIP, pod.Status.PodIPs = ip, []corev1.PodIP{{IP: ip}}
			return c.Status().Update(c.Context(), pod)
		})
	}
	if err := all.Wait(); err != nil {
		c.Fatal(err)
	}
	return pods
}

// Identity is what a pod's agent connects with: a certificate of the controllers' authority.
func (c *Cluster) Identity(gateway string, pod *corev1.Pod) *tls.Config {
	c.Helper()
	if c.authority == nil {
		c.authority = identity.NewAuthority(identity.Options{
			Client: c.Client, Namespace: controllers, Pod: "fleet", Service: account,
			Interval: 500 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
		})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); c.authority.Run(ctx) }()
		c.Cleanup(func() { cancel(); <-done })
		<-c.authority.Ready()
	}
	key := certs.Key()
	chain, roots, _, err := c.authority.Issue(&key.PublicKey, object.Name{Namespace: Namespace, Name: gateway}, identity.Proxy, pod.Name)
	if err != nil {
		c.Fatal(err)
	}
	block, _ := pem.Decode(chain)
	pool := x509.NewCertPool()
	if block == nil || !pool.AppendCertsFromPEM(roots) {
		c.Fatal(errors.New("the authority's answer is not PEM"))
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: pool, ServerName: account + "." + controllers + ".svc", NextProtos: []string{"h2"},
		Certificates: []tls.Certificate{{Certificate: [][]byte{block.Bytes}, PrivateKey: key}},
	}
}

// Dialer connects as the agent of a pod does, from the pod's address.
func (c *Cluster) Dialer(to, gateway string, pod *corev1.Pod) Dialer {
	c.Helper()
	d := &tls.Dialer{
		NetDialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(pod.Status.PodIP)}},
		Config:    c.Identity(gateway, pod),
	}
	return func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "tcp", to) }
}
