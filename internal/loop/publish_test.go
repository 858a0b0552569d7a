package loop

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/keyset"
	"github.com/gatehouse-dev/gatehouse/internal/keyset/fetch"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
	"github.com/gatehouse-dev/gatehouse/test/certs"
	"github.com/gatehouse-dev/gatehouse/test/output"
)

// longestWait bounds every wait of these tests; none waits that long.
const longestWait = 30 * time.Second

// running is a loop that runs, with the issuers of key sets, one of which never answers.
type running struct {
	*Loop
	t      *testing.T
	url    string // of the issuers; what is under /silent has no answer
	logged output.Buffer

	running context.Context // ends with stop
	group   sync.WaitGroup
	stop    func() // ends it before the test does
}

// secrets are contents that are read at once, all of them the same certificate.
type secrets struct{ known map[object.Name]bool }

func (s secrets) Want(names, _ []object.Name) (gone source.Batch, read func(context.Context) (take func() source.Batch)) {
	var fresh source.Batch
	for _, n := range names {
		if !s.known[n] {
			s.known[n] = true
			cert := certs.For("any.test")
			fresh.Set = append(fresh.Set, &corev1.Secret{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
				ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: n.Name}, Type: corev1.SecretTypeTLS,
				Data: map[string][]byte{"tls.crt": cert.PEM(), "tls.key": cert.KeyPEM()},
			})
		}
	}
	if fresh.Empty() {
		return gone, nil
	}
	return gone, func(context.Context) func() source.Batch { return func() source.Batch { return fresh } }
}

func run(t *testing.T, change ...func(*Loop)) *running { return runLate(t, 0, change...) }

// runLate is run with Services that may be late.
func runLate(t *testing.T, late time.Duration, change ...func(*Loop)) *running {
	t.Helper()
	earlier := goleak.IgnoreCurrent()
	issuers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/silent") {
			<-r.Context().Done()
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	options := pipeline.Local(pipeline.ControllerName, "", []string{"127.0.0.1"}, nil)
	options.Topology.ImplicitClass, options.Topology.AnyName, options.Topology.SharedHost = pipeline.StandaloneClass, true, true
	r := &running{t: t, url: issuers.URL}
	log := slog.New(slog.NewTextHandler(&r.logged, nil))
	fetcher := fetch.New(fetch.Options{Log: log, Answer: func(ctx context.Context, k keyset.Key, a keyset.Answer) { r.Learn(ctx, k, a) }})
	r.Loop = New(Options{
		Pipeline: pipeline.New(options), Server: xds.New(xds.Options{Log: log}), Log: log,
		Contents: secrets{map[object.Name]bool{}}, KeySets: fetcher, Late: late,
	})
	for _, f := range change {
		f(r.Loop)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.running = ctx
	r.group.Go(func() { _ = r.Run(ctx) })
	r.group.Go(func() { _ = fetcher.Run(ctx) })
	r.stop = sync.OnceFunc(func() {
		cancel()
		r.group.Wait()
		r.Server.Stop()
		issuers.CloseClientConnections()
		issuers.Close()
	})
	t.Cleanup(func() {
		r.stop()
		goleak.VerifyNone(t, earlier)
	})
	return r
}

// set hands objects to the loop, of the namespace a unless they are of another one.
func (r *running) set(objects ...source.Object) {
	r.t.Helper()
	for _, o := range objects {
		o.SetNamespace(cmp.Or(o.GetNamespace(), "a"))
	}
	r.Emit(r.t.Context(), 0, source.Batch{Set: objects})
}

// route redirects to a host.
func route(gateway, host string) *gwv1.HTTPRoute {
	o := &gwv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Name: gateway}}
	o.Spec.ParentRefs = []gwv1.ParentReference{{Name: gwv1.ObjectName(gateway)}}
	to := gwv1.PreciseHostname(host)
	o.Spec.Rules = []gwv1.HTTPRouteRule{{Filters: []gwv1.HTTPRouteFilter{{
		Type: gwv1.HTTPRouteFilterRequestRedirect, RequestRedirect: &gwv1.HTTPRequestRedirectFilter{Hostname: &to},
	}}}}
	return o
}

// gateway has a listener at a port, and another one where it has a certificate.
func gateway(name string, port gwv1.PortNumber, certificate string) *gwv1.Gateway {
	o := &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Name: name}}
	o.Spec.GatewayClassName = pipeline.StandaloneClass
	o.Spec.Listeners = []gwv1.Listener{{Name: "http", Port: port, Protocol: gwv1.HTTPProtocolType}}
	if certificate != "" {
		o.Spec.Listeners = append(o.Spec.Listeners, gwv1.Listener{
			Name: "https", Port: port + 1, Protocol: gwv1.HTTPSProtocolType,
			TLS: &gwv1.ListenerTLSConfig{CertificateRefs: []gwv1.SecretObjectReference{{Name: gwv1.ObjectName(certificate)}}},
		})
	}
	return o
}

// onGateway are the targets of a policy on a Gateway.
func onGateway(name string) []gwv1.LocalPolicyTargetReferenceWithSectionName {
	target := gwv1.LocalPolicyTargetReferenceWithSectionName{}
	target.Group, target.Kind, target.Name = gwv1.GroupName, "Gateway", gwv1.ObjectName(name)
	return []gwv1.LocalPolicyTargetReferenceWithSectionName{target}
}

// tokens lets those pass on a Gateway who have tokens by the keys of an issuer.
func (r *running) tokens(gateway, path string) *v1alpha1.AuthPolicy {
	o := &v1alpha1.AuthPolicy{ObjectMeta: metav1.ObjectMeta{Name: "guard-" + gateway}}
	o.Spec.TargetRefs = onGateway(gateway)
	uri := r.url + path
	o.Spec.Authentication = map[string]v1alpha1.Authentication{"staff": {JWT: &v1alpha1.JWT{Issuer: "staff", JWKS: &v1alpha1.JWKS{URI: &uri}}}}
	return o
}

// versions are those that proxies of a Gateway are told of resources of a type.
func (r *running) versions(gateway, kind string) string {
	info, _ := r.Server.Gateway(object.Name{Namespace: "a", Name: gateway})
	var out []string
	for _, resource := range info.Resources {
		if resource.Type == kind {
			out = append(out, resource.Name+" "+resource.Version)
		}
	}
	return strings.Join(out, "\n")
}

func (r *running) until(what string, done func() bool) {
	r.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(longestWait); !done(); <-tick.C {
		if time.Now().After(deadline) {
			r.t.Fatalf("it didn't happen that %s", what)
		}
	}
}

func (r *running) waits() (yes bool) {
	r.Call(r.t.Context(), func() { yes = r.Waits() })
	return yes
}

// While an issuer of one Gateway's tokens is silent, another one gets its certificate and the
// keys of its own issuer, and those who share the first one's wait.
func TestOthersDontWaitForKeySets(t *testing.T) {
	r := run(t, func(l *Loop) { l.publication.keySets.first = time.Hour })
	r.set(gateway("web", 8080, ""), gateway("other", 8090, ""), route("web", "first.test"), route("other", "first.test"))
	r.until("both are served", func() bool { return r.versions("web", "routes") != "" && r.versions("other", "routes") != "" })

	web, other := r.versions("web", "routes"), r.versions("other", "routes")
	r.set(r.tokens("web", "/silent"))
	r.set(gateway("other", 8090, "cert"))
	r.until("the other Gateway has its certificate", func() bool { return strings.Contains(r.versions("other", "listener"), "8091") })
	r.set(r.tokens("other", "/none"))
	r.until("the other Gateway has its policy", func() bool { return r.versions("other", "routes") != other })
	if !r.waits() {
		t.Error("the other Gateway has waited for the silent issuer")
	}
	if r.versions("web", "routes") != web {
		t.Error("the Gateway with the silent issuer hasn't waited")
	}
	r.Call(r.t.Context(), func() { r.publication.keySets.deadline.timer.Reset(0) })
	r.until("the issuer is waited for no longer", func() bool { return !r.waits() })
	if r.versions("web", "routes") == web {
		t.Error("the policy isn't in force")
	}
}

// Whoever has other keys fetched again and again, from nobody who answers, doesn't hold up
// those who share his Gateway for longer than whoever does it once.
func TestOneDeadlineForKeySets(t *testing.T) {
	r := run(t)
	r.set(gateway("web", 8080, ""), route("web", "first.test"), r.tokens("web", "/none"))
	r.until("it is served", func() bool { return r.versions("web", "routes") != "" })

	before := r.versions("web", "routes")
	begun := time.Now()
	r.set(r.tokens("web", "/silent/0"), route("web", "second.test"))
	tick := time.NewTicker(laterFetch / 4)
	defer tick.Stop()
	for i := 1; r.versions("web", "routes") == before; i++ {
		if time.Since(begun) > longestWait { // as if each had begun it anew
			t.Fatal("the route waits still")
		}
		<-tick.C
		r.set(r.tokens("web", fmt.Sprint("/silent/", i)))
	}
	if waited := time.Since(begun); waited < laterFetch/2 {
		t.Errorf("nothing was waited for: %s", waited)
	}
}
