package topology

import gwv1 "sigs.k8s.io/gateway-api/apis/v1"

// auth follows an ExternalAuth filter's reference to the service to ask.
func (r *resolver) auth(a *gwv1.HTTPExternalAuthFilter, field func() string) *BackendRef {
	use := UseHTTP
	if a.ExternalAuthProtocol == gwv1.HTTPRouteExternalAuthGRPCProtocol {
		use = UseGRPC
	}
	ref := r.backend(use, &a.BackendRef, field)
	return &ref
}
