package file

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/schema"
)

// maxFaults bounds what is said about one object.
const maxFaults = 20

// decode validates an object's text. Meant is what the text seems to define, if it doesn't say
// it rightly.
func (r *reader) decode(def *definition, id schema.Identity, it item, meant *schema.Meant) {
	refused := &refusal{key: id.Key}
	content := it.content
	if meant != nil {
		refused.guessed, refused.kinds = true, meant.Kinds
		content = meant.Content
		for _, err := range meant.Faults {
			f := it.fault(err)
			f.field = joinPaths(it.path, f.field)
			if err.Type == field.ErrorTypeNotSupported {
				f.reason = source.Unknown
			}
			refused.add(def, f)
		}
	}
	if it.glued != nil {
		refused.add(def, *it.glued)
	}
	if it.salvaged {
		refused.guessed, refused.faults = true, []fault{*it.glued}
		if meant == nil {
			refused.kinds = []object.Kind{id.Key.Kind}
		}
		r.refuse(def, refused, id, it, nil)
		return
	}
	for _, dup := range it.duplicates {
		refused.add(def, fault{line: dup.line - 1, field: dup.field, reason: source.Invalid, message: "the field is there twice: remove one"})
	}
	object, errs := r.validator.Decode(id, content)
	if len(errs) > 0 || len(refused.faults) > 0 {
		r.refuse(def, refused, id, it, errs)
		return
	}
	meta := content["metadata"]
	delete(content, "metadata")
	def.spec = hashOf(content)
	def.sum = hashOf(meta, int64(def.spec))
	def.object = object
}

// refuse gives a definition that is not valid its faults, those before what follows from them,
// and its stand-in.
func (r *reader) refuse(def *definition, refused *refusal, id schema.Identity, it item, errs field.ErrorList) {
	def.refused = refused
	content := it.again()
	if _, err := r.validator.Identify(content); err != nil && refused.guessed {
		meant, ok := r.validator.Meant(content, hashOf(content))
		if !ok {
			return
		}
		content = meant.Content
	}
	content, moved := r.validator.Mended(id, content)
	causes, errs := schema.CausesOf(errs)
	for _, err := range errs {
		if err.Type == field.ErrorTypeRequired && moved[err.Field] {
			continue // it is there, in another place, of which the cause is told
		}
		if !refused.guessed || kindIsSure(refused) {
			f := it.fault(err)
			if cause := causes.Of(err); cause != nil { // which is told first, by lines
				f.line = max(f.line, it.fault(cause).line)
			}
			refused.add(def, f)
		}
	}
	_, left := r.validator.Decode(id, content)
	for _, dup := range it.duplicates {
		left = append(left, schema.Twice(dup.field))
	}
	if it.lost {
		left = append(left, schema.Lost(content)...)
	}
	if refused.standIn, refused.unread = r.validator.StandIn(id, content, left); refused.standIn != nil {
		def.sum = sumOf(refused.standIn)
		def.spec = def.sum
	}
}

// kindIsSure reports whether a guess is about the name only: the fields of a kind that is guessed
// are not worth a word.
func kindIsSure(r *refusal) bool {
	return !slices.ContainsFunc(r.faults, func(f fault) bool { return f.reason == source.Unknown || f.field == "kind" })
}

// again returns the value of an item's text once more, since decoding changes it. Of a field
// that is there twice it has both values, as far as they can be joined.
func (it item) again() map[string]any {
	if it.node == nil {
		var content map[string]any
		_ = utiljson.Unmarshal(it.text, &content) // it was read before
		return content
	}
	value, err := (&converter{joins: true, drops: true}).value(it.node, 0)
	content, ok := value.(map[string]any)
	if err != nil || !ok {
		return map[string]any{}
	}
	it.inherit(content)
	return content
}

func (r *refusal) add(def *definition, f fault) {
	switch n := len(r.faults); {
	case n < maxFaults:
		r.faults = append(r.faults, f)
	case n == maxFaults:
		r.faults = append(r.faults, fault{line: int(def.line), reason: source.Invalid, message: "and more like these"})
	}
}

// fault places a validator's error in the text.
func (it item) fault(err *field.Error) fault {
	path := err.Field
	if path == "<nil>" {
		path = ""
	}
	line := 0
	if it.node != nil { // there is no text of what was kept
		line = lineOf(it.node, path) - 1
	}
	return fault{
		line:    line,
		field:   path,
		message: schema.Message(err),
		reason:  source.Invalid,
	}
}

// meant guesses which object is meant by a document of which err is known; nil for none.
func (r *reader) meant(it item, err error, salt uint64) *schema.Meant {
	if errors.Is(err, schema.ErrForeign) {
		return nil
	}
	if meant, ok := r.validator.Meant(it.content, salt); ok {
		return meant
	}
	return nil
}

// unidentified handles a document that isn't an object that Gatehouse reads.
func (r *reader) unidentified(doc *document, it item, err error) {
	var invalid *field.Error
	var unknown *schema.UnknownKindError
	switch {
	case !slices.ContainsFunc(topFields, func(name string) bool { _, ok := it.content[name]; return ok }):
		// Such as Helm's values, or a kustomization.
		doc.note(fault{
			line: it.node.Line - 1, field: it.path, reason: source.Invalid,
			message: "no manifest: it has none of apiVersion, kind, metadata and spec; if it is for another program, move it out of the directory",
		}, "")
	case errors.Is(err, schema.ErrForeign):
		r.foreign(fmt.Sprint(it.content["apiVersion"]), fmt.Sprint(it.content["kind"]))
	case errors.As(err, &unknown):
		// It may be a misspelt kind, of an object that was here before.
		name, _, _ := unstructured.NestedString(it.content, "metadata", "name")
		doc.note(fault{
			line: lineOf(it.node, unknown.Field) - 1, field: unknown.Field,
			message: unknown.Text, reason: source.Unknown, guess: r.identityOf(it.content),
		}, name)
	case errors.As(err, &invalid):
		// The fault can't be attributed, so it may be about any object that was here
		// before.
		f := it.fault(invalid)
		f.field = joinPaths(it.path, f.field)
		doc.note(f, "")
	default:
		doc.fail(err, object.Key{})
	}
}
