package schema

import (
	"errors"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
)

// fastRules are the rules of a part of a schema and of what is below it, for the question whether
// all of them hold. The API server's cel.Validator answers it at several times the price, since it
// copies all properties of an object whenever a rule reads one. Which rule is broken, and what is
// said of it, is left to that: a doubt here costs time alone.
type fastRules struct {
	schema     common.Schema
	programs   []celgo.Program
	items      *fastRules
	additional *fastRules
	properties map[string]*fastRules
	repeats    *repeats
}

// errSlow marks what only cel.Validator judges.
var errSlow = errors.New("rules of this form are left to cel.Validator")

// newFastRules compiles the rules of a schema; nil if there are none.
func newFastRules(s *schema.Structural) (*fastRules, error) {
	root := model.WithTypeAndObjectMeta(s)
	return fastRulesOf(root, remember(root), resourceRoot)
}

// position says whether a part of a schema is that of an object with apiVersion, kind and metadata.
type position bool

const (
	resourceRoot position = true
	inResource   position = false
)

func fastRulesOf(s *schema.Structural, known common.Schema, at position) (*fastRules, error) {
	if s.XEmbeddedResource || ruledTogether(s) {
		return nil, errSlow
	}
	r := &fastRules{schema: known, properties: map[string]*fastRules{}, repeats: &repeats{}}
	compiled, err := cel.Compile(s, model.SchemaDeclType(s, bool(at)), celconfig.PerCallLimit,
		environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()), cel.StoredExpressionsEnvLoader())
	if err != nil {
		return nil, err
	}
	for i, c := range compiled {
		switch {
		case c.Error != nil:
			return nil, c.Error
		case s.XValidations[i].OptionalOldSelf != nil:
			return nil, errSlow
		case c.Program != nil && !c.UsesOldSelf: // there is no earlier version to compare with
			r.programs = append(r.programs, c.Program)
		}
	}
	if s.Items != nil {
		if r.items, err = fastRulesOf(s.Items, known.Items(), inResource); err != nil {
			return nil, err
		}
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		if r.additional, err = fastRulesOf(s.AdditionalProperties.Structural, known.AdditionalProperties().Schema(), inResource); err != nil {
			return nil, err
		}
	}
	for name, of := range known.Properties() {
		p := s.Properties[name]
		below, err := fastRulesOf(&p, of, inResource)
		if err != nil {
			return nil, err
		}
		if below != nil {
			r.properties[name] = below
		}
	}
	if len(r.programs)+len(r.properties) == 0 && r.items == nil && r.additional == nil {
		return nil, nil //nolint:nilnil // no rules are no error
	}
	return r, nil
}

// ruledTogether reports whether rules are below allOf, where they can be without their types.
func ruledTogether(s *schema.Structural) bool {
	if s.ValueValidation == nil {
		return false
	}
	for i := range s.ValueValidation.AllOf {
		if ruled(&s.ValueValidation.AllOf[i]) {
			return true
		}
	}
	return false
}

func ruled(n *schema.NestedValueValidation) bool {
	if n == nil {
		return false
	}
	if len(n.XValidations) > 0 || ruled(n.Items) || ruled(n.AdditionalProperties) {
		return true
	}
	for _, p := range n.Properties {
		if ruled(&p) {
			return true
		}
	}
	for i := range n.AllOf {
		if ruled(&n.AllOf[i]) {
			return true
		}
	}
	return false
}

// hold reports whether all rules are known to hold within a budget of CEL's cost units.
func (r *fastRules) hold(value any, budget *int64) bool {
	if r == nil || value == nil {
		return true
	}
	if len(r.programs) == 0 || !r.repeats.worthwhile() {
		return r.evaluate(value, budget)
	}
	var room [maxRepeated]byte
	text, ok := encoded(room[:0], value)
	if !ok {
		return r.evaluate(value, budget)
	}
	if cost, ok := r.repeats.cost(text); ok {
		*budget -= cost
		return *budget > 0
	}
	before := *budget
	if !r.evaluate(value, budget) {
		return false
	}
	r.repeats.add(text, before-*budget)
	return true
}

// evaluate is hold of a value that may be new.
func (r *fastRules) evaluate(value any, budget *int64) bool {
	if len(r.programs) > 0 {
		self := activation{common.UnstructuredToVal(value, r.schema)}
		for _, p := range r.programs {
			result, details, err := p.Eval(self)
			if err != nil || result != types.True || details == nil || details.ActualCost() == nil {
				return false
			}
			cost := *details.ActualCost()
			if cost >= uint64(*budget) {
				return false
			}
			*budget -= int64(cost)
		}
	}
	switch value := value.(type) {
	case []any:
		if r.items != nil {
			for _, item := range value {
				if !r.items.hold(item, budget) {
					return false
				}
			}
		}
	case map[string]any:
		for name, of := range value {
			if r.additional != nil && !r.additional.hold(of, budget) || !r.properties[name].hold(of, budget) {
				return false
			}
		}
	}
	return true
}

// activation has the value that a rule is about.
type activation struct{ self ref.Val }

// ResolveName implements interpreter.Activation.
func (a activation) ResolveName(name string) (any, bool) { return a.self, name == cel.ScopedVarName }

// Parent implements interpreter.Activation.
func (activation) Parent() interpreter.Activation { return nil }

// remembered is a schema that makes its parts once, and not each time that a rule reads one.
type remembered struct {
	common.Schema
	items      common.Schema
	additional common.SchemaOrBool
	properties map[string]common.Schema
}

// remember wraps a schema and all that is below it.
func remember(s *schema.Structural) common.Schema {
	r := &remembered{Schema: &model.Structural{Structural: s}}
	if s.Items != nil {
		r.items = remember(s.Items)
	}
	if of := s.AdditionalProperties; of != nil {
		values := &rememberedValues{allows: of.Bool}
		if of.Structural != nil {
			values.schema = remember(of.Structural)
		}
		r.additional = values
	}
	if s.Properties != nil {
		r.properties = make(map[string]common.Schema, len(s.Properties))
		for name, p := range s.Properties {
			r.properties[name] = remember(&p)
		}
	}
	return r
}

// Items implements common.Schema.
func (r *remembered) Items() common.Schema { return r.items }

// AdditionalProperties implements common.Schema.
func (r *remembered) AdditionalProperties() common.SchemaOrBool { return r.additional }

// Properties implements common.Schema.
func (r *remembered) Properties() map[string]common.Schema { return r.properties }

// rememberedValues are the values of a map.
type rememberedValues struct {
	schema common.Schema
	allows bool
}

// Schema implements common.SchemaOrBool.
func (v *rememberedValues) Schema() common.Schema { return v.schema }

// Allows implements common.SchemaOrBool.
func (v *rememberedValues) Allows() bool { return v.allows }
