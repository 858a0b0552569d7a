package pipeline

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/test/certs"
)

// manySets returns a Gateway, a Secret, and n ListenerSets with a listener and a
// route each.
func manySets(t testing.TB, n int, protocol gwv1.ProtocolType) []source.Object {
	gw := edgeGateway(gwv1.Listener{Name: "plain", Port: 8080, Protocol: gwv1.HTTPProtocolType})
	gw.Spec.AllowedListeners = &gwv1.AllowedListeners{Namespaces: &gwv1.ListenerNamespaces{From: new(gwv1.NamespacesFromAll)}}
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = "default", "cert"
	cert := certs.For("*.test")
	secret.Data = map[string][]byte{corev1.TLSCertKey: cert.PEM(), corev1.TLSPrivateKeyKey: cert.KeyPEM()}
	objects := []source.Object{gw, secret}
	for i := range n {
		objects = append(objects, oneSet(i, protocol)...)
	}
	return objects
}

func oneSet(i int, protocol gwv1.ProtocolType) []source.Object {
	set := &gwv1.ListenerSet{}
	set.Namespace, set.Name = "default", fmt.Sprintf("set-%05d", i)
	set.Spec.ParentRef.Name = "edge"
	entry := gwv1.ListenerEntry{Name: "l", Port: 443, Protocol: protocol, Hostname: new(gwv1.Hostname(fmt.Sprintf("host-%05d.test", i)))}
	if protocol == gwv1.HTTPSProtocolType {
		entry.TLS = &gwv1.ListenerTLSConfig{CertificateRefs: []gwv1.SecretObjectReference{{Name: "cert"}}}
	}
	set.Spec.Listeners = []gwv1.ListenerEntry{entry}
	route := &gwv1.HTTPRoute{}
	route.Namespace, route.Name = set.Namespace, set.Name
	route.Spec.ParentRefs = []gwv1.ParentReference{{Kind: new(gwv1.Kind("ListenerSet")), Name: gwv1.ObjectName(set.Name)}}
	route.Spec.Rules = []gwv1.HTTPRouteRule{{}}
	return []source.Object{set, route}
}

func pipelineOf(t testing.TB, objects []source.Object) *Pipeline {
	t.Helper()
	p := New(Options{
		Addresses: []string{"127.0.0.1"},
		Topology: topology.Options{
			ControllerName: ControllerName, ImplicitClass: StandaloneClass, SharedHost: true, DefaultAddresses: []string{"127.0.0.1"},
		},
	})
	if c := p.Apply(source.Batch{Set: objects}); len(c.Failures) > 0 {
		t.Fatal(c.Failures[0])
	}
	return p
}

// TestOneMoreListener protects the cost of one more listener with certificates on demand from growing with
// those that there are: neither do more units of work run, nor do any of them go through all.
func TestOneMoreListener(t *testing.T) {
	type work struct{ runs, changes uint64 }
	measure := func(n int) (w work, mallocs uint64) {
		p := pipelineOf(t, manySets(t, n, gwv1.HTTPSProtocolType))
		more := oneSet(n, gwv1.HTTPSProtocolType)
		come := func() {
			for _, b := range []source.Batch{{Set: more}, {Deleted: keysOf(more)}} {
				c := p.Apply(b)
				if len(c.Failures) > 0 {
					t.Fatal(c.Failures[0])
				}
				p.Updates(c)
			}
		}
		done := func() (w work) {
			for _, s := range p.Engine.Stats() {
				w.runs, w.changes = w.runs+s.Runs, w.changes+s.Changes
			}
			return w
		}
		come() // since the engine lags one transaction behind in what it remembers
		before := done()
		mallocs = uint64(testing.AllocsPerRun(1, come)) // which runs it twice
		after := done()
		return work{after.runs - before.runs, after.changes - before.changes}, mallocs
	}
	few, fewMallocs := measure(200)
	many, manyMallocs := measure(2000)
	if few != many || few.runs == 0 {
		t.Errorf("one more of 200 listeners is %+v, of 2,000 %+v", few, many)
	}
	if manyMallocs > fewMallocs+fewMallocs/4 {
		t.Errorf("one more of 200 listeners allocates %d times, of 2,000 %d times", fewMallocs, manyMallocs)
	}
}

// keysOf names the objects of oneSet.
func keysOf(objects []source.Object) []object.Key {
	name := object.Name{Namespace: objects[0].GetNamespace(), Name: objects[0].GetName()}
	return []object.Key{{Kind: kind.ListenerSet, Name: name}, {Kind: kind.HTTPRoute, Name: name}}
}

// BenchmarkListenerSetAdded measures one ListenerSet more, with its route, and its
// removal, among many on one port: time, and bytes for the proxies.
func BenchmarkListenerSetAdded(b *testing.B) {
	for _, protocol := range []gwv1.ProtocolType{gwv1.HTTPProtocolType, gwv1.HTTPSProtocolType} {
		for _, n := range []int{100, 2000} {
			b.Run(fmt.Sprintf("%s/%d", protocol, n), func(b *testing.B) {
				p := pipelineOf(b, manySets(b, n, protocol))
				more := oneSet(n, protocol)
				gone := keysOf(more)
				var sent int
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					batch := source.Batch{Set: more}
					if i%2 == 1 {
						batch = source.Batch{Deleted: gone}
					}
					c := p.Apply(batch)
					for _, u := range p.Updates(c) {
						for _, r := range u.Set {
							sent += len(r.Body())
						}
					}
				}
				b.ReportMetric(float64(sent)/float64(b.N), "sent-B/op")
			})
		}
	}
}
