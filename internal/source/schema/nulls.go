package schema

import (
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// nulls says which fields of the spec have no value. An API server drops them, and a field
// that is half-written, or whose value has lost its indent, would be as if nobody had thought
// of it: a filter that asks for a password, the hosts of a listener.
func (s *customSchema) nulls(content map[string]any) field.ErrorList {
	spec := s.structural.Properties["spec"]
	return nullsIn(field.NewPath("spec"), content["spec"], &spec)
}

func nullsIn(path *field.Path, value any, s *schema.Structural) (errs field.ErrorList) {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range sortedKeys(value) {
			of, ok := s.Properties[name]
			if !ok && s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
				of, ok = *s.AdditionalProperties.Structural, true // an entry of a map
			}
			switch {
			case !ok:
			case value[name] != nil:
				errs = append(errs, nullsIn(path.Child(name), value[name], &of)...)
			case !of.Nullable:
				errs = append(errs, field.TypeInvalid(path.Child(name), field.OmitValueType{}, "the field has no value: write it, or remove the field"))
			}
		}
	case []any:
		for i := range value {
			if s.Items != nil {
				errs = append(errs, nullsIn(path.Index(i), value[i], s.Items)...)
			}
		}
	}
	return errs
}
