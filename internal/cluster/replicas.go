package cluster

import (
	"net"
	"net/http"
	"strconv"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/identity"
	"github.com/gatehouse-dev/gatehouse/internal/loop"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/replicas"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// newReplicas returns what tells the leader what proxies of this replica say.
func (p *provisioned) newReplicas() *replicas.Client {
	c := p.cluster
	return replicas.NewClient(replicas.ClientOptions{
		Leader: func() string {
			if ip := c.leader.Load(); ip != nil && *ip != "" {
				return net.JoinHostPort(*ip, strconv.Itoa(c.config.Ports.API))
			}
			return ""
		},
		TLS: p.identity.ClientTLS, Log: c.opts.Logs.For(configuration.LogReplicas),
	})
}

// fromReplicas takes in what proxies of other replicas say, while this one leads.
func (p *provisioned) fromReplicas() http.Handler {
	c := p.cluster
	return replicas.NewHandler(replicas.HandlerOptions{
		Replica: func(r *http.Request) (string, error) { return identity.Controller(*r.TLS) },
		Leads:   func() bool { return c.leads.Load() != nil },
		Said: func(replica string, gateway object.Name, state xds.State) {
			c.loop.Tell(c.running, loop.Feedback{Gateway: gateway, State: state, Replica: replica})
		},
		Gone: func(replica string) { c.loop.Call(c.running, func() { c.loop.Forget(replica) }) },
		Log:  c.opts.Logs.For(configuration.LogReplicas),
	})
}
