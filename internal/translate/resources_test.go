package translate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// TestEndpoints covers what of EndpointSlices gets traffic.
func TestEndpoints(t *testing.T) {
	const port = "ports: [{name: http, port: 8080}]\n"
	for name, c := range map[string]struct {
		slices []string
		want   string // address:port, ~ before draining ones
	}{
		"sorted, over several slices, each once": {
			[]string{
				"addressType: IPv4\n" + port + "endpoints: [{addresses: [10.0.0.2]}, {addresses: [10.0.0.1]}]",
				"addressType: IPv4\n" + port + "endpoints: [{addresses: [10.0.0.2]}, {addresses: [10.0.0.1], conditions: {ready: true}}]",
			},
			"10.0.0.1:8080 10.0.0.2:8080",
		},
		"dual stack, in one spelling": {
			[]string{
				"addressType: IPv4\n" + port + "endpoints: [{addresses: [10.0.0.1]}]",
				"addressType: IPv6\n" + port + "endpoints: [{addresses: [\"2001:DB8::0:1\"]}, {addresses: [\"2001:db8::1\"]}]",
			},
			"10.0.0.1:8080 2001:db8::1:8080",
		},
		"names": {
			[]string{"addressType: FQDN\n" + port + "endpoints: [{addresses: [a.example.com]}]"},
			"a.example.com:8080",
		},
		"not ready": {
			[]string{"addressType: IPv4\n" + port + "endpoints: [{addresses: [10.0.0.1], conditions: {ready: false}}, {addresses: [10.0.0.2]}]"},
			"10.0.0.2:8080",
		},
		"draining while others are ready": {
			[]string{"addressType: IPv4\n" + port + "endpoints: [{addresses: [10.0.0.1], conditions: {ready: false, serving: true, terminating: true}}, {addresses: [10.0.0.2]}]"},
			"10.0.0.2:8080",
		},
		"draining while none is ready": {
			[]string{"addressType: IPv4\n" + port + "endpoints: [{addresses: [10.0.0.1], conditions: {ready: false, serving: true, terminating: true}}, {addresses: [10.0.0.2], conditions: {ready: false, terminating: true}}]"},
			"~10.0.0.1:8080",
		},
		"each slice has its own number for a port": {
			[]string{
				"addressType: IPv4\nports: [{name: http, port: 8080}, {name: admin, port: 9000}]\nendpoints: [{addresses: [10.0.0.1]}]",
				"addressType: IPv4\nports: [{name: http, port: 8081}]\nendpoints: [{addresses: [10.0.0.1]}]",
			},
			"10.0.0.1:8080 10.0.0.1:8081",
		},
		"ports that can't be used": {
			[]string{
				"addressType: IPv4\nports: [{name: http}, {port: 1}, {name: http, port: 5, protocol: UDP}]\nendpoints: [{addresses: [10.0.0.1]}]",
				"addressType: IPv4\nendpoints: [{addresses: [10.0.0.1]}]",
			},
			"",
		},
		"addresses that are none, for others to report": {
			[]string{"addressType: IPv4\n" + port + "endpoints: [{addresses: [somewhere]}, {addresses: [\"fe80::1%eth0\"]}]"},
			"fe80::1%eth0:8080 somewhere:8080",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var list []*discoveryv1.EndpointSlice
			for _, text := range c.slices {
				s := &discoveryv1.EndpointSlice{}
				if err := yaml.UnmarshalStrict([]byte(text), s); err != nil {
					t.Fatal(err)
				}
				list = append(list, s)
			}
			b := ir.Backend{Named: "b", PortName: "http"}.Key()
			got := translate.Endpoints(b, slices.All(list))
			var text []string
			for _, e := range got {
				mark := ""
				if e.Draining {
					mark = "~"
				}
				text = append(text, fmt.Sprintf("%s%s:%d", mark, e.Address, e.Port))
			}
			if s := strings.Join(text, " "); s != c.want {
				t.Errorf("got %q, want %q", s, c.want)
			}
			slices.Reverse(list)
			if diff := cmp.Diff(got, translate.Endpoints(b, slices.All(list))); diff != "" {
				t.Errorf("the order of the slices makes a difference:\n%s", diff)
			}
		})
	}
}

// TestSecretsPrintRedacted protects keys from every print of the ir.
func TestSecretsPrintRedacted(t *testing.T) {
	const key = "-----BEGIN PRIVATE KEY-----"
	name := object.Name{Namespace: "ns", Name: "name"}
	s := translate.Secret(&topology.Certificate{Name: name, Chain: "certificate", Key: key})
	if s.Key.Reveal() != key || s.Certificate != "certificate" || s.Name.String() != "ns/name" {
		t.Fatal("the pair was not taken over")
	}
	text, err := yaml.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	want := "certificate: certificate\nkey: '[redacted]'\nname: ns/name\n"
	if string(text) != want {
		t.Errorf("YAML is\n%s\nwant\n%s", text, want)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if strings.Contains(fmt.Sprintf(verb, *s), "PRIVATE") {
			t.Errorf("%s shows the key", verb)
		}
	}
	if translate.Secret(&topology.Certificate{Name: name, Problem: "tls.key is missing"}) != nil {
		t.Error("a Secret that can't be used is taken")
	}
}

// TestListener covers what a port is made of.
func TestListener(t *testing.T) {
	gateway := object.Name{Namespace: "infra", Name: "gw"}
	node := func(name, hostname string, protocol gwv1.ProtocolType, port uint16, certificates ...object.Name) *topology.Listener {
		return &topology.Listener{
			Key:  topology.ListenerOf(gateway, object.Name{}, name),
			Port: port, Protocol: protocol, Hostname: hostname, Certificates: certificates, Serves: true,
		}
	}
	rsa, ecdsa := object.Name{Namespace: "infra", Name: "rsa"}, object.Name{Namespace: "infra", Name: "ecdsa"}
	for name, c := range map[string]struct {
		in        translate.ListenerInput
		listeners []*topology.Listener
		want      *ir.Listener
	}{
		"plain listeners share the table": {
			translate.ListenerInput{Port: 80, BindPort: 8080, Addresses: []string{"::1", "127.0.0.1", "::1"}},
			[]*topology.Listener{node("b", "b.example.com", gwv1.HTTPProtocolType, 80), node("a", "", gwv1.HTTPProtocolType, 80)},
			&ir.Listener{
				Name: "http-80", Port: 80, BindPort: 8080, Addresses: []string{"127.0.0.1", "::1"},
				Chains: []ir.Chain{{Table: "http-80"}},
			},
		},
		"a chain for each hostname, certificates in their order": {
			translate.ListenerInput{Port: 443, BindPort: 443, Addresses: []string{"127.0.0.1"}},
			[]*topology.Listener{
				node("z", "b.example.com", gwv1.HTTPSProtocolType, 443, rsa, ecdsa),
				node("y", "", gwv1.HTTPSProtocolType, 443, ecdsa),
				node("x", "*.example.com", gwv1.HTTPSProtocolType, 443, rsa),
			},
			&ir.Listener{
				Name: "tls-443", TLS: true, Port: 443, BindPort: 443, Addresses: []string{"127.0.0.1"},
				Chains: []ir.Chain{
					{Table: "tls-443-_", TLS: &ir.TLS{Certificates: []ir.SecretKey{ir.Certificate(ecdsa)}}},
					{Hostname: "*.example.com", Table: "tls-443-_.example.com", TLS: &ir.TLS{Certificates: []ir.SecretKey{ir.Certificate(rsa)}}},
					{Hostname: "b.example.com", Table: "tls-443-b.example.com", TLS: &ir.TLS{Certificates: []ir.SecretKey{ir.Certificate(rsa), ir.Certificate(ecdsa)}}},
				},
			},
		},
		"beyond all ports": {translate.ListenerInput{Port: 60000}, []*topology.Listener{node("a", "", "HTTP", 60000)}, nil},
	} {
		c.in.Gateway, c.in.Family = gateway, translate.FamilyOf(c.listeners[0])
		if c.want != nil {
			c.want.Gateway = gateway
		}
		var chains []ir.Chain
		for _, l := range c.listeners {
			chain, ok := translate.Chain(l)
			if !ok {
				t.Fatalf("%s: listener %s has no requests", name, l.Key)
			}
			chains = append(chains, chain)
		}
		before := slices.Clone(chains)
		got := translate.Listener(c.in)
		if got != nil {
			got = translate.Serving(got, chains)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(before, chains); diff != "" {
			t.Errorf("%s: the input was written to:\n%s", name, diff)
		}
	}
}
