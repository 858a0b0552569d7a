package schema

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

//go:embed crds
var crds embed.FS

// A channel is a release channel of the Gateway API.
type channel string

const (
	standard     channel = "standard"
	experimental channel = "experimental"
)

type channelVersion struct {
	channel channel
	version string
}

// errNotServed marks a version that the API server would refuse as well.
var errNotServed = errors.New("not served")

// customSchema is one version of a custom kind, ready to validate. It is safe
// for concurrent use.
type customSchema struct {
	structural *schema.Structural
	openapi    validation.SchemaValidator
	// rules tell which rules are broken; nil when the schema has none. They are compiled when
	// something may be broken.
	rules func() *cel.Validator
	// fast tells at less cost that nothing is broken; nil if only the others can.
	fast *fast
}

// fast is what tells at a fraction of the cost whether all is well.
type fast struct {
	openapi *validate.SchemaValidator
	rules   *fastRules
}

func newFast(s *schema.Structural, openapi *spec.Schema) (*fast, error) {
	rules, err := newFastRules(s)
	if err != nil {
		return nil, err
	}
	fields, err := newFastSchema(openapi)
	if err != nil {
		return nil, err
	}
	return &fast{fields, rules}, nil
}

type lazySchema struct {
	once   sync.Once
	schema *customSchema
	err    error
}

// schemaOf returns the compiled schema of one version. The kind's first caller
// compiles it, the others wait.
func (k *row) schemaOf(ch channel, version string) (*customSchema, error) {
	at := channelVersion{ch, version}
	k.mu.Lock()
	if k.compiled == nil {
		k.compiled = map[channelVersion]*lazySchema{}
	}
	lazy := k.compiled[at]
	if lazy == nil {
		lazy = &lazySchema{}
		k.compiled[at] = lazy
	}
	k.mu.Unlock()

	lazy.once.Do(func() { lazy.schema, lazy.err = k.compile(ch, version) })
	return lazy.schema, lazy.err
}

// definition reads a kind's versions in a channel; kinds that are not the Gateway API's
// are in all of them. A kind that the channel doesn't have gives fs.ErrNotExist.
func (k *row) definition(ch channel) ([]apiextensionsv1.CustomResourceDefinitionVersion, error) {
	file := k.Word() + ".json"
	text, err := fs.ReadFile(k.schemas(), "crds/"+string(ch)+"/"+file)
	for _, other := range []string{"own", "multicluster", "inference"} {
		if errors.Is(err, fs.ErrNotExist) {
			text, err = fs.ReadFile(k.schemas(), "crds/"+other+"/"+file)
		}
	}
	if err != nil {
		return nil, err
	}
	var versions []apiextensionsv1.CustomResourceDefinitionVersion
	if err := json.Unmarshal(text, &versions); err != nil {
		return nil, fmt.Errorf("schema of %s: %w", k.Kind, err)
	}
	return versions, nil
}

func (k *row) compile(ch channel, version string) (*customSchema, error) {
	versions, err := k.definition(ch)
	if err != nil {
		return nil, err
	}
	for _, v := range versions {
		if v.Name != version || !v.Served {
			continue
		}
		var internal apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, &internal, nil); err != nil {
			return nil, fmt.Errorf("schema of %s %s: %w", k.Kind, version, err)
		}
		structural, err := schema.NewStructural(&internal)
		if err != nil {
			return nil, fmt.Errorf("schema of %s %s: %w", k.Kind, version, err)
		}
		openapi, asOpenAPI, err := validation.NewSchemaValidator(&internal)
		if err != nil {
			return nil, fmt.Errorf("schema of %s %s: %w", k.Kind, version, err)
		}
		fast, err := newFast(structural, asOpenAPI)
		if err != nil {
			fast = nil // the others say what is wrong, if anything is
		}
		return &customSchema{
			structural: structural,
			openapi:    openapi,
			fast:       fast,
			rules: sync.OnceValue(func() *cel.Validator {
				return cel.NewValidator(structural, true, celconfig.PerCallLimit)
			}),
		}, nil
	}
	return nil, fmt.Errorf("%s %s: %w", k.Kind, version, errNotServed)
}

// prune removes what the schema doesn't know and returns the paths of it. The
// root's metadata is left alone.
func (s *customSchema) prune(content map[string]any) []string {
	return pruning.PruneWithOptions(content, s.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
}

// knows reports whether the schema has a field at the path, as prune writes paths.
func (s *customSchema) knows(path string) bool { return s.at(steps(path)) != nil }

// unknownField is the error of a field that the schema doesn't have, with the one that may be
// meant.
func (s *customSchema) unknownField(path string) *field.Error {
	way := steps(path)
	if len(way) == 0 {
		return unknownField(path, "")
	}
	parent := s.at(way[:len(way)-1])
	switch {
	case parent == nil:
		return unknownField(path, "")
	case parent.Items != nil:
		return unknownField(path, way[max(0, len(way)-2)]+" is a list: begin each of its items with -")
	}
	known := sortedKeys(parent.Properties)
	if len(way) == 1 { // nobody writes a status
		known = slices.DeleteFunc(known, func(name string) bool { return name == "status" })
	}
	return misspelt(path, way[len(way)-1], known)
}

// inSpec reports whether a field beside spec is one of those in it.
func (s *customSchema) inSpec(path string) bool {
	_, ok := s.structural.Properties["spec"].Properties[path]
	return ok
}

// steps are the names and indices of a path, as prune and errors write paths.
func steps(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}

// at returns the part of the schema that a path leads to, or nil.
func (s *customSchema) at(way []string) *schema.Structural {
	at := s.structural
	for _, step := range way {
		switch next, ok := at.Properties[step]; {
		case ok:
			at = &next
		case at.Items != nil && isIndex(step):
			at = at.Items
		case at.AdditionalProperties != nil && at.AdditionalProperties.Structural != nil:
			at = at.AdditionalProperties.Structural
		default:
			return nil
		}
	}
	return at
}

func isIndex(step string) bool { return step != "" && strings.Trim(step, "0123456789") == "" }

func (s *customSchema) setDefaults(content map[string]any) {
	defaulting.PruneNonNullableNullsWithoutDefaults(content, s.structural)
	defaulting.Default(content, s.structural)
}

// validate runs the API server's stages in its order. Rules are skipped when an
// error before them would make their answers noise, as the API server does.
func (s *customSchema) validate(content map[string]any) field.ErrorList {
	var errs field.ErrorList
	if s.fast == nil || !s.fast.openapi.Validate(content).IsValid() {
		errs = validation.ValidateCustomResource(nil, content, s.openapi)
	}
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, content)...)
	if blocksRules(errs) || s.fast != nil && s.fast.rules.hold(content, new(int64(celconfig.RuntimeCELCostBudget))) {
		return errs
	}
	broken, _ := s.rules().Validate(context.Background(), nil, s.structural, content, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, broken...)
}

func blocksRules(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong,
			field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}
