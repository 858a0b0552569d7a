package inherited

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/expression"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
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

// Layer returns what a policy says, under which field, and what becomes of it where others say
// something; of reads one of its layers.
func Layer[L, R any](overrides, defaults *L, bare *R, of func(*L) (v1alpha1.Strategy, *R)) (strategy policy.Strategy, field string, says *R) {
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

// Reader notes what is wrong with the fields of a policy.
type Reader struct {
	Field    string // that is being read
	Problems []string
}

// Problem notes what is wrong with a field below the one that is being read.
func (r *Reader) Problem(field, format string, args ...any) {
	r.Problems = append(r.Problems, r.Field+field+" "+fmt.Sprintf(format, args...))
}

// When checks an expression that says of which requests something is.
func (r *Reader) When(text string) {
	if text == "" {
		return
	}
	if _, err := expression.Condition(text); err != nil {
		r.Problem(".when", "is no condition on a request: %v", err)
	}
}

// inheritedTargetKinds are the kinds of objects that an inherited policy may be for.
var inheritedTargetKinds = map[object.Kind]bool{kind.Gateway: true, kind.ListenerSet: true, kind.HTTPRoute: true, kind.GRPCRoute: true}

// mayTarget reports whether a policy of a kind may name objects of another one. What it says of backends may
// be for a Service, or a ServiceImport.
func mayTarget(of, on object.Kind) bool {
	return inheritedTargetKinds[on] || of == kind.TrafficPolicy && kind.IsService(on)
}

// MaxSelected is how many objects a policy may select by labels, which none of its references
// names. What is in force is held for each of them.
const MaxSelected = 256

// Reach is what a policy of a kind targets, and what is wrong with targets that nothing
// can be.
func Reach(
	of object.Kind, namespace string, refs []gwv1.LocalPolicyTargetReferenceWithSectionName, selectors []v1alpha1.TargetSelector, find policy.Finder,
) (reach policy.Reach, problems []string) {
	var named []policy.Target
	for i, t := range refs {
		on := object.KindOf(string(t.Group), string(t.Kind))
		if !mayTarget(of, on) {
			problems = append(problems, condition.InheritedTargetKind(of.Name(), fmt.Sprintf("spec.targetRefs[%d]", i), schema.GroupKind{Group: string(t.Group), Kind: string(t.Kind)}.String()))
			continue
		}
		if kind.IsService(on) && t.SectionName != nil {
			problems = append(problems, condition.WholeServiceTarget(of.Name(), fmt.Sprintf("spec.targetRefs[%d]", i)))
			continue
		}
		named = append(named, policy.Target{
			Key:     object.Key{Kind: on, Name: object.Name{Namespace: namespace, Name: string(t.Name)}},
			Section: string(ptr.Deref(t.SectionName, "")),
		})
	}
	var all []policy.Selector
	for i, t := range selectors {
		field := fmt.Sprintf("spec.targetSelectors[%d]", i)
		group := cmp.Or(t.Group, gwv1.GroupName) // where nobody has filled in the default
		on := object.KindOf(string(group), string(t.Kind))
		if !inheritedTargetKinds[on] {
			problems = append(problems, condition.InheritedTargetKind(of.Name(), field, schema.GroupKind{Group: string(group), Kind: string(t.Kind)}.String()))
			continue
		}
		if len(t.MatchLabels) == 0 {
			problems = append(problems, condition.SelectorWithoutLabels(field))
		}
		s := policy.Selector{
			Kind: on, Namespace: namespace, Labels: make(map[string]string, len(t.MatchLabels)),
			Section: string(ptr.Deref(t.SectionName, "")),
		}
		for label, value := range t.MatchLabels {
			s.Labels[label] = string(value)
		}
		all = append(all, s)
	}
	return policy.NewReach(named, all, MaxSelected, find), problems
}

// RuleKey names a rule of a policy.
type RuleKey struct {
	Policy object.Name
	Rule   string
}

// String returns both names.
func (k RuleKey) String() string { return k.Policy.String() + " " + k.Rule }

// Compare orders keys.
func (k RuleKey) Compare(o RuleKey) int {
	return cmp.Or(k.Policy.Compare(o.Policy), cmp.Compare(k.Rule, o.Rule))
}
