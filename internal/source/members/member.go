package members

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1alpha1 "sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// member is a cluster that is read.
type member struct {
	Cluster
	source   *Source
	read     chan struct{} // closed when it has been read once
	readOnce func()

	// Of source.mu:
	contents  *contents
	state     source.Remote
	failed    error     // of the last request that the cluster refused
	failedAt  time.Time // when that was
	forgotten bool      // what it had is not in force any more
}

// contents are the objects of a cluster.
type contents struct {
	services map[object.Name]*corev1.Service
	slices   map[object.Name]map[string]*discoveryv1.EndpointSlice // by their Services
	exports  map[object.Name]time.Time                             // and since when
}

func newContents() *contents {
	return &contents{
		services: map[object.Name]*corev1.Service{}, slices: map[object.Name]map[string]*discoveryv1.EndpointSlice{},
		exports: map[object.Name]time.Time{},
	}
}

func newMember(s *Source, c Cluster) *member {
	if c.KeepFor == 0 {
		c.KeepFor = DefaultKeepFor
	}
	m := &member{Cluster: c, source: s, read: make(chan struct{}), contents: newContents(), state: source.Remote{Address: "cluster " + c.Name}}
	m.readOnce = sync.OnceFunc(func() { close(m.read) })
	return m
}

// title names the cluster in problems and logs.
func (m *member) title() string { return m.state.Address }

// How often a cluster is asked whether it is there, and how often while it isn't; how long it has to answer; and how long
// after a request that it has refused it counts as one that can't be read: informers try again within that.
const (
	askEvery   = 5 * time.Second
	askLost    = time.Second
	askTimeout = 5 * time.Second
	refusedFor = time.Minute
)

// stateNow is how it is with the cluster; the caller has the lock.
func (m *member) stateNow() source.Remote {
	st := m.state
	if st.Current {
		st.AsOf = time.Now()
	}
	st.Objects = len(m.contents.exports)
	return st
}

// problem says what is wrong with the cluster; the caller has the lock.
func (m *member) problem() string {
	switch {
	case m.state.Current || m.state.Error == "":
		return ""
	case m.state.AsOf.IsZero():
		return "the cluster can't be read, and nothing is known of it: " + m.state.Error
	case m.forgotten:
		return fmt.Sprintf("the cluster can't be read for more than %s, and what it had is not in force any more: %s", m.KeepFor, m.state.Error)
	}
	return "the cluster can't be read, and its last state stays in force: " + m.state.Error
}

// run reads the cluster until ctx ends, and connects again as often as it takes.
func (m *member) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := m.connect(ctx)
		if ctx.Err() != nil || errors.Is(err, errAnew) {
			continue
		}
		m.lost(err)
		wait := time.NewTimer(askLost/2 + rand.N(askLost/2))
		select {
		case <-wait.C:
		case <-ctx.Done():
		}
		wait.Stop()
	}
}

// errAnew ends a connection in whose place there is to be a new one: the kubeconfig is another one now, or the cluster is
// back, while informers wait longer with each attempt that fails.
var errAnew = errors.New("connect anew")

// connect reads the cluster with what its kubeconfig says now, and returns when that has changed, or why it can't begin.
func (m *member) connect(ctx context.Context) error {
	config, version, err := m.config()
	if err != nil {
		return err
	}
	asked, err := m.asking(config)
	if err != nil {
		return err
	}
	export, err := exportType(asked)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	m.forgive()
	synced := make(chan error, 2)
	if err := m.watch(ctx, config, export, synced); err != nil {
		return err
	}
	next := time.NewTimer(askEvery)
	defer next.Stop()
	isRead, isLost := false, false
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-synced:
			if err != nil {
				return err
			}
			isRead = true
			m.here()
		case <-next.C:
			err := ask(ctx, asked)
			switch {
			case ctx.Err() != nil:
				return nil
			case m.changed(version), err == nil && isLost:
				return errAnew
			case err != nil:
				isLost = true
				m.lost(err)
			case m.refused() != nil:
				m.lost(m.refused())
			case isRead:
				m.here()
			}
			if isLost {
				next.Reset(askLost)
			} else {
				next.Reset(askEvery)
			}
		}
	}
}

// config reads the kubeconfig. The version tells it from another one.
func (m *member) config() (config *rest.Config, version string, err error) {
	if m.Kubeconfig == "" {
		config = rest.CopyConfig(m.REST)
	} else {
		version = fileVersion(m.Kubeconfig)
		config, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
			&clientcmd.ClientConfigLoadingRules{ExplicitPath: m.Kubeconfig}, &clientcmd.ConfigOverrides{CurrentContext: m.Context}).ClientConfig()
		if err != nil {
			return nil, "", fmt.Errorf("kubeconfig %s: %w", m.Kubeconfig, err)
		}
	}
	config.UserAgent = "gatehouse"
	return config, version, nil
}

// changed reports whether the kubeconfig is another one than a version. One that is gone is no other one: it may be about to
// be replaced.
func (m *member) changed(version string) bool {
	now := ""
	if m.Kubeconfig != "" {
		now = fileVersion(m.Kubeconfig)
	}
	return now != "" && now != version
}

func fileVersion(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(info.ModTime().UnixNano(), " ", info.Size())
}

// asking is a client for short questions.
func (m *member) asking(config *rest.Config) (*discovery.DiscoveryClient, error) {
	config = rest.CopyConfig(config)
	config.Timeout = askTimeout
	return discovery.NewDiscoveryClientForConfig(config)
}

// ask asks whether the API server is there and knows who asks.
func ask(ctx context.Context, c *discovery.DiscoveryClient) error {
	ctx, end := context.WithTimeout(ctx, askTimeout)
	defer end()
	return c.RESTClient().Get().AbsPath("/version").Do(ctx).Error()
}

// exportType is ServiceExport in the version that the cluster has.
func exportType(c *discovery.DiscoveryClient) (*metav1.PartialObjectMetadata, error) {
	for _, v := range []string{mcsv1beta1.GroupVersion.String(), mcsv1alpha1.GroupVersion.String()} {
		list, err := c.ServerResourcesForGroupVersion(v)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			if r.Kind == mcsv1beta1.ServiceExportKindName {
				return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: v, Kind: r.Kind}}, nil
			}
		}
	}
	return nil, fmt.Errorf("it doesn't know ServiceExports, by which Services are exported; install the CustomResourceDefinition %s", mcsv1beta1.ServiceExportFullName)
}

// watch begins to watch the cluster, and says when all of it has been read.
func (m *member) watch(ctx context.Context, config *rest.Config, export *metav1.PartialObjectMetadata, synced chan<- error) error {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	opts := cache.Options{
		Scheme: scheme, DefaultTransform: strip, ReaderFailOnMissingInformer: true,
		DefaultWatchErrorHandler: func(_ context.Context, _ *toolscache.Reflector, err error) { m.refuse(err) },
	}
	for _, ns := range m.Namespaces {
		if opts.DefaultNamespaces == nil {
			opts.DefaultNamespaces = map[string]cache.Config{}
		}
		opts.DefaultNamespaces[ns] = cache.Config{}
	}
	c, err := cache.New(config, opts)
	if err != nil {
		return err
	}
	next := newContents()
	var handled []toolscache.InformerSynced
	for _, o := range []client.Object{&corev1.Service{}, &discoveryv1.EndpointSlice{}, export} {
		informer, err := c.GetInformer(ctx, o, cache.BlockUntilSynced(false))
		if err != nil {
			return err
		}
		r, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { m.take(next, o, true) },
			UpdateFunc: func(old, o any) { m.take(next, old, false); m.take(next, o, true) },
			DeleteFunc: func(o any) {
				if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
					o = gone.Obj
				}
				m.take(next, o, false)
			},
		})
		if err != nil {
			return err
		}
		handled = append(handled, r.HasSynced)
	}
	go func() {
		if err := c.Start(ctx); err != nil {
			synced <- err
		}
	}()
	go func() {
		if toolscache.WaitForCacheSync(ctx.Done(), handled...) {
			m.replace(next)
			synced <- nil
		}
	}()
	return nil
}

// strip leaves of an object what is read of it, before it is kept.
func strip(in any) (any, error) {
	if o, ok := in.(client.Object); ok {
		o.SetManagedFields(nil)
		o.SetAnnotations(nil)
	}
	return in, nil
}

// take takes an object into the contents of the cluster, or out of them.
func (m *member) take(c *contents, in any, is bool) {
	o, ok := in.(client.Object)
	if !ok {
		return
	}
	m.source.mu.Lock()
	defer m.source.mu.Unlock()
	name := object.Name{Namespace: o.GetNamespace(), Name: o.GetName()}
	switch o := o.(type) {
	case *corev1.Service:
		put(c.services, name, o, is)
	case *metav1.PartialObjectMetadata:
		put(c.exports, name, o.CreationTimestamp.Time, is)
	case *discoveryv1.EndpointSlice:
		name.Name = o.Labels[discoveryv1.LabelServiceName]
		if name.Name == "" {
			return
		}
		if c.slices[name] == nil {
			c.slices[name] = map[string]*discoveryv1.EndpointSlice{}
		}
		if put(c.slices[name], o.Name, o, is); len(c.slices[name]) == 0 {
			delete(c.slices, name)
		}
	}
	if c == m.contents {
		m.source.touch(name)
	}
}

func put[K comparable, V any](in map[K]V, k K, v V, is bool) {
	if is {
		in[k] = v
	} else {
		delete(in, k)
	}
}

// replace puts what has been read in the place of what was read by an earlier connection.
func (m *member) replace(c *contents) {
	m.source.mu.Lock()
	defer m.source.mu.Unlock()
	m.touchAll()
	m.contents = c
	m.touchAll()
}

// touchAll has all that the cluster exports made anew; the caller has the lock.
func (m *member) touchAll() { m.source.touch(slices.Collect(maps.Keys(m.contents.exports))...) }

// here notes that what is known of the cluster is what it has.
func (m *member) here() {
	m.source.mu.Lock()
	defer m.source.mu.Unlock()
	if !m.state.Current {
		m.source.opts.Log.Info("the member cluster is read", "cluster", m.Name, "exports", len(m.contents.exports))
	}
	m.state.Current, m.state.AsOf, m.state.Error = true, time.Now(), ""
	if m.forgotten {
		m.forgotten = false
		m.touchAll()
	}
	m.source.touch() // for what was wrong
	m.readOnce()
}

// lost notes why the cluster can't be read.
func (m *member) lost(err error) {
	m.source.mu.Lock()
	defer m.source.mu.Unlock()
	text := strings.Join(strings.Fields(err.Error()), " ")
	if m.state.Error != text {
		m.source.opts.Log.Error("the member cluster can't be read; it is tried again", "cluster", m.Name, "error", text)
	}
	m.state.Current, m.state.Error = false, text
	if !m.forgotten && !m.state.AsOf.IsZero() && time.Since(m.state.AsOf) > m.KeepFor {
		m.forgotten = true
		m.touchAll()
	}
	m.source.touch()
}

// refuse notes a request of informers that has failed. That the cluster has forgotten an old version, or ends a watch, is
// no failure.
func (m *member) refuse(err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return
	}
	m.source.mu.Lock()
	defer m.source.mu.Unlock()
	m.failed, m.failedAt = err, time.Now()
}

// forgive forgets what has failed, since all is tried anew.
func (m *member) forgive() {
	m.source.mu.Lock()
	defer m.source.mu.Unlock()
	m.failed = nil
}

// refused is what the cluster has refused of late; nil for nothing.
func (m *member) refused() error {
	m.source.mu.Lock()
	defer m.source.mu.Unlock()
	if time.Since(m.failedAt) > refusedFor {
		return nil
	}
	return m.failed
}
