package topology

import (
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// Requested are the addresses that a provisioned Gateway names and that its class allows:
// those that a load balancer may be asked for, and those that may be externalIPs of its
// Service. An address can be among both. ClusterIPs are among neither: those are chosen
// when the Service is made.
func (gw *Gateway) Requested() (balanced, external []string) {
	for _, a := range gw.Object.Spec.Addresses {
		if valueOr(a.Type, gwv1.IPAddressType) != gwv1.IPAddressType || a.Routability == gwv1.GatewayAddressRoutabilityCluster {
			continue
		}
		ip, err := netip.ParseAddr(a.Value)
		if err != nil {
			continue
		}
		ip = ip.Unmap()
		toBalance, toHave := gw.allowed(ip)
		if toBalance {
			balanced = append(balanced, ip.String())
		}
		if toHave {
			external = append(external, ip.String())
		}
	}
	return balanced, external
}

// mayAsk reports whether the class lets the Gateway ask for an address.
func (gw *Gateway) mayAsk(ip netip.Addr) bool {
	balanced, external := gw.allowed(ip)
	return balanced || external
}

// allowed reports whether a load balancer may be asked for an address, and whether it may
// be one of the externalIPs.
func (gw *Gateway) allowed(ip netip.Addr) (balanced, external bool) {
	allow := gw.Allow
	if allow == nil {
		allow = &v1alpha1.Allow{}
	}
	return isWithin(ip, allow.Addresses), isWithin(ip, allow.ExternalIPs)
}

// isWithin reports whether an address is in one of some ranges, which have been checked.
func isWithin(ip netip.Addr, ranges []string) bool {
	return slices.ContainsFunc(ranges, func(text string) bool {
		prefix, err := netip.ParsePrefix(text)
		return err == nil && prefix.Contains(ip)
	})
}

// selectorOf returns what a selector of namespaces selects: nothing if it is missing or
// makes no sense.
func selectorOf(s *metav1.LabelSelector) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}
