package blueprint

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// valuesSchema is what values may be: the schema of a blueprint.
type valuesSchema struct {
	structural *schema.Structural
	// whole is for all values together, and part for what one object says of them: that may
	// leave out what must be there.
	whole, part validation.SchemaValidator
}

// schema compiles a blueprint's schema of values; nil for none, and for one that is wrong.
func (c *compiler) schema(in *apiextensionsv1.JSON) *valuesSchema {
	if in == nil {
		return nil
	}
	at := field.NewPath("spec", "valuesSchema")
	var versioned apiextensionsv1.JSONSchemaProps
	var props apiextensions.JSONSchemaProps
	if err := json.Unmarshal(in.Raw, &versioned); err != nil {
		c.problem(at.String(), "%s", err)
		return nil
	}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&versioned, &props, nil); err != nil {
		c.problem(at.String(), "%s", err)
		return nil
	}
	if props.Type != "object" {
		c.problem(at.Child("type").String(), "must be object: values are a map")
		return nil
	}
	out := &valuesSchema{}
	var err error
	if out.structural, err = schema.NewStructural(&props); err != nil {
		c.problem(at.String(), "%s", err)
		return nil
	}
	// Rules in CEL belong to templates' expressions, and would need bounds of their own here.
	if hasRules(out.structural) {
		c.problem(at.String(), "x-kubernetes-validations have no effect on values; leave them out")
		return nil
	}
	errs := schema.ValidateStructural(at, out.structural)
	if len(errs) == 0 {
		wrong, err := defaulting.ValidateDefaults(context.Background(), at, out.structural, false, true)
		if errs = wrong; err != nil {
			c.problem(at.String(), "%s", err)
		}
	}
	for _, err := range errs {
		c.problem(err.Field, "%s", err.ErrorBody())
	}
	partial := props.DeepCopy()
	incomplete(partial)
	for of, into := range map[*apiextensions.JSONSchemaProps]*validation.SchemaValidator{&props: &out.whole, partial: &out.part} {
		if *into, _, err = validation.NewSchemaValidator(of); err != nil {
			c.problem(at.String(), "%s", err)
		}
	}
	if c.problems != nil {
		return nil
	}
	return out
}

func hasRules(s *schema.Structural) bool {
	found := false
	(&schema.Visitor{Structural: func(s *schema.Structural) bool {
		found = found || len(s.XValidations) > 0
		return false
	}}).Visit(s)
	return found
}

// incomplete makes a schema one for maps in which anything may be missing. Lists are replaced as a
// whole, so that what is in them is complete.
func incomplete(s *apiextensions.JSONSchemaProps) {
	s.Required, s.MinProperties, s.AllOf, s.AnyOf, s.OneOf, s.Not = nil, nil, nil, nil, nil, nil
	for name, p := range s.Properties {
		incomplete(&p)
		s.Properties[name] = p
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		incomplete(s.AdditionalProperties.Schema)
	}
}

// check says what is wrong with values in a field of an object.
func (s *valuesSchema) check(at *field.Path, values map[string]any, by validation.SchemaValidator) (problems []Problem) {
	if values == nil {
		return nil
	}
	unknown := pruning.PruneWithOptions(runtime.DeepCopyJSON(values), s.structural, false,
		schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, name := range unknown {
		problems = append(problems, Problem{at.String() + "." + name, "there is no such value in the blueprint's schema"})
	}
	for _, err := range validation.ValidateCustomResource(at, values, by) {
		err.BadValue = field.OmitValueType{} // which may be nobody's business
		message := err.ErrorBody()
		if _, after, ok := strings.Cut(message, " in body "); ok {
			message = after // the validator repeats the path
		}
		problems = append(problems, Problem{err.Field, message})
	}
	return problems
}

// checkLayer says what is wrong with what one object says of values; empty for nothing.
func (s *valuesSchema) checkLayer(at *field.Path, l *Layer) []Problem {
	return slices.Concat(s.check(at.Child("defaults"), l.Defaults, s.part), s.check(at.Child("overrides"), l.Overrides, s.part))
}

// Values lays what is said of a Gateway's values over each other, see Merge, and over the defaults of the
// schema. Who says what the schema doesn't allow is left out as a whole. Origin is the blueprint.
func (b *Blueprint) Values(origin object.Key, layers []Layer) Values {
	if b.schema == nil {
		return Merge(layers)
	}
	var used []Layer
	var conflicts []Conflict
	for _, l := range layers {
		var problems []Problem
		if l.Origin != origin { // which has been checked when it was compiled
			problems = b.schema.checkLayer(field.NewPath("spec"), &l)
		}
		if problems != nil {
			conflicts = append(conflicts, Conflict{l.Origin, problems[0].Field + ": " + problems[0].Message})
			continue
		}
		used = append(used, l)
	}
	out := Merge(used)
	out.Conflicts = append(conflicts, out.Conflicts...)
	out.Values = runtime.DeepCopyJSON(out.Values) // lists are the layers'
	defaulting.Default(out.Values, b.schema.structural)
	for _, leaf := range out.Leaves() {
		if leaf.Origin == (object.Key{}) { // nobody has said it but the schema, which is the blueprint's
			out.Origins[leaf.Name] = origin
		}
	}
	out.Problems = b.schema.check(field.NewPath("values"), out.Values, b.schema.whole)
	return out
}

// knows reports whether the schema has a value by the names that lead to it.
func (s *valuesSchema) knows(way []string) error {
	at := s.structural
	for i, name := range way {
		next, ok := at.Properties[name]
		switch {
		case ok:
			at = &next
		case at.AdditionalProperties != nil && at.AdditionalProperties.Structural != nil:
			at = at.AdditionalProperties.Structural
		case at.XPreserveUnknownFields || at.AdditionalProperties != nil || at.Type != "object":
			return nil
		default:
			return fmt.Errorf("values.%s is not in spec.valuesSchema, which has %s there",
				strings.Join(way[:i+1], "."), strings.Join(slices.Sorted(maps.Keys(at.Properties)), ", "))
		}
	}
	return nil
}
