package topology

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/policy/traffic"
)

// servicePolicies are the policies of a Service that say how to speak to it.
type servicePolicies struct {
	tls      *policy.Attached[ir.BackendTLS]
	retries  *policy.Attached[ir.RetryBudget]
	settings *policy.Attached[policy.Rules[traffic.Setting]]
}

// declareServicePolicies attaches the policies of Services.
func (g *Graph) declareServicePolicies() {
	g.tlsAttached = policy.Attach("topology-backend-tls-policy", backendTLSKind, g.BackendTLSPolicies)
	g.backendTrafficAttached = policy.Attach("topology-backend-traffic-policy", backendTrafficKind, g.BackendTrafficPolicies)
	g.servicePolicies = policy.NewPresence("topology-service-policies", g.tlsAttached, g.backendTrafficAttached, g.trafficAttached)
}

// policiesOf returns the policies of a Service; false for most.
func (g *Graph) policiesOf(c *flow.Ctx, service object.Key) (servicePolicies, bool) {
	if !g.servicePolicies.Possible(c, service) {
		return servicePolicies{}, false
	}
	s := servicePolicies{g.tlsAttached.On(c, service), g.backendTrafficAttached.On(c, service), g.trafficAttached.On(c, service)}
	return s, s != servicePolicies{}
}

// encrypt gives a port the TLS that its policy asks for, or returns a problem. A
// backend whose policy can't be met is not spoken to.
func (s servicePolicies) encrypt(p *servicePort, field func() string, reader condition.Reader) *metav1.Condition {
	if p.Use == ir.UseUDP {
		return nil
	}
	said, ok := s.tls.First(p.PortName)
	if !ok {
		return nil
	}
	if said.Refused != "" {
		policy := ""
		if reader.Sees(said.Policy.Namespace) {
			policy = said.Policy.String()
		}
		c := condition.BackendPolicyRefused(field(), p.Object.String(), policy, reader.Why(said.Policy.Namespace, said.Refused))
		return &c
	}
	p.TLS = said.Asks
	return nil
}

// limitRetries gives a port the limits of retries that its policy asks for. A policy
// that can't be used asks for none.
func (s servicePolicies) limitRetries(p *servicePort) {
	if said, ok := s.retries.First(""); ok && p.forRequests() {
		p.Retry = said.Asks
	}
}

// set gives a port what TrafficPolicies of its Service say. What those above the Service say is for each path to it.
func (s servicePolicies) set(p *servicePort) {
	of := p.Object
	if path := inheritance[traffic.Setting](nil).on(s.settings, of, ""); path != nil && p.forRequests() {
		p.Backend = p.Under(traffic.InForce(policy.Combine(path)))
	}
}
