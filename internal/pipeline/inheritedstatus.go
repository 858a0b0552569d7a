package pipeline

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/features"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy/auth"
	"github.com/gatehouse-dev/gatehouse/internal/policy/limits"
	"github.com/gatehouse-dev/gatehouse/internal/policy/traffic"
	"github.com/gatehouse-dev/gatehouse/internal/status"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// declareInheritedStatus declares what people are told of policies that are inherited.
func (p *Pipeline) declareInheritedStatus() {
	p.AuthPolicyStatus = inheritedStatus(inheritedKind[*auth.Policy, auth.Rule]{
		p, "auth-policy-status", kind.AuthPolicy, p.Graph.AuthPolicies, p.Graph.AuthAncestors, p.Graph.Auth,
		func(n *auth.Policy) (metav1.Object, *topology.PolicyReach) { return n.Object, &n.Reach },
		func(c *flow.Ctx, n *auth.Policy, at topology.ListenerKey) bool {
			return n.NeedsCertificates() && !p.Graph.Verifies(c, at)
		},
		p.authAccepted,
		p.cantAsk,
	})
	p.RateLimitPolicyStatus = inheritedStatus(inheritedKind[*limits.Policy, limits.Limit]{
		p, "rate-limit-policy-status", kind.RateLimitPolicy, p.Graph.RateLimitPolicies, p.Graph.RateLimitAncestors, p.Graph.RateLimits,
		func(n *limits.Policy) (metav1.Object, *topology.PolicyReach) { return n.Object, &n.Reach },
		func(*flow.Ctx, *limits.Policy, topology.ListenerKey) bool { return false },
		func(c *flow.Ctx, n *limits.Policy, a topology.Ancestor) (metav1.Condition, string) {
			accepted := a.Accepted
			if accepted.Status == metav1.ConditionTrue {
				accepted = condition.Noted(accepted, p.packedNotes(c, n, a.Fleet)...)
			}
			return accepted, p.notCounting(c, n, a.Fleet)
		},
		func(*flow.Ctx, *limits.Policy) string { return "" }, // see awaiting
	})
	p.TrafficPolicyStatus = inheritedStatus(inheritedKind[*traffic.Policy, traffic.Setting]{
		p, "traffic-policy-status", kind.TrafficPolicy, p.Graph.TrafficPolicies, p.Graph.TrafficAncestors, p.Graph.Traffic,
		func(n *traffic.Policy) (metav1.Object, *topology.PolicyReach) { return n.Object, &n.Reach },
		func(*flow.Ctx, *traffic.Policy, topology.ListenerKey) bool { return false },
		p.trafficAccepted,
		func(*flow.Ctx, *traffic.Policy) string { return "" },
	})
}

// inheritedKind is the tables of a kind of policies that are inherited, whose nodes are N and
// whose rules are R.
type inheritedKind[N any, R topology.Asks[R]] struct {
	*Pipeline
	table     string
	of        object.Kind
	nodes     flow.Table[object.Name, N]
	ancestors flow.Table[object.Name, []topology.Ancestor]
	inherited *topology.Inherited[R]
	// policy is the object of a node, and what it targets.
	policy func(N) (metav1.Object, *topology.PolicyReach)
	// unverified reports whether a policy needs certificates that a listener doesn't verify.
	unverified func(*flow.Ctx, N, topology.ListenerKey) bool
	// awaiting returns whether a policy is accepted on a Gateway, as far as that depends on what
	// is fetched for it, and in words what it waits for; empty for nothing but proxies.
	awaiting func(*flow.Ctx, N, topology.Ancestor) (metav1.Condition, string)
	// cantAsk says whom proxies that have the policy ask in vain; empty for nobody.
	cantAsk func(*flow.Ctx, N) string
}

// inheritedStatus declares the statuses of a kind.
func inheritedStatus[N any, R topology.Asks[R]](k inheritedKind[N, R]) *flow.Derived[object.Name, *gwv1.PolicyStatus] {
	return flow.Map(k.table, k.nodes,
		func(c *flow.Ctx, name object.Name, node N, emit func(object.Name, *gwv1.PolicyStatus)) {
			list, _ := flow.Get(c, k.ancestors, name)
			o, reach := k.policy(node)
			var missing []topology.MissingTarget
			if k.Options.Mode != features.Unmanaged { // a process for one Gateway sees no other
				missing = k.Graph.MissingTargets(c, k.of, reach)
			}
			list = slices.Clone(list)
			waits := make(map[object.Name]string, len(list))
			for i, a := range list {
				list[i].Accepted, waits[a.Gateway] = k.awaiting(c, node, a)
			}
			s := status.InheritedPolicy(status.InheritedInput{
				ControllerName: k.Options.Topology.ControllerName, Object: o, Ancestors: list, Missing: missing,
				Programmed: func(a topology.Ancestor) metav1.Condition { return k.programmed(c, name, node, a, waits[a.Gateway]) },
			})
			emit(name, &s)
		})
}

// programmed says how much of a policy is in force on a Gateway; waits is what it waits for.
func (k *inheritedKind[N, R]) programmed(c *flow.Ctx, name object.Name, node N, a topology.Ancestor, waits string) metav1.Condition {
	if a.Accepted.Status != metav1.ConditionTrue {
		return condition.PolicyNotProgrammed(a.Accepted)
	}
	places, inForce := 0, false
	var by []object.Name
	var unverified []string
	own := map[object.Key]bool{}
	for at, o := range flow.Select(c, k.inherited.Outcomes, name).All() {
		if at.Listener.Gateway() != a.Gateway {
			continue
		}
		places++
		if at.Route != (object.Key{}) {
			own[at.Route] = true
		}
		inForce = inForce || !o.Overridden()
		by = append(by, o.By...)
		if o.InForce > 0 && k.unverified(c, node, at.Listener) {
			unverified = append(unverified, at.Listener.Name())
		}
	}
	switch {
	case places == 0:
		return condition.PolicyUnserved()
	case !inForce:
		return condition.PolicyOverridden(k.overriders(c, name.Namespace, by))
	}
	overridden := k.overriders(c, name.Namespace, by)
	if waits != "" {
		return condition.PolicyUnverified(condition.PolicyAwaiting(waits, overridden), unverified)
	}
	key := object.Key{Kind: k.of, Name: name}
	mark, _ := flow.Get(c, k.marks[k.of], key)
	if why := k.unacknowledged(c, key, a.Fleet, mark, own, overridden); why != nil {
		return condition.PolicyUnverified(*why, unverified)
	}
	if why := k.cantAsk(c, node); why != "" {
		return condition.PolicyUnverified(condition.PolicyServiceUnavailable(why, overridden), unverified)
	}
	return condition.PolicyUnverified(condition.PolicyProgrammed(overridden), unverified)
}

// overriders names policies to the reader of one, with what they are for: those that he sees, and
// those of the Gateways that his routes are attached to.
func (k *inheritedKind[N, R]) overriders(c *flow.Ctx, namespace string, by []object.Name) (names []string) {
	slices.SortFunc(by, object.Name.Compare)
	reader, others := k.Options.Topology.Reader(namespace), 0
	for _, name := range slices.Compact(by) {
		if reader.Sees(name.Namespace) || k.onGateway(c, name) {
			names = append(names, k.of.Name()+" "+name.String()+k.targeting(c, name))
		} else {
			others++
		}
	}
	if others > 0 {
		names = append(names, fmt.Sprintf("%d of other namespaces", others))
	}
	return names
}

// targeting says what a policy is for, where that is no more than one object.
func (k *inheritedKind[N, R]) targeting(c *flow.Ctx, name object.Name) string {
	node, ok := flow.Get(c, k.nodes, name)
	if !ok {
		return ""
	}
	if _, reach := k.policy(node); len(reach.Targets) == 1 {
		return " on " + reach.Targets[0].String()
	}
	return ""
}

// onGateway reports whether a policy is for a Gateway or for its listeners.
func (k *inheritedKind[N, R]) onGateway(c *flow.Ctx, name object.Name) bool {
	node, ok := flow.Get(c, k.nodes, name)
	if !ok {
		return false
	}
	_, reach := k.policy(node)
	return slices.ContainsFunc(reach.Targets, func(t topology.PolicyTarget) bool { return t.Kind == kind.Gateway })
}
