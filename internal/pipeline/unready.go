package pipeline

import (
	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy/auth"
)

// declareUnready declares the services that AuthPolicies have asked and that have no endpoint to ask. Policies read
// it, and not endpoints: those change all the time, and a service may be that of hundreds of policies.
func (p *Pipeline) declareUnready() {
	asked := flow.Keys("services-asked", func(_ object.Name, n *auth.Policy, yield func(ir.BackendKey)) {
		for i := range n.Asks {
			if k := externalOf(&n.Asks[i].Value); !k.IsZero() {
				yield(k)
			}
		}
	}, p.Graph.AuthPolicies)
	p.unready = flow.Map("services-without-endpoints", asked,
		func(c *flow.Ctx, k ir.BackendKey, _ struct{}, emit func(ir.BackendKey, struct{})) {
			if b := k.Backend(); b.DNS == "" && len(p.Endpoints(c, k)) == 0 {
				emit(k, struct{}{})
			}
		}, flow.Equal(flow.Same[struct{}]))
}

// externalOf is the service that a rule has asked; zero where it asks none.
func externalOf(r *auth.Rule) ir.BackendKey {
	if r.Condition == nil || r.Condition.External == nil {
		return ir.BackendKey{}
	}
	return r.Condition.External.Backend
}

// cantAsk says which services a policy has asked that have no endpoint, and what becomes of requests; empty for none.
func (p *Pipeline) cantAsk(c *flow.Ctx, n *auth.Policy) string {
	var services []string
	for i := range n.Asks {
		k := externalOf(&n.Asks[i].Value)
		if _, unready := flow.Get(c, p.unready, k); !unready {
			continue
		}
		of := k.Backend().Object
		says := condition.ServiceUnready
		if n.Asks[i].Value.Condition.External.Open {
			says = condition.ServiceUnreadyOpen
		}
		services = append(services, says(n.FieldOf(n.Asks[i].Name)+".external", of.Kind.Name()+" "+of.Name.String()))
	}
	return condition.ServicesUnready(services)
}
