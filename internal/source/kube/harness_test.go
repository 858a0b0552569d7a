package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
)

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m,
		// The end of a watch for metadata is not heard by who would hand on its last event.
		goleak.IgnoreTopFunction("k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop"))
}

// cluster is an API server and a user of it.
type cluster struct {
	*apiserver.Server
	client client.Client
}

func newCluster(t *testing.T, opts apiserver.Options) *cluster {
	t.Helper()
	s := apiserver.Start(t, opts)
	c, _ := connect(t, s.Config)
	return &cluster{s, c}
}

// connect makes a client, and ends its connections with the test.
func connect(t *testing.T, config *rest.Config) (client.WithWatch, *runtime.Scheme) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := kind.All.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme, HTTPClient: transport})
	if err != nil {
		t.Fatal(err)
	}
	return c, scheme
}

func (c *cluster) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.client.Create(t.Context(), o); err != nil {
			t.Fatalf("%T %s/%s: %v", o, o.GetNamespace(), o.GetName(), err)
		}
	}
}

func (c *cluster) delete(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.client.Delete(t.Context(), o); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
}

// update changes an object as it is now.
func update[T client.Object](t *testing.T, c *cluster, o T, change func(T)) {
	t.Helper()
	edit(t, c, o, change, func() error { return c.client.Update(t.Context(), o) })
}

// updateStatus changes an object's status as it is now.
func updateStatus[T client.Object](t *testing.T, c *cluster, o T, change func(T)) {
	t.Helper()
	edit(t, c, o, change, func() error { return c.client.Status().Update(t.Context(), o) })
}

func edit[T client.Object](t *testing.T, c *cluster, o T, change func(T), write func() error) {
	t.Helper()
	// Others may write the object between Get and Update.
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		change(o)
		return write()
	})
	if err != nil {
		t.Fatal(err)
	}
}

// reading is a Source that runs, and what it has handed over.
type reading struct {
	*Source
	t   *testing.T
	log *logged

	mu      sync.Mutex
	batches []source.Batch
	objects map[object.Key]source.Object
	changed map[object.Key]int // how often an object was handed over
	live    map[object.Key]int // how often it was seen to change
}

// read starts a Source, which runs until the test ends or stop is called. It
// returns when the first batch has come.
func read(t *testing.T, config *rest.Config, opts Options) (r *reading, stop func()) {
	t.Helper()
	r, stop = begin(t, config, opts)
	r.wait("the first batch", func() bool { return len(r.batches) > 0 })
	return r, stop
}

func begin(t *testing.T, config *rest.Config, opts Options) (*reading, func()) {
	t.Helper()
	r := &reading{
		t: t, log: &logged{},
		objects: map[object.Key]source.Object{}, changed: map[object.Key]int{}, live: map[object.Key]int{},
	}
	reader, scheme := connect(t, config)
	cacheOptions := CacheOptions(cmp.Or(opts.Kinds, kind.All), opts.Namespaces...)
	cacheOptions.Scheme = scheme
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	cacheOptions.HTTPClient = transport
	opts.Cache, err = cache.New(config, cacheOptions)
	if err != nil {
		t.Fatal(err)
	}
	opts.Client = reader
	opts.Log = slog.New(slog.NewTextHandler(r.log, nil))
	opts.Changed = func(k object.Key) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.live[k]++
	}
	r.Source, err = New(opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := opts.Cache.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	running.Go(func() {
		if err := r.Run(ctx, r.take); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	stop := sync.OnceFunc(func() {
		cancel()
		running.Wait()
		transport.CloseIdleConnections()
	})
	t.Cleanup(stop)
	return r, stop
}

func (r *reading) take(b source.Batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batches = append(r.batches, b)
	r.apply(b)
}

func (r *reading) apply(b source.Batch) {
	for _, k := range b.Deleted {
		delete(r.objects, k)
		r.changed[k]++
	}
	for _, o := range b.Set {
		k := source.KeyOf(o)
		r.objects[k] = o
		r.changed[k]++
	}
}

// want tells the Source what is asked for, as a loop does.
func (r *reading) want(secrets, configMaps []object.Name) source.Batch {
	b, read := r.Want(secrets, configMaps)
	if read != nil {
		fresh := read(r.t.Context())()
		b.Set = append(b.Set, fresh.Set...)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.apply(b)
	return b
}

// wait waits until something has happened; it is looked at with the lock held.
func (r *reading) wait(what string, happened func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		r.mu.Lock()
		ok := happened()
		r.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("this did not happen: %s; the log:\n%s", what, r.log)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// has waits until exactly these objects of a kind are there.
func (r *reading) has(kind string, names ...string) {
	r.t.Helper()
	want := map[string]bool{}
	for _, n := range names {
		want[n] = true
	}
	r.wait(fmt.Sprintf("objects of kind %s are %q", kind, names), func() bool {
		n := 0
		for k := range r.objects {
			if k.Kind.Name() != kind {
				continue
			}
			if n++; !want[k.Name.String()] {
				return false
			}
		}
		return n == len(want)
	})
}

// count returns how often an object was handed over, and was seen to change.
func (r *reading) count(k object.Key) (handed, seen int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed[k], r.live[k]
}

func (r *reading) object(k object.Key) source.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.objects[k]
}

// logged is a log that a test can read while it is written.
type logged struct {
	mu   sync.Mutex
	text []byte
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	return len(p), nil
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

func namespace(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func objectMeta(ns, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: ns, Name: name}
}

func route(ns, name string) *gwv1.HTTPRoute {
	return &gwv1.HTTPRoute{ObjectMeta: objectMeta(ns, name), Spec: gwv1.HTTPRouteSpec{
		CommonRouteSpec: gwv1.CommonRouteSpec{ParentRefs: []gwv1.ParentReference{{Name: "g"}}},
		Hostnames:       []gwv1.Hostname{gwv1.Hostname(name + ".example.com")},
	}}
}

func routeKey(ns, name string) object.Key {
	return object.Key{Kind: kind.HTTPRoute, Name: object.Name{Namespace: ns, Name: name}}
}

func routeStatus(message string) gwv1.HTTPRouteStatus {
	return gwv1.HTTPRouteStatus{RouteStatus: gwv1.RouteStatus{Parents: []gwv1.RouteParentStatus{{
		ParentRef: gwv1.ParentReference{Name: "g"}, ControllerName: "example.com/controller",
		Conditions: []metav1.Condition{{
			Type: "Accepted", Status: metav1.ConditionTrue, Reason: "Accepted", Message: message, LastTransitionTime: metav1.Now(),
		}},
	}}}}
}

func service(ns, name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: objectMeta(ns, name), Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}},
	}}
}

func slice(ns, service, address string) *discoveryv1.EndpointSlice {
	node := "node1"
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ns, Name: service, Labels: map[string]string{discoveryv1.LabelServiceName: service, "other": "label"},
			Annotations: map[string]string{"endpoints.kubernetes.io/last-change-trigger-time": "2026-01-01T00:00:00Z"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{address}, NodeName: &node}},
	}
}

func secret(ns, name, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: objectMeta(ns, name), Data: map[string][]byte{"value": []byte(value)}}
}
