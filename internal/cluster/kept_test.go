package cluster

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

var webGateway = object.Name{Namespace: "team", Name: "web"}

const (
	parametrizedGateway = `{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: team, name: web}, spec: {gatewayClassName: gatehouse,
  infrastructure: {parametersRef: {group: gatehouse.dev, kind: GatewayParameters, name: p}}, listeners: [{name: http, port: 80, protocol: HTTP}]}}`
	goodParameters = `{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayParameters, metadata: {namespace: team, name: p}, spec: {client: {proxyProtocol: true, limits: {headersKiB: 20}}, accessLog: []}}`
	badParameters  = `{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayParameters, metadata: {namespace: team, name: p}, spec: {accessLog: [{text: "%NONESUCH%"}]}}`
)

// listenersOf are the Envoy listeners of a Gateway, as they are sent.
func (r *replica) listenersOf(gateway object.Name) map[string]string {
	out := map[string]string{}
	r.pipeline.Engine.View(func(c *flow.Ctx) {
		for k, l := range flow.All(c, r.pipeline.Listeners) {
			if k.Gateway == gateway {
				out[l.Name] = string(l.Body())
			}
		}
	})
	return out
}

// memory is what is kept.
func (in *installed) memory() string {
	in.Helper()
	var o corev1.ConfigMap
	if err := in.client.Get(in.Context(), client.ObjectKey{Namespace: "gatehouse-system", Name: "gatehouse-settings"}, &o); client.IgnoreNotFound(err) != nil {
		in.Fatal(err)
	}
	return o.Data[memoryKey]
}

func (in *installed) accepted() string {
	var gw gwv1.Gateway
	if err := in.client.Get(in.Context(), client.ObjectKey{Namespace: "team", Name: "web"}, &gw); err != nil {
		in.Fatal(err)
	}
	accepted, _ := condition.Find(gw.Status.Conditions, string(gwv1.GatewayConditionAccepted))
	return accepted.Reason
}

// TestSettingsOutliveTheController protects running listeners from a restart while
// their parameters are bad, and the API server from writes for nothing.
func TestSettingsOutliveTheController(t *testing.T) {
	in := install(t)
	r := in.start()
	in.apply(goodParameters, parametrizedGateway,
		`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: team, name: plain}, spec: {gatewayClassName: gatehouse, listeners: [{name: http, port: 80, protocol: HTTP}]}}`)
	in.until("the settings are kept", func() bool { return strings.Contains(in.memory(), `"team/web"`) })
	if text := in.memory(); strings.Contains(text, "plain") {
		t.Errorf("a Gateway without parameters is kept: %s", text)
	}
	before := r.listenersOf(webGateway)
	if len(before) == 0 || !strings.Contains(values(before), "proxy_protocol") {
		t.Fatalf("the parameters are not in force: %q", before)
	}
	in.until("all kinds are known that have objects", func() bool { return len(in.kindsKept()) == len(r.source.Used()) })
	writes := in.writes.Load()
	in.apply(badParameters)
	in.until("the bad parameters are seen", func() bool { return in.accepted() == string(gwv1.GatewayReasonInvalidParameters) })
	r.end()
	r = in.start()
	in.until("the next replica leads", func() bool { return r.leads.Load() != nil })
	if diff := cmp.Diff(before, r.listenersOf(webGateway)); diff != "" {
		t.Errorf("the restart has changed listeners (-before +after):\n%s", diff)
	}
	in.apply(goodParameters, strings.Replace(parametrizedGateway, "name: web", "name: other", 1))
	in.until("the settings of another Gateway are kept", func() bool { return strings.Contains(in.memory(), `"team/other"`) })
	if n := in.writes.Load() - writes; n != 1 {
		t.Errorf("%d writes for a second Gateway and a restart", n)
	}

	r.end()
	in.apply(badParameters)
	r = in.start()
	if diff := cmp.Diff(before, r.listenersOf(webGateway)); diff != "" {
		t.Errorf("parameters that went bad while nobody looked have changed listeners (-before +after):\n%s", diff)
	}

	// A Gateway that is made again has nothing of its predecessor.
	in.until("the replica leads", func() bool { return r.leads.Load() != nil })
	gw := &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}}
	if err := in.client.Delete(t.Context(), gw); err != nil {
		t.Fatal(err)
	}
	in.until("its settings are gone", func() bool { return !strings.Contains(in.memory(), "team/web") })
	in.apply(parametrizedGateway)
	in.until("the new Gateway is served", func() bool { return len(r.listenersOf(webGateway)) > 0 })
	if strings.Contains(values(r.listenersOf(webGateway)), "proxy_protocol") {
		t.Error("the new Gateway has the settings of the old one")
	}
}

func values(m map[string]string) string {
	return strings.Join(slices.Sorted(maps.Values(m)), "\n")
}
