package topology

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// auth follows an ExternalAuth filter's reference to the service to ask.
func (r *resolver) auth(a *gwv1.HTTPExternalAuthFilter, field func() string) *BackendRef {
	use := ir.UseAuth
	if a.ExternalAuthProtocol == gwv1.HTTPRouteExternalAuthGRPCProtocol {
		use = ir.UseGRPC
	}
	ref := r.backend(use, &a.BackendRef, field)
	return &ref
}
