package topology

import (
	"errors"
	"fmt"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
)

const http3Option = ourOptions + "http3"

// dropHTTP3AtUDP switches HTTP/3 off for listeners whose UDP port is that of a UDP listener
// of the Gateway, which has nothing else.
func dropHTTP3AtUDP(drafts []*draft) {
	for _, d := range drafts {
		if !d.HTTP3 {
			continue
		}
		owners := others(drafts, func(o *draft) bool {
			return o.Protocol == gwv1.UDPProtocolType && o.family != unserved && o.BindPort == d.BindPort
		})
		if len(owners) == 0 {
			continue
		}
		d.dropHTTP3(fmt.Sprintf("listener %q", owners[0]))
	}
}

// dropHTTP3AtOwner does the same for Gateways that allow ListenerSets: the UDP port is that
// of the listener with precedence that asks for it, for HTTP/3 or for datagrams. All of
// them precede listeners that have HTTP/3 by default.
func (g *Graph) dropHTTP3AtOwner(c *flow.Ctx, d *draft) {
	if !d.HTTP3 {
		return
	}
	first, ok := flow.Get(c, g.portOwners, gatewayPort{d.Key.Fleet(), d.BindPort, true})
	if ok && first.family == datagrams {
		d.dropHTTP3(g.ownerText(first.key, d.Key))
	}
}

// dropHTTP3 switches HTTP/3 off for a listener. One that asks for it is refused, with the
// owner of the port in the message.
func (d *draft) dropHTTP3(owner string) {
	d.HTTP3 = false
	if d.asksHTTP3() {
		d.refuse(condition.ListenerUnsupportedValue("tls.options["+http3Option+"]",
			fmt.Sprintf("UDP port %d is that of %s; remove the option, or choose another port for one of the two", d.Port, owner)))
	}
}

func (d *draft) asksHTTP3() bool {
	return d.spec.TLS != nil && d.spec.TLS.Options[http3Option] == "true"
}

// defaultHTTP3 sets HTTP/3 for a listener that doesn't say whether it wants it: on where
// the Gateway's settings say so and it is possible.
func (d *draft) defaultHTTP3(e edge) {
	d.HTTP3 = e.http3 && d.Protocol == gwv1.HTTPSProtocolType && !e.proxyProtocol && d.clients == nil
}

// readHTTP3 reads the option for HTTP/3. It is an error to ask for it where it is not
// possible.
func readHTTP3(d *draft, value string, e edge) error {
	switch {
	case d.Protocol != gwv1.HTTPSProtocolType:
		return errors.New("it is for listeners of protocol HTTPS; remove it")
	case value != "true" && value != "false":
		return fmt.Errorf("%q is not supported; use \"true\" or \"false\"", value)
	case value == "true" && e.proxyProtocol:
		return errors.New("it can't be had together with the PROXY protocol (--proxy-protocol, or client.proxyProtocol of the parameters), which there is no way to speak over UDP; remove one of the two")
	case value == "true" && d.clients != nil:
		return errors.New("Envoy asks for no certificates of clients over HTTP/3, and the Gateway's spec.tls.frontend wants them; remove one of the two")
	}
	d.HTTP3 = value == "true"
	return nil
}
