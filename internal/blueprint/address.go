package blueprint

import (
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// address is a compiled address.
type address struct {
	of    gwv1.AddressType
	value *template
	reads []string // ids of resources
}

// addresses compiles the addresses of Gateways.
func (c *compiler) addresses(spec *v1alpha1.GatewayBlueprintSpec) (out []address) {
	if spec.Datapath == v1alpha1.DatapathRendered && len(spec.Addresses) == 0 {
		c.problem("spec.addresses", "is missing: with datapath Rendered there is no Service of Gatehouse that has the addresses")
	}
	env := c.environment(scope(spec.Resources, v1alpha1.ForGateway))
	for i, a := range spec.Addresses {
		if env == nil {
			return nil
		}
		to := address{of: a.Type, value: &template{field: fmt.Sprintf("spec.addresses[%d].value", i)}}
		c.text(env, to.value, a.Value)
		to.reads = readsOf(to.value.expressions)
		out = append(out, to)
	}
	return out
}

// addresses are those of the Gateway, or why they aren't known.
func (r *rendering) addresses(of []address) (out []string, why string) {
	for _, a := range of {
		for _, id := range a.reads {
			if why := r.missing[id]; why != "" {
				return nil, a.value.field + ": " + why
			}
		}
		v, absent, err := a.value.render(r.shared)
		if err != nil {
			return nil, err.Error()
		}
		list, isList := v.([]any)
		if !isList && !absent {
			list = []any{v}
		}
		for _, v := range list {
			text, _ := v.(string)
			if err := a.check(text); err != nil {
				return nil, fmt.Sprintf("%s: %s", a.value.field, err)
			}
			if !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	if len(out) == 0 {
		return nil, "spec.addresses: there is none yet"
	}
	return out, ""
}

// check says why a text is not an address of the type.
func (a *address) check(text string) error {
	_, err := netip.ParseAddr(text)
	isIP := err == nil
	switch {
	case a.of == gwv1.IPAddressType && !isIP:
		return fmt.Errorf("%q is no IP address", text)
	case a.of == gwv1.HostnameAddressType && (isIP || len(validation.IsDNS1123Subdomain(text)) > 0):
		return fmt.Errorf("%q is no host name", text)
	}
	return nil
}
