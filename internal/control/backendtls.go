package control

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/status"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// ownBackend is a backend as one Gateway has it for its own, with the certificate
// that it shows there. Nearly all are shared.
func (p *Pipeline) ownBackend(c *flow.Ctx, k resourceKey) (own *ir.Backend, ok bool) {
	if !translate.Encrypted(k.Name) {
		return nil, false
	}
	certificate, ok := flow.Get(c, p.graph.ClientCertificates, k.Gateway)
	if !ok {
		return nil, false
	}
	shared, ok := flow.Get(c, p.backends, k.Name)
	if !ok || shared.TLS == nil {
		return nil, false
	}
	b, tls := *shared, *shared.TLS
	tls.ClientCertificate = certificate.String()
	b.TLS = &tls
	return &b, true
}

// ownMember puts a Gateway's own cluster in the place of the shared one.
func (p *Pipeline) ownMember(c *flow.Ctx, k resourceKey, m member) member {
	if b, ok := p.ownBackend(c, k); ok {
		if cluster, err := envoy.Cluster(b); err == nil {
			m.cluster = cluster
		}
	}
	return m
}

// declareSecrets declares the certificates and authorities that proxies are sent:
// those that listeners and backends name.
func (p *Pipeline) declareSecrets() {
	ofListeners := flow.Keys("secrets-of-listeners",
		func(k topology.ListenerKey, l *topology.Listener, yield func(resourceKey)) {
			if l.Serves {
				for _, name := range l.Certificates {
					yield(resourceKey{k.Gateway, name.String()})
				}
				if l.Clients != nil {
					yield(resourceKey{k.Gateway, translate.AuthoritiesName(l.Clients.Authorities)})
				}
			}
		}, p.graph.Listeners, p.graph.SetListeners)
	ofBackends := flow.Keys("secrets-of-backends",
		func(k resourceKey, m member, yield func(resourceKey)) {
			for _, name := range m.cluster.WaitsFor() {
				yield(resourceKey{k.Gateway, name})
			}
		}, p.members)
	named := flow.Keys("secrets-of-proxies",
		func(k resourceKey, _ struct{}, yield func(resourceKey)) { yield(k) }, ofListeners, ofBackends)
	p.secrets = flow.Map("secret-resources", named,
		func(c *flow.Ctx, k resourceKey, _ struct{}, emit func(resourceKey, *envoy.Resource)) {
			secret := p.secret(c, k.Name)
			if secret == nil {
				return
			}
			// What Envoy would refuse is a problem of its listener or policy already.
			if resource, err := envoy.Secret(secret); err == nil {
				emit(k, resource)
			}
		})
}

// secret returns the certificate or the authorities of a name, nil if there are
// none that can be used.
func (p *Pipeline) secret(c *flow.Ctx, name string) *ir.Secret {
	refs, ok := translate.ParseAuthoritiesName(name)
	if !ok {
		certificate, ok := flow.Get(c, p.graph.Certificates, parseName(name))
		if !ok {
			return nil
		}
		return translate.Secret(certificate)
	}
	var all []*topology.Authority
	for _, ref := range refs {
		if ref == topology.SystemAuthorities {
			return translate.SystemAuthorities(name, p.opts.Topology.SystemAuthorities)
		}
		if a, ok := flow.Get(c, p.graph.Authorities, ref); ok {
			all = append(all, a)
		}
	}
	return translate.Authorities(name, all)
}

// declarePolicyStatus declares what people are told of BackendTLSPolicies.
func (p *Pipeline) declarePolicyStatus() {
	p.policyStatus = flow.Map("backend-tls-policy-status", p.graph.BackendTLSPolicies,
		func(c *flow.Ctx, k object.Name, node *topology.BackendTLSPolicy, emit func(object.Name, *gwv1.PolicyStatus)) {
			in := status.PolicyInput{ControllerName: p.opts.Topology.ControllerName, Node: node}
			in.Ancestors, _ = flow.Get(c, p.graph.Ancestors, k)
			if node.TLS != nil {
				name := translate.AuthoritiesName(node.TLS.Authorities)
				in.Refused = func(gateway object.Name) (status.Rejection, bool) {
					state, ok := flow.Get(c, p.proxies, gateway)
					if !ok {
						return status.Rejection{}, false
					}
					r, ok := state.Rejected[status.Ref{Kind: status.RefSecret, Name: name}]
					return r, ok
				}
			}
			s := status.Policy(in)
			emit(k, &s)
		})
}

// policyItem shows what a policy targets where routes show their parents.
func policyItem(_ *flow.Ctx, node *topology.BackendTLSPolicy, s *gwv1.PolicyStatus) *Item {
	out := item("BackendTLSPolicy", node.Name.Namespace, node.Name.Name, node.Object.Generation, s)
	out.Summary = policySummary(s)
	out.Summary.Hosts = []string{string(node.Object.Spec.Validation.Hostname)}
	for _, t := range node.Object.Spec.TargetRefs {
		target := node.Name.Namespace + "/" + string(t.Name)
		if t.SectionName != nil {
			target += "/" + string(*t.SectionName)
		}
		out.Summary.Parents = append(out.Summary.Parents, target)
	}
	return out
}

// unused is the state of a policy that no Gateway is concerned with.
const unused = "Unused"

func policySummary(s *gwv1.PolicyStatus) Summary {
	if len(s.Ancestors) == 0 {
		return Summary{State: unused, OK: true, Message: "no route of a Gateway refers to what the policy targets"}
	}
	for _, a := range s.Ancestors {
		sum := summarize("Accepted", a.Conditions)
		if sum.OK {
			continue
		}
		if len(s.Ancestors) > 1 {
			sum.Message = "Gateway " + string(a.AncestorRef.Name) + ": " + sum.Message
		}
		return sum
	}
	return Summary{State: "Accepted", OK: true}
}

func policyConditions(s *gwv1.PolicyStatus) conditions {
	out := conditions{}
	for i := range s.Ancestors {
		out["ancestor "+parentPath(s.Ancestors[i].AncestorRef)] = s.Ancestors[i].Conditions
	}
	return out
}
