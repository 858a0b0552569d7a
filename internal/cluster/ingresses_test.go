package cluster

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

// Ingresses of a class are served by a Gateway that nobody has written: it has a fleet, nothing of what is made is
// written to the cluster, the Ingresses have its address, and an Event says what is refused of one.
func TestIngresses(t *testing.T) {
	in := install(t, kind.WithIngresses.Of(kind.Ingress))
	in.allow("ingresses",
		rbacv1.PolicyRule{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingresses"}, Verbs: []string{"list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingressclasses"}, Verbs: []string{"get"}},
		rbacv1.PolicyRule{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingresses/status"}, Verbs: []string{"patch"}})
	ingressOf := func(name, class, annotations string) string {
		return `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {namespace: team, name: ` + name + `, annotations: {` + annotations + `}},
  spec: {ingressClassName: ` + class + `, rules: [{host: ` + name + `.example, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}]}}]}}`
	}
	in.apply(`{apiVersion: v1, kind: Service, metadata: {namespace: team, name: web}, spec: {ports: [{name: http, port: 8080}]}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: team, name: answers}, data: {X-Team: shop}}`,
		ingressOf("good", "live", `nginx.ingress.kubernetes.io/custom-headers: team/answers`),
		ingressOf("guarded", "live", `nginx.ingress.kubernetes.io/auth-type: digest`),
		ingressOf("other", "other", ``))
	r := in.start(func(c *configuration.Configuration) {
		c.Sources = append(c.Sources, configuration.Source{Ingress: &configuration.Ingress{Class: "live", Gateway: "team/ingress"}})
	})

	names := func() (out []string) {
		for _, it := range view.Of(r.pipeline).Items {
			if it.Kind == "HTTPRoute" || it.Kind == "Gateway" || it.Kind == "TrafficPolicy" {
				out = append(out, it.Kind+" "+it.Metadata.Name)
			}
		}
		slices.Sort(out)
		return out
	}
	want := []string{"Gateway ingress", "HTTPRoute good", "HTTPRoute guarded", "TrafficPolicy good", "TrafficPolicy ingress"}
	in.until("the ConfigMap's headers are in the policy", func() bool { return slices.Equal(names(), want) })
	in.until("the Gateway has a fleet", func() bool {
		list := &appsv1.DeploymentList{}
		if err := in.client.List(t.Context(), list, client.InNamespace("team")); err != nil {
			t.Fatal(err)
		}
		return len(list.Items) == 1
	})
	routes, gateways := &gwv1.HTTPRouteList{}, &gwv1.GatewayList{}
	for _, list := range []client.ObjectList{routes, gateways} {
		if err := in.client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	if len(routes.Items)+len(gateways.Items) > 0 {
		t.Errorf("%d routes and %d Gateways are in the cluster", len(routes.Items), len(gateways.Items))
	}

	events := func() (told []string) {
		list := &eventsv1.EventList{}
		if err := in.client.List(t.Context(), list, client.InNamespace("team")); err != nil {
			t.Fatal(err)
		}
		for _, e := range list.Items {
			if e.Regarding.Kind == "Ingress" {
				told = append(told, e.Regarding.Name+": "+e.Note)
			}
		}
		return told
	}
	in.until("an Event says what is refused", func() bool { return len(events()) > 0 })
	if told := events(); len(told) != 1 || !strings.HasPrefix(told[0], "guarded: refused, and answered with 503") || !strings.Contains(told[0], "auth-type") {
		t.Errorf("Events: %q", told)
	}

	services := &corev1.ServiceList{}
	if err := in.client.List(t.Context(), services, client.InNamespace("team"), client.HasLabels{"gateway.networking.k8s.io/gateway-name"}); err != nil || len(services.Items) != 1 {
		t.Fatalf("%d Services, %v", len(services.Items), err)
	}
	services.Items[0].Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.7"}}
	if err := in.client.Status().Update(t.Context(), &services.Items[0]); err != nil {
		t.Fatal(err)
	}
	address := func(name string) string {
		o := &networkingv1.Ingress{}
		if err := in.client.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: name}, o); err != nil {
			t.Fatal(err)
		}
		if len(o.Status.LoadBalancer.Ingress) != 1 {
			return ""
		}
		return o.Status.LoadBalancer.Ingress[0].IP
	}
	in.until("the Ingress has the address", func() bool { return address("good") == "192.0.2.7" })
	if got := address("other"); got != "" {
		t.Errorf("an Ingress of another class has address %s", got)
	}

	in.apply(`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: team, name: good}, spec: {parentRefs: [{name: ingress}], hostnames: [mine.example]}}`)
	in.until("the route that somebody has written counts", func() bool {
		counts := false
		r.pipeline.Engine.View(func(ctx *flow.Ctx) {
			o, _ := flow.Get(ctx, r.pipeline.Inputs.Routes, object.Key{Kind: kind.HTTPRoute, Name: object.Name{Namespace: "team", Name: "good"}})
			route, ok := o.(*gwv1.HTTPRoute)
			counts = ok && slices.Equal(route.Spec.Hostnames, []gwv1.Hostname{"mine.example"})
		})
		return counts
	})
	in.apply(ingressOf("guarded", "other", ``))
	in.until("what is of another class now isn't served", func() bool { return !slices.Contains(names(), "HTTPRoute guarded") })
}
