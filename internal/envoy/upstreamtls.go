package envoy

import (
	"regexp"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// upstreamTLS speaks TLS to a backend, and to nobody but those who show that they
// are it. Authorities and the client certificate come by name, so that renewed ones
// change no cluster.
func upstreamTLS(t *ir.BackendTLS, p ir.Protocol) (*corev3.TransportSocket, error) {
	if t.Unverified {
		return securedBy("envoy.transport_sockets.tls", &tlsv3.UpstreamTlsContext{CommonTlsContext: &tlsv3.CommonTlsContext{
			TlsParams: upstreamVersions, AlpnProtocols: alpn(p),
		}})
	}
	validation := &tlsv3.CertificateValidationContext{}
	for name := range t.Names.All() {
		validation.MatchTypedSubjectAltNames = append(validation.MatchTypedSubjectAltNames, nameMatcher(name))
	}
	common := &tlsv3.CommonTlsContext{
		TlsParams: upstreamVersions, AlpnProtocols: alpn(p),
		ValidationContextType: &tlsv3.CommonTlsContext_CombinedValidationContext{
			CombinedValidationContext: &tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
				DefaultValidationContext:         validation,
				ValidationContextSdsSecretConfig: &tlsv3.SdsSecretConfig{Name: SecretName(t.Authorities), SdsConfig: ads()},
			},
		},
	}
	if !t.ClientCertificate.IsZero() {
		common.TlsCertificateSdsSecretConfigs = []*tlsv3.SdsSecretConfig{{Name: SecretName(t.ClientCertificate), SdsConfig: ads()}}
	}
	return securedBy("envoy.transport_sockets.tls", &tlsv3.UpstreamTlsContext{CommonTlsContext: common, Sni: t.ServerName})
}

var upstreamVersions = &tlsv3.TlsParameters{
	TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_2,
	TlsMaximumProtocolVersion: tlsv3.TlsParameters_TLSv1_3, // 1.2 is the default of clients
}

// alpn is what is offered to a backend to be spoken.
func alpn(p ir.Protocol) []string {
	switch p {
	case ir.H2C:
		return []string{"h2"}
	case ir.HTTP1, ir.WebSocket, "":
		return []string{"http/1.1"}
	case ir.TCP, ir.UDP: // what the bytes are is not known
	}
	return nil
}

// upstreamSecrets are the secrets that a backend's cluster waits for.
func upstreamSecrets(t *ir.BackendTLS) []string {
	names := []string{SecretName(t.Authorities), SecretName(t.ClientCertificate)}
	return slices.DeleteFunc(names, func(s string) bool { return s == "" })
}

// nameMatcher compares a name of a certificate. An exact DNS name is matched by a
// wildcard in the certificate too, as everywhere in TLS.
func nameMatcher(n ir.CertificateName) *tlsv3.SubjectAltNameMatcher {
	if n.URI != "" {
		return &tlsv3.SubjectAltNameMatcher{SanType: tlsv3.SubjectAltNameMatcher_URI, Matcher: exactly(n.URI)}
	}
	m := &tlsv3.SubjectAltNameMatcher{SanType: tlsv3.SubjectAltNameMatcher_DNS, Matcher: exactly(n.DNS)}
	if suffix, ok := strings.CutPrefix(n.DNS, "*."); ok {
		// Any name below the suffix, and the wildcard itself.
		m.Matcher = matching(`(?i)[^.]+(\.[^.]+)*\.` + regexp.QuoteMeta(suffix))
	}
	return m
}
