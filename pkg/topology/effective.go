package topology

import (
	"encoding/json"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// Effective is what the policies on a path say together. The zero Effective is that of no
// policies.
type Effective[R any] struct {
	of     *policy.Effective[*value[R]]
	nodeOf func(object.Name) Node // of a policy
}

// Rule is a rule in force.
type Rule[R any] struct {
	Name string `json:"name"`
	Rule R      `json:"rule"`
	From Origin `json:"from"`
}

// Origin says where a rule comes from.
type Origin struct {
	Policy   Node     `json:"policy"`
	Target   Node     `json:"target"` // by which the policy is on the path
	Strategy Strategy `json:"strategy"`
}

// Outcome is what became of a policy on a path.
type Outcome struct {
	Origin
	Rules   int `json:"rules"`   // that the policy has
	InForce int `json:"inForce"` // of those
	// Refused is why the policy can't be used, in words; empty where it can be.
	Refused string `json:"refused,omitempty"`
	// By are the policies that took the place of rules that are not in force.
	By []Node `json:"by,omitempty"`
}

// Overridden reports whether nothing that the policy says is in force, for others took its
// place.
func (o Outcome) Overridden() bool { return o.InForce == 0 && len(o.By) > 0 }

// IsZero reports whether there are no policies.
func (e Effective[R]) IsZero() bool { return e.of == nil }

// Rules returns the rules in force, sorted by name.
func (e Effective[R]) Rules() []Rule[R] {
	if e.of == nil {
		return nil
	}
	out := make([]Rule[R], len(e.of.Rules))
	for i := range e.of.Rules {
		out[i] = e.rule(i)
	}
	return out
}

// Rule returns the rule of a name; false where none is in force.
func (e Effective[R]) Rule(name string) (Rule[R], bool) {
	if e.of != nil {
		for i := range e.of.Rules {
			if e.of.Rules[i].Name == name {
				return e.rule(i), true
			}
		}
	}
	return Rule[R]{}, false
}

func (e Effective[R]) rule(i int) Rule[R] {
	r := &e.of.Rules[i]
	return Rule[R]{r.Name, r.Value.of, e.origin(&e.of.Policies[r.From])}
}

func (e Effective[R]) origin(o *policy.Outcome) Origin {
	return Origin{e.nodeOf(o.Policy), nodeOf(o.Target.Key, o.Target.Section), Strategy(o.Strategy)}
}

// Policies returns what became of the policies on the path, the most established one first.
func (e Effective[R]) Policies() []Outcome {
	if e.of == nil {
		return nil
	}
	out := make([]Outcome, len(e.of.Policies))
	for i := range e.of.Policies {
		o := &e.of.Policies[i]
		out[i] = Outcome{Origin: e.origin(o), Rules: o.Rules, InForce: o.InForce, Refused: o.Refused}
		for _, by := range o.By {
			out[i].By = append(out[i].By, e.nodeOf(by))
		}
	}
	return out
}

// Equal reports whether both say the same, by the same policies.
func (e Effective[R]) Equal(o Effective[R]) bool {
	return e.of == o.of || e.of != nil && o.of != nil && e.of.Equal(o.of)
}

// MarshalJSON writes the rules in force and the policies.
func (e Effective[R]) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Rules    []Rule[R] `json:"rules"`
		Policies []Outcome `json:"policies"`
	}{e.Rules(), e.Policies()})
}
