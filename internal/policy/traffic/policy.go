package traffic

import (
	"reflect"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/policy/inherited"
)

// Policy is a policy, whatever it is for.
type Policy struct {
	policy.Node[policy.Rules[Setting]]
	Object *v1alpha1.TrafficPolicy
}

// Equal reports whether two nodes say the same of the same object.
func (p *Policy) Equal(o *Policy) bool {
	return p.Object == o.Object && p.Node.Equal(&o.Node)
}

// Setting is what a policy says of one thing: one field of it is set.
type Setting struct{ ir.Traffic }

// Equal reports whether two settings say the same.
func (s Setting) Equal(o Setting) bool { return reflect.DeepEqual(s, o) }

// Effective is what TrafficPolicies say together.
type Effective = policy.Effective[Setting]

// Kind describes TrafficPolicies.
var Kind = policy.Kind[*Policy, policy.Rules[Setting]]{
	Kind:     kind.TrafficPolicy,
	Node:     func(p *Policy) *policy.Node[policy.Rules[Setting]] { return &p.Node },
	Conflict: policy.Joined,
	Accepted: condition.InheritedPolicyAccepted(),
}

// Read makes the node of a policy, and checks all of it except its targets.
func Read(name object.Name, o *v1alpha1.TrafficPolicy, find policy.Finder, configMap ConfigMaps) *Policy {
	p := &Policy{Object: o}
	p.Name, p.Created = name, o.CreationTimestamp.Time
	r := reader{namespace: name.Namespace, configMap: configMap}
	p.Reach, r.Problems = inherited.Reach(kind.TrafficPolicy, o.Namespace, o.Spec.TargetRefs, o.Spec.TargetSelectors, find)
	if p.Beyond > 0 {
		r.Problems = append(r.Problems, condition.TooManySelected(p.Selected, p.Beyond, "the others, which are the youngest, have nothing of it"))
		p.Reach = p.Within()
	}
	strategy, field, says := layerOf(o)
	p.Strategy = strategy
	rules := []policy.Rule[Setting]{}
	said := false
	r.ofService = slices.ContainsFunc(p.Targets, func(t policy.Target) bool { return kind.IsService(t.Kind) })
	for i := range settings {
		s := &settings[i]
		if s.said(says) == nil {
			continue
		}
		said = true
		r.Field = field + "." + s.name
		before := len(r.Problems)
		if r.ofService && !strings.HasPrefix(s.name, "backend.") {
			r.Problems = append(r.Problems, condition.NotOfBackend(r.Field))
			continue
		}
		value := Setting{}
		s.read(&r, says, &value.Traffic)
		if len(r.Problems) == before {
			rules = append(rules, policy.Rule[Setting]{Name: s.name, Value: value})
		}
		r.Problems, r.lacking = append(r.Problems, r.lacking...), nil
	}
	if !said {
		r.Field = field
		r.Problem("", "has no settings; write some, such as request: {maxBodySize: 10Mi}")
	}
	if len(rules) > 0 {
		p.Asks = policy.NewRules(rules)
	}
	switch {
	case !said:
		p.Refused = new(condition.TrafficPolicyEmpty(r.Problems))
	case len(r.Problems) > 0:
		p.Refused = new(condition.TrafficPolicyInvalid(r.Problems))
	}
	return p
}

// layerOf returns what a policy says, as inherited.Layer does.
func layerOf(o *v1alpha1.TrafficPolicy) (strategy policy.Strategy, field string, says *v1alpha1.TrafficSettings) {
	return inherited.Layer(o.Spec.Overrides, o.Spec.Defaults, &o.Spec.TrafficSettings,
		func(l *v1alpha1.TrafficLayer) (v1alpha1.Strategy, *v1alpha1.TrafficSettings) {
			return l.Strategy, &l.TrafficSettings
		})
}

// Spec returns a setting as a policy has it, by its name; nil for none.
func Spec(o *v1alpha1.TrafficPolicy, name string) any {
	_, _, says := layerOf(o)
	for i := range settings {
		if settings[i].name == name {
			return settings[i].said(says)
		}
	}
	return nil
}

// InForce returns what policies say together; nil where they say nothing.
func InForce(e *Effective) *ir.Traffic {
	if e == nil || len(e.Rules) == 0 {
		return nil
	}
	out := &ir.Traffic{}
	into := reflect.ValueOf(out).Elem()
	for i := range e.Rules {
		from := reflect.ValueOf(&e.Rules[i].Value.Traffic).Elem()
		for field := range from.NumField() {
			if f := from.Field(field); !f.IsZero() {
				into.Field(field).Set(f)
			}
		}
	}
	return out
}
