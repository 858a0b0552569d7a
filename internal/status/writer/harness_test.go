package writer_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/status/writer"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
	"github.com/gatehouse-dev/gatehouse/test/output"
)

// bench is a writer at work in a namespace of its own.
type bench struct {
	client.Client // an administrator's, without a cache
	*writer.Writer
	namespace string
	cache     cache.Cache
	lagging   sync.Map // of object.Key: what the cache has of it for now
	readers   sync.Map // of object.Key: a func() that runs once, after the cache has been read
	requests  *requests
	events    *events.FakeRecorder
	log       *output.Buffer
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

var namespaces atomic.Int32

// start starts a writer that knows everything.
func start(t *testing.T, server *apiserver.Server) *bench {
	t.Helper()
	b := begin(t, server)
	b.Complete(func(func(object.Key) bool) {})
	return b
}

// begin starts one that doesn't yet.
func begin(t *testing.T, server *apiserver.Server) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, install := range []func(*runtime.Scheme) error{kind.All.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := install(scheme); err != nil {
			t.Fatal(err)
		}
	}
	b := &bench{
		namespace: fmt.Sprintf("test-%d", namespaces.Add(1)), requests: &requests{}, events: events.NewFakeRecorder(100),
		log: &output.Buffer{}, registry: prometheus.NewRegistry(),
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
		Client: writing, Live: b.live, ControllerName: controllerName, FieldOwner: "gatehouse", Events: b.events,
		Log: slog.New(slog.NewTextHandler(b.log, nil)), Registerer: b.registry,
	})
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		if err := b.cache.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	for d := range kind.All.Rows() {
		if d.Status == nil {
			continue
		}
		informer, err := b.cache.GetInformer(ctx, d.New())
		if err != nil {
			t.Fatal(err)
		}
		changed := func(o any) {
			if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			b.Changed(d.KeyOf(o.(client.Object)))
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

// live reads the cache, as source/kube does. Where the cache lags, it has what it had when
// that began.
func (b *bench) live(k object.Key) client.Object {
	if held, ok := b.lagging.Load(k); ok {
		return held.(client.Object)
	}
	o := kind.All.Of(k.Kind).New()
	if err := b.cache.Get(context.Background(), types.NamespacedName{Namespace: k.Namespace, Name: k.Name.Name}, o); err != nil {
		return nil
	}
	if f, ok := b.readers.LoadAndDelete(k); ok {
		f.(func())()
	}
	return o
}

// lag lets the cache see no more of an object, until catchUp.
func (b *bench) lag(k object.Key)     { b.lagging.Store(k, b.live(k)) }
func (b *bench) catchUp(k object.Key) { b.lagging.Delete(k); b.Changed(k) }

// make creates an object and waits until the cache has it.
func (b *bench) make(t *testing.T, o client.Object) object.Key {
	t.Helper()
	d := kind.All.OfObject(o)
	if d.Scope == kind.Namespaced {
		o.SetNamespace(b.namespace)
	}
	if err := b.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	k := d.KeyOf(o)
	eventually(t, "the cache has "+k.String(), func() bool {
		live := b.live(k)
		return live != nil && live.GetUID() == o.GetUID()
	})
	return k
}

func (b *bench) gateway(t *testing.T, name string) object.Key {
	t.Helper()
	gw := &gwv1.Gateway{}
	gw.Name, gw.Spec.GatewayClassName = name, "example"
	gw.Spec.Listeners = []gwv1.Listener{{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType}}
	return b.make(t, gw)
}

func (b *bench) route(t *testing.T, name string) object.Key {
	t.Helper()
	r := &gwv1.HTTPRoute{}
	r.Name, r.Spec.ParentRefs = name, []gwv1.ParentReference{{Name: "g"}}
	return b.make(t, r)
}

// stored returns an object as the API server has it.
func (b *bench) stored(t *testing.T, k object.Key) client.Object {
	t.Helper()
	o := kind.All.Of(k.Kind).New()
	if err := b.Get(t.Context(), types.NamespacedName{Namespace: k.Namespace, Name: k.Name.Name}, o); err != nil {
		t.Fatal(err)
	}
	return o
}

func (b *bench) status(t *testing.T, k object.Key) any {
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
func (b *bench) merge(t *testing.T, k object.Key, patch string) {
	t.Helper()
	o := kind.All.Of(k.Kind).New()
	o.SetNamespace(k.Namespace)
	o.SetName(k.Name.Name)
	if err := b.Status().Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// raw returns a field of an object as the API server has it.
func (b *bench) raw(t *testing.T, k object.Key, fields ...string) any {
	t.Helper()
	o := &unstructured.Unstructured{}
	d := kind.All.Of(k.Kind)
	o.SetGroupVersionKind(d.GroupVersionKind(d.Versions[0].Name))
	if err := b.Get(t.Context(), types.NamespacedName{Namespace: k.Namespace, Name: k.Name.Name}, o); err != nil {
		t.Fatal(err)
	}
	out, _, err := unstructured.NestedFieldCopy(o.Object, fields...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
