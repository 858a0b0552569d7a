package pipeline

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/features"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/status"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// locate fills in where a Gateway can be reached, and what is known of why it can't.
func (p *Pipeline) locate(c *flow.Ctx, gw *topology.Gateway, in *status.GatewayInput) {
	if !gw.Provisioned {
		in.BindAddresses = p.Options.Addresses
		return
	}
	defer p.locateByBlueprint(c, gw, in)
	if p.rendersDatapath(c, gw.Class) {
		return
	}
	state, _ := flow.Get(c, p.fleetStates, gw.Fleet)
	in.FleetProblem, in.NoProxy = state.Problem, state.Waiting
	if r := state.Rollout; r.Why != "" {
		in.Rollout = condition.NoteRollout(r.Newest, r.Wanted, r.Why)
	}
	in.RolledOut = rolledOut(p.Options.Places.Of(gw.Fleet), state.Step)
	own := p.Options.Places.Name(gw.Fleet, gw.Class)
	in.NoAddress = p.locateAt(c, gw.Fleet, own, state, in)
	if p.Options.Mode == features.Unmanaged {
		return // there are no fleets between which a Gateway moves
	}
	if former, ok := p.formerService(c, gw.Fleet, own, state); ok {
		why := cmp.Or(state.Waiting, in.NoAddress, condition.ProxiesNotReady())
		in.Moving = condition.NoteMoving(former.String(), own.String(), why)
		in.NoAddress = p.locateAt(c, gw.Fleet, former, state, in)
	}
}

// rolledOut says where another revision of a fleet's proxies is; nil where that has no steps.
func rolledOut(namespace string, s infra.Step) *metav1.Condition {
	in := func(name string) string {
		if name == "" {
			return ""
		}
		return namespace + "/" + name
	}
	r := condition.Revision{Name: s.Revision, Deployment: in(s.Workload)}
	var out metav1.Condition
	switch s.Stage {
	case infra.Progressing:
		out = condition.RolloutProgressing(r, in(s.Live), s.Ready, s.Wanted, s.Why)
	case infra.Awaiting:
		out = condition.RolloutAwaitsPromotion(r, in(s.Live), in(s.Preview), infra.PromoteAnnotation, s.Why)
	case infra.Comparing:
		out = condition.RolloutComparing(r, in(s.Live), s.Why)
	case infra.Worse:
		out = condition.RolloutWorse(r, in(s.Live), s.Why, infra.PromoteAnnotation)
	case infra.Promoted:
		out = condition.RolloutPromoted(r, s.Why)
	default:
		return nil
	}
	if s.Promote != "" {
		out = condition.Noted(out, condition.NoteOtherPromotion(infra.PromoteAnnotation, s.Promote))
	}
	return &out
}

// locateAt fills in the addresses of a Service, and returns why it has none.
func (p *Pipeline) locateAt(c *flow.Ctx, gateway, service object.Name, state infra.State, in *status.GatewayInput) string {
	in.BindAddresses, in.ClusterAddresses = nil, nil
	s, ok := flow.Get(c, p.Inputs.Services, service)
	if p.Options.Mode == features.Unmanaged {
		if label := infra.LabelValue(gateway.Name); !ok || s.Labels[infra.GatewayLabel] != label {
			return condition.AddressNoUnmanagedService(service.String(), infra.GatewayLabel, label)
		}
	} else if !ok || !p.belongs(s, gateway) {
		return condition.AddressNoService(service.String(), state.Problem)
	}
	in.BindAddresses, in.ClusterAddresses = infra.Addresses(s)
	if len(in.BindAddresses) == 0 {
		return condition.AddressServicePending(service.String(), string(s.Spec.Type))
	}
	return ""
}

// formerService returns the Service that clients are to use while a Gateway moves from
// one class, or namespace, to another; false if that is the Gateway's own. Before anything is known
// of the new fleet, a former one that has an address is as good as it was.
func (p *Pipeline) formerService(c *flow.Ctx, gateway, own object.Name, state infra.State) (former object.Name, ok bool) {
	for name, s := range flow.Select(c, p.fleetServices, gateway).All() {
		switch addresses, _ := infra.Addresses(s); {
		case name == own:
			if state.Serving == own {
				return name, false
			}
		case name == state.Serving:
			return name, true
		case !ok && len(addresses) > 0:
			former, ok = name, true
		}
	}
	return former, ok
}

// belongs reports whether a Service is of a Gateway's fleet, and not somebody else's
// of the same name.
func (p *Pipeline) belongs(s *corev1.Service, gateway object.Name) bool {
	of, ok := p.Options.Places.GatewayOf(s)
	return ok && of == gateway
}
