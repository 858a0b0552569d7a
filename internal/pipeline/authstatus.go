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
	"github.com/gatehouse-dev/gatehouse/internal/status"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// declareAuthStatus declares what people are told of AuthPolicies.
func (p *Pipeline) declareAuthStatus() {
	p.AuthPolicyStatus = flow.Map("auth-policy-status", p.Graph.AuthPolicies,
		func(c *flow.Ctx, k object.Name, node *topology.AuthPolicy, emit func(object.Name, *gwv1.PolicyStatus)) {
			list, _ := flow.Get(c, p.Graph.AuthAncestors, k)
			var missing []topology.MissingTarget
			if p.Options.Mode != features.Unmanaged { // a process for one Gateway sees no other
				missing = p.Graph.MissingTargets(c, node.Targets)
			}
			s := status.AuthPolicy(status.AuthInput{
				ControllerName: p.Options.Topology.ControllerName, Node: node, Ancestors: list, Missing: missing,
				Programmed: func(a topology.Ancestor) metav1.Condition { return p.authProgrammed(c, k, a) },
			})
			emit(k, &s)
		})
}

// authProgrammed says how much of a policy is in force on a Gateway.
func (p *Pipeline) authProgrammed(c *flow.Ctx, name object.Name, a topology.Ancestor) metav1.Condition {
	if a.Accepted.Status != metav1.ConditionTrue {
		return condition.PolicyNotProgrammed(a.Accepted)
	}
	node, ok := flow.Get(c, p.Graph.AuthPolicies, name)
	needs := ok && node.NeedsCertificates()
	places, inForce := 0, false
	var by []object.Name
	var unverified []string
	own := map[object.Key]bool{}
	for at, o := range flow.Select(c, p.Graph.Auth.Outcomes, name).All() {
		if at.Listener.Gateway != a.Gateway {
			continue
		}
		places++
		if at.Route != (object.Key{}) {
			own[at.Route] = true
		}
		inForce = inForce || !o.Overridden()
		by = append(by, o.By...)
		if o.InForce > 0 && needs && !p.Graph.Verifies(c, at.Listener) {
			unverified = append(unverified, at.Listener.Name)
		}
	}
	switch {
	case places == 0:
		return condition.PolicyUnserved()
	case !inForce:
		return condition.PolicyOverridden(p.overriders(c, name.Namespace, by))
	}
	key := object.Key{Kind: kind.AuthPolicy, Name: name}
	overridden := p.overriders(c, name.Namespace, by)
	mark, _ := flow.Get(c, p.authMarks, key)
	if why := p.unacknowledged(c, key, a.Gateway, mark, own, overridden); why != nil {
		return condition.PolicyUnverified(*why, unverified)
	}
	return condition.PolicyUnverified(condition.PolicyProgrammed(overridden), unverified)
}

// overriders names policies to the reader of one: those that he sees, and those of the Gateways
// that his routes are attached to.
func (p *Pipeline) overriders(c *flow.Ctx, namespace string, by []object.Name) (names []string) {
	slices.SortFunc(by, object.Name.Compare)
	reader, others := p.Options.Topology.Reader(namespace), 0
	for _, name := range slices.Compact(by) {
		if reader.Sees(name.Namespace) || p.onGateway(c, name) {
			names = append(names, kind.AuthPolicy.Name()+" "+name.String())
		} else {
			others++
		}
	}
	if others > 0 {
		names = append(names, fmt.Sprintf("%d of other namespaces", others))
	}
	return names
}

// onGateway reports whether a policy is for a Gateway or for its listeners.
func (p *Pipeline) onGateway(c *flow.Ctx, name object.Name) bool {
	node, ok := flow.Get(c, p.Graph.AuthPolicies, name)
	if !ok {
		return false
	}
	for _, t := range node.Targets {
		if t.Kind == kind.Gateway {
			return true
		}
	}
	return false
}
