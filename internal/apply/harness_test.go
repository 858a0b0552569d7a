package apply

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
)

func TestMain(m *testing.M) {
	// Of a kind that may not be listed, controller-runtime waits for ever.
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("sigs.k8s.io/controller-runtime/pkg/cache.newMultiNamespaceInformer.func1"),
		goleak.IgnoreTopFunction("sigs.k8s.io/controller-runtime/pkg/cache.newMultiNamespaceInformerHandlerRegistration.func1"))
}

// testOptions are those of all fleets here.
var testOptions = infra.Options{
	ControllerName:      "gatehouse.dev/controller",
	Image:               "registry.example/gatehouse:v1",
	PullPolicy:          corev1.PullIfNotPresent,
	ControllerNamespace: "gatehouse-system",
	ControllerService:   "gatehouse",
	XDSPort:             18000,
	APIPort:             18001,
	Authorities:         []byte("-----BEGIN CERTIFICATE-----\n"),
}

// permit grants the user that Appliers run as what a controller may do to fleets.
func permit(t *testing.T, config *rest.Config, admin client.Client) {
	t.Helper()
	all := []string{"get", "list", "watch", "create", "patch", "delete"}
	read := []string{"get", "list", "watch"}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "applier"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"services", "serviceaccounts", "configmaps"}, Verbs: all},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments", "daemonsets"}, Verbs: all},
		{APIGroups: []string{"autoscaling"}, Resources: []string{"horizontalpodautoscalers"}, Verbs: all},
		{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"}, Verbs: all},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: read},
		{APIGroups: []string{gwv1.GroupName}, Resources: []string{"gateways", "gatewayclasses"}, Verbs: read},
	}}
	weak := role.DeepCopy()
	weak.Name = "weak"
	weak.Rules = slices.DeleteFunc(weak.Rules, func(r rbacv1.PolicyRule) bool { return r.Resources[0] == "pods" })
	weak.Rules[0].Resources = []string{"serviceaccounts", "configmaps"}
	weak.Rules = append(weak.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: read})
	for _, r := range []*rbacv1.ClusterRole{role, weak} {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: r.Name},
			Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: r.Name}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: r.Name},
		}
		for _, o := range []client.Object{r, binding} {
			if err := admin.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	apiserver.AwaitRights(t, config)
}

// applierTest is a test with a namespace of its own.
type applierTest struct {
	*testing.T
	client.Client // an administrator's
	rest          *rest.Config
	namespace     string
	user          string // that Appliers run as; applier by default
	places        infra.Places
}

// running is Fleets at work.
type running struct {
	*Fleets
	t      *applierTest
	events *events.FakeRecorder
	stop   func()

	mu     sync.Mutex
	writes []string
	states map[object.Name]*infra.State
	told   int
}

func (t *applierTest) start() *running {
	t.Helper()
	r := &running{t: t, events: events.NewFakeRecorder(100), states: map[object.Name]*infra.State{}}
	config := rest.CopyConfig(t.rest)
	config.Impersonate.UserName = t.user
	if t.user == "" {
		config.Impersonate.UserName = "applier"
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if req.Method != http.MethodGet {
				r.mu.Lock()
				r.writes = append(r.writes, req.Method+" "+req.URL.Path)
				r.mu.Unlock()
			}
			return next.RoundTrip(req)
		})
	})
	direct, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := testOptions
	o.Authorities, o.Places = nil, t.places
	r.Fleets, err = NewFleets(FleetsOptions{
		Options: o, REST: config, Client: direct, Namespaces: []string{t.namespace}, Events: r.events,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		OnState: func(gateway object.Name, s *infra.State) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.states[gateway] = s
			r.told++
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.SetAuthorities(testOptions.Authorities)
	r.stop = startRun(t.T, r.Run)
	return r
}

// startServer starts a real API server, of which admin may do everything.
func startServer(t *testing.T) (server *apiserver.Server, admin client.Client) {
	t.Helper()
	server = apiserver.Start(t, apiserver.Options{Channel: apiserver.Standard})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, gwv1.Install} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	admin, err := client.New(server.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return server, admin
}

// startRun runs something until stop is called, or the test ends.
func startRun(t *testing.T, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error("Run:", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// take returns the writes since it was called last.
func (r *running) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.writes
	r.writes = nil
	return out
}

// finish lets everything that is queued be done, and ends the Fleets.
func (r *running) finish() {
	r.t.Helper()
	r.queue.ShutDownWithDrain()
	r.stop()
}

func (r *running) state(gateway object.Name) *infra.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.states[gateway]
}

// await waits until a condition holds.
func (t *applierTest) await(what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not so after 20 s", what)
		}
	}
}

func (t *applierTest) gateway(change ...func(*infra.Gateway)) *infra.Gateway {
	g := &infra.Gateway{
		Name: object.Name{Namespace: t.namespace, Name: "web"}, UID: "11111111-0000-0000-0000-000000000000", Class: "gatehouse",
		Ports: []infra.Port{{Port: 80, Target: 10080}, {Port: 443, Target: 10443}, {Port: 443, Target: 10443, UDP: true}},
	}
	for _, c := range change {
		c(g)
	}
	return g
}

func with(s v1alpha1.Settings) func(*infra.Gateway) {
	return func(g *infra.Gateway) { g.Settings = &s }
}

// get reads the object of a Gateway's fleet; false if there is none.
func (t *applierTest) get(g *infra.Gateway, o client.Object) bool {
	t.Helper()
	err := t.Get(t.Context(), client.ObjectKey(t.places.Name(g.Name, g.Class)), o)
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

func (t *applierTest) must(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// patch changes an object as somebody else would.
func (t *applierTest) patch(o client.Object, patch string) {
	t.Helper()
	t.must(t.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(patch)), client.FieldOwner("somebody")))
}

func (t *applierTest) setReady(o client.Object) {
	t.Helper()
	switch o := o.(type) {
	case *appsv1.Deployment:
		n := *o.Spec.Replicas
		o.Status = appsv1.DeploymentStatus{ObservedGeneration: o.Generation, Replicas: n, ReadyReplicas: n, AvailableReplicas: n}
	case *appsv1.DaemonSet:
		o.Status = appsv1.DaemonSetStatus{ObservedGeneration: o.Generation, DesiredNumberScheduled: 1, NumberReady: 1}
	}
	t.must(t.Status().Update(t.Context(), o))
}

// balance gives a Service addresses, as a load balancer does.
func (t *applierTest) balance(g *infra.Gateway, ips ...string) {
	t.Helper()
	service := &corev1.Service{}
	if !t.get(g, service) {
		t.Fatal("there is no Service")
	}
	service.Status.LoadBalancer.Ingress = nil
	for _, ip := range ips {
		service.Status.LoadBalancer.Ingress = append(service.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
	}
	t.must(t.Status().Update(t.Context(), service))
}

// pod makes a pod of a fleet.
func (t *applierTest) pod(g *infra.Gateway, name string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: t.places.Of(g.Name), Name: name, Labels: infra.Labels(g.Name, g.Class), Annotations: map[string]string{infra.GatewayAnnotation: g.Name.String()},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-gatehouse", UID: "r", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "proxy", Image: "nowhere"}}},
	}
	t.must(t.Create(t.Context(), pod))
	return pod
}

// live has the API server know the Gateway of a fleet. What tell is called with is the address that its status says.
func (t *applierTest) live() (gw *gwv1.Gateway, tell func(address string)) {
	t.Helper()
	gw = &gwv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "web"},
		Spec:       gwv1.GatewaySpec{GatewayClassName: "gatehouse", Listeners: []gwv1.Listener{{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType}}},
	}
	t.must(t.Create(t.Context(), gw))
	return gw, func(address string) {
		t.Helper()
		gw.Status.Addresses = []gwv1.GatewayStatusAddress{{Type: new(gwv1.IPAddressType), Value: address}}
		t.must(t.Status().Update(t.Context(), gw))
	}
}
