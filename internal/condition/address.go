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

// The rest says why an entry of spec.addresses has no address.

// AddressNoClusterIP is about routability Cluster.
func AddressNoClusterIP() string {
	return "routability Cluster is the ClusterIP of a Service, and there is none here; use " + routabilities
}

// AddressUnknownRoutability is about a routability that nobody knows.
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

// AddressNoneLeft is about an entry without a value.
func AddressNoneLeft(want string, defaults []string) string {
	return fmt.Sprintf("of the default addresses (%s) none is left%s; name an address in value",
		strings.Join(defaults, ", "), that(want))
}

func that(want string) string {
	if want == "" {
		return ""
	}
	return " that is " + want
}

// routabilities is for messages.
const routabilities = "gatehouse.dev/Loopback, gatehouse.dev/Private or gatehouse.dev/Public, or remove it"
