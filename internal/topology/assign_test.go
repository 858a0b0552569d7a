package topology

import (
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// TestAssign says what a provisioned Gateway gets of what it asks for.
func TestAssign(t *testing.T) {
	ip := func(value string) gwv1.GatewaySpecAddress { return gwv1.GatewaySpecAddress{Value: value} }
	host := func(value string) gwv1.GatewaySpecAddress {
		return gwv1.GatewaySpecAddress{Type: new(gwv1.HostnameAddressType), Value: value}
	}
	scoped := func(a gwv1.GatewaySpecAddress, r gwv1.GatewayAddressRoutabilityType) gwv1.GatewaySpecAddress {
		a.Routability = r
		return a
	}
	one := ServiceAddresses{Addresses: []string{"192.0.2.1"}, Cluster: []string{"10.0.0.1"}}
	for name, c := range map[string]struct {
		entries  []gwv1.GatewaySpecAddress
		service  ServiceAddresses
		want     string // addresses
		outcome  string
		unusable string // reason
	}{
		"nothing asked for": {
			nil, ServiceAddresses{Addresses: []string{"192.0.2.1", "lb.example.com"}}, "IPAddress 192.0.2.1, Hostname lb.example.com", "AddressesAssigned", "",
		},
		"nothing asked for, nothing there": {nil, ServiceAddresses{Cluster: []string{"10.0.0.1"}}, "", "NotAssigned", ""},
		"a Service without an outside":     {nil, ServiceAddresses{Addresses: []string{"10.0.0.1"}, Cluster: []string{"10.0.0.1"}}, "IPAddress 10.0.0.1 Cluster", "AddressesAssigned", ""},
		"the one that there is":            {[]gwv1.GatewaySpecAddress{ip("192.0.2.1")}, one, "IPAddress 192.0.2.1", "AddressesAssigned", ""},
		"another one":                      {[]gwv1.GatewaySpecAddress{ip("192.0.2.9")}, one, "", "NotAssigned", "AddressNotUsable"},
		"one of two":                       {[]gwv1.GatewaySpecAddress{host("no.example.com"), ip("192.0.2.1")}, one, "IPAddress 192.0.2.1", "PartiallyAssigned", "AddressNotUsable"},
		"the host name that there is":      {[]gwv1.GatewaySpecAddress{host("lb.example.com")}, ServiceAddresses{Addresses: []string{"lb.example.com"}}, "Hostname lb.example.com", "AddressesAssigned", ""},
		"no address at all":                {[]gwv1.GatewaySpecAddress{ip("x")}, one, "", "NotAssigned", "AddressNotUsable"},
		"IPv4 in IPv6":                     {[]gwv1.GatewaySpecAddress{ip("::ffff:192.0.2.1")}, one, "IPAddress 192.0.2.1", "AddressesAssigned", ""},
		"any":                              {[]gwv1.GatewaySpecAddress{ip("")}, one, "IPAddress 192.0.2.1", "AddressesAssigned", ""},
		"any, after the one by name":       {[]gwv1.GatewaySpecAddress{ip(""), ip("192.0.2.1")}, one, "IPAddress 192.0.2.1", "PartiallyAssigned", ""},
		"any, where there is none":         {[]gwv1.GatewaySpecAddress{ip("")}, ServiceAddresses{}, "", "NotAssigned", "AddressNotAssigned"},
		"any, of another type":             {[]gwv1.GatewaySpecAddress{host("")}, one, "", "NotAssigned", "AddressNotAssigned"},
		"inside the cluster":               {[]gwv1.GatewaySpecAddress{scoped(ip(""), "Cluster")}, one, "IPAddress 10.0.0.1 Cluster", "AddressesAssigned", ""},
		"inside and outside":               {[]gwv1.GatewaySpecAddress{scoped(ip(""), "Cluster"), ip("")}, one, "IPAddress 10.0.0.1 Cluster, IPAddress 192.0.2.1", "AddressesAssigned", ""},
		"inside, by an outside address":    {[]gwv1.GatewaySpecAddress{scoped(ip("192.0.2.1"), "Cluster")}, one, "", "NotAssigned", "AddressNotUsable"},
		"private, which it is not":         {[]gwv1.GatewaySpecAddress{scoped(ip(""), RoutabilityPrivate)}, one, "", "NotAssigned", "AddressNotAssigned"},
		"of no known reach":                {[]gwv1.GatewaySpecAddress{scoped(ip(""), "example.com/Moon")}, one, "", "NotAssigned", "AddressNotAssigned"},
	} {
		t.Run(name, func(t *testing.T) {
			gw := &Gateway{Object: &gwv1.Gateway{Spec: gwv1.GatewaySpec{Addresses: c.entries}}}
			got := gw.Assign(c.service)
			var list []string
			for _, a := range got.Addresses {
				list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s %s", a.Type, a.Value, a.Routability)))
			}
			if d := gocmp.Diff(c.want, strings.Join(list, ", ")); d != "" {
				t.Error("addresses", d)
			}
			if got.Outcome.Reason != c.outcome {
				t.Errorf("the outcome is %s: %s", got.Outcome.Reason, got.Outcome.Message)
			}
			var unusable metav1.Condition
			if got.Unusable != nil {
				unusable = *got.Unusable
			}
			if unusable.Reason != c.unusable {
				t.Errorf("unusable is %s: %s", unusable.Reason, unusable.Message)
			}
		})
	}
}
