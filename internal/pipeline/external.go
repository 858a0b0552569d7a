package pipeline

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy/auth"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// access is who may pass by what policies say together on a Gateway. Where a service that may fail
// can't be asked at all by that Gateway, nobody does: to Envoy a cluster that doesn't exist is one
// more failure.
func (p *Pipeline) access(c *flow.Ctx, gateway object.Name, e *auth.Effective) *ir.Access {
	a := p.Graph.Access(c, gateway, e)
	if a == nil {
		return nil
	}
	for i := range a.Conditions {
		if e := a.Conditions[i].External; e != nil && e.Open && p.unaskable(c, BackendKey{gateway, e.Backend}) != "" {
			a.Conditions[i] = ir.AccessCondition{Name: a.Conditions[i].Name, Never: true}
		}
	}
	if a.Login != nil && p.unaskable(c, BackendKey{gateway, a.Login.Backend}) != "" {
		a.Login = nil // nobody has other credentials
	}
	return a
}

// unaskable says why a Gateway has no cluster for a service; empty where it has one.
func (p *Pipeline) unaskable(c *flow.Ctx, k BackendKey) string {
	b := k.Backend.Backend()
	if _, err := envoy.Cluster(&b); err != nil {
		return err.Error()
	}
	var local []socket
	if p.Options.Topology.AnyName && b.DNS == "" {
		members := flow.Select(c, p.Inputs.SlicesByBackend, b.Object)
		local = p.localSockets(translate.Endpoints(k.Backend, members.All()))
	}
	if why := p.barred(c, k, local); why != nil {
		return why.Message
	}
	return ""
}

// authAccepted returns whether a policy is accepted on a Gateway, and what it waits for there.
func (p *Pipeline) authAccepted(c *flow.Ctx, n *auth.Policy, a topology.Ancestor) (metav1.Condition, string) {
	accepted, urls := p.Graph.Fetching(c, n, a)
	waits := condition.Fetching(urls)
	if accepted.Status != metav1.ConditionTrue {
		return accepted, waits
	}
	var problems, notes []string
	for _, r := range n.Asks {
		if r.Value.Condition == nil || r.Value.Condition.External == nil {
			continue
		}
		if why := p.unaskable(c, BackendKey{a.Fleet, r.Value.Condition.External.Backend}); why != "" {
			problems = append(problems, n.FieldOf(r.Name)+".external.backendRef: "+why)
		}
	}
	p.Graph.Logins(c, n, a.Fleet, func(field string, l *ir.Login) {
		if why := p.unaskable(c, BackendKey{a.Fleet, l.Backend}); why != "" {
			problems = append(problems, field+": "+why)
		}
		notes = append(notes, p.takenNotes(c, a.Fleet, field, l)...)
	})
	if len(problems) > 0 {
		return condition.AuthPolicyInvalid(problems), ""
	}
	if len(notes) > 0 {
		accepted = condition.AuthPolicyWithoutPaths(accepted, notes)
	}
	return accepted, waits
}

// tableServices declares the tables in front of which services are asked, in the shape of hosts
// without rules: hosts don't say what the table does.
func (p *Pipeline) tableServices() *flow.Derived[ir.HostKey, *ir.Host] {
	return flow.Map("table-services", p.RouteTables,
		func(_ *flow.Ctx, k ir.TableKey, at TableFront, emit func(ir.HostKey, *ir.Host)) {
			asks := false // a Login has a service too
			yes := func(ir.BackendKey) { asks = true }
			servicesOf(accessAround(at.filters), yes)
			if at.filters != nil {
				at.filters.Traffic.Backends(yes)
			}
			if asks {
				emit(ir.HostKey{TableKey: k}, &ir.Host{Filters: &ir.Filters{Access: at.filters.Access, Traffic: at.filters.Traffic}})
			}
		})
}

// servicesOf yields the services that are asked who may pass, or of which proxies get tokens.
func servicesOf(a *ir.Access, yield func(ir.BackendKey)) {
	if a == nil {
		return
	}
	for i := range a.Conditions {
		if e := a.Conditions[i].External; e != nil {
			yield(e.Backend)
		}
	}
	if a.Login != nil {
		yield(a.Login.Backend)
	}
}

// askedOf returns the routes about whose requests a service is asked.
func (p *Pipeline) askedOf(c *flow.Ctx, k BackendKey) map[object.Key]bool {
	out := map[object.Key]bool{}
	for _, h := range flow.Select(c, p.hostsByBackend, k).All() {
		for _, r := range h.Rules {
			asked := false
			look := func(of ir.BackendKey) { asked = asked || of == k.Backend }
			for _, f := range []*ir.Filters{h.Around, h.Filters, &r.Filters} {
				if f != nil {
					servicesOf(f.Access, look)
				}
			}
			if asked {
				out[r.Source.Route()] = true
			}
		}
	}
	return out
}
