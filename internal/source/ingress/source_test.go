package ingress

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

func newSource(t testing.TB) *Source {
	t.Helper()
	s, err := New(Options{Class: "nginx", Gateway: object.Name{Namespace: "edge", Name: "web"}, GatewayClass: "gatehouse"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ingressOf is an Ingress of one path to the Service of its name.
func ingressOf(name, host string, annotations ...string) *networkingv1.Ingress {
	class, kind := "nginx", networkingv1.PathTypePrefix
	in := &networkingv1.Ingress{
		TypeMeta: metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "Ingress"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: name, Annotations: map[string]string{}, CreationTimestamp: metav1.NewTime(time.Unix(1_700_000_000, 0)),
		},
		Spec: networkingv1.IngressSpec{
			IngressClassName: &class,
			Rules: []networkingv1.IngressRule{{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
				Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &kind, Backend: networkingv1.IngressBackend{
					Service: &networkingv1.IngressServiceBackend{Name: name, Port: networkingv1.ServiceBackendPort{Name: "http"}},
				}}},
			}}}},
		},
	}
	for _, a := range annotations {
		key, value, _ := strings.Cut(a, "=")
		in.Annotations["nginx.ingress.kubernetes.io/"+key] = value
	}
	return in
}

func serviceOf(name string) *corev1.Service {
	return &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 8080}}},
	}
}

// some are Ingresses with what they name.
func some(n int) (out []source.Object) {
	for i := range n {
		name := fmt.Sprintf("in-%d", i)
		out = append(out, ingressOf(name, name+".example", "proxy-body-size=8m", "limit-rps=5", "enable-cors=true"), serviceOf(name))
	}
	return out
}

func keys(b source.Batch) (set, deleted []string) {
	for _, o := range b.Set {
		set = append(set, source.KeyOf(o).String())
	}
	for _, k := range b.Deleted {
		deleted = append(deleted, k.String())
	}
	return set, deleted
}

// What changes is handed on, and nothing else.
func TestChanges(t *testing.T) {
	s := newSource(t)
	first, _ := keys(s.Take(source.Batch{Set: some(3)}))
	if want := 1 + 1 + 3*3; len(first) != want { // Gateway and its TrafficPolicy; of each a route and two policies
		t.Fatalf("%d objects are made, want %d: %v", len(first), want, first)
	}
	if b := s.Take(source.Batch{Set: some(3), Deleted: []object.Key{{Kind: kind.Gateway, Name: object.Name{Name: "x"}}}}); !b.Empty() {
		set, deleted := keys(b)
		t.Errorf("of the same again comes %v, %v", set, deleted)
	}
	set, deleted := keys(s.Take(source.Batch{Set: []source.Object{ingressOf("in-1", "in-1.example", "limit-rps=7", "proxy-body-size=8m")}}))
	if d := cmp.Diff([]string{"HTTPRoute team/in-1", "RateLimitPolicy team/in-1.made-of-ingress"}, set); d != "" || len(deleted) > 0 {
		t.Errorf("%s%v", d, deleted)
	}
	b := s.Take(source.Batch{Set: []source.Object{ingressOf("in-1", "in-1.example", "auth-type=digest")}})
	set, deleted = keys(b)
	if d := cmp.Diff([]string{"HTTPRoute team/in-1", "RouteFilter team/in-1-refused"}, set); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"RateLimitPolicy team/in-1.made-of-ingress", "TrafficPolicy team/in-1"}, deleted); d != "" {
		t.Error(d)
	}
	if len(b.Problems) != 1 {
		t.Errorf("problems: %v", b.Problems)
	}
	set, deleted = keys(s.Take(source.Batch{Deleted: []object.Key{{Kind: kind.Ingress, Name: object.Name{Namespace: "team", Name: "in-1"}}}}))
	if d := cmp.Diff([]string{"HTTPRoute team/in-1", "RouteFilter team/in-1-refused"}, deleted); d != "" || len(set) > 0 {
		t.Errorf("%s%v", d, set)
	}
	if b := s.Take(source.Batch{Set: []source.Object{ingressOf("beside", "in-0.example")}}); len(b.Set) != 0 {
		t.Errorf("a path that another Ingress has: %v", b)
	}
}

// What a team writes wrongly, or of others' namespaces, answers 503 on its own hosts, and leaves the Gateway as it is.
func TestClosed(t *testing.T) {
	for name, c := range map[string]struct {
		annotations []string
		path        string
	}{
		"an authority of another namespace": {[]string{"auth-tls-secret=others/ca"}, "/"},
		"a service of another namespace":    {[]string{"auth-url=http://asked.others.svc/"}, "/"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSource(t)
			s.Take(source.Batch{Set: some(1)})
			in := ingressOf("bad", "bad.example", c.annotations...)
			in.Spec.Rules[0].HTTP.Paths[0].Path = c.path
			in.CreationTimestamp = metav1.NewTime(time.Unix(1_600_000_000, 0)) // so that the host is its own
			b := s.Take(source.Batch{Set: []source.Object{in, serviceOf("bad"), ingressOf("beside", "bad.example"), serviceOf("beside")}})
			set, deleted := keys(b)
			if len(deleted) > 0 || slices.Contains(set, "HTTPRoute team/in-0") {
				t.Errorf("set %v, deleted %v", set, deleted)
			}
			if !slices.Contains(set, "RouteFilter team/bad-refused") && !slices.Contains(set, "RouteFilter team/beside-refused") {
				t.Errorf("nothing is refused: %v", set)
			}
			if len(b.Problems) == 0 {
				t.Error("nobody is told")
			}
		})
	}
}

// The Gateway is there without an Ingress, before the first one and after the last.
func TestGatewayStays(t *testing.T) {
	s := newSource(t)
	if set, _ := keys(s.Take(source.Batch{})); !slices.Contains(set, "Gateway edge/web") {
		t.Errorf("without Ingresses there are %v", set)
	}
	s.Take(source.Batch{Set: some(1)})
	_, deleted := keys(s.Take(source.Batch{Deleted: []object.Key{{Kind: kind.Ingress, Name: object.Name{Namespace: "team", Name: "in-0"}}}}))
	if slices.Contains(deleted, "Gateway edge/web") || len(deleted) != 3 {
		t.Errorf("with the last Ingress went %v", deleted)
	}
}

// Without the ConfigMap that the settings name nobody knows what it protects.
func TestMissingConfigMap(t *testing.T) {
	s := newSource(t)
	s.opts.ConfigMap = object.Name{Namespace: "edge", Name: "nginx"}
	b := s.Take(source.Batch{Set: some(1)})
	if set, _ := keys(b); !slices.Contains(set, "RouteFilter team/in-0-refused") || len(b.Problems) != 1 {
		t.Errorf("made: %v, told: %v", set, b.Problems)
	}
	b = s.Take(source.Batch{Set: []source.Object{&corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: "nginx"},
	}}})
	if _, deleted := keys(b); !slices.Contains(deleted, "RouteFilter team/in-0-refused") {
		t.Errorf("with it went %v", deleted)
	}
	b = s.Take(source.Batch{Deleted: []object.Key{
		{Kind: kind.Ingress, Name: object.Name{Namespace: "team", Name: "in-0"}}, {Kind: kind.ConfigMap, Name: s.opts.ConfigMap},
	}})
	if len(b.Problems) != 0 {
		t.Errorf("without Ingresses it is missed: %v", b.Problems)
	}
}

// An Ingress of which something is made that no API server would take is refused.
func TestInvalid(t *testing.T) {
	s := newSource(t)
	b := s.Take(source.Batch{Set: []source.Object{ingressOf("a", "a.example", "auth-realm=x\ny", "auth-type=basic", "auth-secret=users"), serviceOf("a"), ingressOf("b", "b.example"), serviceOf("b")}})
	set, _ := keys(b)
	if !slices.Contains(set, "RouteFilter team/a-refused") || slices.Contains(set, "AuthPolicy team/a.made-of-ingress") || !slices.Contains(set, "HTTPRoute team/b") {
		t.Errorf("made: %v", set)
	}
	if len(b.Problems) != 1 {
		t.Errorf("problems: %v", b.Problems)
	}
}

// pathsOf gives an Ingress other paths, TYPE PATH each.
func pathsOf(in *networkingv1.Ingress, paths ...string) *networkingv1.Ingress {
	http := in.Spec.Rules[0].HTTP
	first := http.Paths[0]
	http.Paths = nil
	for _, p := range paths {
		kind, path, _ := strings.Cut(p, " ")
		p := first
		p.Path, p.PathType = path, new(networkingv1.PathType(kind))
		http.Paths = append(http.Paths, p)
	}
	return in
}

// grpcPaths are paths of gRPC services.
func grpcPaths(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("Prefix /pkg.S%d/", i))
	}
	return out
}

// What nobody would take opens nothing, and takes nothing of others along.
func TestNothingOpens(t *testing.T) {
	basic := []string{"auth-type=basic", "auth-secret=users"}
	long := strings.Repeat("abcdefghi.", 25) // of 250
	for name, c := range map[string]struct {
		in         []source.Object
		made, none []string
	}{
		"authority without a name":      {[]source.Object{ingressOf("a", "a.example", "auth-tls-secret=x/")}, []string{"Gateway edge/web", "RouteFilter team/a-refused"}, nil},
		"authority without a namespace": {[]source.Object{ingressOf("a", "a.example", "auth-tls-secret=/ca")}, []string{"Gateway edge/web", "RouteFilter team/a-refused"}, nil},
		"authority with a wrong name":   {[]source.Object{ingressOf("a", "a.example", "auth-tls-secret=Bad_NS/ca")}, []string{"Gateway edge/web", "RouteFilter team/a-refused"}, nil},
		"expression without use-regex": {
			[]source.Object{pathsOf(ingressOf("a", "a.example", basic...), "Prefix /admin", "ImplementationSpecific /old(/|$)(.*)"), ingressOf("0", "a.example")},
			[]string{"HTTPRoute team/a", "RouteFilter team/a-refused"}, []string{"HTTPRoute team/0"},
		},
		"two slashes": {
			[]source.Object{pathsOf(ingressOf("a", "a.example", basic...), "Prefix /admin", "Prefix //x"), ingressOf("0", "a.example")},
			[]string{"RouteFilter team/a-refused"}, []string{"HTTPRoute team/0"},
		},
		"a long path": {
			[]source.Object{pathsOf(ingressOf("a", "a.example", basic...), "Prefix /admin", "Exact /"+strings.Repeat("x", 1024)), ingressOf("0", "a.example")},
			[]string{"RouteFilter team/a-refused"}, []string{"HTTPRoute team/0"},
		},
		"a long expression": {
			[]source.Object{pathsOf(ingressOf("a", "a.example", append(basic, "use-regex=true")...), "Prefix /admin", "Prefix /"+strings.Repeat("x", 1024)), ingressOf("0", "a.example")},
			[]string{"RouteFilter team/a-refused"}, []string{"HTTPRoute team/0"},
		},
		"a closed host of gRPC": {
			[]source.Object{ingressOf("a", "a.example", "backend-protocol=GRPC"), pathsOf(ingressOf("0", "a.example", "auth-tls-secret=nowhere"), "Prefix /x"), ingressOf("w", "*.example")},
			[]string{"HTTPRoute team/a", "RouteFilter team/a-refused"}, []string{"GRPCRoute team/a"},
		},
		"gRPC without a default backend": {
			[]source.Object{pathsOf(ingressOf("a", "a.example", "backend-protocol=GRPC"), "Prefix /pkg.S"), ingressOf("w", "*.example")},
			[]string{"GRPCRoute team/a", "HTTPRoute team/a", "RouteFilter team/a-not-found"}, nil,
		},
		"many paths of gRPC": {
			[]source.Object{pathsOf(ingressOf("a", "a.example", append(basic, "backend-protocol=GRPC")...), grpcPaths(17)...)},
			[]string{"GRPCRoute team/a", "GRPCRoute team/a-2"}, nil,
		},
		"a canary by no header": {
			[]source.Object{ingressOf("a", "a.example"), ingressOf("c", "a.example", "canary=true", "canary-by-header=x y")},
			[]string{"HTTPRoute team/a"}, []string{"RouteFilter team/a-refused"},
		},
		"a younger passthrough": {
			[]source.Object{ingressOf("b", "a.example"), pathsOf(ingressOf("a", "a.example", "ssl-passthrough=true"), "Prefix /x")},
			[]string{"HTTPRoute team/b"}, []string{"TLSRoute team/a-passthrough"},
		},
		"a long alias": {
			[]source.Object{tlsOf(ingressOf("a", "a.example", "server-alias=*."+long+"ab")), tlsOf(ingressOf("b", "b.example"))},
			[]string{"ListenerSet team/web", "HTTPRoute team/b", "HTTPRoute team/a"}, nil,
		},
		"a long host": {
			[]source.Object{tlsOf(ingressOf("a", long+"com", "from-to-www-redirect=true")), tlsOf(ingressOf("b", "b.example"))},
			[]string{"ListenerSet team/web", "HTTPRoute team/b", "HTTPRoute team/a"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := c.in
			for _, o := range c.in {
				objects = append(objects, serviceOf(o.GetName()))
			}
			set, _ := keys(newSource(t).Take(source.Batch{Set: objects}))
			for _, k := range c.made {
				if !slices.Contains(set, k) {
					t.Errorf("%s isn't made: %v", k, set)
				}
			}
			for _, k := range c.none {
				if slices.Contains(set, k) {
					t.Errorf("%s is made", k)
				}
			}
		})
	}
}

// tlsOf gives an Ingress a certificate.
func tlsOf(in *networkingv1.Ingress) *networkingv1.Ingress {
	in.Spec.TLS = []networkingv1.IngressTLS{{SecretName: "web"}}
	return in
}

// What is made of several Ingresses stays when one of them would have it be what nobody takes.
func TestSharedStays(t *testing.T) {
	s := newSource(t)
	s.Take(source.Batch{Set: []source.Object{tlsOf(ingressOf("a", "a.example")), serviceOf("a")}})
	in := tlsOf(ingressOf("b", "b.example"))
	in.Spec.TLS[0].SecretName = strings.Repeat("x", 254)
	b := s.Take(source.Batch{Set: []source.Object{in, serviceOf("b")}})
	if len(b.Deleted) > 0 || len(b.Problems) != 1 {
		t.Errorf("deleted: %v, told: %v", b.Deleted, b.Problems)
	}
}

// What somebody has written under the name of an Ingress hides none of the policies that protect it.
func TestGuardNames(t *testing.T) {
	set, _ := keys(newSource(t).Take(source.Batch{Set: []source.Object{ingressOf("a", "a.example", "auth-type=basic", "auth-secret=users", "limit-rps=5"), serviceOf("a")}}))
	for _, k := range []string{"AuthPolicy team/a", "RateLimitPolicy team/a"} {
		if slices.Contains(set, k) || !slices.Contains(set, k+".made-of-ingress") {
			t.Errorf("made: %v", set)
		}
	}
}

// What is made doesn't depend on the order in which objects come.
func TestOrder(t *testing.T) {
	objects := append(some(8), ingressOf("late", "in-3.example", "use-regex=true"), ingressOf("bad", "in-4.example", "auth-tls-secret=x"))
	final := func(list []source.Object) map[object.Key]source.Object {
		s := newSource(t)
		for part := range slices.Chunk(list, 3) {
			s.Take(source.Batch{Set: part})
		}
		out := map[object.Key]source.Object{}
		for k, m := range s.made {
			out[k] = m.object
		}
		return out
	}
	want := final(objects)
	for seed := range uint64(20) {
		list := slices.Clone(objects)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] }) //nolint:gosec // a test
		if d := cmp.Diff(want, final(list)); d != "" {
			t.Fatalf("seed %d: %s", seed, d)
		}
	}
}

// BenchmarkOneOfThousand is what it costs to change one Ingress of 1,000.
func BenchmarkOneOfThousand(b *testing.B) {
	s := newSource(b)
	s.Take(source.Batch{Set: some(1000)})
	for i := 0; b.Loop(); i++ {
		s.Take(source.Batch{Set: []source.Object{ingressOf("in-1", "in-1.example", fmt.Sprintf("limit-rps=%d", 1+i%100))}})
	}
}

// BenchmarkThousand is what it costs to read 1,000 Ingresses.
func BenchmarkThousand(b *testing.B) {
	objects := some(1000)
	for b.Loop() {
		newSource(b).Take(source.Batch{Set: objects})
	}
}
