package topology

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// PageBackend follows what a TrafficPolicy refers to for an error page, and says what is wrong with it; empty for nothing.
// It isn't done when the policy is read, since what policies of that kind say of a Service is a part of its backend.
func (g *Graph) PageBackend(c *flow.Ctx, field string, ref *ir.PageReference) (ir.BackendKey, string) {
	r := resolver{g: g, c: c, route: object.Key{Kind: kind.TrafficPolicy, Name: name(ref.From, "")}}
	to := &gwv1.BackendObjectReference{
		Group: new(gwv1.Group(ref.Group)), Kind: new(gwv1.Kind(ref.Kind)), Name: gwv1.ObjectName(ref.Name),
		Namespace: new(gwv1.Namespace(ref.Namespace)),
	}
	if ref.Port != 0 {
		to.Port = &ref.Port
	}
	found := r.backend(ir.UseHTTP, to, func() string { return field })
	if found.Problem != nil {
		return ir.BackendKey{}, found.Problem.Message
	}
	return found.Backend, ""
}
