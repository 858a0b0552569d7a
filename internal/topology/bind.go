package topology

import (
	"fmt"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
)

const (
	// privileged ports are those below: binding one requires a capability that proxies
	// in pods don't have.
	privileged = 1024
	// unprivilegedOffset leads from those to where they are bound instead.
	unprivilegedOffset = 10000
	// HealthPort is where a proxy in a pod answers for its health.
	HealthPort = 19001
)

// BindPort is where a listener's port is bound. It reports whether that is a port.
func (o Options) BindPort(port uint16) (uint16, bool) {
	bind := int(port) + o.PortOffset
	if o.Unprivileged && bind > 0 && bind < privileged {
		bind += unprivilegedOffset
	}
	if bind < 1 || bind > 65535 {
		return 0, false
	}
	return uint16(bind), true
}

// ClientOffset is by how much the ports that clients connect to differ from the
// listeners': a Service has those, whatever is behind it.
func (o Options) ClientOffset() int {
	if o.Provisioned {
		return 0
	}
	return o.PortOffset
}

// bind decides where a listener is bound.
func (d *draft) bind(o Options) {
	var ok bool
	if d.BindPort, ok = o.BindPort(d.Port); !ok {
		d.refuse(condition.ListenerPortOutOfRange(int(d.Port), o.PortOffset))
	}
	if o.Unprivileged && d.BindPort == HealthPort && d.family != datagrams {
		d.refuse(condition.ListenerPortReserved(int(d.Port)))
	}
}

// socket is what the listener needs of the place where it is bound.
func (d *draft) socket() hostPort { return hostPort{d.BindPort, d.family == datagrams} }

// findBindConflicts refuses listeners that would be bound where another listener of the
// Gateway is bound that has another port. Neither is at fault, so that the first one
// is served.
func findBindConflicts(drafts []*draft) {
	bound := map[hostPort]*draft{}
	for _, d := range drafts {
		if d.family == unserved || !d.valid() {
			continue
		}
		switch first, ok := bound[d.socket()]; {
		case !ok:
			bound[d.socket()] = d
		case first.Port != d.Port:
			d.refuseBindPort(first.Port, fmt.Sprintf("listener %q", first.Key.Name()))
		}
	}
}

// refuseBindPort refuses a listener where another one is bound already.
func (d *draft) refuseBindPort(port uint16, who string) {
	d.refuse(condition.ListenerBindPortTaken(int(d.Port), int(d.BindPort), int(port), who))
}
