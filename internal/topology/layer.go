package topology

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/condition"
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

// inheritedTargetKinds are the kinds of objects that an inherited policy may be for.
var inheritedTargetKinds = map[object.Kind]bool{kind.Gateway: true, kind.ListenerSet: true, kind.HTTPRoute: true, kind.GRPCRoute: true}

// InheritedTargets are what an object targets that is a policy which is inherited, as far as
// something can be; none of other objects.
func InheritedTargets(o source.Object) (targets []PolicyTarget) {
	switch p := o.(type) {
	case *v1alpha1.AuthPolicy:
		targets, _ = inheritedTargets(kind.AuthPolicy, p.Namespace, p.Spec.TargetRefs)
	case *v1alpha1.RateLimitPolicy:
		targets, _ = inheritedTargets(kind.RateLimitPolicy, p.Namespace, p.Spec.TargetRefs)
	}
	return targets
}

// inheritedTargets are what a policy of a kind targets, and what is wrong with targets that
// nothing can be.
func inheritedTargets(of object.Kind, namespace string, refs []gwv1.LocalPolicyTargetReferenceWithSectionName) (targets []policy.Target, problems []string) {
	for i, t := range refs {
		on := object.KindOf(string(t.Group), string(t.Kind))
		if !inheritedTargetKinds[on] {
			problems = append(problems, condition.InheritedTargetKind(of.Name(), i, kindText(t.Group, t.Kind)))
			continue
		}
		targets = append(targets, policy.Target{
			Key:     object.Key{Kind: on, Name: name(namespace, string(t.Name))},
			Section: string(valueOr(t.SectionName, gwv1.SectionName(""))),
		})
	}
	return targets, problems
}
