package topology

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/keyset"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy/auth"
)

// declareAuthPolicies declares the nodes of AuthPolicies.
func (g *Graph) declareAuthPolicies() flow.Table[object.Name, *auth.Policy] {
	return flow.Map("topology-auth-policies", g.in.AuthPolicies,
		func(c *flow.Ctx, k object.Name, o *v1alpha1.AuthPolicy, emit func(object.Name, *auth.Policy)) {
			emit(k, auth.Read(k, o, g.Find(c), g.authWorld(c, k.Namespace)))
		})
}

// authWorld is what AuthPolicies of a namespace refer to.
func (g *Graph) authWorld(c *flow.Ctx, namespace string) *auth.World {
	w := &auth.World{
		Secret: func(name object.Name) (map[string][]byte, bool) {
			if s, ok := flow.Get(c, g.in.Secrets, name); ok {
				return s.Data, true
			}
			return nil, false
		},
		ConfigMap: g.configMaps(c),
		Backend: func(use ir.Use, ref *gwv1.BackendObjectReference, field func() string) (ir.BackendKey, []object.Key, string) {
			r := resolver{g: g, c: c, route: object.Key{Kind: kind.AuthPolicy, Name: name(namespace, "")}}
			found := r.backend(use, ref, field)
			if found.Problem != nil {
				return ir.BackendKey{}, r.policyTargets, found.Problem.Message
			}
			return found.Backend, r.policyTargets, ""
		},
		TooMany: func(l keyset.Location) bool {
			over, _ := flow.Get(c, g.keySetsOver, namespace)
			return over[l]
		},
		Reach: g.place(), AnyName: g.options.AnyName,
	}
	if g.options.SystemAuthorities != "" {
		w.SystemAuthorities = ir.Authorities(SystemAuthorities)
	}
	return w
}

// configMaps finds what is in ConfigMaps.
func (g *Graph) configMaps(c *flow.Ctx) func(object.Name) (map[string]string, bool) {
	return func(name object.Name) (map[string]string, bool) {
		if m, ok := flow.Get(c, g.in.ConfigMaps, name); ok {
			return m.Data, true
		}
		return nil, false
	}
}
