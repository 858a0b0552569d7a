package identity_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/identity"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
	"github.com/gatehouse-dev/gatehouse/test/output"
)

func TestMain(m *testing.M) {
	crlog.SetLogger(logr.Discard())
	goleak.VerifyTestMain(apiserver.Shared(m),
		// What is kept of connections to the API server, by its address.
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*ClientConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http/internal/http2.(*ClientConn).readLoop"))
}

const patience = 30 * time.Second

// system is where the controllers are.
const system = "gatehouse-system"

// cluster is a real API server, whose pods have no kubelet.
type cluster struct {
	*apiserver.Server
	client  kube.WithWatch
	reviews atomic.Int64 // of tokens, that were asked for
	watches atomic.Int64 // of pods, that are open
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{Server: apiserver.Start(t, apiserver.Options{})}
	config := rest.CopyConfig(c.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/tokenreviews") {
				c.reviews.Add(1)
			}
			if strings.HasSuffix(r.URL.Path, "/pods") && r.URL.Query().Get("watch") != "" {
				c.watches.Add(1)
				context.AfterFunc(r.Context(), func() { c.watches.Add(-1) })
			}
			return next.RoundTrip(r)
		})
	})
	var err error
	if c.client, err = kube.NewWithWatch(config, kube.Options{Scheme: scheme.Scheme}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{system, "ns", "other", "tenant", "fleets"} {
		c.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return c
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (c *cluster) create(t *testing.T, object kube.Object) {
	t.Helper()
	if err := c.client.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) delete(t *testing.T, object kube.Object) {
	t.Helper()
	if err := c.client.Delete(t.Context(), object, kube.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
}

// pod makes a pod of a Gateway's fleet, under a ServiceAccount that is made if need
// be, with addresses.
func (c *cluster) pod(t *testing.T, namespace, name, account, gateway string, addresses ...string) *corev1.Pod {
	t.Helper()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	if err := c.client.Create(t.Context(), sa); kube.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}},
		Spec: corev1.PodSpec{
			ServiceAccountName: account,
			Containers:         []corev1.Container{{Name: "proxy", Image: "proxy"}},
		},
	}
	if gateway != "" {
		pod.Labels["gateway.networking.k8s.io/gateway-name"] = gateway
	}
	c.create(t, pod)
	if len(addresses) == 0 {
		return pod
	}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.PodIP = addresses[0]
	for _, a := range addresses {
		pod.Status.PodIPs = append(pod.Status.PodIPs, corev1.PodIP{IP: a})
	}
	if err := c.client.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// token asks for a token of a ServiceAccount, bound to a pod unless that is nil.
func (c *cluster) token(t *testing.T, namespace, account string, pod *corev1.Pod, audiences ...string) string {
	t.Helper()
	r := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
	if pod != nil {
		r.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}
	}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	if err := c.client.SubResource("token").Create(t.Context(), sa, r); err != nil {
		t.Fatal(err)
	}
	return r.Status.Token
}

// controller is one with its two ports.
type controller struct {
	t         *testing.T
	authority *identity.Authority
	server    *identity.Server
	xds       *xds.Server
	log       *output.Buffer
	api, ads  string // addresses
	registry  *prometheus.Registry

	mu     sync.Mutex
	fleets map[object.Name]string // ServiceAccounts
}

func (c *cluster) authority(t *testing.T, o identity.Options) *identity.Authority {
	t.Helper()
	o.Client, o.Namespace, o.Service = c.client, system, "gatehouse"
	if o.Interval == 0 {
		o.Interval = 100 * time.Millisecond
	}
	a := identity.NewAuthority(o)
	run(t, func(ctx context.Context) { a.Run(ctx) })
	return a
}

func ready(t *testing.T, a *identity.Authority) {
	t.Helper()
	select {
	case <-a.Ready():
	case <-time.After(patience):
		t.Fatal("the authority is not ready")
	}
}

func (c *cluster) controller(t *testing.T, o identity.Options) *controller {
	t.Helper()
	h := &controller{
		t: t, log: &output.Buffer{}, registry: prometheus.NewRegistry(),
		fleets: map[object.Name]string{{Namespace: "ns", Name: "a"}: "a-sa", {Namespace: "ns", Name: "b"}: "b-sa", {Namespace: "third", Name: "a"}: "a-sa", {Namespace: "tenant", Name: "a"}: "tenant-a-sa"},
	}
	log := slog.New(slog.NewTextHandler(h.log, nil))
	o.Log = log
	if o.Pod == "" {
		o.Pod = "controller-1"
	}
	h.authority = c.authority(t, o)
	h.server = identity.NewServer(identity.ServerOptions{Authority: h.authority, Client: c.client, Namespaces: namespaces, Fleet: h.fleet, Limits: h.limits, Former: h.former, Log: log})
	h.xds = xds.New(xds.Options{Log: log})
	h.registry.MustRegister(h.server.Collectors()...)
	h.registry.MustRegister(h.xds.Collectors()...)
	h.xds.Apply([]xds.Update{
		{Gateway: object.Name{Namespace: "ns", Name: "a"}, Set: []*envoy.Resource{envoy.NewResource(envoy.Listeners, "l", []byte("A's"))}},
		{Gateway: object.Name{Namespace: "ns", Name: "b"}, Set: []*envoy.Resource{envoy.NewResource(envoy.Listeners, "l", []byte("B's"))}},
	})
	api, ads := listen(t), listen(t)
	h.api, h.ads = api.Addr().String(), ads.Addr().String()
	run(t, func(ctx context.Context) {
		if err := h.server.Serve(ctx, api); err != nil {
			t.Error(err)
		}
	})
	run(t, func(ctx context.Context) {
		if err := h.xds.ServeTLS(ctx, ads, xds.TLS{
			Config:   h.authority.ServerTLS(tls.RequireAndVerifyClientCert, "h2"),
			Identify: h.authority.Proxy,
			Changed:  h.authority.Next,
			Admit:    identity.NewPods(identity.PodsOptions{Client: c.client, Namespaces: namespaces}).Admit,
		}); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(h.xds.Stop)
	ready(t, h.authority)
	return h
}

func (h *controller) fleet(gateway object.Name) (serviceAccount object.Name, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	serviceAccount.Name, ok = h.fleets[gateway]
	serviceAccount.Namespace = namespaces(gateway)[0]
	return serviceAccount, ok
}

// namespaces are those of the pods of a Gateway: fleets of namespace "tenant" are in "fleets".
func namespaces(gateway object.Name) []string {
	if gateway.Namespace == "tenant" {
		return []string{"fleets"}
	}
	return []string{gateway.Namespace}
}

// limits is what counts requests for Gateway a.
func (h *controller) limits(gateway object.Name) object.Name {
	if gateway == (object.Name{Namespace: "ns", Name: "a"}) {
		return object.Name{Namespace: "ns", Name: "a-limits-sa"}
	}
	return object.Name{}
}

// former is what Gateway a was before.
func (h *controller) former(_ context.Context, gateway, serviceAccount object.Name) (bool, error) {
	return gateway == object.Name{Namespace: "ns", Name: "a"} && serviceAccount == object.Name{Namespace: "ns", Name: "a-former-sa"}, nil
}

// counted returns the value of a counter for a reason.
func (h *controller) counted(metric, reason string) float64 {
	h.t.Helper()
	families, err := h.registry.Gather()
	if err != nil {
		h.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == metric && (reason == "" || m.GetLabel()[0].GetValue() == reason) {
				return m.GetCounter().GetValue()
			}
		}
	}
	h.t.Fatalf("there is no %s{reason=%q}", metric, reason)
	return 0
}

const (
	apiRefusals = "gatehouse_identity_refusals_total"
	xdsRefusals = "gatehouse_xds_refused_total"
)

// expectRefusal does something that is to be refused for a reason, once.
func (h *controller) expectRefusal(metric, reason string, attack func()) {
	h.t.Helper()
	before, from := h.counted(metric, reason), len(h.log.String())
	attack()
	eventually(h.t, func() string {
		if n := h.counted(metric, reason) - before; n != 1 {
			return fmt.Sprintf("%v refusals are counted as %s", n, reason)
		}
		if text := h.log.String()[from:]; !strings.Contains(text, "reason="+reason) {
			return fmt.Sprintf("the log doesn't say %s:\n%s", reason, text)
		}
		return ""
	})
}

// eventually waits until a complaint is empty.
func eventually(t *testing.T, complaint func() string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		text := complaint()
		if text == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(text)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return lis
}

// run runs something until the test ends.
func run(t *testing.T, f func(context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); f(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}
