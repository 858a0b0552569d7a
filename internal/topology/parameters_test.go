package topology

import (
	"strings"
	"testing"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/parameters"
)

// TestFrozen protects what runs from a mistake in its parameters: it goes on with
// those that it had.
func TestFrozen(t *testing.T) {
	const gateway = `
kind: Gateway
metadata: {namespace: default, name: g}
spec:
  gatewayClassName: gatehouse
  infrastructure: {parametersRef: {group: gatehouse.dev, kind: GatewayParameters, name: p}}
  listeners: [{name: http, port: 80, protocol: HTTP}]`
	for _, provisioned := range []bool{false, true} {
		w := newWorld(settings{ImplicitClass: "gatehouse", Provisioned: provisioned}.options())
		name := object.Name{Namespace: "default", Name: "g"}
		node := func() *Gateway { return w.gateway(name) }
		w.set(t, decode(t, gateway)...)
		if gw := node(); gw.Accepted.Reason != string(gwv1.GatewayReasonInvalidParameters) || gw.Served() != provisioned || gw.Listeners[0].Serves != provisioned {
			t.Errorf("provisioned %t, nothing known: served %t, %s", provisioned, gw.Served(), gw.Accepted.Message)
		}
		w.set(t, decode(t, "kind: GatewayParameters\nmetadata: {namespace: default, name: p}\nspec: {client: {trustedHops: 3}}")...)
		good := node()
		if !good.Served() || good.Frozen {
			t.Fatalf("not served: %s", good.Accepted.Message)
		}
		w.engine.Update(func(tx *flow.Tx) {
			w.in.Kept.Set(tx, name, parameters.Kept{UID: good.Object.UID, Settings: good.Parameters})
		})
		w.set(t, decode(t, "kind: GatewayParameters\nmetadata: {namespace: default, name: p}\nspec: {client: {trustedHops: 9}, tracing: {}}")...)
		frozen := node()
		if !frozen.Frozen || !frozen.Served() || !frozen.Listeners[0].Serves || frozen.Parameters != good.Parameters {
			t.Errorf("provisioned %t: not frozen: %s", provisioned, frozen.Accepted.Message)
		}
		w.set(t, decode(t, "kind: GatewayParameters\nmetadata: {namespace: default, name: p}\nspec: {client: {trustedHops: 9}}")...)
		if gw := node(); gw.Frozen || *gw.Parameters.Client.TrustedHops != 9 {
			t.Errorf("provisioned %t: still frozen: %s", provisioned, gw.Accepted.Message)
		}
	}
}

// TestParametersConcernWhoUsesThem protects the cost of a change of parameters.
func TestParametersConcernWhoUsesThem(t *testing.T) {
	w := populate(t, 50)
	w.set(t, decode(t, `
kind: GatewayParameters
metadata: {namespace: default, name: p}
spec: {client: {trustedHops: 3}}
---
kind: Gateway
metadata: {namespace: default, name: user}
spec:
  gatewayClassName: gatehouse
  infrastructure: {parametersRef: {group: gatehouse.dev, kind: GatewayParameters, name: p}}
  listeners: [{name: http, port: 80, protocol: HTTP}]`)...)
	before := w.runs()
	w.set(t, decode(t, "kind: GatewayParameters\nmetadata: {namespace: default, name: p}\nspec: {client: {trustedHops: 4}}")...)
	for table, n := range w.runs() {
		if ran := n - before[table]; ran > 1 || ran > 0 && (table == "topology-routes" || table == "topology-parents" || table == "topology-sections") {
			t.Errorf("%s ran %d times", table, ran)
		}
	}
}

// TestPatchesWithoutBounds protects whoever reads the status of a Gateway whose patches
// would cost too much: it says which patch, how much, and what to do.
func TestPatchesWithoutBounds(t *testing.T) {
	w := newWorld(settings{ImplicitClass: "gatehouse", Provisioned: true}.options())
	operations := strings.Repeat("{op: copy, from: /metadata/annotations, path: /metadata/annotations/a}, ", 26)
	w.set(t, decode(t, `
kind: GatewayClass
metadata: {name: gatehouse}
spec:
  controllerName: gatehouse.dev/controller
  parametersRef: {group: gatehouse.dev, kind: GatewayParameters, namespace: infra, name: all}
---
kind: GatewayParameters
metadata: {namespace: infra, name: all}
spec: {allow: {parameters: All}}
---
kind: Gateway
metadata: {namespace: default, name: g}
spec:
  gatewayClassName: gatehouse
  infrastructure: {parametersRef: {group: gatehouse.dev, kind: GatewayParameters, name: p}}
  listeners: [{name: http, port: 80, protocol: HTTP}]
---
kind: GatewayParameters
metadata: {namespace: default, name: p}
spec: {patches: [{target: {kind: Service}, type: JSONPatch, value: [`+operations+`]}]}`)...)
	gw := w.gateway(object.Name{Namespace: "default", Name: "g"})
	const want = "GatewayParameters default/p can't be used: spec: Invalid value: patches[0]: all JSON patches up to this one have " +
		"26 copy operations, over the limit of 16; use add, with the value itself; mend it"
	if gw.Accepted.Reason != string(gwv1.GatewayReasonInvalidParameters) || !strings.HasPrefix(gw.Accepted.Message, want) {
		t.Errorf("%s: %s", gw.Accepted.Reason, gw.Accepted.Message)
	}
}

// In static-mode Gateways have tenants too, although no pods are provisioned: Envoy runs
// beside the controller's token, and a class says what it may be told.
func TestClassAllowsWithoutFleets(t *testing.T) {
	w := newWorld(settings{ImplicitClass: "gatehouse", Tenants: true}.options())
	check := func(when, bad string) {
		t.Helper()
		gw := w.gateway(object.Name{Namespace: "default", Name: "g"})
		if refused := gw.Accepted.Reason == string(gwv1.GatewayReasonInvalidParameters); refused != (bad != "") || !strings.Contains(gw.Accepted.Message, bad) {
			t.Errorf("%s: %s: %s", when, gw.Accepted.Reason, gw.Accepted.Message)
		}
	}
	w.set(t, decode(t, `
kind: GatewayClass
metadata: {name: gatehouse}
spec:
  controllerName: gatehouse.dev/controller
  parametersRef: {group: gatehouse.dev, kind: GatewayParameters, namespace: infra, name: all}
---
kind: GatewayParameters
metadata: {namespace: infra, name: all}
---
kind: Gateway
metadata: {namespace: default, name: g}
spec:
  gatewayClassName: gatehouse
  infrastructure: {parametersRef: {group: gatehouse.dev, kind: GatewayParameters, name: p}}
  listeners: [{name: http, port: 80, protocol: HTTP}]
---
kind: GatewayParameters
metadata: {namespace: default, name: p}
spec: {accessLog: [{path: /var/log/access}]}`)...)
	check("as the class says nothing", "spec.accessLog[0].path")
	w.set(t, decode(t, "kind: GatewayParameters\nmetadata: {namespace: infra, name: all}\nspec: {allow: {parameters: All}}")...)
	check("as the class allows everything", "")
}
