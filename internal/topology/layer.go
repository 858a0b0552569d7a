package topology

import (
	"cmp"
	"fmt"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/expression"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// The fields of inherited policies in which named rules stand.
const (
	bareField      = "spec" // as defaults whose strategy is atomic
	defaultsField  = "spec.defaults"
	overridesField = "spec.overrides"
)

// defaulting is the strategy of a policy with defaults.
func defaulting(s v1alpha1.Strategy) policy.Strategy {
	if s == v1alpha1.Merge {
		return policy.MergeDefaults
	}
	return policy.AtomicDefaults
}

// overriding is the strategy of a policy with overrides.
func overriding(s v1alpha1.Strategy) policy.Strategy {
	if s == v1alpha1.Merge {
		return policy.MergeOverrides
	}
	return policy.AtomicOverrides
}

// layer returns what a policy says, under which field, and what becomes of it where others say
// something; of reads one of its layers.
func layer[L, R any](overrides, defaults *L, bare *R, of func(*L) (v1alpha1.Strategy, *R)) (strategy policy.Strategy, field string, says *R) {
	switch {
	case overrides != nil:
		declared, says := of(overrides)
		return overriding(declared), overridesField, says
	case defaults != nil:
		declared, says := of(defaults)
		return defaulting(declared), defaultsField, says
	default:
		return policy.AtomicDefaults, bareField, bare
	}
}

// fieldReader notes what is wrong with the fields of a policy.
type fieldReader struct {
	field    string // that is being read
	problems []string
}

// problem notes what is wrong with a field below the one that is being read.
func (r *fieldReader) problem(field, format string, args ...any) {
	r.problems = append(r.problems, r.field+field+" "+fmt.Sprintf(format, args...))
}

// when checks an expression that says of which requests something is.
func (r *fieldReader) when(text string) {
	if text == "" {
		return
	}
	if _, err := expression.Condition(text); err != nil {
		r.problem(".when", "is no condition on a request: %v", err)
	}
}

// inheritedTargetKinds are the kinds of objects that an inherited policy may be for.
var inheritedTargetKinds = map[object.Kind]bool{kind.Gateway: true, kind.ListenerSet: true, kind.HTTPRoute: true, kind.GRPCRoute: true}

// maxSelected is how many objects a policy may select by labels, which none of its references
// names. What is in force is held for each of them.
const maxSelected = 256

// InheritedTargets are what an object targets that is a policy which is inherited, as far as
// something can be, and what selects it; nothing of other objects.
func InheritedTargets(o source.Object, find policy.Finder) (reach policy.Reach) {
	switch p := o.(type) {
	case *v1alpha1.AuthPolicy:
		reach, _ = inheritedReach(kind.AuthPolicy, p.Namespace, p.Spec.TargetRefs, p.Spec.TargetSelectors, find)
	case *v1alpha1.RateLimitPolicy:
		reach, _ = inheritedReach(kind.RateLimitPolicy, p.Namespace, p.Spec.TargetRefs, p.Spec.TargetSelectors, find)
	}
	return reach
}

// inheritedReach is what a policy of a kind targets, and what is wrong with targets that nothing
// can be.
func inheritedReach(
	of object.Kind, namespace string, refs []gwv1.LocalPolicyTargetReferenceWithSectionName, selectors []v1alpha1.TargetSelector, find policy.Finder,
) (reach policy.Reach, problems []string) {
	var named []policy.Target
	for i, t := range refs {
		on := object.KindOf(string(t.Group), string(t.Kind))
		if !inheritedTargetKinds[on] {
			problems = append(problems, condition.InheritedTargetKind(of.Name(), fmt.Sprintf("spec.targetRefs[%d]", i), kindText(t.Group, t.Kind)))
			continue
		}
		named = append(named, policy.Target{
			Key:     object.Key{Kind: on, Name: name(namespace, string(t.Name))},
			Section: string(valueOr(t.SectionName, gwv1.SectionName(""))),
		})
	}
	var all []policy.Selector
	for i, t := range selectors {
		field := fmt.Sprintf("spec.targetSelectors[%d]", i)
		group := cmp.Or(t.Group, gwv1.GroupName) // where nobody has filled in the default
		on := object.KindOf(string(group), string(t.Kind))
		if !inheritedTargetKinds[on] {
			problems = append(problems, condition.InheritedTargetKind(of.Name(), field, kindText(group, t.Kind)))
			continue
		}
		if len(t.MatchLabels) == 0 {
			problems = append(problems, condition.SelectorWithoutLabels(field))
		}
		s := policy.Selector{
			Kind: on, Namespace: namespace, Labels: make(map[string]string, len(t.MatchLabels)),
			Section: string(valueOr(t.SectionName, gwv1.SectionName(""))),
		}
		for label, value := range t.MatchLabels {
			s.Labels[label] = string(value)
		}
		all = append(all, s)
	}
	return policy.NewReach(named, all, maxSelected, find), problems
}
