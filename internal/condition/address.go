package condition

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// GatewayAddressesAssigned says that the Gateway has every address that it asks for.
func GatewayAddressesAssigned() metav1.Condition {
	return yes(gwv1.GatewayConditionAddressesAssigned, gwv1.GatewayReasonAddressesAssigned, "The Gateway has its addresses")
}

// GatewayAddressesPartiallyAssigned says which entries of spec.addresses have no
// address, and why. The API wants all of them named.
func GatewayAddressesPartiallyAssigned(unmet []string) metav1.Condition {
	return no(gwv1.GatewayConditionAddressesAssigned, gwv1.GatewayReasonAddressesPartiallyAssigned, strings.Join(unmet, "; "))
}

// GatewayAddressesNotAssigned says why no entry of spec.addresses has an address.
func GatewayAddressesNotAssigned(unmet []string) metav1.Condition {
	return no(gwv1.GatewayConditionAddressesAssigned, gwv1.GatewayReasonAddressesNotAssigned, strings.Join(unmet, "; "))
}

// The functions below say why an entry of spec.addresses has no address.

// AddressNoClusterIP is about routability Cluster.
func AddressNoClusterIP() string {
	return "routability Cluster is the ClusterIP of a Service, and there is none here; use " + routabilities
}

// AddressUnknownRoutability is about a routability that Gatehouse does not know.
func AddressUnknownRoutability(want string) string {
	return fmt.Sprintf("routability %s is not known; use %s", quote(want), routabilities)
}

// AddressOtherRoutability is about an address that is not what the entry asks for.
func AddressOtherRoutability(value, want, is string) string {
	if is == "" {
		return fmt.Sprintf("%s is not a single address, so it is not %s; name an address that is, or remove routability", value, want)
	}
	return fmt.Sprintf("%s is %s, not %s; name another address, or correct routability", value, is, want)
}

// AddressNoneLeft is about an entry without a value, for which no default address is
// left.
func AddressNoneLeft(want string, defaults []string) string {
	return fmt.Sprintf("of the default addresses (%s) none is left%s; name an address in value",
		strings.Join(defaults, ", "), that(want))
}

// AddressNoneYet is about a Gateway without an address that asks for none in
// particular.
func AddressNoneYet() string { return "The Gateway has no address yet" }

// AddressNotGiven is about an address that the Service in front of the proxies
// doesn't have.
func AddressNotGiven(value string, has []string) string {
	return fmt.Sprintf("the Gateway's Service doesn't have %s but %s", value, theirs(has))
}

// AddressNotAllowed is about an address that the class doesn't let the Gateway ask for.
func AddressNotAllowed(value, class string) string {
	return fmt.Sprintf("GatewayClass %s doesn't allow its Gateways to ask for %s; allow.addresses of its parameters says which they may ask for",
		class, value)
}

// AddressHostnameNotGiven is about a host name that the Service in front of the
// proxies doesn't have.
func AddressHostnameNotGiven(value string) string {
	return fmt.Sprintf("%s can't be requested, since host names are for load balancers to choose", value)
}

// AddressNoneGiven is about an entry without a value that the Service in front of
// the proxies has nothing for.
func AddressNoneGiven(kind, want string, has []string) string {
	return fmt.Sprintf("the Gateway's Service has no further %s%s; it has %s", kind, that(want), theirs(has))
}

// noneYet stands for the addresses of a Service that has none.
const noneYet = "none yet"

// awaited reports whether a message is about an address that may just not have come.
func awaited(message string) bool {
	return message == AddressNoneYet() || strings.Contains(message, noneYet)
}

func theirs(addresses []string) string {
	if len(addresses) == 0 {
		return noneYet
	}
	return strings.Join(addresses, ", ")
}

func that(want string) string {
	if want == "" {
		return ""
	}
	return " that is " + want
}

// routabilities is the part of a message that says what can be used instead.
const routabilities = "gatehouse.dev/Loopback, gatehouse.dev/Private or gatehouse.dev/Public, or remove it"
