package topology

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// bodyKey is the entry of a ConfigMap that has a body.
const bodyKey = "body"

// RouteFilter is a RouteFilter, whoever refers to it. What it asks for is for package translate to say.
type RouteFilter struct {
	Name   object.Name
	Object *v1alpha1.RouteFilter
	// Body is that of its direct response, from wherever it is.
	Body string
	// Refused is why what it refers to can't be used: an Accepted condition.
	Refused *metav1.Condition
}

// Equal reports whether two nodes say the same of the same object.
func (f *RouteFilter) Equal(o *RouteFilter) bool {
	return f == o || f != nil && o != nil && f.Object == o.Object && f.Name == o.Name && f.Body == o.Body && ptr.Equal(f.Refused, o.Refused)
}

func (g *Graph) declareRouteFilters() flow.Table[object.Name, *RouteFilter] {
	return flow.Map("topology-route-filters", g.in.RouteFilters,
		func(c *flow.Ctx, k object.Name, o *v1alpha1.RouteFilter, emit func(object.Name, *RouteFilter)) {
			emit(k, g.routeFilter(c, k, o))
		})
}

// routeFilter makes the node of a RouteFilter.
func (g *Graph) routeFilter(c *flow.Ctx, name object.Name, o *v1alpha1.RouteFilter) *RouteFilter {
	f := &RouteFilter{Name: name, Object: o}
	var at object.Name
	if f.Body, at = bodyOf(o); at.IsZero() {
		return f
	}
	const field = "spec.directResponse.configMapRef"
	m, ok := flow.Get(c, g.in.ConfigMaps, at)
	if !ok {
		f.Refused = new(condition.RouteFilterInvalid([]string{condition.ConfigMapMissing(field, at.String())}))
		return f
	}
	key := cmp.Or(o.Spec.DirectResponse.ConfigMapRef.Key, bodyKey)
	if f.Body, ok = m.Data[key]; !ok {
		f.Refused = new(condition.RouteFilterInvalid([]string{condition.ConfigMapWithout(field, at.String(), key, slices.Sorted(maps.Keys(m.Data)))}))
	}
	return f
}

// bodyOf returns the body of a RouteFilter's direct response, or the ConfigMap that has it; zero for none.
func bodyOf(o *v1alpha1.RouteFilter) (body string, from object.Name) {
	d := o.Spec.DirectResponse
	if d == nil {
		return "", from
	}
	if d.ConfigMapRef != nil {
		from = object.Name{Namespace: o.Namespace, Name: d.ConfigMapRef.Name}
	}
	return ptr.Deref(d.Body, ""), from
}

// IsRouteFilter reports whether a reference is to a RouteFilter.
func IsRouteFilter(ref *gwv1.LocalObjectReference) bool {
	return string(ref.Group) == kind.Gatehouse && string(ref.Kind) == kind.RouteFilter.Name()
}

// extension resolves what a filter of type ExtensionRef refers to, if it is one; nil for nothing.
func (r *resolver) extension(out *RouteRule, ref *gwv1.LocalObjectReference) {
	if ref == nil {
		return
	}
	var found *RouteFilter
	if IsRouteFilter(ref) {
		name := object.Name{Namespace: r.route.Namespace, Name: string(ref.Name)}
		found, _ = flow.Get(r.c, r.g.RouteFilters, name)
		r.policyTargets = append(r.policyTargets, object.Key{Kind: kind.RouteFilter, Name: name})
	}
	out.Extensions = append(out.Extensions, found)
}

// declareRouteFilterAncestors finds the Gateways with routes that refer to each RouteFilter, sorted.
func (g *Graph) declareRouteFilterAncestors() flow.Table[object.Name, []Ancestor] {
	return declareAncestors(g, "topology-route-filter-ancestors", g.RouteFilters, condition.RouteFilterAccepted(),
		func(f *RouteFilter) []policy.Target {
			return []policy.Target{{Key: object.Key{Kind: kind.RouteFilter, Name: f.Name}}}
		},
		func(_ *flow.Ctx, f *RouteFilter, _ int) *metav1.Condition { return f.Refused })
}

func routeFilterSections(g *Graph, c *flow.Ctx, k object.Key) ([]string, bool) {
	_, ok := flow.Get(c, g.in.RouteFilters, k.Name)
	return nil, ok
}
