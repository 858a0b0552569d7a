package pipeline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// provisioned is a pipeline whose Gateways have fleets.
type provisioned struct {
	*testing.T
	*Pipeline
	scheme *runtime.Scheme
}

func newProvisioned(t *testing.T) *provisioned {
	t.Helper()
	p := &provisioned{t, New(Options{Addresses: []string{"0.0.0.0"}, Topology: topology.Options{
		ControllerName: ControllerName, Provisioned: true, Unprivileged: true, Experimental: true, SystemAuthorities: "/etc/ssl/cert.pem",
	}}), runtime.NewScheme()}
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, kind.All.AddToScheme} {
		if err := add(p.scheme); err != nil {
			t.Fatal(err)
		}
	}
	p.set(`{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: gatehouse}, spec: {controllerName: gatehouse.dev/controller}}`)
	return p
}

// set sets an object, given in YAML.
func (p *provisioned) set(text string) {
	p.Helper()
	if c := p.Apply(source.Batch{Set: []source.Object{p.object(text)}}); len(c.Failures) > 0 {
		p.Fatal(c.Failures)
	}
}

// object reads one.
func (p *provisioned) object(text string) source.Object {
	p.Helper()
	raw, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		p.Fatal(err)
	}
	o, _, err := serializer.NewCodecFactory(p.scheme).UniversalDeserializer().Decode(raw, nil, nil)
	if err != nil {
		p.Fatal(err)
	}
	return o.(source.Object)
}

func (p *provisioned) say(s *infra.State) {
	p.Update(func(tx *flow.Tx) { p.SetFleet(tx, object.Name{Namespace: "team", Name: "web"}, s) })
}

// fleet tells in a line what the Gateway's fleet follows from.
func (p *provisioned) fleet() string {
	out := "none"
	p.Engine.View(func(c *flow.Ctx) {
		g, ok := flow.Get(c, p.Infrastructure, object.Name{Namespace: "team", Name: "web"})
		switch {
		case !ok:
		case g.Frozen:
			out = "frozen"
		default:
			var ports []string
			for _, port := range g.Ports {
				text := fmt.Sprintf("%d→%d", port.Port, port.Target)
				if port.UDP {
					text += "/udp"
				}
				ports = append(ports, text)
			}
			if g.Internal {
				ports = append(ports, "internal")
			}
			if s := g.Settings; s != nil && s.Deployment != nil {
				ports = append(ports, fmt.Sprintf("×%d", *s.Deployment.Replicas))
			}
			for _, ip := range g.ExternalIPs {
				ports = append(ports, "external "+ip)
			}
			out = fmt.Sprintf("%s %s %v %v %v", g.Class, strings.Join(ports, " "), g.Addresses, g.Labels, g.Annotations)
		}
	})
	return out
}

// told tells in a line the Gateway's addresses and why it isn't Programmed.
func (p *provisioned) told() string {
	out := ""
	p.Engine.View(func(c *flow.Ctx) {
		s, ok := flow.Get(c, p.GatewayStatus, object.Name{Namespace: "team", Name: "web"})
		if !ok {
			return
		}
		for _, a := range s.Addresses {
			out += a.Value + " "
		}
		programmed, _ := condition.Find(s.Conditions, string(gwv1.GatewayConditionProgrammed))
		out += programmed.Reason + ": " + programmed.Message
	})
	return out
}

// setClassParameters gives the class parameters.
func (p *provisioned) setClassParameters(spec string) {
	p.Helper()
	p.set(`{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayParameters, metadata: {namespace: infra, name: p}, spec: ` + spec + `}`)
	p.set(`{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: gatehouse}, spec: {controllerName: gatehouse.dev/controller,
parametersRef: {group: gatehouse.dev, kind: GatewayParameters, namespace: infra, name: p}}}`)
}

const httpListener = `{name: http, port: 80, protocol: HTTP}`

func gatewayYAML(spec string) string {
	return `{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: team, name: web, uid: u1}, spec: {gatewayClassName: gatehouse, ` + spec + `}}`
}

// TestFleets protects what a fleet follows from.
func TestFleets(t *testing.T) {
	for name, c := range map[string]struct{ spec, want string }{
		"ports": {`listeners: [` + httpListener + `, {name: dns, port: 53, protocol: UDP}, {name: tcp-dns, port: 53, protocol: TCP}, {name: high, port: 8080, protocol: HTTP}, {name: other, port: 80, protocol: HTTP, hostname: a.test}]`,
			"gatehouse 53→10053 53→10053/udp 80→10080 8080→8080 [] map[] map[]"},
		"a listener that waits for its certificate": {`listeners: [` + httpListener + `, {name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: later}]}}]`,
			"gatehouse 80→10080 443→10443 [] map[] map[]"},
		"HTTP/3": {`listeners: [{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: later}], options: {gatehouse.dev/http3: "true"}}}]`,
			"gatehouse 443→10443 443→10443/udp [] map[] map[]"},
		"a listener that is refused": {`listeners: [` + httpListener + `, {name: bad, port: 81, protocol: example.com/none}]`,
			"gatehouse 80→10080 [] map[] map[]"},
		"no listener that isn't": {`listeners: [{name: bad, port: 81, protocol: example.com/none}]`, "frozen"},
		"addresses": {`listeners: [` + httpListener + `], addresses: [{value: 192.0.2.1}, {type: Hostname, value: a.test}, {type: IPAddress}, {type: IPAddress, value: "2001:DB8::1"}]`,
			"gatehouse 80→10080 [] map[] map[]"},
		"addresses in the cluster": {`listeners: [` + httpListener + `], addresses: [{routability: Cluster}]`,
			"gatehouse 80→10080 internal [] map[] map[]"},
		"addresses in the cluster and elsewhere": {`listeners: [` + httpListener + `], addresses: [{routability: Cluster}, {value: 192.0.2.1}]`,
			"gatehouse 80→10080 [] map[] map[]"},
		"addresses of a type that is not supported": {`listeners: [` + httpListener + `], addresses: [{type: example.com/a, value: x}]`, "frozen"},
		"infrastructure": {`listeners: [` + httpListener + `], infrastructure: {labels: {a: b}, annotations: {c: d}}`,
			"gatehouse 80→10080 [] map[a:b] map[c:d]"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvisioned(t)
			p.set(gatewayYAML(c.spec))
			if diff := cmp.Diff(c.want, p.fleet()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestAddressesNeedLeave protects whoever has an address: a Gateway gets what its class
// allows, and nothing by the mere right to Gateways (CVE-2020-8554).
func TestAddressesNeedLeave(t *testing.T) {
	const service = `{apiVersion: v1, kind: Service, metadata: {namespace: team, name: web-gatehouse, labels: {app.kubernetes.io/managed-by: gatehouse},
annotations: {gatehouse.dev/gateway: team/web, gatehouse.dev/class: gatehouse, gatehouse.dev/controller: gatehouse.dev/controller},
ownerReferences: [{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, name: web, uid: u1, controller: true}]},
spec: {type: LoadBalancer, externalIPs: [%s]}, status: {loadBalancer: {ingress: [{ip: 203.0.113.7}]}}}`
	const notAllowed = "203.0.113.7 AddressNotUsable: spec.addresses: GatewayClass gatehouse doesn't allow its Gateways to ask for 192.0.2.1; " +
		"allow.addresses of its parameters says which they may ask for"
	for name, c := range map[string]struct{ allow, external, fleet, told string }{
		"by default": {`{}`, "", "gatehouse 80→10080 [] map[] map[]", notAllowed},
		"other ranges": {`{allow: {addresses: [192.0.2.2/32], externalIPs: ["2001:db8::/32"]}}`, "",
			"gatehouse 80→10080 [] map[] map[]", notAllowed},
		"of the load balancer": {`{allow: {addresses: [192.0.2.0/24]}}`, "", "gatehouse 80→10080 [192.0.2.1] map[] map[]",
			"203.0.113.7 AddressNotUsable: spec.addresses: the Gateway's Service doesn't have 192.0.2.1 but 203.0.113.7"},
		"of the Service": {`{allow: {externalIPs: [192.0.2.0/24]}}`, "192.0.2.1", "gatehouse 80→10080 external 192.0.2.1 [] map[] map[]",
			"192.0.2.1 203.0.113.7 Programmed: "},
		"what overrides don't concern": {`{overrides: {service: {externalTrafficPolicy: Cluster}}}`, "", "gatehouse 80→10080 [] map[] map[]", notAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvisioned(t)
			p.setClassParameters(c.allow)
			p.set(gatewayYAML(`listeners: [` + httpListener + `], addresses: [{value: 192.0.2.1}, {value: ""}]`))
			if diff := cmp.Diff(c.fleet, p.fleet()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			p.set(fmt.Sprintf(service, c.external))
			if told := p.told(); !strings.HasPrefix(told, c.told) && !strings.HasPrefix(told, strings.Replace(c.told, "Programmed: ", "Pending: ", 1)) {
				t.Errorf("told: %s", told)
			}
		})
	}
	t.Run("a Gateway can't allow itself", func(t *testing.T) {
		p := newProvisioned(t)
		p.set(`{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayParameters, metadata: {namespace: team, name: p}, spec: {allow: {addresses: [192.0.2.0/24]}}}`)
		p.set(gatewayYAML(`listeners: [` + httpListener + `], addresses: [{value: 192.0.2.1}],
infrastructure: {parametersRef: {group: gatehouse.dev, kind: GatewayParameters, name: p}}`))
		if got := p.fleet(); got != "frozen" {
			t.Error(got)
		}
	})
}

// TestFleetsAreHeld protects fleets from being torn down, or made, for what will pass.
func TestFleetsAreHeld(t *testing.T) {
	p := newProvisioned(t)
	p.set(gatewayYAML(`listeners: [` + httpListener + `]`))
	p.set(`{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: gatehouse}, spec: {controllerName: gatehouse.dev/controller, parametersRef: {group: example.com, kind: Unknown, name: x}}}`)
	if got := p.fleet(); got != "frozen" {
		t.Errorf("with a class that isn't accepted: %s", got)
	}
	p = newProvisioned(t)
	p.set(`{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayParameters, metadata: {namespace: team, name: p}, spec: {deployment: {replicas: 3}}}`)
	p.set(gatewayYAML(`listeners: [` + httpListener + `], infrastructure: {parametersRef: {group: gatehouse.dev, kind: GatewayParameters, name: p}}`))
	if got, want := p.fleet(), "gatehouse 80→10080 ×3 [] map[] map[]"; got != want {
		t.Errorf("with parameters: %s, want %s", got, want)
	}
	p.set(`{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayParameters, metadata: {namespace: team, name: p}, spec: {deployment: {autoscaling: {minReplicas: 3}}}}`)
	if got := p.fleet(); got != "frozen" {
		t.Errorf("with parameters that can't be put into force: %s", got)
	}
	p = newProvisioned(t)
	p.set(strings.Replace(gatewayYAML(`listeners: [`+httpListener+`]`), "uid: u1", "uid: u1, deletionTimestamp: 2026-01-01T00:00:00Z", 1))
	if got := p.fleet(); got != "frozen" {
		t.Errorf("while the Gateway is deleted: %s", got)
	}
	p = newProvisioned(t)
	p.set(gatewayYAML(`listeners: [{name: http, port: 80, protocol: example.com/unknown}]`))
	if got := p.fleet(); got != "frozen" {
		t.Errorf("with no valid listener: %s", got)
	}
}

// TestFleetsOfSets protects the ports of ListenerSets.
func TestFleetsOfSets(t *testing.T) {
	p := newProvisioned(t)
	p.set(gatewayYAML(`listeners: [` + httpListener + `], allowedListeners: {namespaces: {from: Same}}`))
	p.set(`{apiVersion: gateway.networking.k8s.io/v1, kind: ListenerSet, metadata: {namespace: team, name: more}, spec: {parentRef: {name: web}, listeners: [{name: a, port: 81, protocol: HTTP}, {name: b, port: 80, protocol: HTTP, hostname: b.test}]}}`)
	if got, want := p.fleet(), "gatehouse 80→10080 81→10081 [] map[] map[]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestSetWithoutAddress protects that a ListenerSet doesn't promise what its Gateway
// can't hold: nobody reaches its listeners while that has no address.
func TestSetWithoutAddress(t *testing.T) {
	p := newProvisioned(t)
	told := func() (out string) {
		p.Engine.View(func(c *flow.Ctx) {
			s, _ := flow.Get(c, p.ListenerSetStatus, object.Name{Namespace: "team", Name: "more"})
			programmed, _ := condition.Find(s.Conditions, string(gwv1.ListenerSetConditionProgrammed))
			out = string(programmed.Status) + " " + programmed.Reason + ": " + programmed.Message
		})
		return out
	}
	service := func(status string) {
		p.set(`{apiVersion: v1, kind: Service, metadata: {namespace: team, name: web-gatehouse, ownerReferences: [{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, name: web, uid: u1, controller: true}]}, spec: {type: LoadBalancer}, status: ` + status + `}`)
	}
	p.set(gatewayYAML(`listeners: [` + httpListener + `], allowedListeners: {namespaces: {from: Same}}`))
	p.set(`{apiVersion: gateway.networking.k8s.io/v1, kind: ListenerSet, metadata: {namespace: team, name: more}, spec: {parentRef: {name: web}, listeners: [{name: a, port: 81, protocol: HTTP}]}}`)
	p.Update(func(tx *flow.Tx) {
		p.TakeFeedback(tx, object.Name{Namespace: "team", Name: "web"}, xds.State{Connected: 1, Listeners: map[string]string{"http-80@0.0.0.0": "1", "http-81@0.0.0.0": "1"}})
	})
	const without = "False ParentNotProgrammed: Gateway team/web is not programmed: "
	for _, c := range []struct{ status, want string }{
		{"", without + "Service team/web-gatehouse is not there yet"},
		{"{}", without + "Service team/web-gatehouse of type LoadBalancer has no address yet; is there a load balancer controller in the cluster? Else choose another service.type by GatewayParameters"},
		{"{loadBalancer: {ingress: [{ip: 192.0.2.1}]}}", "True Programmed: A proxy has acknowledged the configuration"},
	} {
		if c.status != "" {
			service(c.status)
		}
		if diff := cmp.Diff(c.want, told()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	p.setClassParameters(`{allow: {addresses: [192.0.2.0/24]}}`)
	p.set(gatewayYAML(`listeners: [` + httpListener + `], allowedListeners: {namespaces: {from: Same}}, addresses: [{value: 192.0.2.9}]`))
	if got := told(); !strings.Contains(got, "False") || !strings.Contains(got, "the Gateway's Service doesn't have 192.0.2.9 but 192.0.2.1") {
		t.Errorf("with another address than it asks for: %s", got)
	}
}

// TestFleetStatus protects what a Gateway says of its fleet: addresses, and why it
// has none.
func TestFleetStatus(t *testing.T) {
	p := newProvisioned(t)
	check := func(want string) {
		t.Helper()
		if diff := cmp.Diff(want, p.told()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	p.set(gatewayYAML(`listeners: [` + httpListener + `]`))
	check("AddressNotAssigned: Service team/web-gatehouse is not there yet")
	p.say(&infra.State{Problem: "Service team/web-gatehouse: exceeded quota"})
	check("AddressNotAssigned: Service team/web-gatehouse: exceeded quota")
	p.say(&infra.State{})
	service := func(spec string) {
		p.set(`{apiVersion: v1, kind: Service, metadata: {namespace: team, name: web-gatehouse, ownerReferences: [{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, name: web, uid: u1, controller: true}]}, ` + spec + `}`)
	}
	p.set(`{apiVersion: v1, kind: Service, metadata: {namespace: team, name: web-gatehouse}, spec: {type: ClusterIP, clusterIPs: [10.0.0.9]}}`)
	check("AddressNotAssigned: Service team/web-gatehouse is not there yet")
	service(`spec: {type: LoadBalancer, clusterIPs: [10.0.0.9]}`)
	check("AddressNotAssigned: Service team/web-gatehouse of type LoadBalancer has no address yet; is there a load balancer controller in the cluster? Else choose another service.type by GatewayParameters")
	service(`spec: {type: LoadBalancer, clusterIPs: [10.0.0.9], externalIPs: [192.0.2.2]}, status: {loadBalancer: {ingress: [{ip: 192.0.2.1}, {hostname: lb.test}]}}`)
	check("192.0.2.1 lb.test 192.0.2.2 Pending: Waiting for a proxy to connect")
	p.say(&infra.State{Waiting: "Pod team/p waits for its container proxy: ImagePullBackOff"})
	check("192.0.2.1 lb.test 192.0.2.2 Pending: Waiting for a proxy to connect: Pod team/p waits for its container proxy: ImagePullBackOff")
	unscheduled := "Pod team/p can't be scheduled: 0/1 nodes are available"
	p.say(&infra.State{Waiting: unscheduled, Rollout: infra.Rollout{Wanted: 2, Why: unscheduled}})
	check("192.0.2.1 lb.test 192.0.2.2 Pending: Waiting for a proxy to connect; 0 of 2 proxies are ready with the newest pod template: " + unscheduled)
	p.say(&infra.State{Waiting: "Pod team/p waits for its container proxy: ImagePullBackOff"})
	service(`spec: {type: NodePort, clusterIPs: [10.0.0.9, "2001:db8::9"]}`)
	check("10.0.0.9 2001:db8::9 Pending: Waiting for a proxy to connect: Pod team/p waits for its container proxy: ImagePullBackOff")
	service(`spec: {type: ClusterIP, clusterIPs: [None]}`)
	check("AddressNotAssigned: Service team/web-gatehouse of type ClusterIP has no address")
	service(`spec: {type: ClusterIP, clusterIPs: [10.0.0.9]}`)
	p.Update(func(tx *flow.Tx) {
		p.TakeFeedback(tx, object.Name{Namespace: "team", Name: "web"}, xds.State{Connected: 1, Listeners: map[string]string{"http-80@0.0.0.0": "1"}})
	})
	check("10.0.0.9 Programmed: A proxy has acknowledged the configuration")
	p.say(&infra.State{Problem: "Deployment team/web-gatehouse: exceeded quota"})
	check("10.0.0.9 Programmed: A proxy has acknowledged the configuration; the proxies can't be made as they should be: Deployment team/web-gatehouse: exceeded quota")
	p.say(&infra.State{Rollout: infra.Rollout{Newest: 1, Wanted: 2, Why: "Pod team/p can't be scheduled: 0/1 nodes are available"}})
	check("10.0.0.9 Programmed: A proxy has acknowledged the configuration; 1 of 2 proxies are ready with the newest pod template: Pod team/p can't be scheduled: 0/1 nodes are available")
}

// TestRolledOut protects whoever promotes a revision: the annotation gets to the fleet, and
// the Gateway says what is left to do.
func TestRolledOut(t *testing.T) {
	p := newProvisioned(t)
	gateway := gatewayYAML(`listeners: [` + httpListener + `]`)
	p.set(gateway)
	name := object.Name{Namespace: "team", Name: "web"}
	promoted := func() (revision string) {
		p.Engine.View(func(c *flow.Ctx) {
			if g, ok := flow.Get(c, p.Infrastructure, name); ok {
				revision = g.Promote
			}
		})
		return revision
	}
	if got := promoted(); got != "" {
		t.Errorf("%s is promoted", got)
	}
	p.set(strings.Replace(gateway, "name: web", "name: web, annotations: {gatehouse.dev/promote: r1}", 1))
	if got := promoted(); got != "r1" {
		t.Errorf("%q is promoted", got)
	}
	next := infra.Step{Stage: infra.Progressing, Revision: "r2", Workload: "web-r2", Live: "web-r1", Ready: 1, Wanted: 2, Why: "Pod team/p can't be scheduled"}
	waits := infra.Step{Stage: infra.Awaiting, Revision: "r2", Workload: "web-r2", Live: "web-r1", Preview: "web-preview", Promote: "r1"}
	done := infra.Step{Stage: infra.Promoted, Revision: "r2", Workload: "web-r2"}
	for want, step := range map[string]infra.Step{
		"": {},
		"False Progressing: 1 of 2 proxies of revision r2 are ready, in Deployment team/web-r2; those of team/web-r1 serve; Pod team/p can't be scheduled": next,
		"False AwaitingPromotion: All proxies of revision r2 are ready, behind Service team/web-preview; to lead clients to them, set the annotation gatehouse.dev/promote: r2 of the Gateway; " +
			"until then those of team/web-r1 serve; annotation gatehouse.dev/promote names revision r1, which is not the newest one": waits,
		"False Comparing: A proxy of revision r2, in Deployment team/web-r2, gets requests beside those of team/web-r1, and is compared with them; too few": {
			Stage: infra.Comparing, Revision: "r2", Workload: "web-r2", Live: "web-r1", Why: "too few",
		},
		"False Worse: The proxy of revision r2 was worse than those of team/web-r1, which serve alone again: 5% against 1%; change the parameters, " +
			"or promote it nevertheless by the annotation gatehouse.dev/promote: r2": {
			Stage: infra.Worse, Revision: "r2", Workload: "web-r2", Live: "web-r1", Why: "5% against 1%",
		},
		"True Promoted: Clients are led to the proxies of revision r2, in Deployment team/web-r2": done,
	} {
		p.say(&infra.State{Step: step})
		got := ""
		p.Engine.View(func(c *flow.Ctx) {
			s, _ := flow.Get(c, p.GatewayStatus, name)
			if c, ok := condition.Find(s.Conditions, condition.GatewayRolledOut); ok {
				got = string(c.Status) + " " + c.Reason + ": " + c.Message
			}
		})
		if got != want {
			t.Errorf("want %q\ngot  %q", want, got)
		}
	}
}

// TestMovingStatus protects the address that clients use while a Gateway moves from
// one class to another: the former one, until the new fleet takes over.
func TestMovingStatus(t *testing.T) {
	p := newProvisioned(t)
	p.set(`{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: other}, spec: {controllerName: gatehouse.dev/controller}}`)
	check := func(when, want string) {
		t.Helper()
		if diff := cmp.Diff(want, p.told()); diff != "" {
			t.Errorf("%s, -want +got:\n%s", when, diff)
		}
	}
	service := func(class, controller, ingress string) {
		p.set(`{apiVersion: v1, kind: Service, metadata: {namespace: team, name: web-` + class + `, annotations: {gatehouse.dev/class: ` + class + `, gatehouse.dev/controller: ` + controller + `}, ` +
			`ownerReferences: [{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, name: web, uid: u1, controller: true}]}, ` +
			`spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [` + ingress + `]}}}`)
	}
	gateway := func(class string) {
		p.set(strings.Replace(gatewayYAML(`listeners: [`+httpListener+`]`), "gatewayClassName: gatehouse", "gatewayClassName: "+class, 1))
	}
	gateway("gatehouse")
	service("gatehouse", "gatehouse.dev/controller", "{ip: 192.0.2.1}")
	service("foreign", "example.com/controller", "{ip: 192.0.2.9}")
	p.Update(func(tx *flow.Tx) {
		p.TakeFeedback(tx, object.Name{Namespace: "team", Name: "web"}, xds.State{Connected: 1, Listeners: map[string]string{"http-80@0.0.0.0": "1"}})
	})
	programmed := "Programmed: A proxy has acknowledged the configuration"
	until := "192.0.2.1 " + programmed + "; the proxies of its former class serve behind Service team/web-gatehouse, until those behind Service team/web-other can: "
	pending := "Service team/web-other of type LoadBalancer has no address yet; is there a load balancer controller in the cluster? Else choose another service.type by GatewayParameters"
	check("before", "192.0.2.1 "+programmed)
	gateway("other")
	check("at once", until+"Service team/web-other is not there yet")
	service("other", "gatehouse.dev/controller", "")
	check("without an address", until+pending)
	p.say(&infra.State{Serving: object.Name{Namespace: "team", Name: "web-gatehouse"}, Waiting: "Pod team/p can't be scheduled: 0/1 nodes are available"})
	check("without a proxy", until+"Pod team/p can't be scheduled: 0/1 nodes are available")
	p.say(&infra.State{Serving: object.Name{Namespace: "team", Name: "web-gatehouse"}})
	service("other", "gatehouse.dev/controller", "{ip: 192.0.2.2}")
	check("before it is ready", until+"its proxies are not all ready yet")
	p.say(nil)
	check("when nothing is known, after a restart", until+"its proxies are not all ready yet")
	p.say(&infra.State{Serving: object.Name{Namespace: "team", Name: "web-other"}})
	check("when it is ready", "192.0.2.2 "+programmed)
	gateway("gatehouse")
	check("on its way back", "192.0.2.2 "+strings.NewReplacer("web-gatehouse", "web-other", "web-other", "web-gatehouse").Replace(until[len("192.0.2.1 "):])+"its proxies are not all ready yet")
	p.say(&infra.State{Serving: object.Name{Namespace: "team", Name: "web-gatehouse"}})
	check("back", "192.0.2.1 "+programmed)
}
