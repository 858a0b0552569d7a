package schema

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// Validator decodes objects of the kinds that Gatehouse reads. It is safe for
// concurrent use.
type Validator struct {
	channel channel
	kinds   map[groupKind]*row
}

type groupKind struct{ group, kind string }

// New returns a Validator for the standard channel of the Gateway API, or, when
// experimental, for the experimental one. It fails only when the embedded
// definitions are broken.
func New(experimentalChannel bool) (*Validator, error) {
	v := &Validator{channel: standard, kinds: map[groupKind]*row{}}
	if experimentalChannel {
		v.channel = experimental
	}
	for _, k := range kinds() {
		if k.custom() {
			if _, err := versionsOf(experimental, k.name); err != nil {
				return nil, fmt.Errorf("embedded definitions: %w", err)
			}
		}
		v.kinds[groupKind{k.group, k.name}] = k
	}
	return v, nil
}

// ErrForeign is returned by Identify for kinds that are none of Gatehouse's
// business, such as Deployment: not a mistake, a cluster's manifests have them.
var ErrForeign = errors.New("a kind that Gatehouse does not read")

// Identity says which object a document defines.
type Identity struct {
	Key     object.Key
	kind    *row
	version string
}

// UnknownKindError reports a kind or version that can only be a mistake or needs
// a switch: the group is one that Gatehouse reads, the kind isn't.
type UnknownKindError struct {
	Field string // "kind" or "apiVersion"
	Text  string
}

// Error says what is wrong and what to do.
func (e *UnknownKindError) Error() string { return e.Text }

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
	group, version := coreGroup, apiVersion
	if g, ver, ok := strings.Cut(apiVersion, "/"); ok {
		group, version = g, ver
	}
	k, kindErr := v.lookup(group, version, name)
	if kindErr != nil {
		return Identity{}, kindErr
	}

	meta, ok := content["metadata"].(map[string]any)
	if !ok {
		return Identity{}, field.Required(field.NewPath("metadata", "name"), "")
	}
	path := field.NewPath("metadata")
	id := Identity{Key: object.Key{Kind: object.KindOf(k.group, k.name)}, kind: k, version: version}
	if id.Key.Name.Name, err = requiredString(meta, path, "name"); err != nil {
		return Identity{}, err
	}
	if msgs := k.validName(id.Key.Name.Name, false); len(msgs) > 0 {
		return Identity{}, field.Invalid(path.Child("name"), id.Key.Name.Name, strings.Join(msgs, "; "))
	}
	namespace, _ := meta["namespace"].(string)
	if bad, ok := meta["namespace"]; ok && bad != nil {
		if _, ok := bad.(string); !ok {
			return Identity{}, wrongType(path.Child("namespace"), "a string", bad)[0]
		}
	}
	switch {
	case k.cluster && namespace != "":
		return Identity{}, field.Forbidden(path.Child("namespace"), k.name+" is cluster-scoped: remove the namespace")
	case k.cluster:
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
func (v *Validator) lookup(group, version, name string) (*row, error) {
	k := v.kinds[groupKind{group, name}]
	if k == nil {
		if group == gatewayGroup || group == experimentalGroup || group == v1alpha1.GroupVersion.Group {
			return nil, &UnknownKindError{Field: "kind", Text: fmt.Sprintf("%s is not a kind of %s that Gatehouse reads", name, group)}
		}
		return nil, ErrForeign
	}
	if k.experimental && v.channel != experimental {
		return nil, ErrForeign
	}
	if !k.custom() {
		if version != k.version && !slices.Contains(k.older, version) {
			return nil, &UnknownKindError{Field: "apiVersion", Text: fmt.Sprintf("version %s of %s is not served: use %s", version, name, k.apiVersion)}
		}
		return k, nil
	}
	_, err := k.schemaOf(v.channel, version)
	switch {
	case err == nil:
		return k, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, &UnknownKindError{Field: "kind", Text: name + " is in the experimental channel of the Gateway API: start with --experimental to use it"}
	case errors.Is(err, errNotServed):
		text := fmt.Sprintf("version %s of %s is not served: use %s", version, name, k.apiVersion)
		return nil, &UnknownKindError{Field: "apiVersion", Text: text}
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
	if id.kind.custom() {
		return v.decodeCustom(id, content)
	}
	return decodeCore(id, content)
}

func (v *Validator) decodeCustom(id Identity, content map[string]any) (source.Object, field.ErrorList) {
	s, err := id.kind.schemaOf(v.channel, id.version)
	if err != nil {
		return nil, field.ErrorList{field.InternalError(nil, err)}
	}
	errs := v.unknownFields(id, s, content)
	errs = append(errs, checkShape(field.NewPath("metadata"), content["metadata"], objectMetaType)...)
	s.setDefaults(content)
	errs = append(errs, s.validate(content)...)
	if len(errs) > 0 {
		return nil, errs
	}

	if id.version != id.kind.version {
		// Conversion between the versions is "None": the same fields, then the
		// defaults of the version that is read.
		content["apiVersion"] = id.kind.apiVersion
		if s, err := id.kind.schemaOf(v.channel, id.kind.version); err == nil {
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
		wide, _ = id.kind.schemaOf(experimental, id.version)
	}
	errs := make(field.ErrorList, 0, len(paths))
	for _, path := range paths {
		hint := ""
		if wide != nil && wide.knows(path) {
			hint = "it is in the experimental channel of the Gateway API: start with --experimental to use it"
		}
		errs = append(errs, unknownField(path, hint))
	}
	return errs
}

func decodeCore(id Identity, content map[string]any) (source.Object, field.ErrorList) {
	errs := checkShape(nil, content, reflect.TypeOf(id.kind.make()))
	if len(errs) > 0 {
		return nil, errs
	}
	content["apiVersion"] = id.kind.apiVersion
	object, errs := convert(id, content)
	if len(errs) > 0 {
		return nil, errs
	}
	if errs := id.kind.finish(object); len(errs) > 0 {
		return nil, errs
	}
	return object, nil
}

// convert makes the typed object and checks its metadata.
func convert(id Identity, content map[string]any) (source.Object, field.ErrorList) {
	object := id.kind.make()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, object); err != nil {
		return nil, field.ErrorList{field.Invalid(nil, field.OmitValueType{}, err.Error())}
	}
	if errs := finishMeta(id, object); len(errs) > 0 {
		return nil, errs
	}
	return object, nil
}
