package envoy

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// staticUpstreamSecrets makes a cluster take its secrets from the bootstrap.
func staticUpstreamSecrets(t testing.TB, c *clusterv3.Cluster) {
	t.Helper()
	if c.TransportSocket == nil {
		return
	}
	m := &tlsv3.UpstreamTlsContext{}
	if err := c.TransportSocket.GetTypedConfig().UnmarshalTo(m); err != nil {
		t.Fatal(err)
	}
	m.CommonTlsContext.GetCombinedValidationContext().ValidationContextSdsSecretConfig.SdsConfig = nil
	for _, s := range m.CommonTlsContext.TlsCertificateSdsSecretConfigs {
		s.SdsConfig = nil
	}
	if err := c.TransportSocket.GetTypedConfig().MarshalFrom(m); err != nil {
		t.Fatal(err)
	}
}

// upstreamSetup adds the secrets that a backend needs.
func (s *setup) upstreamSetup(t testing.TB, b *ir.Backend) {
	t.Helper()
	have := map[ir.SecretKey]bool{}
	for _, known := range s.secrets {
		have[known.Name] = true
	}
	pair := secret(t, SecretName(b.TLS.ClientCertificate), newKey(t, "P-256"), nil)
	if !b.TLS.ClientCertificate.IsZero() && !have[pair.Name] {
		s.secrets = append(s.secrets, pair)
	}
	if !have[b.TLS.Authorities] {
		s.secrets = append(s.secrets, &ir.Secret{Name: b.TLS.Authorities, Authorities: pair.Certificate})
	}
}
