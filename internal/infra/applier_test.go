package infra

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
)

// TestApplier is what an Applier does to a real API server. No controllers run
// beside it, so that whatever changes is its doing or the test's.
func TestApplier(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{Channel: apiserver.Standard})
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
	permit(t, admin)
	for name, run := range map[string]func(*testing.T, *applierTest){
		"writes only what changes":                testWrites,
		"drift is set right":                      testDrift,
		"foreign objects stay":                    testForeign,
		"autoscaling has the replicas":            testAutoscaling,
		"moves to a DaemonSet":                    testDaemonSet,
		"moves with its class":                    testClass,
		"moves and goes back":                     testClassAndBack,
		"moves with its address":                  testClassWithAddress,
		"a Service that can't be changed":         testLoadBalancerClass,
		"types of Services":                       testServiceTypes,
		"orphans":                                 testOrphans,
		"what is held stays":                      testHeld,
		"authorities":                             testAuthorities,
		"ends with its Gateway":                   testDelete,
		"a Gateway of a file":                     testFile,
		"a Gateway that comes back":               testComesBack,
		"says why it can't":                       testForbidden,
		"says why nothing works":                  testWaiting,
		"settles for what the API server makes":   testAdmission,
		"parameters that can't be put into force": testBadPatch,
	} {
		t.Run(name, func(t *testing.T) {
			namespace := strings.NewReplacer(" ", "-", "'", "").Replace(strings.ToLower(name))
			if err := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
				t.Fatal(err)
			}
			run(t, &applierTest{T: t, Client: admin, rest: server.Config, namespace: namespace})
		})
	}
}

func TestMain(m *testing.M) {
	// Of a kind that may not be listed, controller-runtime waits for ever.
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("sigs.k8s.io/controller-runtime/pkg/cache.newMultiNamespaceInformer.func1"),
		goleak.IgnoreTopFunction("sigs.k8s.io/controller-runtime/pkg/cache.newMultiNamespaceInformerHandlerRegistration.func1"))
}

// permit grants the user that Appliers run as what a controller may do to fleets.
func permit(t *testing.T, admin client.Client) {
	t.Helper()
	all := []string{"get", "list", "watch", "create", "patch", "delete"}
	read := []string{"get", "list", "watch"}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "applier"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"services", "serviceaccounts", "configmaps"}, Verbs: all},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments", "daemonsets"}, Verbs: all},
		{APIGroups: []string{"autoscaling"}, Resources: []string{"horizontalpodautoscalers"}, Verbs: all},
		{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"}, Verbs: all},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: read},
		{APIGroups: []string{gwv1.GroupName}, Resources: []string{"gateways"}, Verbs: read},
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
}

// applierTest is a test with a namespace of its own.
type applierTest struct {
	*testing.T
	client.Client // an administrator's
	rest          *rest.Config
	namespace     string
	user          string // that Appliers run as; applier by default
}

// running is an Applier at work.
type running struct {
	*Applier
	t      *applierTest
	events *events.FakeRecorder
	stop   func()

	mu     sync.Mutex
	writes []string
	states map[ir.Name]*State
	told   int
}

func (t *applierTest) start() *running {
	t.Helper()
	r := &running{t: t, events: events.NewFakeRecorder(100), states: map[ir.Name]*State{}}
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
	o.Authorities = nil
	r.Applier, err = New(ApplierOptions{
		Options: o, REST: config, Client: direct, Namespaces: []string{t.namespace}, Events: r.events,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		OnState: func(gateway ir.Name, s *State) {
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
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error("Run:", err)
		}
	})
	t.Cleanup(r.stop)
	return r
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

// finish lets everything that is queued be done, and ends the Applier.
func (r *running) finish() {
	r.t.Helper()
	r.queue.ShutDownWithDrain()
	r.stop()
}

func (r *running) state(gateway ir.Name) *State {
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

func (t *applierTest) gateway(change ...func(*Gateway)) *Gateway {
	g := &Gateway{
		Name: ir.Name{Namespace: t.namespace, Name: "web"}, UID: "11111111-0000-0000-0000-000000000000", Class: "gatehouse",
		Ports: []Port{{Port: 80, Target: 10080}, {Port: 443, Target: 10443}, {Port: 443, Target: 10443, UDP: true}},
	}
	for _, c := range change {
		c(g)
	}
	return g
}

func with(s v1alpha1.Settings) func(*Gateway) {
	return func(g *Gateway) { g.Settings = &s }
}

// get reads the object of a Gateway's fleet; false if there is none.
func (t *applierTest) get(g *Gateway, o client.Object) bool {
	t.Helper()
	err := t.Get(t.Context(), client.ObjectKey{Namespace: g.Name.Namespace, Name: Name(g.Name, g.Class)}, o)
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
func (t *applierTest) balance(g *Gateway, ips ...string) {
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
func (t *applierTest) pod(g *Gateway, name string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: t.namespace, Name: name, Labels: Labels(g.Name, g.Class), Annotations: map[string]string{gatewayAnnotation: g.Name.String()},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-gatehouse", UID: "r", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "proxy", Image: "nowhere"}}},
	}
	t.must(t.Create(t.Context(), pod))
	return pod
}

func testWrites(t *testing.T, at *applierTest) {
	g := at.gateway()
	a := at.start()
	a.Set(g)
	deployment, service := &appsv1.Deployment{}, &corev1.Service{}
	at.await("a Deployment", func() bool { return at.get(g, deployment) })
	at.get(g, service)
	if len(service.Spec.Ports) != 3 || service.Spec.Ports[2].Protocol != corev1.ProtocolUDP {
		t.Errorf("the Service has ports %v", service.Spec.Ports)
	}
	if owner := metav1.GetControllerOf(deployment); owner == nil || owner.UID != g.UID {
		t.Errorf("the Deployment's owner is %v", owner)
	}
	if w := a.take(); len(w) != 4 {
		t.Errorf("a new fleet takes %d writes: %v", len(w), w)
	}
	a.Set(at.gateway())
	at.setReady(deployment) // what controllers do
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	at.must(at.Status().Update(t.Context(), service))
	a.finish()
	if w := a.take(); len(w) > 0 {
		t.Errorf("nothing has changed, yet: %v", w)
	}

	b := at.start() // after a restart
	b.Set(at.gateway())
	b.Complete()
	at.await("it has looked", func() bool { return b.state(g.Name) != nil })
	b.finish()
	if w := b.take(); len(w) > 0 {
		t.Errorf("a restart changes nothing, yet: %v", w)
	}

	c := at.start()
	c.Set(at.gateway(func(g *Gateway) { g.Ports = g.Ports[:1] }))
	at.await("fewer ports", func() bool { return at.get(g, service) && len(service.Spec.Ports) == 1 })
	c.finish()
	if w := c.take(); len(w) != 1 {
		t.Errorf("a listener less takes these writes: %v", w)
	}
}

func testDrift(t *testing.T, at *applierTest) {
	g := at.gateway()
	a := at.start()
	a.Set(g)
	deployment, service, account, authorities := &appsv1.Deployment{}, &corev1.Service{}, &corev1.ServiceAccount{}, &corev1.ConfigMap{}
	at.await("a Deployment", func() bool { return at.get(g, deployment) })

	at.patch(deployment, `{"spec": {"replicas": 5, "paused": true}, "metadata": {"annotations": {"somebody.example/note": "x"}}}`)
	at.await("1 replica", func() bool { return at.get(g, deployment) && *deployment.Spec.Replicas == 1 })
	if deployment.Annotations["somebody.example/note"] != "x" || !deployment.Spec.Paused {
		t.Errorf("what is somebody else's is gone: %v, paused %t", deployment.Annotations, deployment.Spec.Paused)
	}

	at.get(g, authorities)
	at.patch(authorities, `{"data": {"ca.crt": "false"}}`)
	at.await("the authorities", func() bool {
		return at.get(g, authorities) && authorities.Data["ca.crt"] == string(testOptions.Authorities)
	})

	at.get(g, service)
	before := service.UID
	at.must(at.Client.Delete(t.Context(), service))
	at.await("another Service", func() bool { return at.get(g, service) && service.UID != before })

	for _, patch := range []string{
		`{"spec": {"ports": [{"port": 9, "protocol": "TCP"}]}}`,
		`{"spec": {"ports": [{"name": "tcp-80", "port": 80, "targetPort": 10080, "protocol": "TCP"}, {"name": "a", "port": 9, "protocol": "TCP"}]}}`,
		`{"spec": {"ports": [{"name": "tcp-80", "port": 80, "targetPort": 10080, "protocol": "TCP"}, {"name": "tcp-443", "port": 443, "targetPort": 10443, "protocol": "TCP"}, {"name": "udp-443", "port": 443, "targetPort": 10443, "protocol": "UDP"}, {"name": "a", "port": 9, "protocol": "TCP"}]}}`,
		`{"spec": {"selector": {"app": "evil"}}}`,
	} {
		at.patch(service, patch)
		at.await("the Service's ports and selector", func() bool {
			return at.get(g, service) && len(service.Spec.Ports) == 3 && service.Spec.Ports[0].Port == 80 && len(service.Spec.Selector) == 2
		})
	}
	a.Set(at.gateway(func(g *Gateway) { g.Ports = g.Ports[:1] }))
	at.await("1 port", func() bool { return at.get(g, service) && len(service.Spec.Ports) == 1 })

	at.get(g, account)
	at.patch(account, `{"metadata": {"labels": null}}`)
	at.await("the ServiceAccount's labels", func() bool { return at.get(g, account) && account.Labels[ManagedByLabel] == ManagedBy })
}

func testForeign(t *testing.T, at *applierTest) {
	g := at.gateway()
	foreign := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: at.namespace, Name: "web-gatehouse"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}},
	}
	at.must(at.Create(t.Context(), foreign))
	a := at.start()
	a.Set(g)
	at.await("a problem", func() bool { s := a.state(g.Name); return s != nil && s.Problem != "" })
	if want := "Service foreign-objects-stay/web-gatehouse: there is one already that is not this Gateway's; rename it or the Gateway"; a.state(g.Name).Problem != want {
		t.Errorf("the problem is %q, want %q", a.state(g.Name).Problem, want)
	}
	got := &corev1.Service{}
	if at.get(g, got); got.ResourceVersion != foreign.ResourceVersion {
		t.Error("the foreign Service has changed")
	}
	if !at.get(g, &appsv1.Deployment{}) {
		t.Error("the Service keeps the Deployment back")
	}
	a.Delete(g.Name)
	at.await("the fleet's end", func() bool { return !at.get(g, &appsv1.Deployment{}) })
	if !at.get(g, got) {
		t.Error("the foreign Service is gone")
	}
	a.Set(g)
	at.must(at.Client.Delete(t.Context(), got))
	at.await("our Service", func() bool { return at.get(g, got) && got.Labels[ManagedByLabel] == ManagedBy })
	at.await("no problem", func() bool { s := a.state(g.Name); return s != nil && s.Problem == "" })
}

func testAutoscaling(t *testing.T, at *applierTest) {
	g := at.gateway(with(v1alpha1.Settings{Deployment: &v1alpha1.Deployment{Replicas: new(int32(7))}}))
	a := at.start()
	a.Set(g)
	deployment, scaler := &appsv1.Deployment{}, &autoscalingv2.HorizontalPodAutoscaler{}
	at.await("7 replicas", func() bool { return at.get(g, deployment) && *deployment.Spec.Replicas == 7 })

	scaled := at.gateway(with(v1alpha1.Settings{Deployment: &v1alpha1.Deployment{Autoscaling: &v1alpha1.Autoscaling{MaxReplicas: new(int32(9))}}}))
	a.Set(scaled)
	at.await("an autoscaler", func() bool { return at.get(g, scaler) })
	if at.get(g, deployment); *deployment.Spec.Replicas != 7 {
		t.Errorf("the autoscaler begins with %d replicas", *deployment.Spec.Replicas)
	}
	// The autoscaler's way to scale.
	at.patch(deployment, `{"spec": {"replicas": 3}}`)
	again := *scaled
	again.Ports = again.Ports[:1]
	a.Set(&again)
	service := &corev1.Service{}
	at.await("1 port", func() bool { return at.get(g, service) && len(service.Spec.Ports) == 1 })
	if at.get(g, deployment); *deployment.Spec.Replicas != 3 {
		t.Errorf("the autoscaler wanted 3 replicas, and has %d", *deployment.Spec.Replicas)
	}
	a.take()
	a.Set(at.gateway())
	at.await("no autoscaler", func() bool { return !at.get(g, scaler) })
	at.await("1 replica", func() bool { return at.get(g, deployment) && *deployment.Spec.Replicas == 1 })
}

func testDaemonSet(t *testing.T, at *applierTest) {
	g := at.gateway(with(v1alpha1.Settings{Deployment: &v1alpha1.Deployment{
		Autoscaling: &v1alpha1.Autoscaling{MaxReplicas: new(int32(9))}, PodDisruptionBudget: &v1alpha1.PodDisruptionBudget{MinAvailable: new(intstr.FromInt32(1))},
	}}))
	a := at.start()
	a.Set(g)
	deployment, daemons := &appsv1.Deployment{}, &appsv1.DaemonSet{}
	at.await("an autoscaler", func() bool { return at.get(g, &autoscalingv2.HorizontalPodAutoscaler{}) })

	a.Set(at.gateway(with(v1alpha1.Settings{DaemonSet: &v1alpha1.DaemonSet{}})))
	at.await("a DaemonSet", func() bool { return at.get(g, daemons) })
	at.await("no autoscaler", func() bool { return !at.get(g, &autoscalingv2.HorizontalPodAutoscaler{}) })
	if !at.get(g, deployment) {
		t.Error("the Deployment goes before the DaemonSet is ready")
	}
	at.setReady(daemons)
	at.await("no Deployment", func() bool { return !at.get(g, deployment) })
	if !at.get(g, &corev1.Service{}) || !at.get(g, &corev1.ServiceAccount{}) {
		t.Error("more than the Deployment is gone")
	}
}

// A Gateway that gets another class is served by its former fleet, as it is, until the
// new one is ready and has an address, and the Gateway's status says so.
func testClass(t *testing.T, at *applierTest) {
	live := &gwv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: at.namespace, Name: "web"},
		Spec:       gwv1.GatewaySpec{GatewayClassName: "gatehouse", Listeners: []gwv1.Listener{{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType}}},
	}
	at.must(at.Create(t.Context(), live))
	tell := func(address string) {
		t.Helper()
		ip := gwv1.IPAddressType
		live.Status.Addresses = []gwv1.GatewayStatusAddress{{Type: &ip, Value: address}}
		at.must(at.Status().Update(t.Context(), live))
	}
	g := at.gateway(func(g *Gateway) { g.UID = live.UID }, with(v1alpha1.Settings{Deployment: &v1alpha1.Deployment{Autoscaling: &v1alpha1.Autoscaling{MaxReplicas: new(int32(3))}}}))
	moved := at.gateway(func(g *Gateway) { g.UID, g.Class = live.UID, "other" })
	a := at.start()
	serving := func(service string) {
		t.Helper()
		at.await("serving "+service, func() bool { s := a.state(g.Name); return s != nil && s.Serving == service })
	}
	stays := func(why string) {
		t.Helper()
		for _, ports := range []int{1, 3} { // what it does about the first is done when it has done the second
			again := *moved
			again.Ports = moved.Ports[:ports]
			a.Set(&again)
			service := &corev1.Service{}
			at.await("the ports", func() bool { return at.get(moved, service) && len(service.Spec.Ports) == ports })
		}
		if s := a.state(g.Name).Serving; s != "web-gatehouse" && !strings.Contains(why, "status") {
			t.Errorf("clients are to use %s %s", s, why)
		}
		for _, o := range []client.Object{
			&corev1.Service{}, &appsv1.Deployment{}, &autoscalingv2.HorizontalPodAutoscaler{}, &corev1.ConfigMap{}, &corev1.ServiceAccount{},
		} {
			if !at.get(g, o) {
				t.Errorf("the former %T goes %s", o, why)
			}
		}
	}
	a.Set(g)
	former, deployment := &appsv1.Deployment{}, &appsv1.Deployment{}
	at.await("an autoscaler", func() bool { return at.get(g, &autoscalingv2.HorizontalPodAutoscaler{}) })
	at.get(g, former)
	at.setReady(former)
	at.balance(g, "192.0.2.1")
	tell("192.0.2.1")
	pod := at.pod(g, "web-gatehouse-1")

	a.Set(moved)
	at.await("another Deployment", func() bool { return at.get(moved, deployment) })
	stays("before anything works")
	at.balance(moved, "192.0.2.2")
	stays("before the new proxies are ready")
	at.balance(moved)
	at.setReady(deployment)
	stays("before the new Service has an address")
	at.balance(moved, "192.0.2.2")
	serving("web-other")
	stays("before the Gateway's status tells")
	tell("192.0.2.2")
	at.await("no Deployment of the former fleet", func() bool {
		return !at.get(g, former) && !at.get(g, &autoscalingv2.HorizontalPodAutoscaler{})
	})
	if !at.get(g, &corev1.Service{}) || !at.get(g, &corev1.ServiceAccount{}) || !at.get(g, &corev1.ConfigMap{}) {
		t.Error("the former Service goes before its last proxy")
	}
	at.must(at.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	at.await("no ServiceAccount of the former fleet", func() bool { return !at.get(g, &corev1.ServiceAccount{}) })
	serving("")
	if at.get(g, &corev1.Service{}) || at.get(g, &corev1.ConfigMap{}) || !at.get(moved, &corev1.Service{}) {
		t.Error("the fleet has not moved")
	}
}

// A Gateway that goes back to its former class has never left.
func testClassAndBack(t *testing.T, at *applierTest) {
	g := at.gateway()
	moved := at.gateway(func(g *Gateway) { g.Class = "other" })
	a := at.start()
	a.Set(g)
	deployment, service := &appsv1.Deployment{}, &corev1.Service{}
	at.await("a Deployment", func() bool { return at.get(g, deployment) })
	at.setReady(deployment)
	at.balance(g, "192.0.2.1")
	at.get(g, service)
	a.Set(moved)
	at.await("another Deployment", func() bool { return at.get(moved, &appsv1.Deployment{}) })
	a.Set(g)
	at.await("its end", func() bool { return !at.get(moved, &corev1.ServiceAccount{}) })
	before := service.UID
	if !at.get(g, service) || service.UID != before || !at.get(g, deployment) {
		t.Error("the fleet is another")
	}
}

// An address that a Gateway asks for can't be that of two Services: the new one gets it
// when it is all that is missing.
func testClassWithAddress(t *testing.T, at *applierTest) {
	asks := func(g *Gateway) { g.Addresses = []string{"192.0.2.1"} }
	g, moved := at.gateway(asks), at.gateway(asks, func(g *Gateway) { g.Class = "other" })
	a := at.start()
	a.handoverPatience = time.Second
	a.Set(g)
	deployment := &appsv1.Deployment{}
	at.await("a Deployment", func() bool { return at.get(g, deployment) })
	at.setReady(deployment)
	at.balance(g, "192.0.2.1")
	pod := at.pod(g, "web-gatehouse-1")
	a.Set(moved)
	at.await("another Deployment", func() bool { return at.get(moved, deployment) })
	if !at.get(g, &corev1.Service{}) {
		t.Error("the address goes before the new proxies are ready")
	}
	at.setReady(deployment)
	at.await("the address", func() bool { return !at.get(g, &corev1.Service{}) })
	at.balance(moved, "192.0.2.1")
	at.must(at.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	at.await("the former fleet's end", func() bool { return !at.get(g, &corev1.ServiceAccount{}) })
	if !at.get(moved, &corev1.Service{}) {
		t.Error("the new Service is gone")
	}
}

func testLoadBalancerClass(t *testing.T, at *applierTest) {
	class := func(c string) func(*Gateway) {
		return with(v1alpha1.Settings{Service: &v1alpha1.Service{LoadBalancerClass: &c}})
	}
	a := at.start()
	g := at.gateway(class("lb.example/a"))
	a.Set(g)
	service := &corev1.Service{}
	at.await("a Service", func() bool { return at.get(g, service) && *service.Spec.LoadBalancerClass == "lb.example/a" })
	first := service.UID
	at.patch(service, `{"metadata": {"finalizers": ["lb.example/cleanup"]}}`) // as load balancers do
	a.Set(at.gateway(class("lb.example/b")))
	at.await("the Service's end", func() bool { return at.get(g, service) && service.DeletionTimestamp != nil })
	at.patch(service, `{"metadata": {"finalizers": null}}`)
	at.await("another Service", func() bool {
		return at.get(g, service) && service.UID != first && *service.Spec.LoadBalancerClass == "lb.example/b"
	})
	select {
	case e := <-a.events.Events:
		if !strings.Contains(e, "Warning RecreatingService Service web-gatehouse is deleted and made again") {
			t.Errorf("the event is %q", e)
		}
	default:
		t.Error("there is no event")
	}
	second := service.UID
	a.Set(at.gateway())
	at.await("a third Service", func() bool {
		return at.get(g, service) && service.UID != second && service.Spec.LoadBalancerClass == nil
	})
}

func testServiceTypes(t *testing.T, at *applierTest) {
	a := at.start()
	g, service := at.gateway(), &corev1.Service{}
	first := ""
	for _, kind := range []corev1.ServiceType{"LoadBalancer", "ClusterIP", "NodePort", "LoadBalancer", "NodePort", "ClusterIP"} {
		a.Set(at.gateway(with(v1alpha1.Settings{Service: &v1alpha1.Service{Type: &kind}})))
		at.await(string(kind), func() bool { return at.get(g, service) && service.Spec.Type == kind })
		if first == "" {
			first = string(service.UID)
		}
		if string(service.UID) != first {
			t.Errorf("the Service is made anew to be of type %s", kind)
		}
	}
}

func testOrphans(t *testing.T, at *applierTest) {
	names := []string{"gone", "here", "moved", "known"}
	a := at.start()
	other := at.start()
	other.options.ControllerName = "other.example/controller"
	fleets := map[string]*Gateway{}
	for _, name := range names {
		fleets[name] = at.gateway(func(g *Gateway) { g.Name.Name = name })
		a.Set(fleets[name])
		at.await(name, func() bool { return at.get(fleets[name], &appsv1.Deployment{}) })
	}
	fleets["foreign"] = at.gateway(func(g *Gateway) { g.Name.Name = "foreign" })
	other.Set(fleets["foreign"])
	at.await("the other controller's", func() bool { return at.get(fleets["foreign"], &appsv1.Deployment{}) })
	a.stop()
	other.stop()
	for name, class := range map[string]string{"here": "gatehouse", "moved": "elsewhere"} {
		at.must(at.Create(t.Context(), &gwv1.Gateway{
			ObjectMeta: metav1.ObjectMeta{Namespace: at.namespace, Name: name},
			Spec: gwv1.GatewaySpec{
				GatewayClassName: gwv1.ObjectName(class),
				Listeners:        []gwv1.Listener{{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType}},
			},
		}))
	}
	b := at.start()
	b.Set(fleets["known"])
	at.await("it has looked", func() bool { return b.state(fleets["known"].Name) != nil })
	if w := b.take(); len(w) > 0 {
		t.Errorf("before all Gateways are known: %v", w)
	}
	b.Complete()
	for _, name := range []string{"gone", "moved"} {
		at.await(name+" is removed", func() bool { return !at.get(fleets[name], &corev1.ServiceAccount{}) })
	}
	b.finish()
	for _, name := range []string{"here", "known", "foreign"} {
		if !at.get(fleets[name], &appsv1.Deployment{}) || !at.get(fleets[name], &corev1.Service{}) {
			t.Errorf("%s is removed", name)
		}
	}
	w := b.take()
	slices.Sort(w)
	if w = slices.Compact(w); len(w) != 8 { // what is gone may be asked for twice
		t.Errorf("two fleets of four objects take these writes: %v", w)
	}
}

func testHeld(t *testing.T, at *applierTest) {
	g := at.gateway()
	a := at.start()
	a.Set(g)
	at.await("a Deployment", func() bool { return at.get(g, &appsv1.Deployment{}) })
	a.Complete()
	a.take()
	a.Set(&Gateway{Name: g.Name, UID: g.UID, Class: g.Class, Held: true})
	none := at.gateway(func(g *Gateway) { g.Name.Name, g.Held = "none", true })
	a.Set(none)
	at.await("it has looked", func() bool { return a.state(none.Name) != nil })
	a.finish()
	if w := a.take(); len(w) > 0 {
		t.Errorf("fleets are held, yet: %v", w)
	}
}

func testAuthorities(t *testing.T, at *applierTest) {
	g := at.gateway()
	a := at.start()
	a.SetAuthorities(nil)
	a.Set(g)
	account := &corev1.ServiceAccount{}
	a.SetAuthorities([]byte("first"))
	at.await("a Deployment", func() bool { return at.get(g, &appsv1.Deployment{}) })
	if !at.get(g, account) {
		t.Error("there is no ServiceAccount")
	}
	a.take()
	a.SetAuthorities([]byte("second"))
	authorities := &corev1.ConfigMap{}
	at.await("the other authorities", func() bool { return at.get(g, authorities) && authorities.Data["ca.crt"] == "second" })
	a.finish()
	if w := a.take(); len(w) != 1 {
		t.Errorf("other authorities take these writes: %v", w)
	}
}

func testDelete(t *testing.T, at *applierTest) {
	a := at.start()
	beside := at.gateway(func(g *Gateway) { g.Name.Name = "beside" })
	a.Set(beside)
	for _, end := range []func(*Gateway){
		func(g *Gateway) { a.Delete(g.Name) },
		func(g *Gateway) { a.Set(&Gateway{Name: g.Name, UID: g.UID, Class: g.Class}) }, // without ports
	} {
		g := at.gateway()
		a.Set(g)
		at.await("a fleet", func() bool { return at.get(g, &appsv1.Deployment{}) && a.state(g.Name) != nil })
		end(g)
		at.await("its end", func() bool { return !at.get(g, &corev1.ServiceAccount{}) && a.state(g.Name) == nil })
		if at.get(g, &appsv1.Deployment{}) || at.get(g, &corev1.Service{}) || at.get(g, &corev1.ConfigMap{}) {
			t.Error("something is left")
		}
	}
	if !at.get(beside, &appsv1.Deployment{}) {
		t.Error("another Gateway's fleet is gone too")
	}
}

// A Gateway of which the cluster knows nothing, for it is in a file, can't be the owner
// of anything.
func testFile(t *testing.T, at *applierTest) {
	g := at.gateway(func(g *Gateway) { g.UID = "" })
	a := at.start()
	a.Set(g)
	at.await("a Deployment", func() bool { return at.get(g, &appsv1.Deployment{}) })
	a.Delete(g.Name)
	at.await("its end", func() bool { return !at.get(g, &corev1.ServiceAccount{}) })
}

// A Gateway that is deleted and made again finds the objects of its predecessor,
// before they are collected, and takes them over as they are.
func testComesBack(t *testing.T, at *applierTest) {
	g := at.gateway()
	a := at.start()
	a.Set(g)
	deployment := &appsv1.Deployment{}
	at.await("a Deployment", func() bool { return at.get(g, deployment) })
	before := deployment.UID
	again := at.gateway(func(g *Gateway) { g.UID = "22222222-0000-0000-0000-000000000000" })
	a.Set(again)
	at.await("the new owner", func() bool {
		owner := metav1.GetControllerOf(deployment)
		return at.get(g, deployment) && owner != nil && owner.UID == again.UID
	})
	if len(deployment.OwnerReferences) != 1 || deployment.UID != before {
		t.Errorf("the owners are %v", deployment.OwnerReferences)
	}

	// It comes back a third time, while what it had is being collected.
	third := at.gateway(func(g *Gateway) { g.UID = "33333333-0000-0000-0000-000000000000" })
	service := &corev1.Service{}
	former := map[client.Object]types.UID{deployment: "", service: "", &corev1.ConfigMap{}: "", &corev1.ServiceAccount{}: ""}
	at.get(g, service)
	at.patch(service, `{"metadata": {"finalizers": ["lb.example/cleanup"]}}`) // as load balancers do
	for o := range former {
		at.get(g, o)
		former[o] = o.GetUID()
		at.must(at.Client.Delete(t.Context(), o))
	}
	a.Delete(g.Name)
	a.Set(third)
	at.await("another Deployment", func() bool { return at.get(g, deployment) && deployment.UID != former[deployment] })
	if at.get(g, service); service.UID != former[service] {
		t.Error("the Service is gone before its finalizer")
	}
	at.patch(service, `{"metadata": {"finalizers": null}}`)
	for o, uid := range former {
		at.await(fmt.Sprintf("another %T", o), func() bool {
			there := at.get(g, o)
			owner := metav1.GetControllerOf(o)
			return there && o.GetUID() != uid && owner != nil && owner.UID == third.UID
		})
	}
}

func testForbidden(t *testing.T, at *applierTest) {
	at.user = "weak"
	g := at.gateway()
	a := at.start()
	a.Set(g)
	at.await("a problem", func() bool { s := a.state(g.Name); return s != nil && s.Problem != "" })
	if p := a.state(g.Name).Problem; !strings.HasPrefix(p, "Service says-why-it-cant/web-gatehouse: ") || !strings.Contains(p, `cannot patch resource "services"`) {
		t.Errorf("the problem is %q", p)
	}
	if !at.get(g, &appsv1.Deployment{}) {
		t.Error("the Service keeps the Deployment back")
	}
}

func testWaiting(t *testing.T, at *applierTest) {
	g := at.gateway()
	a := at.start()
	a.Set(g)
	deployment := &appsv1.Deployment{}
	at.await("a Deployment", func() bool { return at.get(g, deployment) })
	pod := at.pod(g, "web-gatehouse-1")
	waits := func(want string) {
		t.Helper()
		at.await(fmt.Sprintf("%q", want), func() bool { s := a.state(g.Name); return s != nil && s.Waiting == want })
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "proxy", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off pulling image"}},
	}}
	at.must(at.Status().Update(t.Context(), pod))
	waits("Pod says-why-nothing-works/web-gatehouse-1 waits for its container proxy: ImagePullBackOff: Back-off pulling image")

	pod.Status.ContainerStatuses = nil
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes are available"}}
	at.must(at.Status().Update(t.Context(), pod))
	waits("Pod says-why-nothing-works/web-gatehouse-1 can't be scheduled: 0/1 nodes are available")

	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now()}}
	at.must(at.Status().Update(t.Context(), pod))
	waits("")
	pod.Status.Conditions[0].LastTransitionTime = metav1.NewTime(time.Now().Add(-time.Minute))
	at.must(at.Status().Update(t.Context(), pod))
	waits("Pod says-why-nothing-works/web-gatehouse-1 runs but is not ready; its log says whether it reaches the controller")

	deployment.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota"}}
	at.must(at.Status().Update(t.Context(), deployment))
	waits("Deployment says-why-nothing-works/web-gatehouse: exceeded quota")

	at.setReady(deployment)
	waits("")
}

func testBadPatch(t *testing.T, at *applierTest) {
	g := at.gateway()
	a := at.start()
	a.Set(g)
	at.await("a Deployment", func() bool { return at.get(g, &appsv1.Deployment{}) })
	a.take()
	bad := v1alpha1.Patch{Target: v1alpha1.PatchTarget{Kind: "Service"}}
	bad.Value.Raw = []byte(`{"spec": {"tpye": "ClusterIP"}}`)
	a.Set(at.gateway(with(v1alpha1.Settings{Patches: []v1alpha1.Patch{bad}})))
	at.await("a problem", func() bool {
		s := a.state(g.Name)
		return s != nil && strings.Contains(s.Problem, `unknown field "tpye"`)
	})
	a.finish()
	if w := a.take(); len(w) > 0 {
		t.Errorf("the fleet was to stay as it is, yet: %v", w)
	}
}

// An admission controller that changes what is applied must not make it be applied
// for ever.
func testAdmission(t *testing.T, at *applierTest) {
	policy := &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster"},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"services"}},
				},
			}}},
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			Mutations: []admissionv1.Mutation{{
				PatchType:          admissionv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: `Object{spec: Object.spec{externalTrafficPolicy: "Cluster"}}`},
			}},
		},
	}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster"},
		Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{
			PolicyName:     "cluster",
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: at.namespace}}},
		},
	}
	at.must(at.Create(t.Context(), policy))
	at.must(at.Create(t.Context(), binding))
	probe := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: at.namespace, Name: "probe"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal},
	}
	at.await("the policy", func() bool {
		got := probe.DeepCopy()
		at.must(at.Create(t.Context(), got, client.DryRunAll))
		return got.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyCluster
	})
	g, service := at.gateway(), &corev1.Service{}
	a := at.start()
	a.Set(g)
	at.await("a Deployment", func() bool { return at.get(g, &appsv1.Deployment{}) })
	if at.get(g, service); service.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyCluster {
		t.Errorf("the policy is %s", service.Spec.ExternalTrafficPolicy)
	}
	a.take()
	a.Set(at.gateway())
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	at.must(at.Status().Update(t.Context(), service))
	a.finish()
	if w := a.take(); len(w) > 0 {
		t.Errorf("nothing has changed, yet: %v", w)
	}
}
