package topology

import (
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// TestCheckParameters protects fleets from settings that pass the schema and that
// no API server or Envoy would take.
func TestCheckParameters(t *testing.T) {
	for text, want := range map[string][]string{
		"pod: {labels: {a: b}, annotations: {c: d e}, nodeSelector: {e: f}}": nil,
		"pod: {labels: {a: b c}}":                                          {"spec.pod.labels"},
		"pod: {annotations: {'a b': c}}":                                   {"spec.pod.annotations"},
		"pod: {nodeSelector: {a: b c}}":                                    {"spec.pod.nodeSelector"},
		"service: {labels: {'-': c}}":                                      {"spec.service.labels"},
		"service: {annotations: {'a b': ''}}":                              {"spec.service.annotations"},
		"service: {loadBalancerSourceRanges: [10.0.0.0/8, 2001:db8::/32]}": nil,
		"service: {loadBalancerSourceRanges: [10.0.0.0/8, 10.0.0.1]}":      {"spec.service.loadBalancerSourceRanges[1]"},
		"service: {nodePorts: [{listenerPort: 80, nodePort: 30080}, {listenerPort: 443, nodePort: 30443}]}": nil,
		"service: {nodePorts: [{listenerPort: 80, nodePort: 30080}, {listenerPort: 80, nodePort: 30080}]}":  {"spec.service.nodePorts[1].listenerPort", "spec.service.nodePorts[1].nodePort"},
		"service: {ipFamilies: [IPv4, IPv4]}": {"spec.service.ipFamilies[1]"},
		"patches: [{target: {kind: Service}, value: {a: 1}}, {target: {kind: Service}, type: JSONPatch, value: [{op: test}]}]": nil,
		"patches: [{target: {kind: Service}, value: [1]}]":                                                                     {"spec.patches[0].value"},
		"patches: [{target: {kind: Service}, type: JSONPatch, value: {a: 1}}]":                                                 {"spec.patches[0].value"},
		"patches: [{target: {kind: Service}}]":                                                                                 {"spec.patches[0].value"},
		"envoy: {bootstrap: {a: 1}}":                                                                                           nil,
		"envoy: {bootstrap: 5}":                                                                                                {"spec.envoy.bootstrap"},
		"drain: {delay: 0s, timeout: 1h30m}":                                                                                   nil,
		"drain: {delay: 99h, timeout: x}":                                                                                      {"spec.drain.delay", "spec.drain.timeout"},
		"accessLog: [{path: /var/log/access}, {openTelemetry: {host: collector.svc, port: 4317}}, {openTelemetry: {host: '::1', port: 4317}}]": nil,
		"accessLog: [{path: /var/../log}]":                         {"spec.accessLog[0].path"},
		"accessLog: [{openTelemetry: {host: 'a b', port: 1}}]":     {"spec.accessLog[0].openTelemetry.host"},
		"tracing: {openTelemetry: {host: 'http://x', port: 1}}":    {"spec.tracing.openTelemetry.host"},
		"client: {limits: {headersTimeout: 0s, idleTimeout: 1ms}}": {"spec.client.limits.headersTimeout"},
		"overrides: {envoy: {bootstrap: []}}":                      {"spec.overrides.envoy.bootstrap"},
	} {
		o := &v1alpha1.GatewayParameters{}
		for _, d := range decode(t, "kind: GatewayParameters\nspec: {"+text+"}") {
			o = d.(*v1alpha1.GatewayParameters)
		}
		if d := gocmp.Diff(want, fields(checkParameters(o))); d != "" {
			t.Errorf("%s: -want +got:\n%s", text, d)
		}
	}
}

// TestCheckWhole protects them from levels that are right by themselves and wrong
// together.
func TestCheckWhole(t *testing.T) {
	for text, want := range map[string][]string{
		"deployment: {autoscaling: {maxReplicas: 2}}":                                 nil,
		"deployment: {autoscaling: {minReplicas: 2}}":                                 {"spec.deployment.autoscaling.maxReplicas"},
		"deployment: {autoscaling: {minReplicas: 2, maxReplicas: 1}}":                 {"spec.deployment.autoscaling.minReplicas"},
		"container: {resources: {requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1}}}": nil,
		"container: {resources: {requests: {cpu: 2}, limits: {cpu: 1, memory: -1}}}":  {"spec.container.resources.limits[memory]", "spec.container.resources.requests[cpu]"},
		"tracing: {samplingPercent: 5}":                                               {"spec.tracing.openTelemetry"},
		"tracing: {samplingPercent: 0}":                                               nil,
		"tracing: {samplingFraction: {numerator: 1, denominator: 1000}}":              {"spec.tracing.openTelemetry"},
		"client: {http3: true, proxyProtocol: true}":                                  {"spec.client.http3"},
		"patches: [{target: {kind: Service}, value: {}}]":                             {"injected"},
	} {
		g := &Graph{options: Options{CheckSettings: func(s *v1alpha1.Settings) field.ErrorList {
			if len(s.Patches) > 0 {
				return field.ErrorList{field.Forbidden(field.NewPath("injected"), "")}
			}
			return nil
		}}}
		if d := gocmp.Diff(want, fields(g.checkWhole(readSettings(t, text)))); d != "" {
			t.Errorf("%s: -want +got:\n%s", text, d)
		}
	}
}

// TestSampling protects the share of requests that is traced.
func TestSampling(t *testing.T) {
	for text, want := range map[string]uint32{
		"{}":                                 1_000_000,
		"{samplingPercent: 0}":               0,
		"{samplingPercent: 7}":               70_000,
		"{samplingFraction: {numerator: 7}}": 70_000,
		"{samplingFraction: {numerator: 1, denominator: 1000}}":                1_000,
		"{samplingFraction: {numerator: 2147483647, denominator: 2147483647}}": 1_000_000,
	} {
		if got := Sampling(readSettings(t, "tracing: "+text).Tracing); got != want {
			t.Errorf("%s: got %d, want %d", text, got, want)
		}
	}
}

func fields(errs field.ErrorList) (out []string) {
	for _, e := range errs {
		out = append(out, e.Field)
	}
	slices.Sort(out)
	return out
}

// TestHeld protects what runs from a mistake in its parameters: it goes on with
// those that it had.
func TestHeld(t *testing.T) {
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
		node := func() (gw *Gateway) {
			w.engine.View(func(c *flow.Ctx) { gw, _ = flow.Get(c, w.graph.Gateways, name) })
			return gw
		}
		w.set(t, decode(t, gateway)...)
		if gw := node(); gw.Accepted.Reason != string(gwv1.GatewayReasonInvalidParameters) || gw.Served() != provisioned || gw.Listeners[0].Serves != provisioned {
			t.Errorf("provisioned %t, nothing known: served %t, %s", provisioned, gw.Served(), gw.Accepted.Message)
		}
		w.set(t, decode(t, "kind: GatewayParameters\nmetadata: {namespace: default, name: p}\nspec: {client: {trustedHops: 3}}")...)
		good := node()
		if !good.Served() || good.ParametersHeld {
			t.Fatalf("not served: %s", good.Accepted.Message)
		}
		w.engine.Update(func(tx *flow.Tx) { w.in.Settled.Set(tx, name, Settled{good.Object.UID, good.Parameters}) })
		w.set(t, decode(t, "kind: GatewayParameters\nmetadata: {namespace: default, name: p}\nspec: {client: {trustedHops: 9}, tracing: {}}")...)
		held := node()
		if !held.ParametersHeld || !held.Served() || !held.Listeners[0].Serves || held.Parameters != good.Parameters {
			t.Errorf("provisioned %t: not held: %s", provisioned, held.Accepted.Message)
		}
		w.set(t, decode(t, "kind: GatewayParameters\nmetadata: {namespace: default, name: p}\nspec: {client: {trustedHops: 9}}")...)
		if gw := node(); gw.ParametersHeld || *gw.Parameters.Client.TrustedHops != 9 {
			t.Errorf("provisioned %t: still held: %s", provisioned, gw.Accepted.Message)
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
