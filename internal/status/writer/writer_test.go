package writer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/status/writer"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
)

const controllerName = "gatehouse.dev/controller"

// TestWriter says what the writer does to a real API server.
func TestWriter(t *testing.T) {
	ctrllog.SetLogger(logr.Discard())
	server := apiserver.Start(t, apiserver.Options{Channel: apiserver.Experimental})
	t.Run("at once", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *bench){
			"foreign entries and conditions":    testForeign,
			"nothing to write":                  testNothing,
			"transition times":                  testTransitions,
			"a burst":                           testBurst,
			"many objects":                      testMany,
			"a storm of conflicts":              testStorm,
			"deleted and made again":            testDeleted,
			"an older generation":               testGeneration,
			"what is left behind":               testLeftBehind,
			"every kind":                        testKinds,
			"events of what a proxy refuses":    testEvents,
			"what can't be written, for a time": testErrors,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, start(t, server))
			})
		}
	})
	t.Run("fields that are pruned", func(t *testing.T) { testPruned(t, start(t, server)) })
	t.Run("an API server that goes and comes", func(t *testing.T) {
		testOutage(t, start(t, server), server)
	})
}

// TestStops says that a writer that has ended leaves nothing behind.
func TestStops(t *testing.T) {
	defer goleak.VerifyNone(t)
	w := writer.New(writer.Options{Live: func(source.Key) client.Object { return nil }, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	w.Set(source.Key{Kind: "Gateway", Name: "g"}, gatewayStatus(1, 0))
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	w.Set(source.Key{Kind: "Gateway", Name: "g"}, nil)
}

// bench is a writer at work in a namespace of its own.
type bench struct {
	client.Client // an administrator's, without a cache
	*writer.Writer
	namespace string
	cache     cache.Cache
	requests  *requests
	events    *events.FakeRecorder
	log       *lockedBuffer
	registry  *prometheus.Registry
}

// requests records the writes of a client.
type requests struct {
	next  http.RoundTripper
	mu    sync.Mutex
	list  []string // method and path
	fault func(*http.Request) *http.Response
}

func (r *requests) RoundTrip(q *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.list = append(r.list, q.Method+" "+q.URL.Path)
	fault := r.fault
	r.mu.Unlock()
	if fault != nil {
		if answer := fault(q); answer != nil {
			return answer, nil
		}
	}
	return r.next.RoundTrip(q)
}

func (r *requests) count(path string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, q := range r.list {
		if strings.Contains(q, path) {
			n++
		}
	}
	return n
}

func (r *requests) answer(fault func(*http.Request) *http.Response) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = fault
}

type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.String()
}

var (
	gvks = map[string]client.Object{
		"GatewayClass": &gwv1.GatewayClass{}, "Gateway": &gwv1.Gateway{}, "ListenerSet": &gwv1.ListenerSet{},
		"HTTPRoute": &gwv1.HTTPRoute{}, "GRPCRoute": &gwv1.GRPCRoute{}, "TLSRoute": &gwv1.TLSRoute{}, "TCPRoute": &gwv1.TCPRoute{}, "UDPRoute": &gwv1.UDPRoute{},
		"BackendTLSPolicy": &gwv1.BackendTLSPolicy{}, "XBackendTrafficPolicy": &gwxv1alpha1.XBackendTrafficPolicy{}, "XBackend": &gwxv1alpha1.XBackend{},
	}
	namespaces atomic.Int32
)

func start(t *testing.T, server *apiserver.Server) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, install := range []func(*runtime.Scheme) error{gwv1.Install, gwxv1alpha1.Install, apiextensionsv1.AddToScheme} {
		if err := install(scheme); err != nil {
			t.Fatal(err)
		}
	}
	b := &bench{
		namespace: fmt.Sprintf("test-%d", namespaces.Add(1)), requests: &requests{}, events: events.NewFakeRecorder(100),
		log: &lockedBuffer{}, registry: prometheus.NewRegistry(),
	}
	config := *server.Config
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		b.requests.next = next
		return b.requests
	})
	writing, err := client.New(&config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if b.Client, err = client.New(server.Config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	namespace.SetName(b.namespace)
	if err := b.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	b.cache, err = cache.New(server.Config, cache.Options{Scheme: scheme, DefaultNamespaces: map[string]cache.Config{b.namespace: {}}})
	if err != nil {
		t.Fatal(err)
	}
	b.Writer = writer.New(writer.Options{
		Client: writing, Live: b.live, ControllerName: controllerName, Events: b.events,
		Log: slog.New(slog.NewTextHandler(b.log, nil)), Registerer: b.registry,
	})
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		if err := b.cache.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	for _, kind := range slices.Sorted(maps.Keys(gvks)) {
		informer, err := b.cache.GetInformer(ctx, gvks[kind])
		if err != nil {
			t.Fatal(err)
		}
		changed := func(o any) {
			if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			b.Changed(keyOf(kind, o.(client.Object)))
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: changed, UpdateFunc: func(_, o any) { changed(o) }, DeleteFunc: changed,
		}); err != nil {
			t.Fatal(err)
		}
	}
	b.cache.WaitForCacheSync(ctx)
	group.Go(func() { _ = b.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		group.Wait()
	})
	return b
}

func keyOf(kind string, o client.Object) source.Key {
	group := gwv1.GroupName
	if strings.HasPrefix(kind, "X") {
		group = gwxv1alpha1.GroupVersion.Group
	}
	return source.Key{Group: group, Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// live reads the cache, as source/kube does.
func (b *bench) live(k source.Key) client.Object {
	o := gvks[k.Kind].DeepCopyObject().(client.Object)
	if err := b.cache.Get(context.Background(), types.NamespacedName{Namespace: k.Namespace, Name: k.Name}, o); err != nil {
		return nil
	}
	return o
}

// make creates an object and waits until the cache has it.
func (b *bench) make(t *testing.T, kind string, o client.Object) source.Key {
	t.Helper()
	if kind != "GatewayClass" {
		o.SetNamespace(b.namespace)
	}
	if err := b.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	k := keyOf(kind, o)
	eventually(t, "the cache has "+k.String(), func() bool {
		live := b.live(k)
		return live != nil && live.GetUID() == o.GetUID()
	})
	return k
}

func (b *bench) gateway(t *testing.T, name string) source.Key {
	t.Helper()
	gw := &gwv1.Gateway{}
	gw.Name, gw.Spec.GatewayClassName = name, "example"
	gw.Spec.Listeners = []gwv1.Listener{{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType}}
	return b.make(t, "Gateway", gw)
}

func (b *bench) route(t *testing.T, name string) source.Key {
	t.Helper()
	r := &gwv1.HTTPRoute{}
	r.Name, r.Spec.ParentRefs = name, []gwv1.ParentReference{{Name: "g"}}
	return b.make(t, "HTTPRoute", r)
}

// stored returns an object as the API server has it.
func (b *bench) stored(t *testing.T, k source.Key) client.Object {
	t.Helper()
	o := gvks[k.Kind].DeepCopyObject().(client.Object)
	if err := b.Get(t.Context(), types.NamespacedName{Namespace: k.Namespace, Name: k.Name}, o); err != nil {
		t.Fatal(err)
	}
	return o
}

func (b *bench) status(t *testing.T, k source.Key) any {
	t.Helper()
	switch o := b.stored(t, k).(type) {
	case *gwv1.Gateway:
		return o.Status
	case *gwv1.HTTPRoute:
		return o.Status.RouteStatus
	}
	t.Fatal(k)
	return nil
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it doesn't come true that %s", what)
		}
	}
}

// settled waits until nothing has been written for a while.
func (b *bench) settled(t *testing.T) {
	t.Helper()
	const quiet = 1500 * time.Millisecond // more than the longest gap between writes
	last, since := -1, time.Now()
	eventually(t, "the writer comes to rest", func() bool {
		if n := b.requests.count("PATCH"); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) > quiet
	})
}

func observed(generation int64, list ...metav1.Condition) []metav1.Condition {
	for i := range list {
		list[i].ObservedGeneration = generation
	}
	return list
}

func gatewayStatus(generation int64, attached int32) *gwv1.GatewayStatus {
	return &gwv1.GatewayStatus{
		Addresses:  []gwv1.GatewayStatusAddress{{Type: new(gwv1.IPAddressType), Value: "192.0.2.1"}},
		Conditions: observed(generation, condition.GatewayAccepted(), condition.GatewayProgrammed()),
		Listeners: []gwv1.ListenerStatus{{
			Name: "http", AttachedRoutes: attached,
			SupportedKinds: []gwv1.RouteGroupKind{{Group: new(gwv1.Group(gwv1.GroupName)), Kind: "HTTPRoute"}},
			Conditions:     observed(generation, condition.ListenerAccepted(), condition.ListenerProgrammed()),
		}},
	}
}

func routeStatus(generation int64, gateways ...string) *gwv1.RouteStatus {
	out := &gwv1.RouteStatus{}
	for _, name := range gateways {
		out.Parents = append(out.Parents, gwv1.RouteParentStatus{
			ParentRef: gwv1.ParentReference{Name: gwv1.ObjectName(name)}, ControllerName: controllerName,
			Conditions: observed(generation, condition.RouteAccepted(), condition.RouteResolvedRefs()),
		})
	}
	return out
}

// merge writes into a status as another controller would.
func (b *bench) merge(t *testing.T, k source.Key, patch string) {
	t.Helper()
	o := gvks[k.Kind].DeepCopyObject().(client.Object)
	o.SetNamespace(k.Namespace)
	o.SetName(k.Name)
	if err := b.Status().Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

const foreignParent = `{"controllerName": "example.com/other", "parentRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "g"},
	"conditions": [{"type": "Accepted", "status": "False", "reason": "NotAllowedByListeners", "message": "no", "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}`

// Others' entries and conditions stay, in whatever order they come, byte for byte.
func testForeign(t *testing.T, b *bench) {
	k := b.route(t, "r")
	b.merge(t, k, `{"status": {"parents": [`+foreignParent+`]}}`)
	foreign := b.raw(t, k, "status", "parents")
	b.Set(k, routeStatus(1, "g", "h"))
	eventually(t, "the route has three entries", func() bool { return len(b.raw(t, k, "status", "parents").([]any)) == 3 })
	b.Set(k, routeStatus(1, "h"))
	eventually(t, "one goes", func() bool { return len(b.raw(t, k, "status", "parents").([]any)) == 2 })
	if d := cmp.Diff(foreign.([]any)[0], b.raw(t, k, "status", "parents").([]any)[0]); d != "" {
		t.Error(d)
	}
	b.Set(k, nil)
	eventually(t, "ours go", func() bool { return cmp.Equal(foreign, b.raw(t, k, "status", "parents")) })

	alone := b.route(t, "alone")
	b.Set(alone, routeStatus(1, "g"))
	eventually(t, "it has an entry", func() bool { return len(b.status(t, alone).(gwv1.RouteStatus).Parents) == 1 })
	b.Set(alone, nil)
	eventually(t, "the last entry goes", func() bool { return len(b.status(t, alone).(gwv1.RouteStatus).Parents) == 0 })

	g := b.gateway(t, "g")
	b.Set(g, gatewayStatus(1, 0))
	accepted := func() bool {
		c, _ := condition.Find(b.status(t, g).(gwv1.GatewayStatus).Conditions, "Accepted")
		return c.Status == metav1.ConditionTrue
	}
	eventually(t, "the Gateway is accepted", accepted)
	live := b.stored(t, g).(*gwv1.Gateway)
	theirs := metav1.Condition{Type: "example.com/Policy", Status: "True", Reason: "Is", LastTransitionTime: metav1.Now()}
	live.Status.Conditions = slices.Insert(live.Status.Conditions, 1, theirs)
	live.Status.Listeners[0].Conditions = slices.Insert(live.Status.Listeners[0].Conditions, 0, theirs)
	if err := b.Client.Status().Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	before := b.raw(t, g, "status").(map[string]any)
	b.Set(g, gatewayStatus(1, 7))
	eventually(t, "the count is right", func() bool { return b.status(t, g).(gwv1.GatewayStatus).Listeners[0].AttachedRoutes == 7 })
	before["listeners"].([]any)[0].(map[string]any)["attachedRoutes"] = int64(7)
	if d := cmp.Diff(before, b.raw(t, g, "status")); d != "" {
		t.Errorf("more than the count has changed:\n%s", d)
	}
	// Whoever takes ours away finds them back.
	live = b.stored(t, g).(*gwv1.Gateway)
	live.Status.Conditions = nil
	if err := b.Client.Status().Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the condition comes back", accepted)
}

// raw returns a field of an object as the API server has it.
func (b *bench) raw(t *testing.T, k source.Key, fields ...string) any {
	t.Helper()
	o := &unstructured.Unstructured{}
	version := "v1"
	if k.Group != gwv1.GroupName {
		version = "v1alpha1"
	}
	o.SetAPIVersion(k.Group + "/" + version)
	o.SetKind(k.Kind)
	if err := b.Get(t.Context(), types.NamespacedName{Namespace: k.Namespace, Name: k.Name}, o); err != nil {
		t.Fatal(err)
	}
	out, _, err := unstructured.NestedFieldCopy(o.Object, fields...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What is so already is not written: not when it is set again, nor by another writer
// after a restart, nor when the object changes otherwise.
func testNothing(t *testing.T, b *bench) {
	g, r := b.gateway(t, "g"), b.route(t, "r")
	set := func() {
		b.Set(g, gatewayStatus(1, 1))
		b.Set(r, routeStatus(1, "g"))
	}
	set()
	b.settled(t)
	if n := b.requests.count("PATCH"); n != 2 {
		t.Fatalf("%d writes at first", n)
	}
	set()
	set()
	second := writer.New(writer.Options{
		Client: b.Client, Live: b.live, ControllerName: controllerName, Log: slog.New(slog.DiscardHandler),
	})
	versions := []string{b.stored(t, g).GetResourceVersion(), b.stored(t, r).GetResourceVersion()}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = second.Run(ctx)
	}()
	second.Set(g, gatewayStatus(1, 1))
	second.Set(r, routeStatus(1, "g"))
	b.settled(t)
	cancel()
	<-done
	if d := cmp.Diff(versions, []string{b.stored(t, g).GetResourceVersion(), b.stored(t, r).GetResourceVersion()}); d != "" {
		t.Errorf("something was written:\n%s", d)
	}
	live := b.stored(t, g)
	live.SetLabels(map[string]string{"a": "b"})
	if err := b.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	b.settled(t)
	if n := b.requests.count("PATCH"); n != 2 {
		t.Errorf("%d writes in the end", n)
	}
}

// A condition's time is that of its last change of status.
func testTransitions(t *testing.T, b *bench) {
	k := b.gateway(t, "g")
	at := func(kind string) metav1.Time {
		c, _ := condition.Find(b.status(t, k).(gwv1.GatewayStatus).Conditions, kind)
		return c.LastTransitionTime
	}
	b.Set(k, gatewayStatus(1, 0))
	b.settled(t)
	if age := time.Since(at("Accepted").Time); age > time.Minute || age < 0 {
		t.Errorf("the first transition was %v ago", age)
	}
	long := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	live := b.stored(t, k).(*gwv1.Gateway)
	for i := range live.Status.Conditions {
		live.Status.Conditions[i].LastTransitionTime = long
	}
	if err := b.Client.Status().Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	next := gatewayStatus(1, 0)
	next.Conditions[0].Message = "in other words"
	next.Conditions[1] = observed(1, condition.GatewayPending("for a proxy"))[0]
	b.Set(k, next)
	b.settled(t)
	if got := at("Accepted"); !got.Equal(&long) {
		t.Errorf("a new message is a transition: %v", got)
	}
	if got := at("Programmed"); got.Equal(&long) {
		t.Errorf("a new status is none")
	}
}

// A thousand routes that come within seconds cost a Gateway few writes, and the count
// is right soon after the last of them.
func testBurst(t *testing.T, b *bench) {
	const routes, most = 1000, 50
	k := b.gateway(t, "g")
	attached := func() int32 {
		s := b.status(t, k).(gwv1.GatewayStatus)
		if len(s.Listeners) == 0 {
			return 0
		}
		return s.Listeners[0].AttachedRoutes
	}
	for i := range int32(routes) {
		b.Set(k, gatewayStatus(1, i+1))
		time.Sleep(10 * time.Millisecond)
	}
	last := time.Now()
	eventually(t, "the count is right", func() bool { return attached() == routes })
	if late := time.Since(last); late > 2*time.Second {
		t.Errorf("the count is right after %v", late)
	}
	b.settled(t)
	if n := b.requests.count("PATCH"); n > most {
		t.Errorf("%d writes", n)
	} else {
		t.Logf("%d writes, right after %v", n, time.Since(last))
	}
}

// Many objects don't wait for each other, and a Gateway doesn't wait for routes.
func testMany(t *testing.T, b *bench) {
	const routes = 200
	g := b.gateway(t, "g")
	keys := make([]source.Key, routes)
	for i := range keys {
		keys[i] = b.route(t, fmt.Sprintf("r-%d", i))
	}
	for _, k := range keys {
		b.Set(k, routeStatus(1, "g"))
	}
	b.Set(g, gatewayStatus(1, routes))
	eventually(t, "the Gateway is written", func() bool { return len(b.status(t, g).(gwv1.GatewayStatus).Listeners) == 1 })
	for _, k := range keys {
		eventually(t, k.String()+" is written", func() bool { return len(b.status(t, k).(gwv1.RouteStatus).Parents) == 1 })
	}
	b.settled(t)
	if n := b.requests.count("PATCH"); n != routes+1 {
		t.Errorf("%d writes of %d objects", n, routes+1)
	}
}

// However often others write, both get what they want, and nobody's write is lost.
func testStorm(t *testing.T, b *bench) {
	k := b.route(t, "r")
	const rounds = 100
	var group sync.WaitGroup
	for n := range 3 {
		name := fmt.Sprintf("example.com/other-%d", n)
		group.Go(func() {
			for i := range rounds {
				for {
					live := b.stored(t, k).(*gwv1.HTTPRoute)
					live.Status.Parents = slices.DeleteFunc(live.Status.Parents, func(p gwv1.RouteParentStatus) bool { return string(p.ControllerName) == name })
					live.Status.Parents = append(live.Status.Parents, gwv1.RouteParentStatus{
						ParentRef: gwv1.ParentReference{Name: "g"}, ControllerName: gwv1.GatewayController(name),
						Conditions: []metav1.Condition{{Type: "Accepted", Status: "True", Reason: "Round", Message: fmt.Sprint(i), LastTransitionTime: metav1.Now()}},
					})
					if err := b.Client.Status().Update(t.Context(), live); err == nil {
						break
					}
				}
			}
		})
	}
	group.Go(func() {
		for i := range rounds {
			b.Set(k, routeStatus(1, fmt.Sprintf("g-%d", i)))
			time.Sleep(5 * time.Millisecond)
		}
	})
	group.Wait()
	eventually(t, "all have their say", func() bool {
		said := map[string]string{}
		for _, p := range b.status(t, k).(gwv1.RouteStatus).Parents {
			said[string(p.ControllerName)] = string(p.ParentRef.Name) + " " + p.Conditions[0].Message
		}
		last := fmt.Sprintf("g %d", rounds-1)
		return len(said) == 4 && said["example.com/other-0"] == last && said["example.com/other-1"] == last && said["example.com/other-2"] == last &&
			strings.HasPrefix(said[controllerName], fmt.Sprintf("g-%d ", rounds-1))
	})
	t.Logf("%d attempts", b.requests.count("PATCH"))
}

// An object that goes costs nothing; one of the same name that comes gets its status.
func testDeleted(t *testing.T, b *bench) {
	k := b.route(t, "r")
	b.Set(k, routeStatus(1, "g"))
	written := func() bool { return len(b.status(t, k).(gwv1.RouteStatus).Parents) == 1 }
	eventually(t, "it is written", written)
	if err := b.Delete(t.Context(), b.stored(t, k)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the cache knows", func() bool { return b.live(k) == nil })
	b.Set(k, routeStatus(1, "g", "h"))
	b.Set(k, routeStatus(1, "g"))
	b.settled(t)
	if n := b.requests.count("PATCH"); n != 1 {
		t.Errorf("%d writes", n)
	}
	b.route(t, "r")
	eventually(t, "the new one is written", written)
	if text := b.log.text(); text != "" {
		t.Errorf("something was logged: %s", text)
	}
}

// A status that was computed from an older spec is not written.
func testGeneration(t *testing.T, b *bench) {
	k := b.gateway(t, "g")
	live := b.stored(t, k).(*gwv1.Gateway)
	live.Spec.Listeners[0].Port = 81
	if err := b.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the cache has it", func() bool { return b.live(k).GetGeneration() == 2 })
	b.Set(k, gatewayStatus(1, 0))
	b.settled(t)
	if n := b.requests.count("PATCH"); n != 0 {
		t.Fatalf("%d writes of an old status", n)
	}
	b.Set(k, gatewayStatus(2, 0))
	eventually(t, "the new one is written", func() bool { return len(b.status(t, k).(gwv1.GatewayStatus).Listeners) == 1 })
}

// What a writer that is no more has left where there should be nothing is taken away.
func testLeftBehind(t *testing.T, b *bench) {
	left, foreign := b.route(t, "left"), b.route(t, "foreign")
	ours := strings.ReplaceAll(foreignParent, "example.com/other", controllerName)
	b.merge(t, left, `{"status": {"parents": [`+ours+`,`+foreignParent+`]}}`)
	b.merge(t, foreign, `{"status": {"parents": [`+foreignParent+`]}}`)
	has := func(k source.Key, n int) func() bool {
		return func() bool { return len(b.live(k).(*gwv1.HTTPRoute).Status.Parents) == n }
	}
	eventually(t, "the cache has them", func() bool { return has(left, 2)() && has(foreign, 1)() })
	b.settled(t)
	if n := b.requests.count("PATCH"); n != 0 {
		t.Fatalf("%d writes before it is known what there is", n)
	}
	b.Complete(slices.Values([]source.Key{left, foreign}))
	eventually(t, "ours is gone", has(left, 1))
	b.settled(t)
	if n := b.requests.count("PATCH"); n != 1 {
		t.Errorf("%d writes", n)
	}

	// A Gateway that goes to another class is taken back.
	g := b.gateway(t, "g")
	b.Set(g, gatewayStatus(1, 0))
	eventually(t, "it is written", func() bool { return len(b.status(t, g).(gwv1.GatewayStatus).Listeners) == 1 })
	b.Set(g, nil)
	eventually(t, "it is nobody's", func() bool {
		s := b.status(t, g).(gwv1.GatewayStatus)
		return len(s.Listeners) == 0 && len(s.Addresses) == 0 && len(s.Conditions) == 2 &&
			s.Conditions[0].Status == metav1.ConditionUnknown && s.Conditions[1].Status == metav1.ConditionUnknown
	})
}

// All kinds with a status can be written.
func testKinds(t *testing.T, b *bench) {
	accepted := observed(1, condition.PolicyAccepted())
	ancestor := gwv1.ParentReference{Name: "g"}
	policy := &gwv1.PolicyStatus{Ancestors: []gwv1.PolicyAncestorStatus{{AncestorRef: ancestor, ControllerName: controllerName, Conditions: accepted}}}
	target := gwv1.LocalPolicyTargetReference{Kind: "Service", Name: "s"}
	meta := metav1.ObjectMeta{Name: "all-kinds"}
	parents := gwv1.CommonRouteSpec{ParentRefs: []gwv1.ParentReference{ancestor}}
	backends := []gwv1.BackendRef{{Name: "s", Port: new(gwv1.PortNumber(80))}}
	for kind, c := range map[string]struct {
		object client.Object
		status any
	}{
		"GatewayClass": {
			&gwv1.GatewayClass{ObjectMeta: meta, Spec: gwv1.GatewayClassSpec{ControllerName: controllerName}},
			&gwv1.GatewayClassStatus{Conditions: observed(1, condition.ClassAccepted()), SupportedFeatures: []gwv1.SupportedFeature{{Name: "Gateway"}}},
		},
		"ListenerSet": {
			&gwv1.ListenerSet{ObjectMeta: meta, Spec: gwv1.ListenerSetSpec{
				ParentRef: gwv1.ParentGatewayReference{Name: "g"}, Listeners: []gwv1.ListenerEntry{{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType}},
			}},
			&gwv1.ListenerSetStatus{Conditions: observed(1, condition.ListenerSetAccepted()), Listeners: []gwv1.ListenerEntryStatus{{
				Name: "http", SupportedKinds: []gwv1.RouteGroupKind{}, Conditions: observed(1, condition.ListenerAccepted()),
			}}},
		},
		"HTTPRoute": {&gwv1.HTTPRoute{ObjectMeta: meta, Spec: gwv1.HTTPRouteSpec{CommonRouteSpec: parents}}, routeStatus(1, "g")},
		"GRPCRoute": {&gwv1.GRPCRoute{ObjectMeta: meta, Spec: gwv1.GRPCRouteSpec{CommonRouteSpec: parents}}, routeStatus(1, "g")},
		"TLSRoute": {&gwv1.TLSRoute{ObjectMeta: meta, Spec: gwv1.TLSRouteSpec{
			CommonRouteSpec: parents, Hostnames: []gwv1.Hostname{"a.test"}, Rules: []gwv1.TLSRouteRule{{BackendRefs: backends}},
		}}, routeStatus(1, "g")},
		"TCPRoute": {&gwv1.TCPRoute{ObjectMeta: meta, Spec: gwv1.TCPRouteSpec{CommonRouteSpec: parents, Rules: []gwv1.TCPRouteRule{{BackendRefs: backends}}}}, routeStatus(1, "g")},
		"UDPRoute": {&gwv1.UDPRoute{ObjectMeta: meta, Spec: gwv1.UDPRouteSpec{CommonRouteSpec: parents, Rules: []gwv1.UDPRouteRule{{BackendRefs: backends}}}}, routeStatus(1, "g")},
		"BackendTLSPolicy": {&gwv1.BackendTLSPolicy{ObjectMeta: meta, Spec: gwv1.BackendTLSPolicySpec{
			TargetRefs: []gwv1.LocalPolicyTargetReferenceWithSectionName{{LocalPolicyTargetReference: target}},
			Validation: gwv1.BackendTLSPolicyValidation{Hostname: "a.test", WellKnownCACertificates: new(gwv1.WellKnownCACertificatesSystem)},
		}}, policy},
		"XBackendTrafficPolicy": {&gwxv1alpha1.XBackendTrafficPolicy{ObjectMeta: meta, Spec: gwxv1alpha1.BackendTrafficPolicySpec{
			TargetRefs: []gwv1.LocalPolicyTargetReference{target},
		}}, policy},
	} {
		k := b.make(t, kind, c.object)
		b.Set(k, c.status)
		eventually(t, k.String()+" is written", func() bool {
			text, _ := json.Marshal(b.raw(t, k, "status"))
			return strings.Contains(string(text), `"observedGeneration":1`)
		})
	}
	b.settled(t)
	if n := b.requests.count("PATCH"); n != 9 {
		t.Errorf("%d writes of 9 kinds", n)
	}
}

// What a proxy has come to refuse is an event of the object, once.
func testEvents(t *testing.T, b *bench) {
	k := b.route(t, "r")
	refused := routeStatus(1, "g")
	refused.Parents[0].Conditions = append(refused.Parents[0].Conditions,
		observed(1, condition.RouteNotProgrammed([]condition.Refusal{{Subject: "host \"a\"", Envoy: strings.Repeat("bad ä", 400)}}, nil))...)
	b.Set(k, routeStatus(1, "g"))
	b.settled(t)
	b.Set(k, refused)
	b.settled(t)
	more := refused.DeepCopy()
	more.Parents[0].Conditions[0].Message = "in other words"
	b.Set(k, more)
	b.settled(t)
	select {
	case e := <-b.events.Events:
		if !strings.HasPrefix(e, `Warning RejectedByProxy Envoy refuses host "a", and`) || len(e) > 1100 {
			t.Errorf("%d bytes: %s", len(e), e)
		}
	default:
		t.Fatal("no event")
	}
	if len(b.events.Events) > 0 {
		t.Errorf("and another: %s", <-b.events.Events)
	}
}

// An error is logged once, tried again, and holds up nobody else.
func testErrors(t *testing.T, b *bench) {
	bad, good := b.route(t, "bad"), b.route(t, "good")
	b.requests.answer(func(q *http.Request) *http.Response {
		if !strings.Contains(q.URL.Path, "/bad/") {
			return nil
		}
		return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("not for you")), Request: q}
	})
	b.Set(bad, routeStatus(1, "g"))
	b.Set(good, routeStatus(1, "g"))
	eventually(t, "the good one is written", func() bool { return len(b.status(t, good).(gwv1.RouteStatus).Parents) == 1 })
	eventually(t, "the bad one is tried again", func() bool { return b.requests.count("/bad/") >= 3 })
	if n := strings.Count(b.log.text(), "can't be written"); n != 1 {
		t.Errorf("%d lines: %s", n, b.log.text())
	}
	b.requests.answer(nil)
	eventually(t, "it is written in the end", func() bool { return len(b.status(t, bad).(gwv1.RouteStatus).Parents) == 1 })
	eventually(t, "it is told", func() bool { return strings.Contains(b.log.text(), "could be written again") })
	families, err := b.registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatal(families, err)
	}
	counts := map[string]float64{}
	for _, m := range families[0].Metric {
		counts[m.Label[0].GetValue()+" "+m.Label[1].GetValue()] = m.Counter.GetValue()
	}
	if counts["HTTPRoute ok"] != 2 || counts["HTTPRoute error"] < 3 {
		t.Errorf("%v", counts)
	}
}

// A field that the cluster's version of a kind doesn't have is written in vain only
// once.
func testPruned(t *testing.T, b *bench) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := b.Get(t.Context(), types.NamespacedName{Name: "gateways." + gwv1.GroupName}, crd); err != nil {
		t.Fatal(err)
	}
	whole := crd.DeepCopy()
	for i := range crd.Spec.Versions {
		delete(crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["status"].Properties, "attachedListenerSets")
	}
	if err := b.Update(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	defer func() {
		whole.ResourceVersion = crd.ResourceVersion
		if err := b.Get(context.Background(), types.NamespacedName{Name: crd.Name}, crd); err == nil {
			whole.ResourceVersion = crd.ResourceVersion
		}
		if err := b.Update(context.Background(), whole); err != nil {
			t.Error(err)
		}
	}()
	k := b.gateway(t, "g")
	eventually(t, "the field is not kept", func() bool {
		b.merge(t, k, `{"status": {"attachedListenerSets": 3}}`)
		return b.status(t, k).(gwv1.GatewayStatus).AttachedListenerSets == nil
	})
	s := gatewayStatus(1, 0)
	s.AttachedListenerSets = new(int32(3))
	b.Set(k, s)
	b.settled(t)
	if n := b.requests.count("PATCH"); n != 1 {
		t.Errorf("%d writes", n)
	}
	next := s.DeepCopy()
	next.Listeners[0].AttachedRoutes = 1
	b.Set(k, next)
	eventually(t, "what is kept is written", func() bool { return b.status(t, k).(gwv1.GatewayStatus).Listeners[0].AttachedRoutes == 1 })
}

// While there is no API server nothing is lost.
func testOutage(t *testing.T, b *bench, server *apiserver.Server) {
	k := b.gateway(t, "g")
	server.Kill()
	for i := range int32(10) {
		b.Set(k, gatewayStatus(1, i))
	}
	eventually(t, "it is tried", func() bool { return b.requests.count("") >= 2 })
	server.Resume()
	eventually(t, "the last one is written", func() bool {
		s := b.status(t, k).(gwv1.GatewayStatus)
		return len(s.Listeners) == 1 && s.Listeners[0].AttachedRoutes == 9
	})
}
