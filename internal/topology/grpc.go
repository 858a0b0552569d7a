package topology

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

func (r *resolver) grpcRules(rules []gwv1.GRPCRouteRule) []RouteRule {
	out := make([]RouteRule, len(rules))
	for i := range rules {
		rule := &rules[i]
		out[i].Backends = r.backends(ir.UseGRPC, i, len(rule.BackendRefs), func(j int) *gwv1.BackendObjectReference {
			return &rule.BackendRefs[j].BackendObjectReference
		})
		for j := range rule.Filters {
			r.mirror(&out[i], ir.UseGRPC, i, j, rule.Filters[j].RequestMirror)
			r.extension(&out[i], rule.Filters[j].ExtensionRef)
		}
	}
	return out
}
