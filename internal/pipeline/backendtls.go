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

// SecretKey names a secret of one Gateway.
type SecretKey struct {
	Gateway object.Name
	Secret  ir.SecretKey
}

func (k SecretKey) String() string { return k.Gateway.String() + "/" + k.Secret.String() }

// OwnBackend is a backend as one Gateway has it for its own, with the certificate
// that it shows there, and what its name may resolve to. Nearly all are shared.
func (p *Pipeline) OwnBackend(c *flow.Ctx, k BackendKey) (own *ir.Backend, ok bool) {
	b := k.Backend.Backend()
	if !b.TLS.IsZero() && !b.TLS.Unverified { // nobody knows who would be shown the certificate
		if certificate, has := flow.Get(c, p.Graph.ClientCertificates, k.Gateway); has {
			b.TLS.ClientCertificate, ok = ir.Certificate(certificate), true
		}
	}
	if b.Outside {
		b.Private = p.privateAddresses(c, k.Gateway)
		ok = ok || b.Private != ""
	}
	if !ok {
		return nil, false
	}
	return new(b), true // a copy, so that the others, which are nearly all, cost no allocation
}

// ownMember puts a Gateway's own cluster in the place of the shared one.
func (p *Pipeline) ownMember(c *flow.Ctx, k BackendKey, m Member) Member {
	if b, ok := p.OwnBackend(c, k); ok {
		if cluster, err := envoy.Cluster(b); err == nil {
			m.Cluster = cluster
			if !b.TLS.IsZero() {
				m.tls = &b.TLS
			}
		}
	}
	return m
}

// declareSecrets declares the secrets that proxies are sent: those that listeners, backends and
// logins refer to.
func (p *Pipeline) declareSecrets() {
	ofListeners := flow.Keys("secrets-of-listeners",
		func(k topology.ListenerKey, l *topology.Listener, yield func(SecretKey)) {
			if l.Serves {
				for _, name := range l.Certificates {
					yield(SecretKey{k.Fleet(), ir.Certificate(name)})
				}
				if l.Clients != nil {
					yield(SecretKey{k.Fleet(), ir.Authorities(l.Clients.Authorities...)})
				}
			}
		}, p.Graph.Listeners, p.Graph.SetListeners)
	ofBackends := flow.Keys("secrets-of-backends",
		func(k BackendKey, m Member, yield func(SecretKey)) {
			if m.tls == nil {
				return
			}
			if !m.tls.Unverified {
				yield(SecretKey{k.Gateway, m.tls.Authorities})
			}
			if client := m.tls.ClientCertificate; !client.IsZero() {
				yield(SecretKey{k.Gateway, client})
			}
		}, p.Members)
	ofNames := flow.Keys("secrets-of-server-names",
		func(k ResourceKey, _ ir.SecretKey, yield func(SecretKey)) {
			yield(SecretKey{k.Gateway, ir.ServerName(k.Name)})
		}, p.onDemandNames)
	referred := flow.Keys("secrets-of-proxies",
		func(k SecretKey, _ struct{}, yield func(SecretKey)) { yield(k) }, ofListeners, ofBackends, p.secretsOfLogins(), ofNames)
	p.Secrets = flow.Map("secret-resources", referred,
		func(c *flow.Ctx, k SecretKey, _ struct{}, emit func(SecretKey, *envoy.Resource)) {
			secret := p.secretOf(c, k)
			if secret == nil {
				return
			}
			// What Envoy would refuse is a problem of its listener or policy already.
			if resource, err := envoy.Secret(secret); err == nil {
				emit(k, resource)
			}
		})
}

// secretOf returns what a Gateway's proxies are given by a key; nil if that can't be used.
func (p *Pipeline) secretOf(c *flow.Ctx, k SecretKey) *ir.Secret {
	name := k.Secret.ServerName()
	if name == "" {
		return p.Secret(c, k.Secret)
	}
	certificate, ok := flow.Get(c, p.onDemandNames, ResourceKey{k.Gateway, name})
	if !ok {
		return nil
	}
	of := p.Secret(c, certificate)
	if of == nil {
		return nil
	}
	out := *of
	out.Name = k.Secret
	return &out
}

// Secret returns a certificate, authorities or what a Login needs, nil if there are none that can be used.
func (p *Pipeline) Secret(c *flow.Ctx, k ir.SecretKey) *ir.Secret {
	if s, encrypts, ok := k.Login(); ok {
		if text := p.Graph.LoginSecret(c, s, encrypts); text != "" {
			return &ir.Secret{Name: k, Text: text}
		}
		return nil
	}
	if name := k.Certificate(); !name.IsZero() {
		certificate, ok := flow.Get(c, p.Graph.Certificates, name)
		if !ok {
			return nil
		}
		return translate.Secret(certificate)
	}
	var all []*topology.Authority
	for _, ref := range k.Authorities() {
		if ref == topology.SystemAuthorities {
			return translate.SystemAuthorities(k, p.Options.Topology.SystemAuthorities)
		}
		if a, ok := flow.Get(c, p.Graph.Authorities, ref); ok {
			all = append(all, a)
		}
	}
	return translate.Authorities(k, all)
}

// declarePolicyStatus declares what people are told of BackendTLSPolicies.
func (p *Pipeline) declarePolicyStatus() {
	p.BackendTLSPolicyStatus = flow.Map("backend-tls-policy-status", p.Graph.BackendTLSPolicies,
		func(c *flow.Ctx, k object.Name, node *topology.BackendTLSPolicy, emit func(object.Name, *gwv1.PolicyStatus)) {
			in := status.PolicyInput{ControllerName: p.Options.Topology.ControllerName, Node: node}
			in.Ancestors, _ = flow.Get(c, p.Graph.Ancestors, k)
			if !node.Asks.IsZero() {
				authorities := status.SecretRef(node.Asks.Authorities)
				in.Refused = func(gateway object.Name) (status.Rejection, bool) {
					state, ok := flow.Get(c, p.proxyStates, gateway)
					if !ok {
						return status.Rejection{}, false
					}
					r, ok := state.Rejected[authorities]
					return r, ok
				}
			}
			s := status.Policy(in)
			emit(k, &s)
		})
}
