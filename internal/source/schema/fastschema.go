package schema

import (
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// newFastSchema returns a validator for the question whether a value is valid, and nothing else:
// the paths of its errors are wrong. The API server's makes one for each field of each object, and
// copies the schemas of all fields that an object could have; here all of them are made once.
func newFastSchema(s *spec.Schema) (*validate.SchemaValidator, error) {
	own := *s
	fields := map[string]*validate.SchemaValidator{}
	for name, p := range s.Properties {
		var err error
		if fields[name], err = newFastSchema(&p); err != nil {
			return nil, err
		}
	}
	var items, others *validate.SchemaValidator
	switch of := s.Items; {
	case len(s.PatternProperties) > 0 || s.AdditionalItems != nil || of != nil && len(of.Schemas) > 0:
		return nil, errSlow // a CustomResourceDefinition can't have them
	case of != nil && of.Schema != nil:
		var err error
		if items, err = newFastSchema(of.Schema); err != nil {
			return nil, err
		}
	}
	switch of := s.AdditionalProperties; {
	case of == nil && len(fields) > 0:
		// So that the fields of an object are gone through, and not those of the schema.
		own.Properties = nil
		own.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: &spec.Schema{}}
	case of != nil && of.Schema != nil:
		var err error
		if others, err = newFastSchema(of.Schema); err != nil {
			return nil, err
		}
	}
	return validate.NewSchemaValidator(&own, nil, "", strfmt.Default, func(o *validate.SchemaValidatorOptions) {
		o.NewValidatorForField = func(name string, _ *spec.Schema, _ any, _ string, _ strfmt.Registry, _ ...validate.Option) validate.ValueValidator {
			if of, ok := fields[name]; ok {
				return of
			}
			return others // nil takes everything, as where nothing is said of other fields
		}
		o.NewValidatorForIndex = func(int, *spec.Schema, any, string, strfmt.Registry, ...validate.Option) validate.ValueValidator {
			return items
		}
	}), nil
}
