package topology

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// TrafficPolicy is an XBackendTrafficPolicy, whatever it is for.
type TrafficPolicy struct {
	Name   object.Name
	Object *gwxv1alpha1.XBackendTrafficPolicy
	// Refused, where set, is why the policy can't be used: an Accepted condition.
	// What it targets is served as if there were none.
	Refused *metav1.Condition
	// Retry is zero where the policy is refused, or says nothing of retries.
	Retry ir.RetryBudget
}

// Equal reports whether two nodes say the same of the same object.
func (p *TrafficPolicy) Equal(o *TrafficPolicy) bool {
	return p.Object == o.Object && p.says(o)
}

// says reports whether two policies say the same of what they target.
func (p *TrafficPolicy) says(o *TrafficPolicy) bool {
	return p == o || p != nil && o != nil && p.Name == o.Name &&
		samePointed(p.Refused, o.Refused) && p.Retry == o.Retry
}

func (g *Graph) declareTrafficPolicies() flow.Table[object.Name, *TrafficPolicy] {
	return flow.Map("topology-traffic-policies", g.in.TrafficPolicies,
		func(_ *flow.Ctx, k object.Name, o *gwxv1alpha1.XBackendTrafficPolicy, emit func(object.Name, *TrafficPolicy)) {
			emit(k, trafficPolicy(k, o))
		})
}

// The defaults of a retry constraint, for sources that don't fill them in.
const (
	retryPercent  = 20
	retryInterval = 10 * time.Second
	retryCount    = 10
	retrySpan     = time.Second
)

// trafficPolicy judges a policy, its targets aside.
func trafficPolicy(name object.Name, o *gwxv1alpha1.XBackendTrafficPolicy) *TrafficPolicy {
	p := &TrafficPolicy{Name: name, Object: o}
	refuse := func(field, problem string) *TrafficPolicy {
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
	p.Retry = ir.RetryBudget{
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

// trafficTargets yields the Services that a policy targets.
func trafficTargets(p *TrafficPolicy, yield func(policyTarget)) {
	for _, t := range p.Object.Spec.TargetRefs {
		if t.Group == "" && t.Kind == "Service" {
			yield(policyTarget{service: name(p.Object.Namespace, string(t.Name))})
		}
	}
}

// precedes reports whether a policy takes precedence over another for the same
// target.
func (p *TrafficPolicy) precedes(o *TrafficPolicy) bool {
	return seniority(p.Object, o.Object) < 0
}

// trafficProblem says why a policy has no effect on one of its targets; nil where
// it has.
func (g *Graph) trafficProblem(c *flow.Ctx, p *TrafficPolicy, t policyTarget) *metav1.Condition {
	var problem metav1.Condition
	switch _, ok := flow.Get(c, g.in.Services, t.service); {
	case !ok:
		problem = condition.PolicyTargetMissing(t.service.String())
	case p.Refused != nil:
		return p.Refused
	default:
		all, ok := flow.Get(c, g.policies, t.service)
		if !ok || all.traffic == nil || all.traffic.Name == p.Name {
			return nil
		}
		problem = condition.TrafficPolicyConflicted(t.String(), all.traffic.Name.String())
	}
	return &problem
}

// limitRetries gives a port the limits of retries that its policy asks for.
func (s *servicePolicies) limitRetries(p *servicePort) {
	if s != nil && s.traffic != nil && p.forRequests() {
		p.Retry = s.traffic.Retry
	}
}
