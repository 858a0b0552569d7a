package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// externalPolicy asks a Service auth on port 80 about all requests of a Gateway.
func externalPolicy(mode v1alpha1.FailureMode) *v1alpha1.AuthPolicy {
	o := officePolicy("Gateway", "web", 0)
	e := &v1alpha1.ExternalAuth{Protocol: gwv1.HTTPRouteExternalAuthHTTPProtocol, FailureMode: mode}
	e.BackendRef.Name, e.BackendRef.Port = "auth", new(gwv1.PortNumber(80))
	o.Spec.Authorization = map[string]v1alpha1.Authorization{"service": {External: e}}
	return o
}

func authService() *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "auth"}}
	s.Spec.Ports = []corev1.ServicePort{{Port: 80}}
	return s
}

// authSlice is an endpoint of the Service.
func authSlice(address string, port int32) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "auth", Labels: map[string]string{discoveryv1.LabelServiceName: "auth"}}}
	s.AddressType, s.Ports = discoveryv1.AddressTypeIPv4, []discoveryv1.EndpointPort{{Port: &port}}
	s.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{address}}}
	return s
}

// A service of a Gateway with many routes stands once, and its endpoints are nobody else's business.
func TestExternalServiceOfGateway(t *testing.T) {
	for _, mode := range []v1alpha1.FailureMode{v1alpha1.FailureClosed, v1alpha1.FailureOpen} {
		p := guardedPipeline(50)
		commit := p.Apply(source.Batch{Set: []source.Object{externalPolicy(mode), authService(), authSlice("192.0.2.1", 80)}})
		if n := len(flow.Changes(commit, p.RouteConfigurations)); n != 1 {
			t.Errorf("%s: %d tables have changed", mode, n)
		}
		members := 0
		p.Engine.View(func(c *flow.Ctx) {
			for k := range flow.All(c, p.Members) {
				if strings.HasPrefix(k.Backend.String(), "a/auth:80/auth#") {
					members++
				}
			}
			for k, h := range flow.All(c, p.Hosts) {
				if h.Filters != nil && h.Filters.Access != nil {
					t.Errorf("%s: %s has a copy of the policy", mode, k)
				}
			}
		})
		if members != 1 {
			t.Errorf("%s: %d clusters for the service", mode, members)
		}
		commit = p.Apply(source.Batch{Set: []source.Object{authSlice("192.0.2.2", 80)}})
		if n := len(flow.Changes(commit, p.Members)); n != 1 {
			t.Errorf("%s: other endpoints change %d backends", mode, n)
		}
		for _, k := range flow.Changes(commit, p.Members) {
			if k.Old.Cluster != k.New.Cluster && !k.Old.Cluster.Equal(k.New.Cluster) {
				t.Errorf("%s: other endpoints change the cluster", mode)
			}
		}
		if n := len(flow.Changes(commit, p.RouteConfigurations)) + len(flow.Changes(commit, p.Hosts)) + len(flow.Changes(commit, p.Listeners)); n != 0 {
			t.Errorf("%s: other endpoints change %d tables, hosts and listeners", mode, n)
		}
	}
}

// A Gateway that has no cluster for a service lets nobody pass, though the service may fail: here it
// would be the Gateway's own listener.
func TestExternalServiceThatIsAListener(t *testing.T) {
	p := guardedPipeline(1)
	never := func() (never bool) {
		p.Engine.View(func(c *flow.Ctx) {
			for _, v := range flow.All(c, p.Ports) {
				if f := v.Filters; f != nil && f.Access != nil {
					never = f.Access.Conditions[0].Never
				}
			}
		})
		return never
	}
	told := func() (message string) {
		p.Engine.View(func(c *flow.Ctx) {
			s, _ := flow.Get(c, p.AuthPolicyStatus, object.Name{Namespace: "a", Name: "office"})
			for _, a := range s.Ancestors {
				for _, c := range a.Conditions {
					message += c.Type + "=" + string(c.Status) + " " + c.Message + "\n"
				}
			}
		})
		return message
	}
	p.Apply(source.Batch{Set: []source.Object{externalPolicy(v1alpha1.FailureOpen), authService(), authSlice("127.0.0.1", 8081)}})
	if never() || !strings.Contains(told(), "Accepted=True") {
		t.Errorf("a service beside the listener is not asked: %s", told())
	}
	p.Apply(source.Batch{Set: []source.Object{authSlice("127.0.0.1", 8080)}})
	if !never() {
		t.Error("requests pass by a service that is never asked")
	}
	if !strings.Contains(told(), "spec.authorization[service].external.backendRef: Service a/auth leads to 127.0.0.1:8080, where a listener of this process is") {
		t.Errorf("the policy says %s", told())
	}
	p.Apply(source.Batch{Set: []source.Object{authSlice("127.0.0.1", 8081)}})
	if never() {
		t.Error("the service is not asked again")
	}
}

// Policies that proxies have acknowledged are not called Programmed while the service that they have asked has nobody to
// answer. It is told once of each, however often endpoints change.
func TestServiceWithoutEndpoints(t *testing.T) {
	const policies = 200
	p := guardedPipeline(policies)
	all := []source.Object{authService(), authSlice("192.0.2.1", 80)}
	for i := range policies {
		o := externalPolicy(v1alpha1.FailureClosed)
		o.Name = fmt.Sprintf("p%d", i)
		o.Spec.TargetRefs[0].Kind, o.Spec.TargetRefs[0].Name = "HTTPRoute", gwv1.ObjectName(fmt.Sprintf("r%d", i))
		all = append(all, o)
	}
	p.Apply(source.Batch{Set: all})
	marks := carriedMarks(p)
	p.Update(func(tx *flow.Tx) {
		p.TakeFeedback(tx, web, xds.State{Connected: 1, Carried: &xds.Carried{Proxies: 1, Marks: marks}})
	})
	are := func(what string, commit *flow.Commit, changed int, want string) {
		t.Helper()
		if n := len(flow.Changes(commit, p.AuthPolicyStatus)); n != changed {
			t.Errorf("%s: %d statuses have changed, not %d", what, n, changed)
		}
		p.Engine.View(func(c *flow.Ctx) {
			for name, s := range flow.All(c, p.AuthPolicyStatus) {
				for _, cond := range s.Ancestors[0].Conditions {
					if got := fmt.Sprintf("%s %s: %s", cond.Status, cond.Reason, cond.Message); cond.Type == "Programmed" && !strings.HasPrefix(got, want) {
						t.Fatalf("%s: %s says %q, not %q", what, name, got, want)
					}
				}
			}
		})
	}
	are("another endpoint", p.Apply(source.Batch{Set: []source.Object{authSlice("192.0.2.2", 80)}}), 0, "True Programmed")
	none := authSlice("192.0.2.2", 80)
	none.Endpoints[0].Conditions.Ready = new(false)
	are("no endpoint", p.Apply(source.Batch{Set: []source.Object{none}}), policies,
		"False ServiceUnavailable: spec.authorization[service].external: Service a/auth has no endpoint that is ready")
	are("another one that isn't ready", p.Apply(source.Batch{Set: []source.Object{func() source.Object {
		o := none.DeepCopy()
		o.Endpoints[0].Addresses[0] = "192.0.2.3"
		return o
	}()}}), 0, "False ServiceUnavailable")
	are("an endpoint again", p.Apply(source.Batch{Set: []source.Object{authSlice("192.0.2.3", 80)}}), policies, "True Programmed")
}
