package status_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/status"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

var (
	gatewayName = object.Name{Namespace: "infra", Name: "gw"}
	secretName  = object.Name{Namespace: "infra", Name: "cert"}
	expiry      = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
)

func listener(name string, port uint16, protocol gwv1.ProtocolType) *topology.Listener {
	l := &topology.Listener{
		Key:  topology.ListenerOf(gatewayName, object.Name{}, name),
		Port: port, BindPort: port, Protocol: protocol, Serves: true,
		Kinds:      []gwv1.RouteGroupKind{{Kind: "HTTPRoute"}},
		Conditions: []metav1.Condition{condition.ListenerAccepted(), condition.ListenerNoConflicts(), condition.ListenerResolvedRefs()},
	}
	if protocol == gwv1.HTTPSProtocolType {
		l.Certificates = []object.Name{secretName}
		l.Validity = []topology.Validity{{NotBefore: expiry.AddDate(-1, 0, 0), NotAfter: expiry}}
	}
	return l
}

func shifted(l *topology.Listener, offset uint16) *topology.Listener {
	l.BindPort = l.Port + offset
	return l
}

func gateway(listeners ...*topology.Listener) *topology.Gateway {
	return &topology.Gateway{
		Name:         gatewayName,
		Object:       &gwv1.Gateway{Namespace: "infra", Name: "gw", Generation: 7},
		Accepted:     condition.GatewayAccepted(),
		ResolvedRefs: condition.GatewayResolvedRefs(),
		Listeners:    listeners,
	}
}

func acknowledged(names ...string) status.ProxyState {
	s := status.ProxyState{Connected: true, Listeners: map[string]bool{}}
	for _, n := range names {
		s.Listeners[n] = true
	}
	return s
}

func rejected(s status.ProxyState, kind status.RefKind, name, message string) status.ProxyState {
	s.Rejected = map[status.Ref]status.Rejection{{Kind: kind, Name: name}: {Message: message, KeepsOld: true}}
	return s
}

// short writes conditions in one line each, without what is the same in all.
func short(conditions []metav1.Condition) string {
	var b strings.Builder
	for _, c := range conditions {
		fmt.Fprintf(&b, "%s=%s/%s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	return b.String()
}

// TestGatewayConditions says what the conditions of a Gateway and its listeners
// are while the proxy's part changes.
func TestGatewayConditions(t *testing.T) {
	say := func(c ...metav1.Condition) string { return short(c) }
	accepted, resolved := say(condition.GatewayAccepted()), say(condition.GatewayResolvedRefs())
	someBad := say(condition.GatewaySomeListenersNotValid([]string{"http"}))
	programmed, without := say(condition.GatewayProgrammed()), say(condition.GatewayProgrammedWithout([]string{"http"}))
	none := say(condition.GatewayNoListenerProgrammed([]string{"http"}))
	someOld := say(condition.GatewayOldListeners([]string{"http"}))
	oldServes := say(condition.GatewayOldProgrammed([]string{"http"}))
	serves := say(condition.ListenerProgrammed())
	unsupported := condition.GatewayUnsupportedAddress("test/x", "value")
	unusable := condition.GatewayAddressNotUsable([]string{"192.0.2.1"})
	conflict, conflicted := condition.ListenerHostnameConflict(80, "", []string{"x"})
	both := func() *topology.Gateway {
		return gateway(listener("http", 80, gwv1.HTTPProtocolType), listener("https", 443, gwv1.HTTPSProtocolType))
	}
	local := []string{"127.0.0.1"}
	for name, c := range map[string]struct {
		in       status.GatewayInput
		gateway  string
		listener string // of the first listener, without those of the node
	}{
		"no proxy yet": {
			status.GatewayInput{Node: both(), BindAddresses: local},
			accepted + "Programmed=False/Pending: Waiting for a proxy to connect\n" + resolved,
			"Programmed=False/Pending: Waiting for a proxy to connect\n",
		},
		"not acknowledged yet": {
			status.GatewayInput{Node: both(), BindAddresses: local, Proxy: acknowledged()},
			accepted + "Programmed=False/Pending: Waiting for the proxy to acknowledge the configuration\n" + resolved,
			"Programmed=False/Pending: Waiting for the proxy to acknowledge the configuration\n",
		},
		"serves": {
			status.GatewayInput{Node: both(), BindAddresses: local, Proxy: acknowledged("http-80", "tls-443")},
			accepted + programmed + resolved,
			serves,
		},
		"no address": {
			status.GatewayInput{Node: both(), Proxy: acknowledged("http-80", "tls-443")},
			accepted + "Programmed=False/AddressNotAssigned: The Gateway has no address yet\n" + resolved,
			serves,
		},
		"the port needs privileges": {
			status.GatewayInput{
				Node: both(), BindAddresses: local,
				Proxy: rejected(acknowledged("tls-443"), status.RefListener, "http-80", "cannot bind '127.0.0.1:80': Permission denied"),
			},
			someBad + without + resolved,
			"Programmed=False/Invalid: Port 80 needs privileges: shift all ports (--port-offset 8000 makes it 8080), or allow Envoy low ports with \"sudo setcap cap_net_bind_service=+ep\" on its binary. Envoy says: cannot bind '127.0.0.1:80': Permission denied\n",
		},
		"the port is taken, and shifted": {
			status.GatewayInput{
				Node: gateway(shifted(listener("http", 80, gwv1.HTTPProtocolType), 8000)), BindAddresses: local,
				Proxy: rejected(acknowledged(), status.RefListener, "http-80", "cannot bind '127.0.0.1:8080': Address already in use"),
			},
			someBad + none + resolved,
			"Programmed=False/Invalid: Port 8080 is used by another process: stop that one (\"ss -ltunp 'sport = :8080'\" names it), or choose another port, address (--bind) or --port-offset. Envoy says: cannot bind '127.0.0.1:8080': Address already in use\n",
		},
		"the address is not of this host": {
			status.GatewayInput{
				Node: both(), BindAddresses: local,
				Proxy: rejected(acknowledged("tls-443"), status.RefListener, "http-80", "cannot bind '192.0.2.1:80': Cannot assign requested address"),
			},
			someBad + without + resolved,
			"Programmed=False/Invalid: This host does not have the address: correct spec.addresses or --bind. Envoy says: cannot bind '192.0.2.1:80': Cannot assign requested address\n",
		},
		"refused for another reason": {
			status.GatewayInput{
				Node: both(), BindAddresses: local,
				Proxy: rejected(acknowledged("tls-443"), status.RefListener, "http-80", "bad"),
			},
			someOld + without + resolved,
			"Programmed=False/Invalid: Envoy refuses the listener, and the last version that it accepted stays in force: bad\n",
		},
		"the access log can't be written": {
			status.GatewayInput{
				Node: gateway(listener("http", 80, gwv1.HTTPProtocolType)), BindAddresses: local,
				Proxy: rejected(acknowledged(), status.RefListener, "http-80", "unable to open file '/no/log'"),
			},
			"Accepted=True/ListenersNotValid: The Gateway is served with an earlier version of listener \"http\"; see the conditions there\n" +
				"Programmed=False/Invalid: The newest version of listener \"http\" is not in force, and the last that Envoy has accepted is; see the conditions there\n" + resolved,
			"Programmed=False/Invalid: Envoy refuses the listener, since it can't write the file that accessLog of its GatewayParameters names, and the last version that it accepted stays in force: unable to open file '/no/log'\n",
		},
		"the certificate is refused": {
			status.GatewayInput{
				Node: gateway(listener("http", 443, gwv1.HTTPSProtocolType)), BindAddresses: local,
				Proxy: rejected(acknowledged("tls-443"), status.RefSecret, "infra/cert", "KEY_VALUES_MISMATCH"),
			},
			someOld + oldServes + resolved,
			"Programmed=False/Invalid: Envoy refuses the certificate in Secret infra/cert, and the last version that it accepted stays in force: KEY_VALUES_MISMATCH\n",
		},
		"not accepted": {
			status.GatewayInput{
				Node: func() *topology.Gateway {
					gw := both()
					gw.Accepted = unsupported
					return gw
				}(),
				BindAddresses: local, Proxy: acknowledged("http-80", "tls-443"),
			},
			say(unsupported, condition.GatewayNotProgrammed(unsupported)) + resolved,
			"Programmed=False/Invalid: The Gateway is not accepted: " + unsupported.Message + "\n",
		},
		"an address that can't be used": {
			status.GatewayInput{
				Node: func() *topology.Gateway {
					gw := both()
					gw.Unusable, gw.Addresses = &unusable, []string{"127.0.0.2"}
					return gw
				}(),
				Proxy: acknowledged("http-80", "tls-443"),
			},
			accepted + say(unusable) + resolved,
			serves,
		},
		"no listener is valid": {
			status.GatewayInput{
				Node: func() *topology.Gateway {
					gw := gateway(listener("http", 80, gwv1.HTTPProtocolType))
					gw.Listeners[0].Serves = false
					gw.Listeners[0].Conditions[0], gw.Listeners[0].Conditions[1] = conflict, conflicted
					return gw
				}(),
				BindAddresses: local, Proxy: acknowledged("http-80"),
			},
			accepted + none + resolved,
			say(condition.ListenerNotProgrammed(conflict)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.in.AttachedRoutes = func(topology.ListenerKey) int32 { return 3 }
			got := status.Gateway(c.in)
			if diff := cmp.Diff(c.gateway, short(got.Conditions)); diff != "" {
				t.Errorf("Gateway (-want +got):\n%s", diff)
			}
			l := got.Listeners[0]
			if diff := cmp.Diff(c.listener, short(l.Conditions[len(l.Conditions)-1:])); diff != "" {
				t.Errorf("listener (-want +got):\n%s", diff)
			}
			for _, o := range append(got.Conditions, l.Conditions...) {
				if o.ObservedGeneration != 7 || !o.LastTransitionTime.IsZero() {
					t.Errorf("%s has generation %d, transition %v", o.Type, o.ObservedGeneration, o.LastTransitionTime)
				}
			}
			if l.AttachedRoutes != 3 || len(l.SupportedKinds) != 1 || l.Name != "http" {
				t.Errorf("listener status is %+v", l)
			}
		})
	}
}

// TestPortUnavailable says that a listener whose port can't be bound is not
// accepted, and that the node it comes from stays as it was.
func TestPortUnavailable(t *testing.T) {
	gw := gateway(listener("http", 80, gwv1.HTTPProtocolType))
	got := status.Gateway(status.GatewayInput{
		Node: gw, BindAddresses: []string{"127.0.0.1"},
		AttachedRoutes: func(topology.ListenerKey) int32 { return 0 },
		Proxy:          rejected(acknowledged(), status.RefListener, "http-80", "cannot bind '127.0.0.1:80': Address already in use"),
	})
	c, _ := condition.Find(got.Listeners[0].Conditions, "Accepted")
	if c.Status != metav1.ConditionFalse || c.Reason != "PortUnavailable" {
		t.Errorf("Accepted is %+v", c)
	}
	if c, _ := condition.Find(gw.Listeners[0].Conditions, "Accepted"); c.Status != metav1.ConditionTrue {
		t.Error("the node was written to")
	}
}

// TestCertificateDates says that certificates out of their time are told of, and
// that no time means no judgement.
func TestCertificateDates(t *testing.T) {
	for now, want := range map[time.Time]string{
		{}:                       "True/ResolvedRefs",
		expiry.Add(-time.Hour):   "True/ResolvedRefs",
		expiry.Add(time.Hour):    "False/InvalidCertificateRef",
		expiry.AddDate(-2, 0, 0): "False/InvalidCertificateRef",
	} {
		got := status.Gateway(status.GatewayInput{
			Node: gateway(listener("https", 443, gwv1.HTTPSProtocolType)), BindAddresses: []string{"127.0.0.1"}, Now: now,
			AttachedRoutes: func(topology.ListenerKey) int32 { return 0 },
			Proxy:          acknowledged("tls-443"),
		})
		c, _ := condition.Find(got.Listeners[0].Conditions, "ResolvedRefs")
		if have := string(c.Status) + "/" + c.Reason; have != want {
			t.Errorf("at %v: %s (%s), want %s", now, have, c.Message, want)
		}
		if c, _ := condition.Find(got.Listeners[0].Conditions, "Programmed"); c.Status != metav1.ConditionTrue {
			t.Errorf("at %v the listener is not programmed", now)
		}
	}
}

// TestAuthoritiesRefused says that a listener tells when a proxy refuses the
// authorities that its clients are checked with.
func TestAuthoritiesRefused(t *testing.T) {
	ref := object.Key{Kind: kind.ConfigMap, Name: object.Name{Namespace: "infra", Name: "ca"}}
	l := listener("https", 443, gwv1.HTTPSProtocolType)
	l.Clients = &topology.ClientValidation{Authorities: []object.Key{ref}}
	got := status.Gateway(status.GatewayInput{
		Node: gateway(l), BindAddresses: []string{"127.0.0.1"},
		AttachedRoutes: func(topology.ListenerKey) int32 { return 0 },
		Proxy:          rejected(acknowledged("tls-443"), status.RefSecret, "ca:ConfigMap/infra/ca", "bad CA"),
	})
	c, _ := condition.Find(got.Listeners[0].Conditions, "Programmed")
	want := "Envoy refuses the certificates of authorities in ConfigMap infra/ca, and the last version that it accepted stays in force: bad CA"
	if c.Status != metav1.ConditionFalse || c.Message != want {
		t.Errorf("Programmed is %s: %s", c.Status, c.Message)
	}
}

// TestCertificateRenewal says from when on there is a word about a certificate that
// should have been renewed, and that the condition stays true.
func TestCertificateRenewal(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		life, left time.Duration
		told       bool
	}{
		{365 * day, 20 * day, false},
		{365 * day, 13 * day, true},
		{90 * day, 15*day + time.Hour, false},
		{90 * day, 13 * day, true},
		{day, 5 * time.Hour, false},
		{day, 3 * time.Hour, true},
	} {
		l := listener("https", 443, gwv1.HTTPSProtocolType)
		l.Validity = []topology.Validity{{NotBefore: expiry.Add(-c.life), NotAfter: expiry}}
		got := status.Gateway(status.GatewayInput{
			Node: gateway(l), BindAddresses: []string{"127.0.0.1"}, Now: expiry.Add(-c.left),
			AttachedRoutes: func(topology.ListenerKey) int32 { return 0 },
		})
		resolved, _ := condition.Find(got.Listeners[0].Conditions, "ResolvedRefs")
		told := strings.Contains(resolved.Message, "the certificate in Secret infra/cert expires at 2026-06-01T00:00:00Z")
		if told != c.told || resolved.Status != metav1.ConditionTrue {
			t.Errorf("%v of %v left: %s %s", c.left, c.life, resolved.Status, resolved.Message)
		}
	}
}

// TestAddresses says which addresses a Gateway shows.
func TestAddresses(t *testing.T) {
	gw := gateway()
	gw.Assigned = []topology.Address{{Type: gwv1.IPAddressType, Value: "127.0.0.2", Routability: "gatehouse.dev/Loopback"}}
	show := func(in status.GatewayInput) string {
		var out []string
		for _, a := range status.Gateway(in).Addresses {
			text := string(*a.Type) + " " + a.Value
			if a.Routability != nil {
				text += fmt.Sprintf(" %q", *a.Routability)
			}
			out = append(out, text)
		}
		return strings.Join(out, ", ")
	}
	if got := show(status.GatewayInput{Node: gw, BindAddresses: []string{"127.0.0.1"}}); got != "IPAddress 127.0.0.2" {
		t.Errorf("asked for: %s", got)
	}
	if got := show(status.GatewayInput{Node: gateway(), BindAddresses: []string{"::1", "lb.example.com"}}); got != "IPAddress ::1, Hostname lb.example.com" {
		t.Errorf("default: %s", got)
	}
	if got := show(status.GatewayInput{Node: gateway(), BindAddresses: make([]string, 20)}); strings.Count(got, ",") != 15 {
		t.Errorf("more than the API takes: %s", got)
	}
	gw.AddressesAssigned = new(condition.GatewayAddressesAssigned())
	if got := show(status.GatewayInput{Node: gw}); got != `IPAddress 127.0.0.2 "gatehouse.dev/Loopback"` {
		t.Errorf("asked for in the experimental channel: %s", got)
	}
	gw.Assigned = nil
	if got := show(status.GatewayInput{Node: gw, BindAddresses: []string{"::1"}}); got != `IPAddress ::1 ""` {
		t.Errorf("default in the experimental channel: %s", got)
	}
	gw.NoAddress = true
	if got := show(status.GatewayInput{Node: gw, BindAddresses: []string{"::1"}}); got != "" {
		t.Errorf("none of what was asked for: %s", got)
	}
}

// TestNoKinds says that a listener without kinds says so instead of nothing.
func TestNoKinds(t *testing.T) {
	l := listener("http", 80, gwv1.HTTPProtocolType)
	l.Kinds = nil
	got := status.Gateway(status.GatewayInput{Node: gateway(l), AttachedRoutes: func(topology.ListenerKey) int32 { return 0 }})
	if kinds := got.Listeners[0].SupportedKinds; kinds == nil || len(kinds) != 0 {
		t.Errorf("supportedKinds is %v", kinds)
	}
}

// TestClass covers a class with an object and one without.
func TestClass(t *testing.T) {
	c := &topology.Class{Name: "c", Accepted: condition.ClassAccepted()}
	if got := status.Class(c); got.Conditions != nil {
		t.Errorf("a class without an object has %+v", got)
	}
	c.Object = &gwv1.GatewayClass{Generation: 2}
	got := status.Class(c, gwv1.SupportedFeature{Name: "Gateway"})
	if len(got.Conditions) != 1 || got.Conditions[0].ObservedGeneration != 2 || len(got.SupportedFeatures) != 1 {
		t.Errorf("got %+v", got)
	}
}
