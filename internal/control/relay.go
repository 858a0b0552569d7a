package control

import (
	"net"
	"net/http"
	"strconv"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/identity"
	"github.com/gatehouse-dev/gatehouse/internal/relay"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// newRelay returns what tells the leader what proxies of this replica say.
func (c *Cluster) newRelay() *relay.Client {
	return relay.NewClient(relay.ClientOptions{
		Leader: func() string {
			if ip := c.leader.Load(); ip != nil && *ip != "" {
				return net.JoinHostPort(*ip, strconv.Itoa(c.config.Ports.API))
			}
			return ""
		},
		TLS: c.identity.ClientTLS, Log: c.opts.Logs.For("relay"),
	})
}

// relayed takes in what proxies of other replicas say, while this one leads.
func (c *Cluster) relayed() http.Handler {
	return relay.NewHandler(relay.HandlerOptions{
		Replica: func(r *http.Request) (string, error) { return identity.Controller(*r.TLS) },
		Leads:   func() bool { return c.leads.Load() != nil },
		Said: func(replica, gateway string, state xds.State) {
			c.events.tell(c.running, feedback{gateway: gateway, state: state, replica: replica})
		},
		Gone: func(replica string) { c.events.call(c.running, func() { c.forget(replica) }) },
		Log:  c.opts.Logs.For("relay"),
	})
}

// forget takes back what a replica has said; the loop runs it.
func (c *Cluster) forget(replica string) {
	gateways := c.states.drop(replica)
	if len(gateways) == 0 {
		return
	}
	out := newOutcome()
	c.update(&out, func(tx *flow.Tx) {
		for _, gateway := range gateways {
			if !c.present[gateway] {
				continue
			}
			c.pipeline.hear(tx, feedback{gateway: gateway.String(), state: c.states.merged(gateway)})
		}
	})
	c.publish(&out)
}
