package pipeline

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy/auth"
	"github.com/gatehouse-dev/gatehouse/internal/policy/limits"
	"github.com/gatehouse-dev/gatehouse/internal/policy/traffic"
	"github.com/gatehouse-dev/gatehouse/internal/status"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// A policy is in force on a Gateway when its proxies have the resources that carry it: route
// tables, and filters that count. Each version of a policy has a mark, which follows from what it
// says, and these resources of a Gateway carry the marks of all policies that have something to
// say there. So a proxy that has them has the policies, whoever has sent them, and an edit of a
// route changes nothing of it.

// markKey names a mark on a Gateway.
type markKey struct {
	Gateway object.Name
	Mark    uint64
}

// lacking is how many of a Gateway's proxies don't have a mark.
type lacking struct{ Behind, Of int }

// declareCarried declares what the resources of each Gateway carry, and what proxies have of it.
func (p *Pipeline) declareCarried() {
	p.marks = map[object.Kind]flow.Table[object.Key, uint64]{
		kind.AuthPolicy: topology.Marks("auth-policy", auth.Kind, p.Graph.AuthPolicies, func(c *flow.Ctx, n *auth.Policy, write func(string)) {
			p.Graph.FetchedKeys(c, n, write)
			for _, r := range n.Asks {
				r.Value.Secrets(write)
			}
		}),
		kind.RateLimitPolicy: topology.Marks("rate-limit-policy", limits.Kind, p.Graph.RateLimitPolicies,
			func(*flow.Ctx, *limits.Policy, func(string)) {}),
		kind.TrafficPolicy: topology.Marks("traffic-policy", traffic.Kind, p.Graph.TrafficPolicies,
			func(_ *flow.Ctx, n *traffic.Policy, write func(string)) { n.Texts(write) }),
	}
	under := func(k topology.CarriedKey, _ struct{}, yield func(object.Name)) { yield(k.Gateway) }
	byGateway := flow.NewIndex(topology.CarriedBy("auth", kind.AuthPolicy, p.Graph.Auth), under, topology.CarriedKey.Compare)
	byGateway.Also(topology.CarriedBy("rate-limits", kind.RateLimitPolicy, p.Graph.RateLimits))
	byGateway.Also(topology.CarriedBy("traffic", kind.TrafficPolicy, p.Graph.Traffic))
	p.carried = flow.Group("carried-marks", byGateway,
		func(c *flow.Ctx, _ object.Name, members flow.Members[topology.CarriedKey, struct{}]) (*[]uint64, bool) {
			marks := make([]uint64, 0, members.Len())
			for k := range members.All() {
				if m, ok := flow.Get(c, p.marks[k.Policy.Kind], k.Policy); ok {
					marks = append(marks, m)
				}
			}
			slices.Sort(marks)
			return &marks, len(marks) > 0
		}, flow.Equal(envoy.AlikeMarks))
}

// carry puts on resources the marks of what they carry.
func carry(p *Pipeline, name string, resources flow.Table[ResourceKey, *envoy.Resource]) *flow.Derived[ResourceKey, *envoy.Resource] {
	return flow.Map(name, resources,
		func(c *flow.Ctx, k ResourceKey, r *envoy.Resource, emit func(ResourceKey, *envoy.Resource)) {
			marks, _ := flow.Get(c, p.carried, k.Gateway)
			emit(k, r.Carrying(marks))
		}, flow.Equal(func(a, b *envoy.Resource) bool { return a.Equal(b) && a.CarriesAlike(b) }))
}

// takeCarried takes in which marks the proxies of a Gateway have. It touches those of which
// something else is said than before.
func (p *Pipeline) takeCarried(tx *flow.Tx, gateway object.Name, said *xds.Carried) {
	now := map[uint64]lacking{}
	if said != nil {
		for _, m := range said.Marks {
			now[m] = lacking{}
			if n := said.Lacking[m]; n > 0 {
				now[m] = lacking{n, said.Proxies}
			}
		}
	}
	for m, l := range now {
		if was, ok := p.marksSaid[gateway][m]; !ok || was != l {
			p.acknowledged.Set(tx, markKey{gateway, m}, l)
		}
	}
	for m := range p.marksSaid[gateway] {
		if _, still := now[m]; !still {
			p.acknowledged.Delete(tx, markKey{gateway, m})
		}
	}
	if len(now) == 0 {
		delete(p.marksSaid, gateway)
		return
	}
	p.marksSaid[gateway] = now
}

// unacknowledged says what keeps proxies of a Gateway from having a policy, for those of its
// namespace to read; nil where they have it. Own are the routes with policies of theirs.
func (p *Pipeline) unacknowledged(c *flow.Ctx, key object.Key, gateway object.Name, mark uint64, own map[object.Key]bool, overridden []string) *metav1.Condition {
	l, said := flow.Get(c, p.acknowledged, markKey{gateway, mark})
	has := said && l.Behind == 0
	reader := p.Options.Topology.Reader(key.Namespace)
	for k, r := range flow.Select(c, p.rejectedBy, gateway).All() {
		if k.Kind == status.RefLimits && key.Kind == kind.RateLimitPolicy && p.limitedBy(c, gateway, k.Name, key.Name) {
			return new(condition.PolicyRefused(reader.Words(r.Message), r.KeepsOld))
		}
		if access, _ := flow.Get(c, p.TableAccess, ResourceKey{gateway, k.Name}); k.Kind == status.RefAccess && slices.Contains(access.policies, key) {
			return new(condition.PolicyRefused(reader.Words(r.Message), r.KeepsOld))
		}
		if k.Kind != status.RefHost {
			continue
		}
		whole := k.Name == "" && !has
		if routes := p.concerned(c, k); whole || concerns(routes, own) {
			return new(condition.PolicyRefused(reader.Words(r.Message, namespacesOf(routes)...), r.KeepsOld))
		}
	}
	if has {
		return nil
	}
	why := ""
	if state, ok := flow.Get(c, p.proxyStates, gateway); ok {
		why = state.Behind
	}
	if w, _ := flow.Get(c, p.withheld, gateway); w != status.WithheldNothing {
		why = condition.NoteWithheld()
	}
	return new(condition.PolicyPending(gateway.String(), l.Behind, l.Of, why, overridden))
}

func concerns(routes, own map[object.Key]bool) bool {
	for r := range own {
		if routes[r] {
			return true
		}
	}
	return false
}
