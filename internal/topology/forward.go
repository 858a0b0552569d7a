package topology

import gwv1 "sigs.k8s.io/gateway-api/apis/v1"

// forwardRules resolves the references of a TLSRoute, TCPRoute or UDPRoute.
func forwardRules[R any](r *resolver, use Use, rules []R, backendsOf func(*R) []gwv1.BackendRef) []RouteRule {
	out := make([]RouteRule, len(rules))
	for i := range rules {
		refs := backendsOf(&rules[i])
		out[i].Backends = make([]BackendRef, len(refs))
		for j := range refs {
			out[i].Backends[j] = r.backend(use, &refs[j].BackendObjectReference, backendField(i, j))
		}
	}
	return out
}
