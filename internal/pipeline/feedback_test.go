package pipeline

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/status"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// A proxy has one listener for each address of a port. What it says of any of them counts
// for the port, also if it is said before this pipeline has made the listener: another
// replica of the controller may be ahead.
func TestListenersAtAddresses(t *testing.T) {
	p := New(Options{
		Topology:  topology.Options{ControllerName: "x", ImplicitClass: StandaloneClass},
		Addresses: []string{"127.0.0.1", "127.0.0.2"},
	})
	name := object.Name{Namespace: "default", Name: "edge"}
	gw := func(ports ...gwv1.PortNumber) *gwv1.Gateway {
		gw := &gwv1.Gateway{}
		gw.Namespace, gw.Name = name.Namespace, name.Name
		gw.Spec.GatewayClassName = StandaloneClass
		for i, port := range ports {
			gw.Spec.Listeners = append(gw.Spec.Listeners, gwv1.Listener{
				Name: gwv1.SectionName("abc"[i : i+1]), Port: port, Protocol: gwv1.HTTPProtocolType,
			})
		}
		return gw
	}
	say := func(acknowledged, refused []string) {
		state := xds.State{Connected: 1, Listeners: map[string]string{}}
		for _, name := range acknowledged {
			state.Listeners[name] = "1"
		}
		for _, name := range refused {
			state.Rejected = append(state.Rejected, xds.Rejected{Ref: xds.Ref{Type: envoy.Listeners, Name: name}, Message: name})
		}
		p.Update(func(tx *flow.Tx) { p.TakeFeedback(tx, name, state) })
	}
	check := func(when string, acknowledged map[string]bool, refused map[string]string) {
		t.Helper()
		want := &status.ProxyState{Connected: true, Listeners: acknowledged, Rejected: map[status.Ref]status.Rejection{}}
		for listener, message := range refused {
			want.Rejected[status.Ref{Kind: status.RefListener, Name: listener}] = status.Rejection{Message: message}
		}
		p.Engine.View(func(c *flow.Ctx) {
			got, _ := p.ProxyState(c, name)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", when, d)
			}
		})
	}
	all := map[string]bool{"http-80": true, "http-81": true}

	p.Apply(source.Batch{Set: []source.Object{gw(80)}})
	say([]string{"http-80@127.0.0.1", "http-81@127.0.0.2"}, nil)
	check("another replica is ahead", map[string]bool{"http-80": true}, nil)
	p.Apply(source.Batch{Set: []source.Object{gw(80, 81)}})
	check("this one follows", all, nil)
	say([]string{"http-80@127.0.0.1", "http-81@127.0.0.2"}, []string{"http-80@127.0.0.1", "http-80@127.0.0.2", "http-81@127.0.0.1"})
	check("some are refused", all, map[string]string{"http-80": "http-80@127.0.0.2", "http-81": "http-81@127.0.0.1"})
	say([]string{"http-80", "http-81@192.0.2.1", "http-8", "@127.0.0.1"}, []string{"http-82@127.0.0.1"})
	check("names of nothing", map[string]bool{}, nil)
}
