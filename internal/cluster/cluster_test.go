package cluster

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/test/apiserver"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

func TestMain(m *testing.M) {
	crlog.SetLogger(logr.Discard())
	os.Exit(apiserver.Shared(m).Run())
}

// installed is a real API server with what the manifest installs, of which nothing runs.
type installed struct {
	*testing.T
	*apiserver.Server
	client  client.Client
	kinds   *kind.Table
	decoder runtime.Decoder
	writes  atomic.Int32 // of what is kept
	// withholds is that of the replicas that are launched next.
	withholds string
	// prepare, if not nil, is called with each of them before it runs.
	prepare func(*Cluster)
	// asks, if not nil, answers what they ask of the API server.
	asks func(*replica, *http.Request, http.RoundTripper) (*http.Response, error)
	// refused is whether their changed configuration can't be used.
	refused atomic.Bool
}

// install has a cluster in which these kinds are read besides those of kind.All.
func install(t *testing.T, more ...*kind.Descriptor) *installed {
	t.Helper()
	return installOn(t, apiserver.Options{Channel: apiserver.Experimental}, more...)
}

// installOn is install on another API server.
func installOn(t *testing.T, options apiserver.Options, more ...*kind.Descriptor) *installed {
	t.Helper()
	return installFrom(t, options, "../../config/install.yaml", more...)
}

// installFrom is installOn of another manifest.
func installFrom(t *testing.T, options apiserver.Options, manifest string, more ...*kind.Descriptor) *installed {
	t.Helper()
	kinds := kind.All.With(more...)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kinds.AddToScheme, appsv1.AddToScheme, corev1.AddToScheme, eventsv1.AddToScheme, networkingv1.AddToScheme, rbacv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	server := apiserver.Start(t, options)
	c, err := client.New(server.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	in := &installed{T: t, Server: server, client: c, kinds: kinds, decoder: serializer.NewCodecFactory(scheme).UniversalDeserializer()}
	for _, file := range []string{"../../config/namespace.yaml", manifest} {
		apiserver.Install(t, server.Config, file)
	}
	in.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: team}}`)
	return in
}

// apply makes objects as they are given in YAML, or replaces their content.
func (in *installed) apply(texts ...string) {
	in.Helper()
	for _, text := range texts {
		raw, err := yaml.YAMLToJSONStrict([]byte(text))
		if err != nil {
			in.Fatal(err)
		}
		decoded, _, err := in.decoder.Decode(raw, nil, nil)
		if err != nil {
			in.Fatal(err)
		}
		o := decoded.(client.Object)
		// A controller may write the object's status between Get and Update.
		err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			live := o.DeepCopyObject().(client.Object)
			err := in.client.Get(in.Context(), client.ObjectKeyFromObject(o), live)
			if apierrors.IsNotFound(err) {
				return in.client.Create(in.Context(), o)
			}
			if err != nil {
				return err
			}
			o.SetResourceVersion(live.GetResourceVersion())
			return in.client.Update(in.Context(), o)
		})
		if err != nil {
			in.Fatalf("%s: %v", text, err)
		}
	}
}

// replica is a controller that runs with the rights that the manifest gives it.
type replica struct {
	*Cluster
	end  func()
	away atomic.Bool // nothing that it asks of the API server is answered
	anew atomic.Bool // it has ended to start anew
	mute atomic.Bool // requests about the Lease are not answered
	// withholds is the end of the path of objects whose requests wait, until released is
	// closed, and withheld how many wait.
	withholds atomic.Pointer[string]
	withheld  atomic.Int32
	released  chan struct{}
}

// vanish ends a replica as a crash does: it takes leave of nobody.
func (r *replica) vanish() {
	r.away.Store(true)
	r.end()
}

var (
	nextReplica      atomic.Int32
	replicaPorts     sync.Once
	xdsPort, apiPort int
)

// start runs a replica until end is called, or the test ends. It returns when the
// replica is ready.
func (in *installed) start(change ...func(*configuration.Configuration)) *replica {
	in.Helper()
	r := in.launch("gatehouse-system", change...)
	in.until("the replica is ready", func() bool { ok, _ := r.Ready(); return ok })
	return r
}

// launch is start without the wait. A replica in another namespace than that of the
// manifest has all rights.
func (in *installed) launch(namespace string, change ...func(*configuration.Configuration)) *replica {
	in.Helper()
	replicaPorts.Do(func() { xdsPort, apiPort = port.OfTest(in.T), port.OfTest(in.T) })
	cfg := configuration.Default()
	cfg.Ports = configuration.Ports{XDS: xdsPort, API: apiPort}
	cfg.Infrastructure.Image = "gatehouse"
	cfg.LeaderElection.LeaseDuration.Duration, cfg.LeaderElection.RenewDeadline.Duration, cfg.LeaderElection.RetryPeriod.Duration =
		3*time.Second, 2*time.Second, 200*time.Millisecond
	cfg.LeaderElection.TakeOverAfter.Duration = 12 * time.Second
	for _, f := range change {
		f(cfg)
	}
	n := nextReplica.Add(1)
	self := Replica{Namespace: namespace, Name: "replica-" + strconv.Itoa(int(n)), IP: "127.77.0." + strconv.Itoa(int(n))}
	self.Host = self.IP
	as := rest.CopyConfig(in.Config)
	if namespace == "gatehouse-system" {
		account := "gatehouse"
		if !cfg.Has(configuration.RoleConfiguration) {
			account = "gatehouse-infrastructure"
		}
		as.Impersonate = rest.ImpersonationConfig{
			UserName: "system:serviceaccount:gatehouse-system:" + account,
			Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:gatehouse-system", "system:authenticated"},
		}
	}
	r := &replica{released: make(chan struct{})}
	if withholds := in.withholds; withholds != "" {
		r.withholds.Store(&withholds)
	}
	as.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if r.away.Load() {
				return nil, errors.New("the replica is gone")
			}
			if request.Method != http.MethodGet && strings.HasSuffix(request.URL.Path, "/gatehouse-settings") {
				in.writes.Add(1)
			}
			if path := r.withholds.Load(); path != nil && request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, *path) {
				r.withheld.Add(1)
				defer r.withheld.Add(-1)
				select {
				case <-r.released:
				case <-request.Context().Done():
					return nil, request.Context().Err()
				}
			}
			if r.mute.Load() && strings.Contains(request.URL.Path, "/leases/") {
				<-request.Context().Done()
				return nil, request.Context().Err()
			}
			if in.asks != nil {
				return in.asks(r, request, next)
			}
			return next.RoundTrip(request)
		})
	})
	ctx, cancel := context.WithCancel(context.Background())
	cluster, err := New(ctx, Options{Config: cfg, REST: as, Self: self, Kinds: in.kinds, Refused: in.refused.Load, Logs: configuration.NewLogs(cfg.Log, in.Output())})
	if err != nil {
		cancel()
		in.Fatal(err)
	}
	if in.prepare != nil {
		in.prepare(cluster)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := cluster.Run(ctx)
		if r.anew.Store(errors.Is(err, ErrOtherChannel)); err != nil && !r.anew.Load() {
			in.Error(err)
		}
	}()
	r.Cluster, r.end = cluster, sync.OnceFunc(func() { cancel(); <-done })
	in.Cleanup(r.end)
	return r
}

// withhold lets requests for an object wait until release is called.
func (r *replica) withhold(path string) (release func()) {
	r.withholds.Store(&path)
	return sync.OnceFunc(func() { close(r.released) })
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// longestWait bounds every wait of these tests; none waits that long.
const longestWait = 20 * time.Second

// until polls: most of what a test waits for is done by other processes.
func (in *installed) until(what string, done func() bool) {
	in.Helper()
	for deadline := time.Now().Add(longestWait); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			in.Fatalf("it didn't happen that %s", what)
		}
	}
}
