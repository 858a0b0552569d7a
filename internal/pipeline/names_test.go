package pipeline

import (
	"fmt"
	"strings"
	"testing"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// routeTo sets a route of kind HTTPRoute or TCPRoute to a Service.
func (p *provisioned) routeTo(routeKind, route, service string) {
	p.Helper()
	listener := "http"
	if routeKind == "TCPRoute" {
		listener = "tcp"
	}
	p.set(fmt.Sprintf(`{apiVersion: gateway.networking.k8s.io/v1, kind: %s, metadata: {namespace: team, name: %s},
  spec: {parentRefs: [{name: web, sectionName: %s}], rules: [{backendRefs: [{name: %s, port: 80}]}]}}`, routeKind, route, listener, service))
}

// resolved tells why a route's references are not resolved, and whether proxies have a
// cluster for its Service.
func (p *provisioned) resolved(route object.Key, service string) (why string, has bool) {
	p.Helper()
	p.Engine.View(func(c *flow.Ctx) {
		s, _ := flow.Get(c, p.RouteStatus, route)
		for i := range s.Parents {
			if r, ok := condition.Find(s.Parents[i].Conditions, string(gwv1.RouteConditionResolvedRefs)); ok && r.Status != "True" {
				why = r.Reason + ": " + r.Message
			}
		}
		for k, m := range flow.All(c, p.Members) {
			has = has || k.Backend.Backend().Object.Name.Name == service && m.Cluster != nil
		}
	})
	return why, has
}

// TestExternalNamesAreListed protects what a cluster can reach from whoever may write
// Services and XBackends: a name gets traffic only where the class lists it.
func TestExternalNamesAreListed(t *testing.T) {
	p := newProvisioned(t)
	p.set(`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: team, name: web},
  spec: {gatewayClassName: gatehouse, listeners: [{name: http, port: 80, protocol: HTTP}, {name: tcp, port: 81, protocol: TCP}]}}`)
	list := func(names string) {
		t.Helper()
		p.set(`{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayParameters, metadata: {namespace: platform, name: class}, spec: {backends: {externalNames: [` + names + `]}}}`)
	}
	hosts := map[string]string{
		"api": "api.example.com", "victim": "payments.victim.svc.cluster.local", "short": "payments.victim.svc", "single": "payments",
		"loopback": "localhost", "metadata": "169.254.169.254",
	}
	for service, host := range hosts {
		p.set(fmt.Sprintf(`{apiVersion: v1, kind: Service, metadata: {namespace: team, name: %s}, spec: {type: ExternalName, externalName: "%s"}}`, service, host))
		p.routeTo("HTTPRoute", service, service)
	}
	p.set(`{apiVersion: v1, kind: Service, metadata: {namespace: team, name: bytes}, spec: {type: ExternalName, externalName: api.example.com}}`)
	p.routeTo("TCPRoute", "bytes", "bytes")
	check := func(when string, allowed ...string) {
		t.Helper()
		for _, service := range []string{"api", "victim", "short", "single", "loopback", "metadata", "bytes"} {
			key := object.Key{Kind: kind.HTTPRoute, Name: object.Name{Namespace: "team", Name: service}}
			if service == "bytes" {
				key.Kind = kind.TCPRoute
			}
			want := strings.Contains(strings.Join(allowed, " "), service)
			why, has := p.resolved(key, service)
			if has != want || (why == "") != want {
				t.Errorf("%s: %s has a cluster: %t, want %t; %q", when, service, has, want, why)
			}
		}
	}
	check("without parameters")
	if why, _ := p.resolved(object.Key{Kind: kind.HTTPRoute, Name: object.Name{Namespace: "team", Name: "api"}}, "api"); !strings.Contains(why, "externalNames") {
		t.Errorf("the route is told %q", why)
	}
	list(`"*"`)
	p.set(`{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: gatehouse}, spec: {controllerName: gatehouse.dev/controller,
  parametersRef: {group: gatehouse.dev, kind: GatewayParameters, namespace: platform, name: class}}}`)
	check("all names", "api")
	list(`"*.example.com"`)
	check("a domain", "api")
	list("api.example.com")
	check("the name", "api", "bytes")
	list("example.com, '*.api.example.com', '*.xample.com'")
	check("others")
}

// TestGatewayListsNoNames protects the class's list from the Gateway's own parameters.
func TestGatewayListsNoNames(t *testing.T) {
	p := newProvisioned(t)
	p.set(`{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayParameters, metadata: {namespace: team, name: own}, spec: {backends: {externalNames: ["*"]}}}`)
	p.set(`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: team, name: web},
  spec: {gatewayClassName: gatehouse, listeners: [{name: http, port: 80, protocol: HTTP}],
    infrastructure: {parametersRef: {group: gatehouse.dev, kind: GatewayParameters, name: own}}}}`)
	p.set(`{apiVersion: v1, kind: Service, metadata: {namespace: team, name: api}, spec: {type: ExternalName, externalName: api.example.com}}`)
	p.routeTo("HTTPRoute", "api", "api")
	if _, has := p.resolved(object.Key{Kind: kind.HTTPRoute, Name: object.Name{Namespace: "team", Name: "api"}}, "api"); has {
		t.Error("the Gateway's own parameters allow a name")
	}
	p.Engine.View(func(c *flow.Ctx) {
		s, _ := flow.Get(c, p.GatewayStatus, object.Name{Namespace: "team", Name: "web"})
		accepted, _ := condition.Find(s.Conditions, string(gwv1.GatewayConditionAccepted))
		if !strings.Contains(accepted.Message, "spec.backends") {
			t.Errorf("the Gateway is told %q", accepted.Message)
		}
	})
}

// TestOwnListeners protects a process that serves files from backends that are its own
// listeners, and everything else on the same host from being taken for one.
func TestOwnListeners(t *testing.T) {
	p := newProvisioned(t)
	p.Pipeline = New(Options{Addresses: []string{"127.0.0.1"}, Topology: topology.Options{
		ControllerName: ControllerName, ImplicitClass: StandaloneClass, AnyName: true, SharedHost: true, PortOffset: 8000, DefaultAddresses: []string{"127.0.0.1"},
	}})
	p.set(`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: team, name: web},
  spec: {gatewayClassName: gatehouse, listeners: [{name: http, port: 80, protocol: HTTP}, {name: tcp, port: 81, protocol: TCP}]}}`)
	for service, at := range map[string]struct {
		host string
		port int
		loop bool
	}{
		"own": {"localhost", 8080, true}, "own-tcp": {"LOCALHOST.", 8081, true}, "app": {"localhost", 3000, false}, "other": {"127.0.0.2", 8080, false},
		"remote": {"api.example.com", 8080, false}, "sub": {"a.localhost", 8080, true}, "ip": {"127.0.0.1", 8080, true}, "all": {"0.0.0.0", 8081, true},
	} {
		p.set(fmt.Sprintf(`{apiVersion: v1, kind: Service, metadata: {namespace: team, name: %s},
  spec: {type: ExternalName, externalName: "%s", ports: [{port: 80, targetPort: %d}]}}`, service, at.host, at.port))
		p.routeTo("HTTPRoute", service, service)
		why, has := p.resolved(object.Key{Kind: kind.HTTPRoute, Name: object.Name{Namespace: "team", Name: service}}, service)
		if has == at.loop || (why != "") != at.loop {
			t.Errorf("%s: has a cluster: %t; %q", service, has, why)
		}
	}
	p.set(`{apiVersion: v1, kind: Service, metadata: {namespace: team, name: sliced}, spec: {ports: [{port: 80}]}}`)
	p.set(`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {namespace: team, name: s, labels: {kubernetes.io/service-name: sliced}},
  addressType: IPv4, ports: [{port: 8081}], endpoints: [{addresses: ["127.0.0.1"]}]}`)
	p.routeTo("TCPRoute", "sliced", "sliced")
	if why, has := p.resolved(object.Key{Kind: kind.TCPRoute, Name: object.Name{Namespace: "team", Name: "sliced"}}, "sliced"); has || why == "" {
		t.Errorf("an EndpointSlice leads to a listener: %t, %q", has, why)
	}
}

// TestBackendsKeepTheirPorts protects a backend from another Gateway that asks for its port: it is
// in nobody's way until a proxy says that it has the port.
func TestBackendsKeepTheirPorts(t *testing.T) {
	p := newProvisioned(t)
	p.Pipeline = New(Options{Addresses: []string{"127.0.0.1"}, Topology: topology.Options{
		ControllerName: ControllerName, ImplicitClass: StandaloneClass, AnyName: true, SharedHost: true, DefaultAddresses: []string{"127.0.0.1"},
	}})
	p.set(`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: team, name: web},
  spec: {gatewayClassName: gatehouse, listeners: [{name: http, port: 8080, protocol: HTTP}]}}`)
	p.set(`{apiVersion: v1, kind: Service, metadata: {namespace: team, name: app},
  spec: {type: ExternalName, externalName: localhost, ports: [{port: 80, targetPort: 3000}]}}`)
	p.routeTo("HTTPRoute", "app", "app")
	p.set(`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: team, name: mistyped},
  spec: {gatewayClassName: gatehouse, listeners: [{name: http, port: 3000, protocol: HTTP}]}}`)
	mistyped, listener := object.Name{Namespace: "team", Name: "mistyped"}, "http-3000@127.0.0.1"
	check := func(when string, loop bool) {
		t.Helper()
		why, has := p.resolved(object.Key{Kind: kind.HTTPRoute, Name: object.Name{Namespace: "team", Name: "app"}}, "app")
		if has == loop || (why != "") != loop {
			t.Errorf("%s: has a cluster: %t; %q", when, has, why)
		}
	}
	said := func(s xds.State) {
		p.Update(func(tx *flow.Tx) { p.TakeFeedback(tx, mistyped, s) })
	}
	check("asked for", false)
	said(xds.State{Connected: 1, Rejected: []xds.Rejected{{Ref: xds.Ref{Type: envoy.Listeners, Name: listener}, Message: "cannot bind"}}})
	check("refused", false)
	said(xds.State{Connected: 1, Listeners: map[string]string{listener: "1"}})
	check("bound", true)
}
