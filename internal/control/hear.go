package control

import (
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/status"
)

// concerned returns the routes that a refusal concerns: those with rules in the
// host, or with rules that name the backend.
func (p *Pipeline) concerned(c *flow.Ctx, k refusal) map[object.Key]bool {
	out := map[object.Key]bool{}
	host := func(h ir.HostKey) {
		for at := range flow.Select(c, p.attachedByHost, h).All() {
			out[at.Route] = true
		}
	}
	switch k.Kind {
	case status.RefHost:
		host(ir.HostKey{TableKey: ir.TableKey{Gateway: k.Gateway, Table: k.Table}, Domain: k.Name})
	case status.RefBackend:
		for _, h := range flow.Select(c, p.hostsByBackend, resourceKey{k.Gateway, k.Name}).All() {
			for _, r := range h.Rules {
				if names(r, k.Name) {
					out[object.Key{Kind: r.Source.Kind, Name: r.Source.Name}] = true
				}
			}
		}
	case status.RefListener, status.RefSecret, inexpressibleHost: // told elsewhere
	}
	return out
}

// hear takes in what the proxies of a Gateway said.
func (p *Pipeline) hear(tx *flow.Tx, f feedback) {
	gateway := parseName(f.gateway)
	state := &status.ProxyState{
		Connected: f.state.Connected > 0,
		Listeners: map[string]bool{},
		Rejected:  map[status.Ref]status.Rejection{},
	}
	for name := range f.state.Listeners {
		name, _, _ = strings.Cut(name, addressMark)
		state.Listeners[name] = true
	}
	now := map[refusal]bool{}
	for _, r := range f.state.Rejected {
		rejection := status.Rejection{Message: r.Message, KeepsOld: r.ServingOld}
		k := refusal{Gateway: gateway}
		switch r.Ref.Type {
		case envoy.Listeners:
			name, _, _ := strings.Cut(r.Ref.Name, addressMark)
			state.Rejected[status.Ref{Kind: status.RefListener, Name: name}] = rejection
			continue
		case envoy.Secrets:
			state.Rejected[status.Ref{Kind: status.RefSecret, Name: r.Ref.Name}] = rejection
			continue
		case envoy.Routes:
			k.Ref, k.Table = status.Ref{Kind: status.RefHost, Name: r.Part}, r.Ref.Name
		default:
			k.Ref = status.Ref{Kind: status.RefBackend, Name: r.Ref.Name}
		}
		now[k] = true
		p.rejected.Set(tx, k, rejection)
	}
	p.proxies.Set(tx, gateway, state)
	for k := range p.refusals[gateway] {
		if !now[k] {
			p.rejected.Delete(tx, k)
		}
	}
	p.refusals[gateway] = now
}

// unhear forgets what the proxies of a Gateway said.
func (p *Pipeline) unhear(tx *flow.Tx, gateway object.Name) {
	p.hear(tx, feedback{gateway: gateway.String()})
	p.proxies.Delete(tx, gateway)
	delete(p.refusals, gateway)
}
