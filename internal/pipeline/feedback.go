package pipeline

import (
	"maps"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/status"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// concerned returns the routes that a refusal concerns: those with rules in the
// host, or with rules that name the backend.
func (p *Pipeline) concerned(c *flow.Ctx, k refusal) map[object.Key]bool {
	out := map[object.Key]bool{}
	switch k.Kind {
	case status.RefHost:
		at, _ := flow.Get(c, p.configurations, ResourceKey{k.Gateway, k.Within})
		if h := (ir.HostKey{TableKey: at.table, Domain: k.Name}); at.has(h) {
			for at := range flow.Select(c, p.attachedByHost, h).All() {
				out[at.Route] = true
			}
		}
	case status.RefBackend:
		if b := p.named(c, k.Gateway, k.Name); !b.IsZero() {
			at := BackendKey{k.Gateway, b}
			if out = p.sentTo(c, at); len(out) == 0 {
				return p.askedOf(c, at)
			}
		}
	case status.RefForward:
		if f, ok := flow.Get(c, p.Forwarders, ResourceKey{k.Gateway, k.Name}); ok {
			out[f.route] = true
		}
	case status.RefListener, status.RefSecret, status.RefAccess, status.RefLimits, inexpressibleHost: // told elsewhere
	}
	return out
}

// sentTo returns the routes with rules that refer to a backend.
func (p *Pipeline) sentTo(c *flow.Ctx, k BackendKey) map[object.Key]bool {
	out := map[object.Key]bool{}
	for _, h := range flow.Select(c, p.hostsByBackend, k).All() {
		for _, r := range h.Rules {
			if refersTo(h, r, k.Backend) {
				out[r.Source.Route()] = true
			}
		}
	}
	return out
}

// answers are what the proxies of a Gateway say of it as a whole. What they refuse of its
// hosts and backends stands among the refusals.
type answers struct {
	connected bool
	behind    string            // see status.ProxyState
	refusing  map[string]string // see xds.State
	// Of listeners, by Envoy's names for them. A proxy may have one that this pipeline has
	// not made yet: another replica of the controller has sent it.
	acknowledged map[string]bool
	refused      map[string]status.Rejection
	secrets      map[status.Ref]status.Rejection // refused ones
}

// declareFeedback declares what the answers of proxies mean for listeners.
func (p *Pipeline) declareFeedback() {
	byGateway := flow.NewIndex(p.Listeners,
		func(k ListenerAddress, _ *envoy.Resource, yield func(object.Name)) { yield(k.Gateway) }, ListenerAddress.compare)
	p.proxyStates = flow.Map("proxy-states", p.proxies,
		func(c *flow.Ctx, gateway object.Name, said *answers, emit func(object.Name, *status.ProxyState)) {
			state := &status.ProxyState{
				Connected: said.connected, Behind: said.behind, Listeners: map[string]bool{}, Rejected: maps.Clone(said.secrets),
			}
			for k, r := range flow.Select(c, byGateway, gateway).All() {
				if said.acknowledged[r.Name] {
					state.Listeners[k.Listener] = true
				}
				if rejection, ok := said.refused[r.Name]; ok {
					state.Rejected[status.Ref{Kind: status.RefListener, Name: k.Listener}] = rejection
				}
			}
			emit(gateway, state)
		})
}

// TakeFeedback takes in what the proxies of a Gateway say.
func (p *Pipeline) TakeFeedback(tx *flow.Tx, gateway object.Name, said xds.State) {
	all := &answers{
		connected:    said.Connected > 0,
		refusing:     said.Refusing,
		acknowledged: make(map[string]bool, len(said.Listeners)),
		refused:      map[string]status.Rejection{},
		secrets:      map[status.Ref]status.Rejection{},
	}
	for name := range said.Listeners {
		all.acknowledged[name] = true
	}
	if said.Behind > 0 {
		all.behind = condition.NoteBehind(said.Behind, said.Connected, said.BehindWhy)
	}
	now := map[refusal]bool{}
	for _, r := range said.Rejected {
		rejection := status.Rejection{Message: r.Message, KeepsOld: r.ServingOld}
		switch r.Ref.Type {
		case envoy.Listeners:
			all.refused[r.Ref.Name] = rejection
		case envoy.Secrets:
			all.secrets[status.Ref{Kind: status.RefSecret, Name: r.Ref.Name}] = rejection
		default:
			k := refusalOf(gateway, r)
			now[k] = true
			p.rejected.Set(tx, k, rejection)
		}
	}
	p.proxies.Set(tx, gateway, all)
	p.noteOwing(gateway, all)
	p.takeCarried(tx, gateway, said.Carried)
	p.takeForms(tx, gateway, said.OtherForms)
	for k := range p.refusals[gateway] {
		if !now[k] {
			p.rejected.Delete(tx, k)
		}
	}
	p.refusals[gateway] = now
}

// refusalOf is the key of what routes are told of; listeners and secrets are told of otherwise.
func refusalOf(gateway object.Name, r xds.Rejected) refusal {
	k := refusal{Gateway: gateway}
	switch r.Ref.Type {
	case envoy.Routes:
		k.Ref, k.Within = status.Ref{Kind: status.RefHost, Name: r.Part}, r.Ref.Name
	case envoy.Extensions:
		k.Ref = status.Ref{Kind: extensionKind(r.Ref.Name), Name: r.Ref.Name}
	default:
		k.Ref = status.Ref{Kind: status.RefBackend, Name: r.Ref.Name}
	}
	return k
}

// extensionKind is what a filter has whose configuration comes by itself.
func extensionKind(filter string) status.RefKind {
	if _, is := envoy.AccessTable(filter); is {
		return status.RefAccess
	}
	if envoy.IsRateLimitFilter(filter) {
		return status.RefLimits
	}
	return status.RefForward
}

// TakeExtensions takes in what of a Gateway's resources extension servers have no usable answer about; nil forgets it.
func (p *Pipeline) TakeExtensions(tx *flow.Tx, gateway object.Name, wrong []string) {
	if wrong == nil {
		p.unextended.Delete(tx, gateway)
		return
	}
	p.unextended.Set(tx, gateway, wrong)
}

// DropFeedback forgets what the proxies of a Gateway have said.
func (p *Pipeline) DropFeedback(tx *flow.Tx, gateway object.Name) {
	p.TakeFeedback(tx, gateway, xds.State{})
	p.proxies.Delete(tx, gateway)
	delete(p.refusals, gateway)
}

// ProxyState returns what the proxies of a Gateway have said.
func (p *Pipeline) ProxyState(c *flow.Ctx, gateway object.Name) (*status.ProxyState, bool) {
	return flow.Get(c, p.proxyStates, gateway)
}
