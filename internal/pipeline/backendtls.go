package pipeline

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

// OwnBackend is a backend as one Gateway has it for its own, with the certificate
// that it shows there. Nearly all are shared.
func (p *Pipeline) OwnBackend(c *flow.Ctx, k ResourceKey) (own *ir.Backend, ok bool) {
	if !translate.Encrypted(k.Name) {
		return nil, false
	}
	certificate, ok := flow.Get(c, p.Graph.ClientCertificates, k.Gateway)
	if !ok {
		return nil, false
	}
	shared, ok := flow.Get(c, p.Backends, k.Name)
	if !ok || shared.TLS == nil {
		return nil, false
	}
	b, tls := *shared, *shared.TLS
	tls.ClientCertificate = certificate.String()
	b.TLS = &tls
	return &b, true
}

// ownMember puts a Gateway's own cluster in the place of the shared one.
func (p *Pipeline) ownMember(c *flow.Ctx, k ResourceKey, m Member) Member {
	if b, ok := p.OwnBackend(c, k); ok {
		if cluster, err := envoy.Cluster(b); err == nil {
			m.Cluster = cluster
		}
	}
	return m
}

// declareSecrets declares the certificates and authorities that proxies are sent:
// those that listeners and backends name.
func (p *Pipeline) declareSecrets() {
	ofListeners := flow.Keys("secrets-of-listeners",
		func(k topology.ListenerKey, l *topology.Listener, yield func(ResourceKey)) {
			if l.Serves {
				for _, name := range l.Certificates {
					yield(ResourceKey{k.Gateway, name.String()})
				}
				if l.Clients != nil {
					yield(ResourceKey{k.Gateway, translate.AuthoritiesName(l.Clients.Authorities)})
				}
			}
		}, p.Graph.Listeners, p.Graph.SetListeners)
	ofBackends := flow.Keys("secrets-of-backends",
		func(k ResourceKey, m Member, yield func(ResourceKey)) {
			for _, name := range m.Cluster.WaitsFor() {
				yield(ResourceKey{k.Gateway, name})
			}
		}, p.Members)
	named := flow.Keys("secrets-of-proxies",
		func(k ResourceKey, _ struct{}, yield func(ResourceKey)) { yield(k) }, ofListeners, ofBackends)
	p.Secrets = flow.Map("secret-resources", named,
		func(c *flow.Ctx, k ResourceKey, _ struct{}, emit func(ResourceKey, *envoy.Resource)) {
			secret := p.Secret(c, k.Name)
			if secret == nil {
				return
			}
			// What Envoy would refuse is a problem of its listener or policy already.
			if resource, err := envoy.Secret(secret); err == nil {
				emit(k, resource)
			}
		})
}

// Secret returns the certificate or the authorities of a name, nil if there are
// none that can be used.
func (p *Pipeline) Secret(c *flow.Ctx, name string) *ir.Secret {
	refs, ok := translate.ParseAuthoritiesName(name)
	if !ok {
		certificate, ok := flow.Get(c, p.Graph.Certificates, object.ParseName(name))
		if !ok {
			return nil
		}
		return translate.Secret(certificate)
	}
	var all []*topology.Authority
	for _, ref := range refs {
		if ref == topology.SystemAuthorities {
			return translate.SystemAuthorities(name, p.Options.Topology.SystemAuthorities)
		}
		if a, ok := flow.Get(c, p.Graph.Authorities, ref); ok {
			all = append(all, a)
		}
	}
	return translate.Authorities(name, all)
}

// declarePolicyStatus declares what people are told of BackendTLSPolicies.
func (p *Pipeline) declarePolicyStatus() {
	p.BackendTLSPolicyStatus = flow.Map("backend-tls-policy-status", p.Graph.BackendTLSPolicies,
		func(c *flow.Ctx, k object.Name, node *topology.BackendTLSPolicy, emit func(object.Name, *gwv1.PolicyStatus)) {
			in := status.PolicyInput{ControllerName: p.Options.Topology.ControllerName, Node: node}
			in.Ancestors, _ = flow.Get(c, p.Graph.Ancestors, k)
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
