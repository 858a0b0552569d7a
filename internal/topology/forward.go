package topology

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// forwardRules resolves the references of a TLSRoute, TCPRoute or UDPRoute.
func forwardRules[R any](r *resolver, use ir.Use, rules []R, backendsOf func(*R) []gwv1.BackendRef) []RouteRule {
	out := make([]RouteRule, len(rules))
	for i := range rules {
		refs := backendsOf(&rules[i])
		out[i].Backends = r.backends(use, i, len(refs), func(j int) *gwv1.BackendObjectReference {
			return &refs[j].BackendObjectReference
		})
	}
	return out
}
