package schema

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// Validator decodes objects of the kinds that Gatehouse reads. It is safe for
// concurrent use.
type Validator struct {
	channel channel
	kinds   map[object.Kind]*row
	groups  map[string]bool // those of custom kinds
}

// New returns a Validator of a table's kinds for the standard channel of the Gateway
// API, or, when experimental, for the experimental one. It fails only when a kind has
// no rules or broken definitions.
func New(kinds *kind.Table, experimentalChannel bool) (*Validator, error) {
	v := &Validator{channel: standard, kinds: map[object.Kind]*row{}, groups: map[string]bool{}}
	if experimentalChannel {
		v.channel = experimental
	}
	rows, err := rowsOf(kinds)
	if err != nil {
		return nil, err
	}
	for _, k := range rows {
		if k.Custom {
			v.groups[k.Kind.Group()] = true
			if err := k.broken(); err != nil {
				return nil, fmt.Errorf("the schemas of %s: %w", k, err)
			}
		}
		v.kinds[k.Kind] = k
	}
	return v, nil
}

// Identity says which object a document defines.
type Identity struct {
	Key     object.Key
	row     *row
	version string
}

// Identify reads kind, namespace and name of a document. Errors are ErrForeign,
// *UnknownKindError, or a *field.Error when the document can't be attributed to
// any object. A namespaced object without a namespace is in "default".
func (v *Validator) Identify(content map[string]any) (Identity, error) {
	apiVersion, err := requiredString(content, nil, "apiVersion")
	if err != nil {
		return Identity{}, err
	}
	name, err := requiredString(content, nil, "kind")
	if err != nil {
		return Identity{}, err
	}
	k, version, kindErr := v.lookup(apiVersion, name)
	if kindErr != nil {
		return Identity{}, kindErr
	}

	meta, ok := content["metadata"].(map[string]any)
	if !ok {
		return Identity{}, field.Required(field.NewPath("metadata", "name"), "")
	}
	path := field.NewPath("metadata")
	id := Identity{Key: object.Key{Kind: k.Kind}, row: k, version: version}
	if id.Key.Name.Name, err = requiredString(meta, path, "name"); err != nil {
		return Identity{}, err
	}
	if msgs := k.validName(id.Key.Name.Name, false); len(msgs) > 0 {
		return Identity{}, field.Invalid(path.Child("name"), id.Key.Name.Name, strings.Join(msgs, "; "))
	}
	if err := misplaced(content, meta); err != nil {
		return Identity{}, err
	}
	namespace, _ := meta["namespace"].(string)
	if bad, ok := meta["namespace"]; ok && bad != nil {
		if _, ok := bad.(string); !ok {
			return Identity{}, wrongType(path.Child("namespace"), "a string", bad)[0]
		}
	}
	switch {
	case k.Scope == kind.ClusterScoped && namespace != "":
		return Identity{}, field.Forbidden(path.Child("namespace"), k.Kind.Name()+" is cluster-scoped: remove the namespace")
	case k.Scope == kind.ClusterScoped:
	case namespace == "":
		id.Key.Namespace = "default"
	default:
		id.Key.Namespace = namespace
	}
	if id.Key.Namespace != "" {
		if msgs := validNamespace(id.Key.Namespace); len(msgs) > 0 {
			return Identity{}, field.Invalid(path.Child("namespace"), id.Key.Namespace, strings.Join(msgs, "; "))
		}
	}
	return id, nil
}

func requiredString(object map[string]any, path *field.Path, key string) (string, error) {
	value, ok := object[key]
	if !ok || value == nil || value == "" {
		return "", field.Required(childOf(path, key), "")
	}
	text, ok := value.(string)
	if !ok {
		return "", wrongType(childOf(path, key), "a string", value)[0]
	}
	return text, nil
}

// lookup finds the kind and checks that the version is served in the channel.
func (v *Validator) lookup(apiVersion, name string) (k *row, version string, err error) {
	group, version := kind.Core, apiVersion
	if g, ver, ok := strings.Cut(apiVersion, "/"); ok {
		group, version = g, ver
	}
	k, err = v.served(group, version, apiVersion, name)
	return k, version, err
}

// served is lookup of a group and a version that are told apart.
func (v *Validator) served(group, version, apiVersion, name string) (*row, error) {
	k := v.kinds[object.KindOf(group, name)]
	if k == nil {
		return nil, v.unknownKind(group, apiVersion, name)
	}
	if !k.Custom {
		switch {
		case k.Channel == kind.ExperimentalChannel && v.channel != experimental:
			return nil, ErrForeign
		case !k.served(version):
			return nil, k.notServed(version)
		}
		return k, nil
	}
	_, err := k.schemaOf(v.channel, version)
	switch {
	case err == nil:
		return k, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, &UnknownKindError{Field: "kind", meant: k, Text: name + " is in the experimental channel of the Gateway API: start with --experimental to use it"}
	case errors.Is(err, errNotServed):
		return nil, k.notServed(version)
	default:
		return nil, err
	}
}

// Decode validates a document that Identify knows, and returns its object with
// defaults set, in its kind's v1 Go type. It takes content over and changes it.
// What a user can't set (status, uid, generation and the like) is dropped.
func (v *Validator) Decode(id Identity, content map[string]any) (source.Object, field.ErrorList) {
	delete(content, "status")
	meta := content["metadata"].(map[string]any)
	cleanMeta(meta)
	if id.Key.Namespace != "" {
		meta["namespace"] = id.Key.Namespace
	}
	if id.row.Custom {
		return v.decodeCustom(id, content)
	}
	return decodeCore(id, content)
}

func (v *Validator) decodeCustom(id Identity, content map[string]any) (source.Object, field.ErrorList) {
	s, err := id.row.schemaOf(v.channel, id.version)
	if err != nil {
		return nil, field.ErrorList{field.InternalError(nil, err)}
	}
	errs := v.unknownFields(id, s, content)
	errs = append(errs, checkShape(field.NewPath("metadata"), content["metadata"], objectMetaType)...)
	errs = append(errs, s.nulls(content)...)
	s.setDefaults(content)
	errs = append(errs, s.validate(content)...)
	errs = append(errs, v.wrongRefs(id, content)...)
	if len(errs) > 0 {
		return nil, errs
	}

	if best := id.row.Versions[0].Name; id.version != best {
		// Conversion between the versions is "None": the same fields, then the
		// defaults of the version that is read.
		content["apiVersion"] = id.row.APIVersion()
		if s, err := id.row.schemaOf(v.channel, best); err == nil {
			s.setDefaults(content)
		}
	}
	delete(content, "status") // the schema's default for it
	return convert(id, content)
}

// unknownFields prunes content, and says of a field that went whether the
// experimental channel would have known it.
func (v *Validator) unknownFields(id Identity, s *customSchema, content map[string]any) field.ErrorList {
	paths := s.prune(content)
	if len(paths) == 0 {
		return nil
	}
	var wide *customSchema
	if v.channel == standard {
		wide, _ = id.row.schemaOf(experimental, id.version)
	}
	errs := make(field.ErrorList, 0, len(paths))
	for _, path := range paths {
		err := s.unknownField(path)
		if s.inSpec(path) {
			err = unknownField(path, "it belongs to spec: indent it below that")
		}
		if wide != nil && wide.knows(path) {
			err = unknownField(path, "it is in the experimental channel of the Gateway API: start with --experimental to use it")
		}
		errs = append(errs, err)
	}
	return errs
}

func decodeCore(id Identity, content map[string]any) (source.Object, field.ErrorList) {
	errs := checkShape(nil, content, reflect.TypeOf(id.row.New()))
	if len(errs) > 0 {
		return nil, errs
	}
	content["apiVersion"] = id.row.APIVersion()
	object, errs := convert(id, content)
	if len(errs) > 0 {
		return nil, errs
	}
	if errs := id.row.finish(object); len(errs) > 0 {
		return nil, errs
	}
	return object, nil
}

// convert makes the typed object and checks its metadata.
func convert(id Identity, content map[string]any) (source.Object, field.ErrorList) {
	object := id.row.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, object); err != nil {
		return nil, field.ErrorList{field.Invalid(nil, field.OmitValueType{}, err.Error())}
	}
	if errs := finishMeta(id, object); len(errs) > 0 {
		return nil, errs
	}
	return object, nil
}
