package pipeline

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// attachedIndex orders the attachments to listeners without requests under the
// ports that they are at.
type attachedIndex = flow.Index[PortKey, topology.AttachmentKey, *topology.Attachment]

func (p *Pipeline) indexForwards() *attachedIndex {
	return flow.NewIndex(p.Graph.Attachments,
		func(k topology.AttachmentKey, a *topology.Attachment, yield func(PortKey)) {
			if !a.Frontend.HasRequests() {
				yield(PortKey{k.Listener.Gateway(), a.Frontend.Port, k.Route.Kind == kind.UDPRoute})
			}
		}, topology.AttachmentKey.Compare)
}

// forwardsOn returns the routes on the listeners of a port that have no requests. A
// port of HTTP reads nothing.
func (p *Pipeline) forwardsOn(c *flow.Ctx, attached *attachedIndex, k PortKey, listeners []*topology.Listener) []translate.ForwardEntry {
	if !slices.ContainsFunc(listeners, func(l *topology.Listener) bool { return !l.Frontend().HasRequests() }) {
		return nil
	}
	members := flow.Select(c, attached, k)
	out := make([]translate.ForwardEntry, 0, members.Len())
	for key, a := range members.All() {
		rules, ok := flow.Get(c, p.rules, key.Route)
		if !ok {
			continue
		}
		out = append(out, translate.ForwardEntry{
			Listener: key.Listener, Route: key.Route, Hosts: a.Hosts,
			Created: rules.created, Rules: rules.Rules.Rules,
		})
	}
	return out
}

// Forwarder is what a chain with a route does with connections.
type Forwarder struct {
	Resource *envoy.Resource
	route    object.Key
}

// declareForwarders declares what proxies are sent of routes that have no requests. Listeners
// have only its name.
func (p *Pipeline) declareForwarders() {
	p.Forwarders = flow.Map("forwarders", p.Ports,
		func(_ *flow.Ctx, k PortKey, v *Port, emit func(ResourceKey, Forwarder)) {
			for i := range v.Listener.Chains {
				chain := &v.Listener.Chains[i]
				if chain.Forward == nil || !chain.Forward.Routed() {
					continue
				}
				// Without it, proxies are told to close connections.
				if r, err := envoy.Forwarder(v.Listener, chain); err == nil {
					emit(ResourceKey{k.Gateway, r.Name}, Forwarder{r, chain.Forward.Source.Route()})
				}
			}
		}, flow.Equal(func(a, b Forwarder) bool { return a.route == b.route && a.Resource.Equal(b.Resource) }))
}

// declareForwards declares what ports forward without looking at it, in the shape
// of hosts with one rule each, so that backends are counted, and refusals of them
// attributed to routes, in one way for all kinds. The backends of a UDP port are one
// pool.
func (p *Pipeline) declareForwards() {
	p.forwards = flow.Map("forwards", p.Ports,
		func(_ *flow.Ctx, _ PortKey, v *Port, emit func(ir.HostKey, *ir.Host)) {
			for _, chain := range v.Listener.Chains {
				if chain.Forward == nil || len(chain.Forward.Backends) == 0 {
					continue
				}
				k := ir.HostKey{
					TableKey: ir.TableOf(v.Listener.Gateway, v.Listener.Name), Domain: chain.Hostname,
				}
				backends := chain.Forward.Backends
				if pool := chain.Forward.Pool; !pool.IsZero() {
					backends = []ir.WeightedBackend{{Backend: pool, Weight: 1}}
				}
				emit(k, &ir.Host{Domain: chain.Hostname, Rules: []*ir.Rule{{Source: chain.Forward.Source, Backends: backends}}})
			}
		})
}
