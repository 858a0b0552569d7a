package topology

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// SystemAuthorities stands for the authorities that the proxy's host trusts.
var SystemAuthorities = object.Key{Kind: object.KindOf(kind.Gatehouse, "System"), Name: object.Name{Name: "authorities"}}

// authorityRef reads a reference to certificates of authorities. It is not ok where
// its kind is not one that can hold them.
func authorityRef(group gwv1.Group, of gwv1.Kind, namespace string, name gwv1.ObjectName) (ref object.Key, ok bool) {
	ref = object.Key{Kind: object.KindOf(string(group), string(of)), Name: object.Name{Namespace: namespace, Name: string(name)}}
	switch ref.Kind {
	case kind.ConfigMap, kind.Secret:
		return ref, true
	case kind.ClusterTrustBundle:
		ref.Namespace = ""
		return ref, true
	}
	return object.Key{}, false
}

// backendAuthorityRef reads a reference of a BackendTLSPolicy.
func backendAuthorityRef(policy *gwv1.BackendTLSPolicy, ref gwv1.LocalObjectReference) (object.Key, bool) {
	return authorityRef(ref.Group, ref.Kind, policy.Namespace, ref.Name)
}

// clientAuthorityRef reads a reference of spec.tls.frontend of a Gateway in a
// namespace.
func clientAuthorityRef(namespace string, ref gwv1.ObjectReference) (object.Key, bool) {
	return authorityRef(ref.Group, ref.Kind, string(valueOr(ref.Namespace, gwv1.Namespace(namespace))), ref.Name)
}

// clientAuthorityRefs yields the references of a Gateway's spec.tls.frontend.
func clientAuthorityRefs(gw *gwv1.Gateway, yield func(gwv1.ObjectReference)) {
	if gw.Spec.TLS == nil || gw.Spec.TLS.Frontend == nil {
		return
	}
	configs := []gwv1.TLSConfig{gw.Spec.TLS.Frontend.Default}
	for _, port := range gw.Spec.TLS.Frontend.PerPort {
		configs = append(configs, port.TLS)
	}
	for _, config := range configs {
		if config.Validation == nil {
			continue
		}
		for _, ref := range config.Validation.CACertificateRefs {
			yield(ref)
		}
	}
}

// Authority is the certificates of authorities that an object holds. An object is read
// once a reference to it is permitted.
type Authority struct {
	Ref object.Key
	// Problem says why the object can't be used; Certificates is empty then.
	Problem      string
	Certificates string // PEM, certificates only, each once
}

// Equal reports whether two nodes hold the same certificates.
func (a *Authority) Equal(o *Authority) bool { return *a == *o }

// declareAuthorities reads the objects with certificates of authorities that
// BackendTLSPolicies, XBackends and Gateways of ours refer to.
func (g *Graph) declareAuthorities() flow.Table[object.Key, *Authority] {
	policies := flow.Map("topology-policy-authorities", g.in.BackendTLSPolicies,
		func(_ *flow.Ctx, k object.Name, p *gwv1.BackendTLSPolicy, emit func(use[object.Key], object.Name)) {
			authoritiesOf(p, func(ref object.Key) { emit(use[object.Key]{kind.BackendTLSPolicy, k, ref}, object.Name{}) })
		}, flow.Equal(flow.Same[object.Name]))
	backends := flow.Map("topology-xbackend-authorities", g.in.XBackends,
		func(_ *flow.Ctx, k object.Name, o *gwxv1alpha1.XBackend, emit func(use[object.Key], object.Name)) {
			if p := validationOf(o); p != nil {
				authoritiesOf(p, func(ref object.Key) { emit(use[object.Key]{kind.XBackend, k, ref}, object.Name{}) })
			}
		}, flow.Equal(flow.Same[object.Name]))
	clients := flow.Map("topology-client-authorities", g.owned,
		func(c *flow.Ctx, k object.Name, gw *gwv1.Gateway, emit func(use[object.Key], object.Name)) {
			seen := map[object.Key]bool{}
			clientAuthorityRefs(gw, func(r gwv1.ObjectReference) {
				if ref, ok := clientAuthorityRef(k.Namespace, r); ok && !seen[ref] && g.clientAuthorityPermitted(c, k.Namespace, ref) {
					seen[ref] = true
					emit(use[object.Key]{kind.Gateway, k, ref}, g.FleetOf(c, k))
				}
			})
		}, flow.Equal(flow.Same[object.Name]))
	g.authoritiesOf = declareUsesOf(object.Key.Compare, clients)
	return flow.Map("topology-authorities", declareUsed("topology-authority-refs", policies, backends, clients),
		func(c *flow.Ctx, ref object.Key, _ struct{}, emit func(object.Key, *Authority)) {
			if a := g.authority(c, ref); a != nil {
				emit(ref, a)
			}
		})
}

// authoritiesOf yields what a policy, or what stands for one, refers to, each once. All of
// it is in its own namespace, or in none.
func authoritiesOf(p *gwv1.BackendTLSPolicy, yield func(object.Key)) {
	seen := map[object.Key]bool{}
	for _, r := range p.Spec.Validation.CACertificateRefs {
		if ref, ok := backendAuthorityRef(p, r); ok && !seen[ref] {
			seen[ref] = true
			yield(ref)
		}
	}
}

// authority reads an object; nil where there is none.
func (g *Graph) authority(c *flow.Ctx, ref object.Key) *Authority {
	const key = "ca.crt"
	switch ref.Kind {
	case kind.ConfigMap:
		if o, ok := flow.Get(c, g.in.ConfigMaps, ref.Name); ok {
			text, there := o.Data[key]
			if !there {
				return readAuthority(ref, key, o.BinaryData[key])
			}
			return readAuthority(ref, key, []byte(text))
		}
	case kind.Secret:
		if o, ok := flow.Get(c, g.in.Secrets, ref.Name); ok {
			return readAuthority(ref, key, o.Data[key])
		}
	case kind.ClusterTrustBundle:
		if o, ok := flow.Get(c, g.in.TrustBundles, ref.Name.Name); ok {
			return readAuthority(ref, "spec.trustBundle", []byte(o.Spec.TrustBundle))
		}
	}
	return nil
}

// unread says why no object of a kind can be found; zero where they are read.
func (g *Graph) unread(c *flow.Ctx, of object.Kind) condition.Unread {
	if of == kind.ClusterTrustBundle && !g.options.Experimental {
		return condition.Unread{Kind: of.Name(), Why: "they belong to the experimental channel (--experimental)"}
	}
	why, _ := flow.Get(c, g.in.Unread, of.Name())
	if why == "" {
		return condition.Unread{} // it is read
	}
	return condition.Unread{Kind: of.Name(), Why: why}
}

// maxAuthorityText bounds what is read: no object of the Kubernetes API can hold more.
const maxAuthorityText = 1 << 20

func readAuthority(ref object.Key, field string, text []byte) *Authority {
	a := &Authority{Ref: ref}
	certificates, err := checkAuthorities(field, text)
	if err != nil {
		a.Problem = err.Error()
		return a
	}
	a.Certificates = certificates
	return a
}

// checkAuthorities returns the certificates of a bundle as PEM, each once. Its
// errors quote nothing of what it was given.
func checkAuthorities(field string, text []byte) (string, error) {
	switch {
	case len(text) == 0:
		return "", fmt.Errorf("%s is missing or empty; it must hold the authorities' certificates as PEM", field)
	case len(text) > maxAuthorityText:
		return "", fmt.Errorf("%s has %d bytes; %d are the most", field, len(text), maxAuthorityText)
	}
	blocks, err := pemBlocks(field, text)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	seen := map[string]bool{}
	for i, block := range blocks {
		switch {
		case strings.HasSuffix(block.Type, "PRIVATE KEY"):
			return "", fmt.Errorf("%s holds a private key; leave only certificates in it, and replace that key if others could read it", field)
		case block.Type != "CERTIFICATE":
			return "", fmt.Errorf("PEM block %d in %s is not a CERTIFICATE; remove it", i+1, field)
		case len(block.Headers) > 0:
			return "", fmt.Errorf("certificate %d in %s has headers within its PEM block; remove them", i+1, field)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return "", fmt.Errorf("certificate %d in %s can't be read: %w", i+1, field, err)
		}
		if seen[string(block.Bytes)] {
			continue
		}
		seen[string(block.Bytes)] = true
		if err := pem.Encode(&out, block); err != nil {
			return "", fmt.Errorf("certificate %d in %s can't be written: %w", i+1, field, err)
		}
	}
	if out.Len() == 0 {
		return "", errors.New(field + " holds no certificate in PEM form")
	}
	return out.String(), nil
}
