package envoy

import (
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// checkClients asks clients for certificates that authorities have signed. They come
// by name, as certificates do: until they are there, nobody is let in.
func checkClients(context *tlsv3.DownstreamTlsContext, c *ir.Clients) {
	rules := &tlsv3.CertificateValidationContext{}
	if c.Fallback {
		rules.TrustChainVerification = tlsv3.CertificateValidationContext_ACCEPT_UNTRUSTED
		// Envoy does not say of a resumed session whether the certificate was verified, so that
		// whoever needs that to be said would be turned away.
		context.SessionTicketKeysType = &tlsv3.DownstreamTlsContext_DisableStatelessSessionResumption{DisableStatelessSessionResumption: true}
		context.DisableStatefulSessionResumption = true
	}
	context.RequireClientCertificate = wrapperspb.Bool(!c.Fallback)
	context.CommonTlsContext.ValidationContextType = &tlsv3.CommonTlsContext_CombinedValidationContext{
		CombinedValidationContext: &tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
			DefaultValidationContext:         rules,
			ValidationContextSdsSecretConfig: &tlsv3.SdsSecretConfig{Name: SecretName(c.Authorities), SdsConfig: ads()},
		},
	}
}

// clientCertHeader has the certificate of a client.
const clientCertHeader = "x-forwarded-client-cert"

// tellClients tells backends who a client is, in clientCertHeader, where every
// client has shown a certificate that passed. What clients themselves send by that
// name never passes. Where those without a valid certificate are let in too, the
// header would vouch for anybody, and there is none.
func tellClients(m *hcmv3.HttpConnectionManager, t *ir.TLS) {
	m.ForwardClientCertDetails = hcmv3.HttpConnectionManager_SANITIZE
	if !t.Verifies() {
		return
	}
	m.ForwardClientCertDetails = hcmv3.HttpConnectionManager_SANITIZE_SET
	m.SetCurrentClientCertDetails = &hcmv3.HttpConnectionManager_SetCurrentClientCertDetails{
		Subject: wrapperspb.Bool(true), Dns: true, Uri: true,
	}
}
