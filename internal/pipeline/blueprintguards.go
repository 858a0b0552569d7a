package pipeline

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/blueprint"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// A class may promise policies that guard: a list of addresses, a limit. Until each of them is in the cluster,
// nothing new is told to the Gateway's proxies, so that a new Gateway serves nothing without them, whoever is in
// the way: a right that is missing, an object of a tenant with that name, a mistake in the blueprint.

// guards reports whether policies of a kind guard what they target.
func guards(of schema.GroupKind) bool {
	k := object.KindOf(of.Group, of.Kind)
	return k == kind.AuthPolicy || k == kind.RateLimitPolicy
}

// unknownGuards are those of a blueprint that can't be read: there may be any.
var unknownGuards = []string{"unknown"}

// declareUnguardedGateways declares the Gateways of which a policy of their blueprint is missing. The policies
// themselves say it, which each controller reads, not only the one that makes them.
func (p *Pipeline) declareUnguardedGateways() {
	auths := flow.NewIndex(p.Inputs.AuthPolicies, func(_ object.Name, o *v1alpha1.AuthPolicy, yield func(string)) { yield(setOf(o)) }, object.Name.Compare)
	limits := flow.NewIndex(p.Inputs.RateLimitPolicies, func(_ object.Name, o *v1alpha1.RateLimitPolicy, yield func(string)) { yield(setOf(o)) }, object.Name.Compare)
	p.unguardedGateways = flow.Map("unguarded-gateways", p.Children,
		func(c *flow.Ctx, gateway object.Name, ch *blueprint.Children, emit func(object.Name, struct{})) {
			if len(ch.Guards) == 0 {
				return
			}
			set := infra.SetID(infra.InventoryName(p.Options.Topology.ControllerName, gateway), p.Options.ControllerNamespace)
			made := map[object.Key]source.Object{}
			for name, o := range flow.Select(c, auths, set).All() {
				made[object.Key{Kind: kind.AuthPolicy, Name: name}] = o
			}
			for name, o := range flow.Select(c, limits, set).All() {
				made[object.Key{Kind: kind.RateLimitPolicy, Name: name}] = o
			}
			if lacksGuard(ch, made) {
				emit(gateway, struct{}{})
			}
		}, flow.Equal(flow.Same[struct{}]))
}

func setOf(o metav1.Object) string { return o.GetLabels()[infra.PartOfLabel] }

// lacksGuard reports whether a policy isn't there as it was rendered. Of a resource that can't be rendered, or not by
// this controller, there has to be one.
func lacksGuard(ch *blueprint.Children, made map[object.Key]source.Object) bool {
	if ch.Unknown != "" { // nobody sets right what is there
		return true
	}
	ids := map[string]bool{}
	for _, o := range made {
		ids[o.GetLabels()[infra.ResourceLabel]] = true
	}
	for _, h := range ch.Undecided {
		if slices.Contains(ch.Guards, h.ID) && !ids[h.ID] {
			return true
		}
	}
	for i := range ch.Children {
		child := &ch.Children[i]
		ref := child.Ref()
		if !guards(ref.Kind.GroupKind()) {
			continue
		}
		if o, ok := made[object.Key{Kind: object.KindOf(ref.Kind.Group, ref.Kind.Kind), Name: ref.Name}]; !ok || !saysAlike(child.Object, o) {
			return true
		}
	}
	return false
}

// saysAlike reports whether a policy says what was rendered and nothing else: what somebody has added to it
// would open what it guards. Further targets open nothing.
func saysAlike(rendered *unstructured.Unstructured, o source.Object) bool {
	typed := reflect.New(reflect.TypeOf(o).Elem()).Interface() // fields that say nothing look alike then
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(rendered.Object, typed); err != nil {
		return false
	}
	want, err := specOf(typed)
	is, err2 := specOf(o)
	return err == nil && err2 == nil && equality.Semantic.DeepEqual(want, is)
}

// specOf is the spec of a policy, but for what the API server fills in, and what says of further targets.
func specOf(o any) (any, error) {
	all, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	spec, _ := all["spec"].(map[string]any)
	delete(spec, "targetSelectors")
	return withoutDefaults(spec), err
}

// withoutDefaults takes from references what the API server fills in.
func withoutDefaults(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, each := range v {
			if name == "kind" && each == "Service" || name == "group" && each == "" {
				delete(v, name)
			} else {
				withoutDefaults(each)
			}
		}
	case []any:
		for _, each := range v {
			withoutDefaults(each)
		}
	}
	return v
}

// Unguarded returns whether a Gateway lacks a policy that its blueprint makes; nil where none does.
func (p *Pipeline) Unguarded() func(gateway object.Name) bool {
	if p.unguardedGateways == nil {
		return nil
	}
	lacking := map[object.Name]struct{}{}
	p.Engine.View(func(c *flow.Ctx) { maps.Insert(lacking, flow.All(c, p.unguardedGateways)) })
	if len(lacking) == 0 {
		return nil
	}
	return func(gateway object.Name) bool {
		_, is := lacking[gateway]
		return is
	}
}
