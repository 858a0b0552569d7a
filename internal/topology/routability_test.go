package topology

import (
	"net/netip"
	"testing"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// TestRoutability says what each range of addresses is.
func TestRoutability(t *testing.T) {
	for text, want := range map[string]gwv1.GatewayAddressRoutabilityType{
		"127.0.0.1": RoutabilityLoopback, "127.9.9.9": RoutabilityLoopback, "::1": RoutabilityLoopback,
		"10.1.2.3": RoutabilityPrivate, "172.31.0.1": RoutabilityPrivate, "192.168.0.1": RoutabilityPrivate,
		"100.64.0.1": RoutabilityPrivate, "169.254.0.1": RoutabilityPrivate,
		"fd00::1": RoutabilityPrivate, "fe80::1": RoutabilityPrivate,
		"172.32.0.1": RoutabilityPublic, "100.128.0.1": RoutabilityPublic, "203.0.113.1": RoutabilityPublic, "2001:db8::1": RoutabilityPublic,
		"0.0.0.0": "", "::": "", "224.0.0.1": "",
	} {
		if got := routabilityOf(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
}
