package schema

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
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
// any object. Of a version that is not served, and of a kind that is nearly one of ours, it returns
// the object that is meant beside the error. A namespaced object without a namespace is in "default".
func (v *Validator) Identify(content map[string]any) (Identity, error) {
	apiVersion, err := requiredString(content, nil, "apiVersion")
	if err != nil {
		return Identity{}, err
	}
	name, err := requiredString(content, nil, "kind")
	if err != nil {
		return Identity{}, err
	}
	k, version, err := v.lookup(apiVersion, name)
	if wrong := new(UnknownKindError); errors.As(err, &wrong) && wrong.meant != nil {
		k = wrong.meant
		if key, nameErr := k.keyOf(content); nameErr == nil {
			return Identity{Key: key, row: k}, err
		}
	}
	if err != nil {
		return Identity{}, err
	}
	key, err := k.keyOf(content)
	if err != nil {
		return Identity{}, err
	}
	return Identity{Key: key, row: k, version: version}, nil
}

// keyOf reads namespace and name of an object of the kind.
func (k *row) keyOf(content map[string]any) (key object.Key, err error) {
	path := field.NewPath("metadata")
	meta, ok := content["metadata"].(map[string]any)
	if !ok {
		return object.Key{}, field.Required(path.Child("name"), "")
	}
	key.Kind = k.Kind
	if key.Name.Name, err = requiredString(meta, path, "name"); err != nil {
		return object.Key{}, err
	}
	if msgs := k.validName(key.Name.Name, false); len(msgs) > 0 {
		why, _, _ := strings.Cut(msgs[0], " (e.g. ") // the expression that it has to match helps nobody
		return object.Key{}, field.Invalid(path.Child("name"), key.Name.Name, why)
	}
	path = path.Child("namespace")
	said, has := meta["namespace"]
	namespace, ok := said.(string)
	switch {
	case has && said == nil:
		return object.Key{}, field.TypeInvalid(path, field.OmitValueType{}, "the field has no value: write it, or remove the field if namespace default is meant")
	case has && !ok:
		return object.Key{}, wrongType(path, "a string", said)[0]
	case k.Scope == kind.ClusterScoped && namespace != "":
		return object.Key{}, field.Forbidden(path, k.Kind.Name()+" is cluster-scoped: remove the namespace")
	case k.Scope == kind.ClusterScoped:
		return key, nil
	}
	key.Namespace = cmp.Or(namespace, "default")
	if msgs := validNamespace(key.Namespace); len(msgs) > 0 {
		return object.Key{}, field.Invalid(path, key.Namespace, strings.Join(msgs, "; "))
	}
	return key, nil
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
// What a user can't set (status, uid, generation and the like) is dropped, but for the status
// of Pods.
func (v *Validator) Decode(id Identity, content map[string]any) (source.Object, field.ErrorList) {
	if !id.row.told {
		delete(content, "status")
	}
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

// metaFields are those of metadata that may have lost their indent.
var metaFields = []string{"name", "namespace", "labels", "annotations"}

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
		switch {
		case s.inSpec(path):
			err = unknownField(path, "it belongs to spec: indent it below that")
		case slices.Contains(metaFields, path):
			err = unknownField(path, "it belongs to metadata: indent it below that")
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
