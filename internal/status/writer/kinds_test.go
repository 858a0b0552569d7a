package writer_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	poolsv1 "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
)

// All kinds with a status can be written.
func testKinds(t *testing.T, b *bench) {
	accepted := observed(1, condition.PolicyAccepted())
	ancestor := gwv1.ParentReference{Name: "g"}
	policy := &gwv1.PolicyStatus{Ancestors: []gwv1.PolicyAncestorStatus{{AncestorRef: ancestor, ControllerName: controllerName, Conditions: accepted}}}
	target := gwv1.LocalPolicyTargetReference{Kind: "Service", Name: "s"}
	meta := metav1.ObjectMeta{Name: "all-kinds"}
	parents := gwv1.CommonRouteSpec{ParentRefs: []gwv1.ParentReference{ancestor}}
	backends := []gwv1.BackendRef{{Name: "s", Port: new(gwv1.PortNumber(80))}}
	gateway := gatewayStatus(1, 0)
	tested := map[*kind.Descriptor]bool{}
	for _, c := range []struct {
		object client.Object
		status any
	}{
		{
			&gwv1.GatewayClass{ObjectMeta: meta, Spec: gwv1.GatewayClassSpec{ControllerName: controllerName}},
			&gwv1.GatewayClassStatus{Conditions: observed(1, condition.ClassAccepted()), SupportedFeatures: []gwv1.SupportedFeature{{Name: "Gateway"}}},
		},
		{
			&gwv1.ListenerSet{ObjectMeta: meta, Spec: gwv1.ListenerSetSpec{
				ParentRef: gwv1.ParentGatewayReference{Name: "g"}, Listeners: []gwv1.ListenerEntry{{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType}},
			}},
			&gwv1.ListenerSetStatus{Conditions: observed(1, condition.ListenerSetAccepted()), Listeners: []gwv1.ListenerEntryStatus{{
				Name: "http", SupportedKinds: []gwv1.RouteGroupKind{}, Conditions: observed(1, condition.ListenerAccepted()),
			}}},
		},
		{&gwv1.Gateway{ObjectMeta: meta, Spec: gwv1.GatewaySpec{
			GatewayClassName: "example", Listeners: []gwv1.Listener{{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType}},
		}}, gateway},
		{&gwv1.HTTPRoute{ObjectMeta: meta, Spec: gwv1.HTTPRouteSpec{CommonRouteSpec: parents}}, routeStatus(1, "g")},
		{&gwv1.GRPCRoute{ObjectMeta: meta, Spec: gwv1.GRPCRouteSpec{CommonRouteSpec: parents}}, routeStatus(1, "g")},
		{&gwv1.TLSRoute{ObjectMeta: meta, Spec: gwv1.TLSRouteSpec{
			CommonRouteSpec: parents, Hostnames: []gwv1.Hostname{"a.test"}, Rules: []gwv1.TLSRouteRule{{BackendRefs: backends}},
		}}, routeStatus(1, "g")},
		{&gwv1.TCPRoute{ObjectMeta: meta, Spec: gwv1.TCPRouteSpec{CommonRouteSpec: parents, Rules: []gwv1.TCPRouteRule{{BackendRefs: backends}}}}, routeStatus(1, "g")},
		{&gwv1.UDPRoute{ObjectMeta: meta, Spec: gwv1.UDPRouteSpec{CommonRouteSpec: parents, Rules: []gwv1.UDPRouteRule{{BackendRefs: backends}}}}, routeStatus(1, "g")},
		{&gwv1.BackendTLSPolicy{ObjectMeta: meta, Spec: gwv1.BackendTLSPolicySpec{
			TargetRefs: []gwv1.LocalPolicyTargetReferenceWithSectionName{{LocalPolicyTargetReference: target}},
			Validation: gwv1.BackendTLSPolicyValidation{Hostname: "a.test", WellKnownCACertificates: new(gwv1.WellKnownCACertificatesSystem)},
		}}, policy},
		{&gwxv1alpha1.XBackendTrafficPolicy{ObjectMeta: meta, Spec: gwxv1alpha1.BackendTrafficPolicySpec{
			TargetRefs: []gwv1.LocalPolicyTargetReference{target},
		}}, policy},
		{&v1alpha1.AuthPolicy{ObjectMeta: meta, Spec: v1alpha1.AuthPolicySpec{
			TargetRefs: []gwv1.LocalPolicyTargetReferenceWithSectionName{{
				LocalPolicyTargetReference: gwv1.LocalPolicyTargetReference{Group: gwv1.GroupName, Kind: "Gateway", Name: "g"},
			}},
			AuthRules: v1alpha1.AuthRules{Authentication: map[string]v1alpha1.Authentication{"anyone": {Anonymous: &v1alpha1.Anonymous{}}}},
		}}, policy},
		{&v1alpha1.RateLimitPolicy{ObjectMeta: meta, Spec: v1alpha1.RateLimitPolicySpec{
			TargetRefs: []gwv1.LocalPolicyTargetReferenceWithSectionName{{
				LocalPolicyTargetReference: gwv1.LocalPolicyTargetReference{Group: gwv1.GroupName, Kind: "Gateway", Name: "g"},
			}},
			RateLimits: v1alpha1.RateLimits{Limits: map[string]v1alpha1.RateLimit{"all": {Rates: []v1alpha1.Rate{{Limit: 1, Window: "1s"}}}}},
		}}, policy},
		{&poolsv1.InferencePool{ObjectMeta: meta, Spec: poolsv1.InferencePoolSpec{
			Selector:    poolsv1.LabelSelector{MatchLabels: map[poolsv1.LabelKey]poolsv1.LabelValue{"app": "m"}},
			TargetPorts: []poolsv1.Port{{Number: 8000}},
		}}, &poolsv1.InferencePoolStatus{Parents: []poolsv1.ParentStatus{kind.PoolParent(kind.Entry{
			Controller: controllerName, Ref: ancestor, Conditions: accepted,
		})}}},
		{&v1alpha1.RouteFilter{ObjectMeta: meta, Spec: v1alpha1.RouteFilterSpec{
			DirectResponse: &v1alpha1.DirectResponse{Status: 503},
		}}, &v1alpha1.RouteFilterStatus{Conditions: observed(1, condition.RouteFilterAccepted())}},
		{&v1alpha1.TrafficPolicy{ObjectMeta: meta, Spec: v1alpha1.TrafficPolicySpec{
			TargetRefs: []gwv1.LocalPolicyTargetReferenceWithSectionName{{
				LocalPolicyTargetReference: gwv1.LocalPolicyTargetReference{Group: gwv1.GroupName, Kind: "Gateway", Name: "g"},
			}},
			TrafficSettings: v1alpha1.TrafficSettings{Response: v1alpha1.TrafficResponse{Compression: &v1alpha1.Compression{}}},
		}}, policy},
		{&v1alpha1.GatewayBlueprint{ObjectMeta: meta}, &v1alpha1.GatewayBlueprintStatus{Conditions: observed(1, condition.BlueprintAccepted())}},
		{&v1alpha1.GatewayClassValues{ObjectMeta: meta, Spec: v1alpha1.GatewayClassValuesSpec{
			TargetRef: v1alpha1.ValuesTarget{Group: gwv1.GroupName, Kind: "GatewayClass", Name: "g"},
		}}, &v1alpha1.ValuesStatus{Conditions: observed(1, condition.ValuesAccepted())}},
		{&v1alpha1.GatewayValues{ObjectMeta: meta, Spec: v1alpha1.GatewayValuesSpec{
			TargetRef: v1alpha1.ValuesTarget{Group: gwv1.GroupName, Kind: "Gateway", Name: "g"},
		}}, &v1alpha1.ValuesStatus{Conditions: observed(1, condition.ValuesAccepted())}},
		{&gwxv1alpha1.XBackend{ObjectMeta: meta, Spec: gwxv1alpha1.BackendSpec{
			Type: gwxv1alpha1.BackendTypeExternalHostname, ExternalHostname: &gwxv1alpha1.ExternalHostnameBackend{Hostname: "a.test"}, Port: gwxv1alpha1.BackendPort{Number: 443},
		}}, &gwxv1alpha1.BackendStatus{Ancestors: []gwxv1alpha1.BackendAncestorStatus{{AncestorRef: ancestor, ControllerName: controllerName, Conditions: accepted}}}},
	} {
		tested[kind.All.OfObject(c.object)] = true
		k := b.make(t, c.object)
		b.Set(k, c.status)
		eventually(t, k.String()+" is written", func() bool {
			text, _ := json.Marshal(b.raw(t, k, "status"))
			return strings.Contains(string(text), `"observedGeneration":1`)
		})
	}
	b.settled(t)
	if n := b.requests.count("PATCH"); n != len(tested) {
		t.Errorf("%d writes of %d kinds", n, len(tested))
	}
	for d := range kind.All.Rows() {
		if d.Status != nil && !tested[d] {
			t.Errorf("%s is not tested", d)
		}
	}
}

// A field that the cluster's version of a kind doesn't have is written in vain only
// once.
func testPruned(t *testing.T, b *bench) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := b.Get(t.Context(), types.NamespacedName{Name: "gateways." + gwv1.GroupName}, crd); err != nil {
		t.Fatal(err)
	}
	whole := crd.DeepCopy()
	for i := range crd.Spec.Versions {
		delete(crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["status"].Properties, "attachedListenerSets")
	}
	if err := b.Update(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	defer func() {
		whole.ResourceVersion = crd.ResourceVersion
		if err := b.Get(context.Background(), types.NamespacedName{Name: crd.Name}, crd); err == nil {
			whole.ResourceVersion = crd.ResourceVersion
		}
		if err := b.Update(context.Background(), whole); err != nil {
			t.Error(err)
		}
	}()
	k := b.gateway(t, "g")
	eventually(t, "the field is not kept", func() bool {
		b.merge(t, k, `{"status": {"attachedListenerSets": 3}}`)
		return b.status(t, k).(gwv1.GatewayStatus).AttachedListenerSets == nil
	})
	// A write on top of what the cache doesn't have yet would be refused, and repeated.
	eventually(t, "the cache has what the test wrote", func() bool {
		return b.live(k).GetResourceVersion() == b.stored(t, k).GetResourceVersion()
	})
	s := gatewayStatus(1, 0)
	s.AttachedListenerSets = new(int32(3))
	b.Set(k, s)
	b.settled(t)
	if n := b.requests.count("PATCH"); n != 1 {
		t.Errorf("%d writes", n)
	}
	next := s.DeepCopy()
	next.Listeners[0].AttachedRoutes = 1
	b.Set(k, next)
	eventually(t, "what is kept is written", func() bool { return b.status(t, k).(gwv1.GatewayStatus).Listeners[0].AttachedRoutes == 1 })
}
