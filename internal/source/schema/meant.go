package schema

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/spelling"
)

// Meant is what a document seems to define that Identify can't attribute.
type Meant struct {
	Identity
	// Content is what the document seems to say, with what names the object put right.
	Content map[string]any
	// Faults are the mistakes in what names the object.
	Faults field.ErrorList
	// Kinds are those that can have been meant; none for any.
	Kinds []object.Kind
}

// Meant guesses what a document defines of which Identify has returned an error; false if
// nothing can be guessed, as of a kind that is foreign. Where the name can't be read, the
// object gets a name that no object has, made of salt.
func (v *Validator) Meant(content map[string]any, salt uint64) (*Meant, bool) {
	m := &Meant{Content: maps.Clone(content)}
	m.respell(nil, m.Content, topFields)
	meta := m.metadata()
	m.respell(field.NewPath("metadata"), meta, metaFields)
	m.Content["metadata"] = meta
	if !v.meantKind(m) {
		return nil, false
	}
	m.Key.Kind = m.row.Kind
	m.Content["apiVersion"], m.Content["kind"] = m.row.TypeMeta(m.version).APIVersion, m.row.Kind.Name()
	named := m.meantNamespace(meta)
	name, err := requiredString(meta, field.NewPath("metadata"), "name")
	if err == nil {
		if msgs := m.row.validName(name, false); len(msgs) > 0 {
			err = field.Invalid(field.NewPath("metadata", "name"), name, strings.Join(msgs, "; "))
		}
	}
	if err != nil {
		named = false
		m.Faults = append(m.Faults, asFault(err))
	}
	if m.Key.Name.Name = name; !named {
		m.Key.Name.Name = fmt.Sprintf("%s%016x)", unnamedPrefix, salt)
		meta["name"] = placeholder
	}
	return m, len(m.Faults) > 0
}

// asFault is an error of Identify as one of a field.
func asFault(err error) *field.Error {
	if invalid := new(field.Error); errors.As(err, &invalid) {
		return invalid
	}
	if unknown := new(UnknownKindError); errors.As(err, &unknown) {
		return &field.Error{Type: field.ErrorTypeNotSupported, Field: unknown.Field, BadValue: said{}, Detail: unknown.Text}
	}
	return field.InternalError(nil, err)
}

// said marks errors whose detail is the message.
type said struct{}

// Names that were made up begin with what no name can have, so that they are nobody else's,
// and what they take goes before what others of the same age take.
const (
	unnamedPrefix = "(unnamed-"
	placeholder   = "unnamed"
)

// Unnamed reports whether a name was made up for an object whose own can't be read.
func Unnamed(name string) bool { return strings.HasPrefix(name, unnamedPrefix) }

var (
	topFields  = []string{"apiVersion", "kind", "metadata", "spec"}
	metaFields = []string{"name", "namespace", "labels", "annotations"}
)

// respell renames fields of a mapping that are nearly others, which it lacks.
func (m *Meant) respell(path *field.Path, of map[string]any, fields []string) {
	known := fieldsOf(objectMetaType)
	for _, written := range sortedKeys(of) {
		if _, ok := known[written]; ok && path != nil || slices.Contains(fields, written) {
			continue
		}
		if near := nearField(written, of, fields); near != "" {
			of[near] = of[written]
			delete(of, written)
			m.Faults = append(m.Faults, unknownField(childOf(path, written).String(), "did you mean "+near+"?"))
		}
	}
}

// nearField returns the field that may be meant by another; empty for none, or one that is
// there.
func nearField(written string, of map[string]any, fields []string) string {
	near := spelling.Nearest(written, slices.Values(fields))
	if _, ok := of[near]; ok {
		return ""
	}
	return near
}

// metadata returns a copy of an object's metadata, with what of it has lost its indent.
func (m *Meant) metadata() map[string]any {
	meta := merged(m.Content["metadata"])
	if list, ok := m.Content["metadata"].([]any); ok {
		m.Faults = append(m.Faults, wrongType(field.NewPath("metadata"), "a mapping", list)...)
	}
	if _, ok := m.Content["metadata"]; !ok {
		for _, name := range sortedKeys(m.Content) {
			if of, ok := m.Content[name].(map[string]any); ok && !slices.Contains(topFields, name) && of["name"] != nil {
				meta = maps.Clone(of)
				delete(m.Content, name)
				m.Faults = append(m.Faults, unknownField(name, "did you mean metadata?"))
				break
			}
		}
	}
	if meta == nil {
		meta = map[string]any{}
	}
	for _, name := range metaFields {
		if _, ok := meta[name]; ok {
			continue
		}
		if value, ok := m.Content[name]; ok {
			meta[name] = value
			delete(m.Content, name)
			m.Faults = append(m.Faults, outside(name))
		}
	}
	return meta
}

// merged returns a copy of a mapping, or one of the mappings in a list, which are single fields
// with a - too many; nil if there are none.
func merged(value any) map[string]any {
	switch value := value.(type) {
	case map[string]any:
		return maps.Clone(value)
	case []any:
		var all map[string]any
		for _, item := range value {
			if of, ok := item.(map[string]any); ok {
				if all == nil {
					all = map[string]any{}
				}
				maps.Copy(all, of)
			}
		}
		return all
	}
	return nil
}

// outside is the error of a field that stands beside metadata, and belongs into it.
func outside(name string) *field.Error {
	return unknownField(name, "it belongs to metadata: indent it below that")
}

// misplaced is the error of a namespace that is misspelt, or not in metadata.
func misplaced(content, meta map[string]any) error {
	switch value, ok := meta["namespace"]; {
	case ok && value == nil:
		return noNamespace()
	case ok:
		return nil
	}
	if _, ok := content["namespace"]; ok {
		return outside("namespace")
	}
	for name := range meta {
		if _, known := fieldsOf(objectMetaType)[name]; !known && nearField(name, meta, metaFields) == "namespace" {
			return unknownField("metadata."+name, "did you mean namespace?")
		}
	}
	return nil
}

// noNamespace is the error of a namespace without a value: a slip of the hand would move the
// object to another one. kubectl takes it, and means the namespace of its context, which is as
// little what was said.
func noNamespace() *field.Error {
	return field.TypeInvalid(field.NewPath("metadata", "namespace"), field.OmitValueType{}, "the field has no value: write it, or remove the field if namespace default is meant")
}

// meantNamespace sets the namespace, and reports whether it can be read.
func (m *Meant) meantNamespace(meta map[string]any) bool {
	path := field.NewPath("metadata", "namespace")
	value, said := meta["namespace"]
	namespace, ok := namespaceOf(value)
	empty := said && value == nil && m.row.Scope != kind.ClusterScoped
	switch _, text := value.(string); {
	case m.row.Scope == kind.ClusterScoped:
		if value != nil && value != "" {
			m.Faults = append(m.Faults, field.Forbidden(path, m.row.Kind.Name()+" is cluster-scoped: remove the namespace"))
			delete(meta, "namespace")
		}
		return true
	case empty:
		m.Faults, ok = append(m.Faults, noNamespace()), false
	case value != nil && !text:
		m.Faults = append(m.Faults, wrongType(path, "a string", value)...)
	case text && namespace != value:
		m.Faults = append(m.Faults, field.Invalid(path, value, strings.Join(validNamespace(value.(string)), "; ")))
	}
	if namespace == "" || !ok {
		namespace = "default"
	}
	m.Key.Namespace, meta["namespace"] = namespace, namespace
	if !ok {
		m.adrift()
	}
	return ok
}

// adrift makes unreadable the parents that are in the route's own namespace, which is not
// known.
func (m *Meant) adrift() {
	spec := merged(m.Content["spec"])
	if spec == nil {
		return // there are no parents
	}
	m.Content["spec"] = spec
	list, _ := spec["parentRefs"].([]any)
	list = slices.Clone(list)
	for i := range list {
		if ref := merged(list[i]); ref != nil && (ref["namespace"] == nil || ref["namespace"] == "") {
			ref["namespace"] = unreadable
			list[i] = ref
		}
	}
	if len(list) > 0 {
		spec["parentRefs"] = list
	}
}

// unreadable is no namespace.
const unreadable = "?"

// Kept identifies an object that was in force as key, or its stand-in, of which Unnamed may be
// true. It changes content.
func (v *Validator) Kept(key object.Key, content map[string]any) (Identity, error) {
	if meta, ok := content["metadata"].(map[string]any); ok && Unnamed(key.Name.Name) && meta["name"] == key.Name.Name {
		meta["name"] = placeholder
	}
	id, err := v.Identify(content)
	if err == nil && Unnamed(key.Name.Name) && id.Key.Name.Name == placeholder {
		id.Key.Name.Name = key.Name.Name
	}
	return id, err
}

// Twice is the error of a field that is there twice, where both values count.
func Twice(path string) *field.Error {
	return &field.Error{Type: field.ErrorTypeDuplicate, Field: path, BadValue: unknown{}}
}

// Lost are the errors of an object of whose text a line could not be read: it may have been any
// of its matches, or its hosts or parents if it names none.
func Lost(content map[string]any) field.ErrorList {
	errs := field.ErrorList{field.TypeInvalid(field.NewPath("spec", "rules"), field.OmitValueType{}, "")}
	spec, _ := content["spec"].(map[string]any)
	for _, name := range [...]string{"hostnames", "parentRefs"} {
		if spec[name] == nil {
			errs = append(errs, field.TypeInvalid(field.NewPath("spec", name), field.OmitValueType{}, ""))
		}
	}
	return errs
}
