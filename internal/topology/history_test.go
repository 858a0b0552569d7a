package topology

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// The generators draw from few names, so that objects miss, find and contradict
// one another.
var (
	someNamespace = rapid.SampledFrom([]string{"one", "two"})
	someName      = rapid.SampledFrom([]string{"a", "b", "c"})
	somePort      = rapid.SampledFrom([]int32{80, 443})
	someHostname  = rapid.SampledFrom([]gwv1.Hostname{"a.test", "b.test", "*.test", "A.test"})
	someProtocol  = rapid.SampledFrom([]gwv1.ProtocolType{"HTTP", "HTTP", "HTTPS", "TCP"})
	someFrom      = rapid.SampledFrom([]gwv1.FromNamespaces{"Same", "All", "Selector"})
	someScope     = rapid.SampledFrom([]gwv1.GatewayDefaultScope{"", "", gwv1.GatewayDefaultScopeAll})
	someAddress   = rapid.SampledFrom([]gwv1.GatewaySpecAddress{
		{Value: "127.0.0.1"}, {Value: "127.0.0.2"}, {Value: "0.0.0.0"}, {Value: "10.0.0.1"}, {},
		{Type: new(gwv1.HostnameAddressType), Value: "x.test"},
	})
	someObject = rapid.Custom(drawObject)
)

func maybe[T any](t *rapid.T, g *rapid.Generator[T], label string) *T {
	if rapid.IntRange(0, 1).Draw(t, label+"?") == 0 {
		return nil
	}
	return new(g.Draw(t, label))
}

func drawMeta(t *rapid.T) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: someNamespace.Draw(t, "namespace"), Name: someName.Draw(t, "name")}
}

func drawObject(t *rapid.T) source.Object {
	switch rapid.IntRange(0, 14).Draw(t, "kind") {
	case 14:
		return &v1alpha1.GatewayParameters{ObjectMeta: drawMeta(t), Spec: v1alpha1.GatewayParametersSpec{
			Settings:  *drawSettings(t),
			Overrides: maybe(t, rapid.Custom(func(t *rapid.T) v1alpha1.Settings { return *drawSettings(t) }), "overrides"),
		}}
	case 0:
		controller := rapid.SampledFrom([]gwv1.GatewayController{"gatehouse.dev/controller", "example.com/other"})
		return &gwv1.GatewayClass{
			ObjectMeta: metav1.ObjectMeta{Name: rapid.SampledFrom([]string{"gatehouse", "other"}).Draw(t, "class")},
			Spec: gwv1.GatewayClassSpec{
				ControllerName: controller.Draw(t, "controller"),
				ParametersRef: maybe(t, rapid.Custom(func(t *rapid.T) gwv1.ParametersReference {
					return gwv1.ParametersReference{
						Group: "gatehouse.dev", Kind: "GatewayParameters",
						Name: someName.Draw(t, "parameters"), Namespace: drawNamespaceRef(t),
					}
				}), "parameters"),
			},
		}
	case 1, 2:
		return drawGateway(t)
	case 3, 4:
		return drawRoute(t)
	case 10, 11:
		return drawSet(t)
	case 5:
		return drawGRPCRoute(t)
	case 6:
		return &corev1.Service{ObjectMeta: drawMeta(t), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{
			Port: somePort.Draw(t, "port"), TargetPort: intstr.FromInt32(1), AppProtocol: maybe(t, rapid.SampledFrom([]string{"http", "https"}), "app protocol"),
		}}}}
	case 7:
		p := pairs[rapid.SampledFrom([]string{"ecdsa", "other"}).Draw(t, "crt")]
		k := pairs[rapid.SampledFrom([]string{"ecdsa", "other"}).Draw(t, "key")]
		return &corev1.Secret{ObjectMeta: drawMeta(t), Data: map[string][]byte{"tls.crt": p.crt, "tls.key": k.key}}
	case 12:
		return drawPolicy(t)
	case 13:
		return &corev1.ConfigMap{ObjectMeta: drawMeta(t), Data: map[string]string{
			"ca.crt": string(pairs[rapid.SampledFrom([]string{"ecdsa", "other", "nonesuch"}).Draw(t, "ca")].crt),
		}}
	case 8:
		return &gwv1.ReferenceGrant{ObjectMeta: drawMeta(t), Spec: gwv1.ReferenceGrantSpec{
			From: []gwv1.ReferenceGrantFrom{{
				Group: gatewayGroup, Kind: rapid.SampledFrom([]gwv1.Kind{"Gateway", "ListenerSet", "HTTPRoute", "GRPCRoute"}).Draw(t, "from"),
				Namespace: gwv1.Namespace(someNamespace.Draw(t, "from namespace")),
			}},
			To: []gwv1.ReferenceGrantTo{{
				Kind: rapid.SampledFrom([]gwv1.Kind{"Secret", "Service"}).Draw(t, "to"),
				Name: maybe(t, rapid.Map(someName, func(s string) gwv1.ObjectName { return gwv1.ObjectName(s) }), "to name"),
			}},
		}}
	default:
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name:   someNamespace.Draw(t, "namespace"),
			Labels: map[string]string{"team": someName.Draw(t, "team")},
		}}
	}
}

func drawGateway(t *rapid.T) *gwv1.Gateway {
	gw := &gwv1.Gateway{ObjectMeta: drawMeta(t)}
	gw.CreationTimestamp.Time = time.Unix(rapid.Int64Range(0, 2).Draw(t, "created"), 0).UTC()
	gw.Spec.GatewayClassName = rapid.SampledFrom([]gwv1.ObjectName{"gatehouse", "gatehouse", "other"}).Draw(t, "class")
	gw.Spec.DefaultScope = someScope.Draw(t, "default")
	gw.Spec.Addresses = rapid.SliceOfN(someAddress, 0, 2).Draw(t, "addresses")
	gw.Spec.Listeners = drawListeners(t)
	if from := maybe(t, someFrom, "sets from"); from != nil {
		gw.Spec.AllowedListeners = &gwv1.AllowedListeners{Namespaces: &gwv1.ListenerNamespaces{
			From:     from,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": someName.Draw(t, "team")}},
		}}
	}
	return gw
}

func drawSet(t *rapid.T) *gwv1.ListenerSet {
	s := &gwv1.ListenerSet{ObjectMeta: drawMeta(t)}
	s.CreationTimestamp.Time = time.Unix(rapid.Int64Range(0, 2).Draw(t, "created"), 0).UTC()
	s.Spec.ParentRef = gwv1.ParentGatewayReference{Name: gwv1.ObjectName(someName.Draw(t, "gateway")), Namespace: drawNamespaceRef(t)}
	for _, l := range drawListeners(t) {
		s.Spec.Listeners = append(s.Spec.Listeners, gwv1.ListenerEntry(l))
	}
	return s
}

func drawListeners(t *rapid.T) (out []gwv1.Listener) {
	for i := range rapid.IntRange(1, 4).Draw(t, "listeners") {
		l := gwv1.Listener{
			Name: gwv1.SectionName(fmt.Sprint("l", i)), Port: somePort.Draw(t, "port"),
			Protocol: someProtocol.Draw(t, "protocol"), Hostname: maybe(t, someHostname, "hostname"),
			AllowedRoutes: &gwv1.AllowedRoutes{Namespaces: &gwv1.RouteNamespaces{
				From:     maybe(t, someFrom, "from"),
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": someName.Draw(t, "team")}},
			}},
		}
		if l.Protocol == gwv1.HTTPSProtocolType {
			l.TLS = &gwv1.ListenerTLSConfig{CertificateRefs: []gwv1.SecretObjectReference{{
				Name: gwv1.ObjectName(someName.Draw(t, "secret")), Namespace: drawNamespaceRef(t),
			}}}
		}
		out = append(out, l)
	}
	return out
}

func drawPolicy(t *rapid.T) *gwv1.BackendTLSPolicy {
	p := &gwv1.BackendTLSPolicy{ObjectMeta: drawMeta(t)}
	p.CreationTimestamp.Time = time.Unix(rapid.Int64Range(0, 2).Draw(t, "created"), 0).UTC()
	for range rapid.IntRange(1, 2).Draw(t, "targets") {
		var target gwv1.LocalPolicyTargetReferenceWithSectionName
		target.Kind, target.Name = "Service", gwv1.ObjectName(someName.Draw(t, "service"))
		target.SectionName = maybe(t, rapid.SampledFrom([]gwv1.SectionName{"http", "nonesuch"}), "section")
		p.Spec.TargetRefs = append(p.Spec.TargetRefs, target)
	}
	p.Spec.Validation.Hostname = "a.test"
	p.Spec.Validation.WellKnownCACertificates = maybe(t, rapid.Just(gwv1.WellKnownCACertificatesSystem), "system")
	for range rapid.IntRange(0, 2).Draw(t, "authorities") {
		p.Spec.Validation.CACertificateRefs = append(p.Spec.Validation.CACertificateRefs, gwv1.LocalObjectReference{
			Kind: rapid.SampledFrom([]gwv1.Kind{"ConfigMap", "Secret", "Bucket"}).Draw(t, "kind"),
			Name: gwv1.ObjectName(someName.Draw(t, "authority")),
		})
	}
	return p
}

func drawSettings(t *rapid.T) *v1alpha1.Settings {
	return &v1alpha1.Settings{
		Client: &v1alpha1.Client{HTTP3: maybe(t, rapid.Bool(), "http3"), ProxyProtocol: maybe(t, rapid.Bool(), "PROXY protocol")},
		Deployment: maybe(t, rapid.Custom(func(t *rapid.T) v1alpha1.Deployment {
			return v1alpha1.Deployment{Replicas: maybe(t, rapid.Int32Range(0, 1), "replicas")}
		}), "deployment"),
		DaemonSet: maybe(t, rapid.Just(v1alpha1.DaemonSet{}), "daemonSet"),
		Tracing:   maybe(t, rapid.Just(v1alpha1.Tracing{}), "tracing"),
	}
}

func drawNamespaceRef(t *rapid.T) *gwv1.Namespace {
	return maybe(t, rapid.Map(someNamespace, func(s string) gwv1.Namespace { return gwv1.Namespace(s) }), "namespace")
}

func drawRoute(t *rapid.T) *gwv1.HTTPRoute {
	r := &gwv1.HTTPRoute{ObjectMeta: drawMeta(t)}
	r.CreationTimestamp.Time = time.Unix(rapid.Int64Range(0, 2).Draw(t, "created"), 0).UTC()
	for range rapid.IntRange(0, 2).Draw(t, "parents") {
		r.Spec.ParentRefs = append(r.Spec.ParentRefs, gwv1.ParentReference{
			Kind: maybe(t, rapid.SampledFrom([]gwv1.Kind{"Gateway", "ListenerSet"}), "parent kind"),
			Name: gwv1.ObjectName(someName.Draw(t, "parent")), Namespace: drawNamespaceRef(t),
			SectionName: maybe(t, rapid.SampledFrom([]gwv1.SectionName{"l0", "l1", "l9"}), "section"),
			Port:        maybe(t, somePort, "port"),
		})
	}
	r.Spec.UseDefaultGateways = someScope.Draw(t, "default Gateways")
	r.Spec.Hostnames = rapid.SliceOfN(someHostname, 0, 2).Draw(t, "hostnames")
	for range rapid.IntRange(0, 2).Draw(t, "rules") {
		var ref gwv1.HTTPBackendRef
		ref.Name, ref.Namespace = gwv1.ObjectName(someName.Draw(t, "service")), drawNamespaceRef(t)
		ref.Port = maybe(t, somePort, "port")
		r.Spec.Rules = append(r.Spec.Rules, gwv1.HTTPRouteRule{BackendRefs: []gwv1.HTTPBackendRef{ref}})
	}
	return r
}

// drawGRPCRoute makes a GRPCRoute of an HTTPRoute.
func drawGRPCRoute(t *rapid.T) *gwv1.GRPCRoute {
	from := drawRoute(t)
	r := &gwv1.GRPCRoute{ObjectMeta: from.ObjectMeta}
	r.Spec.CommonRouteSpec, r.Spec.Hostnames = from.Spec.CommonRouteSpec, from.Spec.Hostnames
	for _, rule := range from.Spec.Rules {
		r.Spec.Rules = append(r.Spec.Rules, gwv1.GRPCRouteRule{
			BackendRefs: []gwv1.GRPCBackendRef{{BackendRef: rule.BackendRefs[0].BackendRef}},
		})
	}
	return r
}

// TestIncrementalEqualsFromScratch protects the law that a history leaves no trace:
// after any of them the nodes are those of the final objects alone, whatever the
// order in which these come.
func TestIncrementalEqualsFromScratch(t *testing.T) {
	makePair(t, "ecdsa")
	makePair(t, "other")
	options := settings{
		ImplicitClass: "gatehouse", SharedHost: true, DefaultAddresses: []string{"127.0.0.1"},
		Local: []string{"127.0.0.1", "127.0.0.2", "0.0.0.0"},
	}.options()
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(options)
		objects := map[object.Key]source.Object{}
		for range rapid.IntRange(1, 8).Draw(rt, "transactions") {
			var b source.Batch
			for range rapid.IntRange(1, 8).Draw(rt, "changes") {
				o := someObject.Draw(rt, "object")
				k := keyOf(o)
				// A batch names an object once.
				if slices.ContainsFunc(b.Set, func(o source.Object) bool { return keyOf(o) == k }) || slices.Contains(b.Deleted, k) {
					continue
				}
				if rapid.IntRange(0, 3).Draw(rt, "delete?") == 0 {
					delete(objects, k)
					b.Deleted = append(b.Deleted, k)
					continue
				}
				objects[k] = o
				b.Set = append(b.Set, o)
			}
			w.apply(t, b)
		}
		want := w.print(t)

		fresh := newWorld(options)
		keys := slices.SortedFunc(maps.Keys(objects), object.Key.Compare)
		for _, k := range rapid.Permutation(keys).Draw(rt, "order") {
			fresh.set(t, objects[k])
		}
		if d := gocmp.Diff(fresh.print(t), want); d != "" {
			rt.Fatalf("nodes differ (-from scratch +incremental):\n%s", d)
		}
		checkInvariants(rt, w)
	})
}

// checkInvariants holds of every graph.
func checkInvariants(t *rapid.T, w *world) {
	w.engine.View(func(c *flow.Ctx) {
		all := maps.Collect(flow.All(c, w.graph.Listeners))
		maps.Insert(all, flow.All(c, w.graph.SetListeners))
		counts := map[ListenerKey]int{}
		servedBy := map[ir.HostKey]ListenerKey{}
		kinds := map[contestedHost]object.Kind{}
		for k, a := range flow.All(c, w.graph.Attachments) {
			counts[k.Listener]++
			l, ok := all[k.Listener]
			if !ok || l.Table != a.Table || l.Port != a.Port {
				t.Fatalf("%s: no such listener, or another table", k)
			}
			for _, h := range a.Hosts {
				if !covers(l.Hostname, hostnameOf(h.Domain)) {
					t.Fatalf("%s: host %q is not the listener's", k, h.Domain)
				}
				host := ir.HostKey{TableKey: ir.TableKey{Gateway: k.Listener.Gateway, Table: a.Table}, Domain: h.Domain}
				if other, ok := servedBy[host]; ok && other != k.Listener {
					t.Fatalf("%s: routes of %s and %s are mixed", host, other, k.Listener)
				}
				servedBy[host] = k.Listener
				contested := contestedHost{k.Listener, h.Domain}
				if of, some := kinds[contested]; some && of != k.Route.Kind {
					t.Fatalf("%s: host %q has a %s too", k, h.Domain, of)
				}
				kinds[contested] = k.Route.Kind
			}
		}
		for k, n := range flow.All(c, w.graph.AttachedRoutes) {
			if counts[k] != n {
				t.Fatalf("%s: %d routes counted, %d attached", k, n, counts[k])
			}
		}
		sites := map[site]ListenerKey{}
		for k, l := range all {
			if !l.Serves {
				continue
			}
			at := site{gatewayPort: portOf(k.Gateway, l.Port, l.Protocol), hostname: l.Hostname}
			if other, ok := sites[at]; ok {
				t.Fatalf("%s and %s serve the same", k, other)
			}
			sites[at] = k
			if l.Protocol == gwv1.HTTPSProtocolType && len(l.Certificates) == 0 {
				t.Fatalf("%s serves TLS without a certificate", k)
			}
		}
	})
}

// hostnameOf is the pattern whose domain is d.
func hostnameOf(d string) string {
	if d == "*" {
		return ""
	}
	return d
}

// keyOf names an object as a source does.
func keyOf(o source.Object) object.Key {
	k := object.Key{Name: nameOf(o)}
	switch o.(type) {
	case *gwv1.GatewayClass:
		k.Kind = kind.GatewayClass
	case *gwv1.Gateway:
		k.Kind = kind.Gateway
	case *gwv1.ListenerSet:
		k.Kind = kind.ListenerSet
	case *gwv1.HTTPRoute:
		k.Kind = kind.HTTPRoute
	case *gwv1.GRPCRoute:
		k.Kind = kind.GRPCRoute
	case *gwv1.ReferenceGrant:
		k.Kind = kind.ReferenceGrant
	case *corev1.Service:
		k.Kind = kind.Service
	case *corev1.Secret:
		k.Kind = kind.Secret
	case *gwv1.BackendTLSPolicy:
		k.Kind = kind.BackendTLSPolicy
	case *corev1.ConfigMap:
		k.Kind = kind.ConfigMap
	case *corev1.Namespace:
		k.Kind = kind.Namespace
	case *v1alpha1.GatewayParameters:
		k.Kind = kind.GatewayParameters
	default:
		panic(fmt.Sprintf("%T has no kind here", o))
	}
	return k
}
