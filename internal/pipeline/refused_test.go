package pipeline

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// A proxy knows a backend by a name alone. Its refusal is told to the routes that refer
// to the backend, whenever that comes to be, and to no others.
func TestRefusedBackend(t *testing.T) {
	p := New(standalone)
	gw := edgeGateway(
		gwv1.Listener{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType}, gwv1.Listener{Name: "udp", Port: 53, Protocol: gwv1.UDPProtocolType})
	service := func(name string) *corev1.Service {
		s := &corev1.Service{}
		s.Namespace, s.Name = "default", name
		s.Spec.Ports = []corev1.ServicePort{{Port: 80}, {Port: 53, Protocol: corev1.ProtocolUDP}}
		return s
	}
	ref := func(to string, port int32) gwv1.BackendRef {
		var ref gwv1.BackendRef
		ref.Name, ref.Port = gwv1.ObjectName(to), &port
		return ref
	}
	route := func(name, to string) *gwv1.HTTPRoute {
		r := &gwv1.HTTPRoute{}
		r.Namespace, r.Name = "default", name
		r.Spec.ParentRefs = []gwv1.ParentReference{{Name: "edge"}}
		r.Spec.Rules = []gwv1.HTTPRouteRule{{BackendRefs: []gwv1.HTTPBackendRef{{BackendRef: ref(to, 80)}}}}
		return r
	}
	datagrams := &gwv1.UDPRoute{}
	datagrams.Namespace, datagrams.Name = "default", "dns"
	datagrams.Spec.ParentRefs = []gwv1.ParentReference{{Name: "edge"}}
	datagrams.Spec.Rules = []gwv1.UDPRouteRule{{BackendRefs: []gwv1.BackendRef{ref("a", 53)}}}

	told := func(route string, of object.Kind) string {
		var out []string
		p.Engine.View(func(c *flow.Ctx) {
			s, _ := flow.Get(c, p.RouteStatus, object.Key{Kind: of, Name: object.Name{Namespace: "default", Name: route}})
			if s == nil {
				return
			}
			for _, parent := range s.Parents {
				for _, c := range parent.Conditions {
					if strings.Contains(c.Message, "refused because") {
						out = append(out, c.Type+"="+string(c.Status))
					}
				}
			}
		})
		return strings.Join(out, " ")
	}
	refuse := func(names ...string) {
		state := xds.State{Connected: 1}
		for _, name := range names {
			state.Rejected = append(state.Rejected, xds.Rejected{Ref: xds.Ref{Type: envoy.Clusters, Name: name}, Message: "refused because"})
		}
		p.Update(func(tx *flow.Tx) { p.TakeFeedback(tx, object.Name{Namespace: "default", Name: "edge"}, state) })
	}
	check := func(when, first, second, third string) {
		t.Helper()
		for _, c := range []struct {
			route string
			kind  object.Kind
			want  string
		}{{"first", kind.HTTPRoute, first}, {"second", kind.HTTPRoute, second}, {"dns", kind.UDPRoute, third}} {
			if got := told(c.route, c.kind); got != c.want {
				t.Errorf("%s: route %s is told %q, want %q", when, c.route, got, c.want)
			}
		}
	}
	name := func(service string) string {
		var out string
		p.Engine.View(func(c *flow.Ctx) {
			for k, m := range flow.All(c, p.Members) {
				if b := k.Backend.Backend(); b.Object.Name.Name == service {
					out = m.Cluster.Name
				}
			}
		})
		return out
	}

	p.Apply(source.Batch{Set: []source.Object{gw, service("a"), service("b"), route("first", "a"), route("second", "b"), datagrams}})
	a := name("a")
	const programmed = "Programmed=False"
	refuse(a, "default/nobodys:80#00000000")
	check("one of two is refused", programmed, "", "")
	p.Apply(source.Batch{Set: []source.Object{route("second", "a"), route("first", "b")}})
	check("the other refers to it", "", programmed, "")
	p.Apply(source.Batch{Set: []source.Object{route("second", "b")}})
	check("none refers to it", "", "", "")
	p.Apply(source.Batch{Set: []source.Object{route("first", "a")}})
	check("it comes back", programmed, "", "")
	refuse("udp-53")
	check("a port's pool is refused", "", "", programmed)
	refuse()
	check("nothing is refused", "", "", "")
}

// What a proxy does with connections has the name of a port and a hostname. Its refusal is told
// to the route that has these, and not as one of limits.
func TestRefusedForwarder(t *testing.T) {
	p := New(standalone)
	route := func(name string) *gwv1.TCPRoute {
		r := &gwv1.TCPRoute{}
		r.Namespace, r.Name = "default", name
		r.Spec.ParentRefs = []gwv1.ParentReference{{Name: "edge", SectionName: new(gwv1.SectionName(name))}}
		r.Spec.Rules = []gwv1.TCPRouteRule{{BackendRefs: []gwv1.BackendRef{{BackendObjectReference: gwv1.BackendObjectReference{Name: "a"}}}}}
		return r
	}
	p.Apply(source.Batch{Set: []source.Object{
		edgeGateway(gwv1.Listener{Name: "one", Port: 9000, Protocol: gwv1.TCPProtocolType}, gwv1.Listener{Name: "two", Port: 9001, Protocol: gwv1.TCPProtocolType}),
		route("one"), route("two"),
	}})
	check := func(when, refused string, want map[string]string) {
		t.Helper()
		state := xds.State{Connected: 1}
		if refused != "" {
			state.Rejected = []xds.Rejected{{Ref: xds.Ref{Type: envoy.Extensions, Name: refused}, Message: "refused because"}}
		}
		p.Update(func(tx *flow.Tx) { p.TakeFeedback(tx, object.Name{Namespace: "default", Name: "edge"}, state) })
		got := map[string]string{}
		p.Engine.View(func(c *flow.Ctx) {
			for _, name := range []string{"one", "two"} {
				s, _ := flow.Get(c, p.RouteStatus, object.Key{Kind: kind.TCPRoute, Name: object.Name{Namespace: "default", Name: name}})
				for _, parent := range s.Parents {
					for _, c := range parent.Conditions {
						if strings.Contains(c.Message, "refused because") {
							got[name] += c.Type + "=" + string(c.Status)
						}
					}
				}
			}
		})
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", when, d)
		}
	}
	check("one of two is refused", "tcp-9000-*", map[string]string{"one": "Programmed=False"})
	check("the other one is", "tcp-9001-*", map[string]string{"two": "Programmed=False"})
	check("limits are", envoy.RateLimitFilter(0), map[string]string{})
	check("nothing is", "", map[string]string{})
}
