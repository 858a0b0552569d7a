package envoy

import (
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// Secret returns a certificate with its key, the authorities to trust, or a text. Whether
// Envoy can use them has been decided before, where an object's status says so: see
// package topology. An error quotes nothing of what they hold. Others that authorities sign for may not
// go on to pass while Envoy refuses these, so they are a Guard.
func Secret(s *ir.Secret) (*Resource, error) {
	name := SecretName(s.Name)
	secret := &tlsv3.Secret{Name: name}
	switch {
	case s.AuthoritiesFile != "":
		secret.Type = trust(&corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: s.AuthoritiesFile}})
	case s.Text != "": // the key of sessions has digits only
		secret.Type = &tlsv3.Secret_GenericSecret{GenericSecret: &tlsv3.GenericSecret{Secret: inline(formEncoded(s.Text.Reveal()))}}
	case s.Authorities != "":
		secret.Type = trust(inline(s.Authorities))
	default:
		secret.Type = &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
			CertificateChain: inline(s.Certificate),
			PrivateKey:       inline(s.Key.Reveal()),
		}}
	}
	r, err := resource(Secrets, name, secret)
	if err != nil {
		// The rules' own text could quote the message.
		return nil, fmt.Errorf("secret %s: what it holds is not a text that can be sent", name)
	}
	if s.Authorities != "" {
		r = r.Guarded(Guard{{By: xxhash.Sum64String(s.Authorities)}})
	}
	return r, nil
}

// Spelled returns a secret under another spelling of its name, for a proxy that has asked for that.
func (r *Resource) Spelled(name string) *Resource {
	// The last of two names in a message is the one that counts.
	body := protowire.AppendTag(slices.Clone(r.head), 1, protowire.BytesType)
	return NewResource(r.Type, name, protowire.AppendString(body, name))
}

// trust is the secret of authorities.
func trust(ca *corev3.DataSource) *tlsv3.Secret_ValidationContext {
	return &tlsv3.Secret_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{TrustedCa: ca}}
}

func inline(text string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: text}}
}
