package file

import (
	"cmp"
	"errors"

	"go.yaml.in/yaml/v3"

	"github.com/gatehouse-dev/gatehouse/internal/object"
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
// hash of what was written, are taken from there. Of a document that is not YAML it returns the
// rest for salvage, which is no work to do for all of them at once.
func (r *reader) read(text []byte, isJSON bool, earlier map[uint64]*definition) (*document, *unparsed) {
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
			defs = r.define(doc, defs, item{node: n, content: value, duplicates: c.duplicates, separator: documentSeparator}, earlier, 0)
		case []any:
			if it, ok := bareList(n, value); ok {
				defs = r.define(doc, defs, it, earlier, 0)
			} else {
				doc.note(fault{line: n.Line - 1, reason: source.Syntax, message: noMapping}, "")
			}
		default:
			doc.note(fault{line: n.Line - 1, reason: source.Syntax, message: noMapping}, "")
		}
	}
	if failed != nil && r.validator != nil && !isJSON {
		return nil, &unparsed{doc: doc, defs: defs, err: failed}
	}
	if failed != nil {
		doc.fail(explained(failed, text, newEffort()), r.guess(text))
	}
	doc.hold(defs)
	doc.finish()
	return doc, nil
}

// noMapping is the fault of a document that can't define an object.
const noMapping = "a document must be a mapping with apiVersion and kind"

// finish drops what is of use for reading and for documents of several definitions
// only.
func (doc *document) finish() {
	switch rest := doc.rest; {
	case rest == nil || len(rest.many) > 0:
	case len(rest.faults) == 0 && !rest.broken:
		doc.rest = nil
	default:
		rest.written = nil
	}
}

// fail records that the document, or the rest of it, can't be understood.
func (doc *document) fail(err error, guess object.Key) {
	f := faultOf(err)
	f.guess = guess
	doc.note(f, "")
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
	node       *yaml.Node
	text       []byte // JSON of what was kept, which has no node
	path       string // in its document; empty but for items of a List
	content    map[string]any
	inherited  map[string]any // what content has from the List
	duplicates []duplicate
	separator  separator
	glued      *fault // to another object, for want of what separates them, or to what is no YAML
	salvaged   bool   // from text that is no YAML
	lost       bool   // a line of it
}

// maxListDepth bounds Lists of Lists.
const maxListDepth = 4

// define appends what an item defines to the definitions of its document.
func (r *reader) define(doc *document, defs []definition, it item, earlier map[uint64]*definition, depth int) []definition {
	if depth < maxListDepth {
		if l := it.listOf(); l != nil {
			return r.defineList(doc, defs, it, l, earlier, depth)
		}
	}
	if parts := it.parts(); parts != nil {
		for _, part := range parts {
			defs = r.define(doc, defs, part, earlier, depth)
		}
		return defs
	}
	raw := hashOf(it.content)
	line := it.node.Line - 1
	var meant *schema.Meant
	id, err := r.validator.Identify(it.content)
	if err != nil {
		if meant = r.meant(it, err, raw); meant == nil {
			r.unidentified(doc, it, err)
			return defs
		}
		id = meant.Identity
	}
	def := definition{doc: doc, line: int32(line), order: int32(len(defs))}
	if was := earlier[raw]; was != nil && was.key() == id.Key && len(it.duplicates) == 0 && it.glued == nil && meant == nil {
		def.object, def.sum, def.spec = was.object, was.sum, was.spec
	} else {
		r.decode(&def, id, it, meant)
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

// inherit adds what the List says to content.
func (it item) inherit(content map[string]any) {
	for name, value := range it.inherited {
		if _, ok := content[name]; !ok && value != nil {
			content[name] = value
		}
	}
}
