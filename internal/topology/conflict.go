package topology

import (
	"github.com/gatehouse-dev/gatehouse/internal/condition"
)

// findConflicts marks listeners that are not distinct. The specification allows
// no winner among the listeners of a Gateway: all of them are conflicted
// (GatewaySpec.Listeners, "Handling indistinct Listeners"). Listeners of protocols
// that are not supported conflict with nothing.
func findConflicts(drafts []*draft) {
	type portHostname struct {
		hostPort
		hostname string
	}
	keyOf := func(d *draft) portHostname { return portHostname{d.hostPort(), d.Hostname} }
	byPort := map[hostPort][]*draft{}
	byHost := map[portHostname][]*draft{}
	for _, d := range drafts {
		if d.family != unserved {
			byPort[d.hostPort()] = append(byPort[d.hostPort()], d)
			byHost[keyOf(d)] = append(byHost[keyOf(d)], d)
		}
	}
	for _, d := range drafts {
		if d.family == unserved {
			continue
		}
		// HTTPS and TLS can't both have a hostname: nothing in a handshake says
		// which of them a client wants.
		otherProtocol := others(byPort[d.hostPort()], func(o *draft) bool {
			return o.family != d.family || o.Hostname == d.Hostname && o.Protocol != d.Protocol
		})
		sameHost := others(byHost[keyOf(d)], func(o *draft) bool { return o != d })
		switch {
		case len(otherProtocol) > 0:
			d.markConflicted(condition.ListenerProtocolConflict(int(d.Port), string(d.Protocol), otherProtocol))
		case len(sameHost) > 0 && !d.family.named():
			d.markConflicted(condition.ListenerPortConflict(int(d.Port), string(d.Protocol), sameHost))
		case len(sameHost) > 0:
			d.markConflicted(condition.ListenerHostnameConflict(int(d.Port), d.Hostname, sameHost))
		}
	}
}

// others names the listeners for which is holds.
func others(drafts []*draft, is func(*draft) bool) []string {
	var names []string
	for _, d := range drafts {
		if is(d) {
			names = append(names, d.Key.Name())
		}
	}
	return names
}
