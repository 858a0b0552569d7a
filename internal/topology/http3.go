package topology

import (
	"errors"
	"fmt"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
)

const http3Option = ourOptions + "http3"

// leaveDatagrams takes HTTP/3 from listeners whose UDP port another listener of the
// Gateway has: that one can't do without.
func leaveDatagrams(drafts []*draft) {
	for _, d := range drafts {
		if !d.HTTP3 {
			continue
		}
		holders := others(drafts, func(o *draft) bool {
			return o.Protocol == gwv1.UDPProtocolType && o.family != unserved && o.BindPort == d.BindPort
		})
		if len(holders) == 0 {
			continue
		}
		d.leave(fmt.Sprintf("listener %q", holders[0]))
	}
}

// leaveOwner does the same where listeners of ListenerSets have a part in it: the UDP
// port is that of the first who asks for it, be it for HTTP/3 or for datagrams. The
// default gives way to all of them.
func (g *Graph) leaveOwner(c *flow.Ctx, d *draft) {
	if !d.HTTP3 {
		return
	}
	first, ok := flow.Get(c, g.portOwners, gatewayPort{d.Key.Gateway, d.BindPort, true})
	if ok && first.family == datagrams {
		d.leave(holder(first.key, d.Key))
	}
}

// leave takes HTTP/3 from a listener. Who has asked for it is told who has the port.
func (d *draft) leave(holder string) {
	d.HTTP3 = false
	if d.asksHTTP3() {
		d.refuse(condition.ListenerUnsupportedValue("tls.options["+http3Option+"]",
			fmt.Sprintf("UDP port %d is that of %s; remove the option, or choose another port for one of the two", d.Port, holder)))
	}
}

func (d *draft) asksHTTP3() bool {
	return d.spec.TLS != nil && d.spec.TLS.Options[http3Option] == "true"
}

// defaultHTTP3 is what a listener gets that doesn't say whether it wants HTTP/3: the
// default gives way where it can't be had.
func (d *draft) defaultHTTP3(e edge) {
	d.HTTP3 = e.http3 && d.Protocol == gwv1.HTTPSProtocolType && !e.proxyProtocol && d.clients == nil
}

// readHTTP3 reads the option for HTTP/3. Whoever asks for it where it can't be had is
// told so.
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
