package envoy

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// downstreamTLS terminates TLS with certificates that come by name, so that a
// renewed one changes no listener. With several of one name, Envoy picks by
// what the client can verify.
//
// Where requests are read, the protocol is negotiated. Who reads the bytes of a
// chain that forwards them is not known here, so nothing can be promised there.
func downstreamTLS(c *ir.Chain) *tlsv3.DownstreamTlsContext {
	common := &tlsv3.CommonTlsContext{
		TlsParams: &tlsv3.TlsParameters{TlsMinimumProtocolVersion: minVersion(c.TLS.MinVersion)},
	}
	if c.Forward == nil {
		common.AlpnProtocols = []string{"h2", "http/1.1"}
	}
	context := &tlsv3.DownstreamTlsContext{CommonTlsContext: common}
	if c.OnDemand {
		askForCertificates(context)
	} else {
		for _, name := range c.TLS.Certificates {
			common.TlsCertificateSdsSecretConfigs = append(common.TlsCertificateSdsSecretConfigs,
				&tlsv3.SdsSecretConfig{Name: SecretName(name), SdsConfig: ads()})
		}
	}
	if c.TLS.Clients != nil {
		checkClients(context, c.TLS.Clients)
	}
	return context
}

// transportSocket puts TLS onto connections.
func transportSocket(c *ir.Chain) (*corev3.TransportSocket, error) {
	return securedBy("envoy.transport_sockets.tls", downstreamTLS(c))
}

// securedBy is the transport socket of a name.
func securedBy(name string, m message) (*corev3.TransportSocket, error) {
	config, err := pack(m)
	if err != nil {
		return nil, err
	}
	return &corev3.TransportSocket{
		Name:       name,
		ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: config},
	}, nil
}

func minVersion(v ir.TLSVersion) tlsv3.TlsParameters_TlsProtocol {
	if v == ir.TLS13 {
		return tlsv3.TlsParameters_TLSv1_3
	}
	return tlsv3.TlsParameters_TLSv1_2
}
