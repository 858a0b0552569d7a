package cluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/loop"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// TestGatewayComesBack protects what proxies say of a Gateway that is deleted and made
// again: replicas don't see that at the same time, so that what they say of the new one
// may come while the old one is there still, or none.
func TestGatewayComesBack(t *testing.T) {
	in := install(t)
	c := in.start()
	name := object.Name{Namespace: "team", Name: "web"}
	const web = `{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: team, name: web}, ` +
		`spec: {gatewayClassName: gatehouse, listeners: [{name: http, port: 80, protocol: HTTP}]}}`
	gateway := &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}}
	heard := func() (connected bool) {
		c.pipeline.Engine.View(func(ctx *flow.Ctx) {
			state, ok := c.pipeline.ProxyState(ctx, name)
			connected = ok && state.Connected && state.Listeners["http-80"]
		})
		return connected
	}
	there := func(want bool) {
		t.Helper()
		in.until("the controller sees what has become of the Gateway", func() (is bool) {
			// Without a pause, so that the state after the very transaction is seen.
			for range 1000 {
				c.loop.Call(t.Context(), func() {
					if is = c.loop.Has(name); !is && heard() {
						t.Error("the proxies of a Gateway that is gone are heard")
					}
				})
				if is == want {
					return true
				}
			}
			return false
		})
	}
	serves := xds.State{Connected: 1, Synced: true, Listeners: map[string]string{"http-80@0.0.0.0": "1"}}
	say := func(state xds.State) {
		c.loop.Tell(t.Context(), loop.Feedback{Gateway: name, Replica: "other", State: state})
	}
	come := func() {
		t.Helper()
		in.apply(web)
		there(true)
	}
	goAway := func() {
		t.Helper()
		deleted := make(chan error, 1)
		go func() { deleted <- in.client.Delete(t.Context(), gateway.DeepCopy()) }()
		there(false)
		if err := <-deleted; err != nil {
			t.Fatal(err)
		}
	}
	come()
	say(serves)
	in.until("its proxies are heard", heard)
	goAway() // the other replica knows of the new one already
	come()
	in.until("they are heard of the new Gateway", heard)
	say(xds.State{})
	in.until("they are gone", func() bool { return !heard() })
	goAway()
	say(serves)
	come()
	in.until("they are heard of the third", heard)
	goAway()
	say(xds.State{})
	c.loop.Call(t.Context(), func() {
		if len(c.loop.States) > 0 {
			t.Errorf("of a Gateway that is gone remains %v", c.loop.States)
		}
	})
}
