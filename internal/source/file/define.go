package file

import (
	"cmp"
	"errors"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/schema"
)

// reader turns the text of documents into definitions. Its fields never change, so that
// documents can be read in parallel.
type reader struct {
	validator *schema.Validator
	foreign   func(apiVersion, kind string) // told of kinds that are left alone
	recent    *recent
}

// read parses and validates one document. Objects that earlier holds, by the
// hash of what was written, are taken from there.
func (r *reader) read(text []byte, isJSON bool, earlier map[uint64]*definition) *document {
	doc := &document{}
	var defs []definition
	nodes, failed := parse(text, isJSON)
	for _, n := range nodes {
		c := &converter{recent: r.recent, drops: true}
		value, err := c.value(n, 0)
		if err != nil {
			failed = cmp.Or(failed, err)
			continue
		}
		switch value := value.(type) {
		case nil:
		case map[string]any:
			defs = r.define(doc, defs, item{node: n, content: value, duplicates: c.duplicates}, earlier, 0)
		default:
			doc.unreadable(fault{line: n.Line - 1, reason: source.Syntax, message: "a document must be a mapping with apiVersion and kind"})
		}
	}
	if failed != nil {
		doc.unreadable(faultOf(explained(failed, text)))
	}
	doc.hold(defs)
	doc.finish()
	return doc
}

// finish drops what is of use for reading and for documents of several definitions
// only.
func (doc *document) finish() {
	switch rest := doc.rest; {
	case rest == nil || len(rest.many) > 0:
	case len(rest.faults) == 0 && len(rest.foreign) == 0:
		doc.rest = nil
	default:
		rest.written = nil
	}
}

// faultOf is what is wrong with text that can't be understood.
func faultOf(err error) fault {
	f := fault{reason: source.Syntax, message: err.Error()}
	if syntax := new(syntaxError); errors.As(err, &syntax) {
		f.line = max(0, syntax.line-1)
	}
	return f
}

// item is one object's text, parsed.
type item struct {
	node       *yaml.Node // nil for what was kept, which has no text
	path       string     // in its document; empty but for items of a List
	content    map[string]any
	duplicates []duplicate
}

// The fields that name an object, and those that every object has.
var (
	headFields = []string{"apiVersion", "kind", "metadata"}
	topFields  = append(slices.Clip(headFields), "spec")
)

// define appends what an item defines to the definitions of its document.
func (r *reader) define(doc *document, defs []definition, it item, earlier map[uint64]*definition, depth int) []definition {
	for _, dup := range it.duplicates {
		if slices.Contains(headFields, dup.field) { // of two objects, as a rule
			doc.unreadable(fault{
				line: dup.line - 1, field: joinPaths(it.path, dup.field), reason: source.Syntax,
				message: "the field is there twice: remove one, or write --- above where another object begins (in a List, - before it)",
			})
			return defs
		}
	}
	if depth < maxListDepth {
		if defs, ok := r.defineList(doc, defs, it, earlier, depth); ok {
			return defs
		}
	}
	raw := hashOf(it.content)
	id, wrong := r.validator.Identify(it.content)
	if id.Key.IsZero() {
		r.unidentified(doc, it, wrong)
		return defs
	}
	def := definition{doc: doc, line: int32(it.node.Line - 1), order: int32(len(defs))}
	if was := earlier[raw]; was != nil && was.key() == id.Key && len(it.duplicates) == 0 && wrong == nil {
		def.object, def.sum, def.spec = was.object, was.sum, was.spec
	} else {
		r.decode(&def, id, it, wrong)
	}
	extra := doc.extra()
	extra.written = append(extra.written, raw)
	return append(defs, def)
}

func joinPaths(prefix, path string) string {
	if prefix == "" || path == "" {
		return prefix + path
	}
	return prefix + "." + path
}
