package file

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/schema"
)

// A document is one document of a file with the objects that it defines: one as
// a rule, many for a List.
type document struct {
	file  *file
	hash  uint64 // of its text
	line  int32  // where it begins in the file, 1-based
	order int32  // position in the file
	defs  []*definition
	// faults are those of text that can't be attributed to an object.
	faults []fault
	// broken: objects may be missing from defs because of faults.
	broken bool
}

// A definition is one object as one place in a file has it.
type definition struct {
	key    source.Key
	doc    *document
	object source.Object // nil when it never was valid
	raw    uint64        // hash of the object as written
	sum    uint64        // hash of the object with defaults
	spec   uint64        // the same without metadata: a change is a new generation
	faults []fault
	line   int32 // relative to the document, 0-based
	order  int32 // position in the document
	stale  bool  // object is an earlier version than the text
}

// A fault is a problem whose place is relative to its document.
type fault struct {
	line    int // 0-based
	field   string
	message string
	reason  source.Reason
}

// compare orders definitions by what "first" means to the user.
func (d *definition) compare(o *definition) int {
	return cmp.Or(
		d.doc.file.compare(o.doc.file),
		cmp.Compare(d.doc.order, o.doc.order),
		cmp.Compare(d.order, o.order),
	)
}

// maxFaults bounds what is said about one object.
const maxFaults = 20

// reader turns the text of documents into definitions. It has no state but what
// it is made of, so that documents can be read in parallel.
type reader struct {
	validator *schema.Validator
	foreign   func(apiVersion, kind string) // told of kinds that are left alone
}

// read parses and validates one document. Objects that earlier holds, by the
// hash of what was written, are taken from there.
func (r *reader) read(text []byte, isJSON bool, earlier map[uint64]*definition) *document {
	doc := &document{}
	nodes, err := parse(text, isJSON)
	for _, n := range nodes {
		c := &converter{}
		value, err := c.value(n, 0)
		if err != nil {
			doc.fail(err)
			continue
		}
		switch value := value.(type) {
		case nil:
		case map[string]any:
			r.define(doc, item{node: n, content: value, duplicates: c.duplicates}, earlier, 0)
		default:
			doc.broken = true
			doc.faults = append(doc.faults, fault{line: n.Line - 1, reason: source.Syntax, message: "a document must be a mapping with apiVersion and kind"})
		}
	}
	if err != nil {
		doc.fail(err)
	}
	return doc
}

// fail records that the document, or the rest of it, can't be understood.
func (doc *document) fail(err error) {
	doc.broken = true
	f := fault{reason: source.Syntax, message: err.Error()}
	if syntax := new(syntaxError); errors.As(err, &syntax) {
		f.line = max(0, syntax.line-1)
	}
	doc.faults = append(doc.faults, f)
}

// item is one object's text, parsed.
type item struct {
	node       *yaml.Node
	path       string // in its document; empty but for items of a List
	content    map[string]any
	duplicates []duplicate
}

// maxListDepth bounds Lists of Lists.
const maxListDepth = 4

func (r *reader) define(doc *document, it item, earlier map[uint64]*definition, depth int) {
	if items, ok := listItems(it.content); ok && depth < maxListDepth {
		r.defineItems(doc, it, items, earlier, depth)
		return
	}
	raw := hashOf(it.content)
	line := it.node.Line - 1
	id, err := r.validator.Identify(it.content)
	if err != nil {
		r.unidentified(doc, it, err)
		return
	}
	def := &definition{key: id.Key, doc: doc, raw: raw, line: int32(line), order: int32(len(doc.defs))}
	doc.defs = append(doc.defs, def)

	if was := earlier[raw]; was != nil && was.key == id.Key && len(it.duplicates) == 0 {
		def.object, def.sum, def.spec = was.object, was.sum, was.spec
		return
	}
	for _, dup := range it.duplicates {
		def.fault(fault{line: dup.line - 1, field: dup.field, reason: source.Invalid, message: "the field is there twice: remove one"})
	}
	object, errs := r.validator.Decode(id, it.content)
	for _, err := range errs {
		def.fault(it.fault(err))
	}
	if len(def.faults) > 0 {
		return
	}
	meta := it.content["metadata"]
	delete(it.content, "metadata")
	def.spec = hashOf(it.content)
	def.sum = hashOf(meta, int64(def.spec))
	object.SetUID(uidOf(id.Key))
	def.object = object
}

func (d *definition) fault(f fault) {
	switch n := len(d.faults); {
	case n < maxFaults:
		d.faults = append(d.faults, f)
	case n == maxFaults:
		d.faults = append(d.faults, fault{line: int(d.line), reason: source.Invalid, message: "and more like these"})
	}
}

// fault places a validator's error in the text.
func (it item) fault(err *field.Error) fault {
	path := err.Field
	if path == "<nil>" {
		path = ""
	}
	return fault{
		line:    lineOf(it.node, path) - 1,
		field:   path,
		message: schema.Message(err),
		reason:  source.Invalid,
	}
}

// unidentified handles a document that isn't an object that Gatehouse reads.
func (r *reader) unidentified(doc *document, it item, err error) {
	var invalid *field.Error
	var unknown *schema.UnknownKindError
	switch {
	case errors.Is(err, schema.ErrForeign):
		r.foreign(fmt.Sprint(it.content["apiVersion"]), fmt.Sprint(it.content["kind"]))
	case errors.As(err, &unknown):
		doc.faults = append(doc.faults, fault{
			line: lineOf(it.node, unknown.Field) - 1, field: unknown.Field,
			message: unknown.Text, reason: source.Unknown,
		})
	case errors.As(err, &invalid):
		// Not to be attributed, so it may be any object that was here before.
		doc.broken = true
		f := it.fault(invalid)
		f.field = joinPaths(it.path, f.field)
		doc.faults = append(doc.faults, f)
	default:
		doc.fail(err)
	}
}

func joinPaths(prefix, path string) string {
	if prefix == "" || path == "" {
		return prefix + path
	}
	return prefix + "." + path
}

// listItems recognises kind List and the lists of single kinds (HTTPRouteList)
// that kubectl and API servers write.
func listItems(content map[string]any) ([]any, bool) {
	kind, _ := content["kind"].(string)
	items, ok := content["items"].([]any)
	return items, ok && strings.HasSuffix(kind, "List")
}

func (r *reader) defineItems(doc *document, list item, items []any, earlier map[uint64]*definition, depth int) {
	kind, _ := list.content["kind"].(string)
	for i, value := range items {
		path := fmt.Sprintf("items[%d]", i)
		node := nodeAt(list.node, path)
		content, ok := value.(map[string]any)
		if !ok {
			doc.broken = true
			doc.faults = append(doc.faults, fault{line: node.Line - 1, field: joinPaths(list.path, path), reason: source.Syntax, message: "an item of a List must be a mapping"})
			continue
		}
		if single := strings.TrimSuffix(kind, "List"); single != "" {
			// Items of a typed list need not repeat what the list says.
			inherit(content, "kind", single)
			inherit(content, "apiVersion", list.content["apiVersion"])
		}
		it := item{node: node, path: joinPaths(list.path, path), content: content}
		for _, dup := range list.duplicates {
			if rest, ok := strings.CutPrefix(dup.field, path+"."); ok {
				it.duplicates = append(it.duplicates, duplicate{field: rest, line: dup.line})
			}
		}
		r.define(doc, it, earlier, depth+1)
	}
}

func inherit(content map[string]any, key string, value any) {
	if _, ok := content[key]; !ok && value != nil {
		content[key] = value
	}
}
