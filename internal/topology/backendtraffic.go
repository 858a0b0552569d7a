package topology

import (
	"math"
	"time"

	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// BackendTrafficPolicy is an XBackendTrafficPolicy, whatever it is for. What a refused one
// targets is served as if there were none, and so is what one targets that says nothing
// of retries.
type BackendTrafficPolicy struct {
	policy.Node[ir.RetryBudget]
	Object *gwxv1alpha1.XBackendTrafficPolicy
}

// Equal reports whether two nodes say the same of the same object.
func (p *BackendTrafficPolicy) Equal(o *BackendTrafficPolicy) bool {
	return p.Object == o.Object && p.Node.Equal(&o.Node)
}

// backendTrafficKind describes XBackendTrafficPolicies.
var backendTrafficKind = policy.Kind[*BackendTrafficPolicy, ir.RetryBudget]{
	Kind:       kind.BackendTrafficPolicy,
	Node:       func(p *BackendTrafficPolicy) *policy.Node[ir.RetryBudget] { return &p.Node },
	Accepted:   condition.PolicyAccepted(),
	Conflicted: condition.BackendTrafficPolicyConflicted,
}

func (g *Graph) declareBackendTrafficPolicies() flow.Table[object.Name, *BackendTrafficPolicy] {
	return flow.Map("topology-backend-traffic-policies", g.in.BackendTrafficPolicies,
		func(_ *flow.Ctx, k object.Name, o *gwxv1alpha1.XBackendTrafficPolicy, emit func(object.Name, *BackendTrafficPolicy)) {
			emit(k, backendTrafficPolicy(k, o))
		})
}

// The defaults of a retry constraint, for sources that don't fill them in.
const (
	retryPercent  = 20
	retryInterval = 10 * time.Second
	retryCount    = 10
	retrySpan     = time.Second
)

// backendTrafficPolicy makes the node of a policy, and checks all of it except its targets.
func backendTrafficPolicy(name object.Name, o *gwxv1alpha1.XBackendTrafficPolicy) *BackendTrafficPolicy {
	p := &BackendTrafficPolicy{Object: o}
	p.Name, p.Created, p.Targets = name, o.CreationTimestamp.Time, backendTrafficTargets(o)
	refuse := func(field, problem string) *BackendTrafficPolicy {
		c := condition.PolicyInvalid(field, problem)
		p.Refused = &c
		return p
	}
	if o.Spec.SessionPersistence != nil {
		return refuse("spec.sessionPersistence", "is deprecated and not supported; set sessionPersistence in the rules of routes, and remove it here")
	}
	constraint := o.Spec.RetryConstraint
	if constraint == nil {
		return p
	}
	percent, interval := retryPercent, retryInterval
	if b := constraint.Budget; b != nil {
		percent = valueOr(b.Percent, percent)
		var ok bool
		if interval, ok = parseInterval(b.Interval, interval); !ok {
			return refuse("spec.retryConstraint.budget.interval", "is not between 1s and 1h")
		}
	}
	if percent < 0 || percent > 100 {
		return refuse("spec.retryConstraint.budget.percent", "is not between 0 and 100")
	}
	count, span := retryCount, retrySpan
	if r := constraint.MinRetryRate; r != nil {
		count = valueOr(r.Count, count)
		var ok bool
		if span, ok = parseInterval(r.Interval, span); !ok {
			return refuse("spec.retryConstraint.minRetryRate.interval", "is not between 1s and 1h")
		}
	}
	if count < 1 || count > 1_000_000 {
		return refuse("spec.retryConstraint.minRetryRate.count", "is not between 1 and 1000000")
	}
	p.Asks = ir.RetryBudget{
		Percent:  uint32(percent),
		Interval: interval,
		Floor:    uint32(math.Ceil(float64(count) / span.Seconds())),
	}
	return p
}

// parseInterval reads a duration from a second to an hour.
func parseInterval(d *gwxv1alpha1.Duration, otherwise time.Duration) (time.Duration, bool) {
	if d == nil {
		return otherwise, true
	}
	out, err := time.ParseDuration(string(*d))
	return out, err == nil && out >= time.Second && out <= time.Hour
}

// backendTrafficTargets are the Services that a policy targets.
func backendTrafficTargets(o *gwxv1alpha1.XBackendTrafficPolicy) []policy.Target {
	var out []policy.Target
	for _, t := range o.Spec.TargetRefs {
		if of := object.KindOf(string(t.Group), string(t.Kind)); kind.IsService(of) {
			out = append(out, policy.Target{Key: object.Key{Kind: of, Name: name(o.Namespace, string(t.Name))}})
		}
	}
	return out
}
