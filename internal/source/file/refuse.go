package file

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gatehouse-dev/gatehouse/internal/foreign"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/schema"
)

// maxFaults bounds what is said about one object.
const maxFaults = 20

// decode validates an object's text. Wrong is what is wrong with its kind or version; nil for
// nothing.
func (r *reader) decode(def *definition, id schema.Identity, it item, wrong error) {
	if wrong != nil {
		r.refuse(def, id, it, []fault{it.identityFault(wrong)})
		return
	}
	var faults []fault
	for _, dup := range it.duplicates {
		faults = append(faults, fault{line: dup.line - 1, field: dup.field, reason: source.Invalid, message: "the field is there twice: remove one"})
	}
	object, errs := r.validator.Decode(id, it.content)
	causes, errs := schema.CausesOf(errs)
	for _, err := range errs {
		if !causes.Cause(err) {
			faults = append(faults, it.fault(err))
		}
	}
	if len(faults) > 0 {
		r.refuse(def, id, it, faults)
		return
	}
	meta := it.content["metadata"]
	delete(it.content, "metadata")
	def.spec = hashOf(it.content)
	def.sum = hashOf(meta, int64(def.spec))
	def.object = object
}

// refuse gives a definition that is not valid its faults, and its stand-in.
func (r *reader) refuse(def *definition, id schema.Identity, it item, faults []fault) {
	if len(faults) > maxFaults {
		faults = append(faults[:maxFaults:maxFaults], fault{line: int(def.line), reason: source.Invalid, message: "and more like these"})
	}
	def.refused = &refusal{key: id.Key, faults: faults}
	def.standIn(r.validator.StandIn(id, it.content))
}

// standIn sets what is in force of a definition that never was valid; nil for nothing.
func (d *definition) standIn(o source.Object) {
	if o != nil {
		d.refused.standIn, d.sum = o, sumOf(o)
		d.spec = d.sum
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

// identityFault is what is wrong with what says which object a text defines.
func (it item) identityFault(err error) fault {
	f := fault{line: it.node.Line - 1, reason: source.Invalid, message: err.Error()}
	var invalid *field.Error
	var unknown *schema.UnknownKindError
	switch {
	case errors.As(err, &unknown):
		f = fault{line: lineOf(it.node, unknown.Field) - 1, field: unknown.Field, reason: source.Unknown, message: unknown.Text}
	case errors.As(err, &invalid):
		f = it.fault(invalid)
	}
	f.field = joinPaths(it.path, f.field)
	return f
}

// unidentified handles a document that isn't an object that Gatehouse reads, or doesn't say which
// one it is.
func (r *reader) unidentified(doc *document, it item, err error) {
	switch {
	case !slices.ContainsFunc(topFields, func(name string) bool { _, ok := it.content[name]; return ok }):
		// Such as Helm's values, or a kustomization.
		doc.note(fault{
			line: it.node.Line - 1, field: it.path, reason: source.Invalid,
			message: "no manifest: it has none of apiVersion, kind, metadata and spec; if it is for another program, move it out of the directory",
		})
	case errors.Is(err, schema.ErrForeign):
		r.foreign(fmt.Sprint(it.content["apiVersion"]), fmt.Sprint(it.content["kind"]))
		if p, ok := foreign.PolicyOf(it.content); ok {
			p.Line = it.node.Line - 1
			extra := doc.extra()
			extra.foreign = append(extra.foreign, p)
		}
	default:
		doc.note(it.identityFault(err))
	}
}
