package pipeline

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// declareForwardChains declares the chains of listeners without requests, which forward what comes to
// backends of their routes. Beside them, hosts whose own listener can't serve are closed: a listener
// that is less specific must not get their connections, which could pass what guards them.
func (p *Pipeline) declareForwardChains() {
	withRoutes := flow.NewIndex(p.Graph.Attachments,
		func(k topology.AttachmentKey, a *topology.Attachment, yield func(PortKey)) {
			if !a.Frontend.HasRequests() {
				yield(PortKey{k.Listener.Fleet(), a.Frontend.Port, k.Route.Kind == kind.UDPRoute})
			}
		}, topology.AttachmentKey.Compare)
	byPort := flow.NewIndex(p.Graph.Listeners,
		func(_ topology.ListenerKey, l *topology.Listener, yield func(PortKey)) {
			if l.Serves && !l.Frontend().HasRequests() {
				yield(KeyOfPort(l))
			}
		}, topology.ListenerKey.Compare)
	byPort.Also(p.Graph.SetListeners)
	closed := flow.NewIndex(p.ownedHosts, func(k portHost, v ownedHost, yield func(PortKey)) {
		if v.closed() {
			yield(k.PortKey)
		}
	}, portHost.compare)
	p.forwardChains = flow.Group("chains-that-forward", byPort,
		func(c *flow.Ctx, k PortKey, members flow.Members[topology.ListenerKey, *topology.Listener]) ([]ir.Chain, bool) {
			listeners := make([]*topology.Listener, 0, members.Len())
			for _, l := range members.All() {
				listeners = append(listeners, l)
			}
			attached := flow.Select(c, withRoutes, k)
			routes := make([]translate.ForwardEntry, 0, attached.Len())
			for key, a := range attached.All() {
				rules, ok := flow.Get(c, p.rules, key.Route)
				if !ok {
					continue
				}
				routes = append(routes, translate.ForwardEntry{
					Listener: key.Listener, Route: key.Route, Hosts: a.Hosts,
					Created: rules.created, Rules: rules.Rules.Rules,
				})
			}
			var hosts []string
			if _, first := members.At(0); first.Protocol == gwv1.TLSProtocolType {
				for host := range flow.Select(c, closed, k).All() {
					hosts = append(hosts, host.hostname)
				}
			}
			return translate.Forwards(listeners, routes, hosts), true
		})
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
		func(_ *flow.Ctx, k PortKey, v *ir.Listener, emit func(ResourceKey, Forwarder)) {
			for i := range v.Chains {
				chain := &v.Chains[i]
				if chain.Forward == nil || !chain.Forward.Routed() {
					continue
				}
				// Without it, proxies are told to close connections.
				if r, err := envoy.Forwarder(v, chain); err == nil {
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
		func(_ *flow.Ctx, _ PortKey, v *ir.Listener, emit func(ir.HostKey, *ir.Host)) {
			for _, chain := range v.Chains {
				if chain.Forward == nil || len(chain.Forward.Backends) == 0 {
					continue
				}
				k := ir.HostKey{
					TableKey: ir.TableOf(v.Gateway, v.Name), Domain: chain.Hostname,
				}
				backends := chain.Forward.Backends
				if pool := chain.Forward.Pool; !pool.IsZero() {
					backends = []ir.WeightedBackend{{Backend: pool, Weight: 1}}
				}
				emit(k, &ir.Host{Domain: chain.Hostname, Rules: []*ir.Rule{{Source: chain.Forward.Source, Backends: backends}}})
			}
		})
}
