package topology

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
)

// Keys of tls.options. Those with our prefix are ours to judge, all others are for
// other implementations.
const (
	ourOptions  = "gatehouse.dev/"
	http3Option = ourOptions + "http3"
)

// readOptions reads tls.options, of which HTTP/3 is one. Whoever asks for it where
// it can't be had is told so; the default gives way.
func (d *draft) readOptions(o Options) {
	wanted := o.HTTP3
	if d.spec.TLS != nil {
		for _, key := range slices.Sorted(maps.Keys(d.spec.TLS.Options)) {
			value := string(d.spec.TLS.Options[key])
			switch {
			case !strings.HasPrefix(string(key), ourOptions):
			case key != http3Option:
				d.refuse(condition.ListenerUnsupportedValue("tls.options", fmt.Sprintf("there is no option %q; use %s or remove it", key, http3Option)))
			case d.Protocol != gwv1.HTTPSProtocolType:
				d.refuse(condition.ListenerUnsupportedValue("tls.options", fmt.Sprintf("%s is for listeners of protocol HTTPS; remove it", http3Option)))
			case value != "true" && value != "false":
				d.refuse(condition.ListenerUnsupportedValue("tls.options", fmt.Sprintf("%s is %q; use \"true\" or \"false\"", http3Option, value)))
			case value == "true" && o.ProxyProtocol:
				d.refuse(condition.ListenerUnsupportedValue("tls.options", http3Option+" can't be had together with --proxy-protocol, which there is no way to speak over UDP; remove one of the two"))
			default:
				wanted = value == "true"
			}
		}
	}
	d.HTTP3 = wanted && d.Protocol == gwv1.HTTPSProtocolType && !o.ProxyProtocol
}
