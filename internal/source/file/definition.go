package file

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gatehouse-dev/gatehouse/internal/object"
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
	rest  *rest  // nil for most
	// only is the definition of a document that has one, as most have; with no
	// document if it has none, or many. Like these it doesn't move once the document
	// is read: the index points at it.
	only definition
}

// rest is what only few documents have. It is apart, so that all others stay small.
type rest struct {
	// many are the definitions of a document that has several.
	many []definition
	// faults are those of text that can't be attributed to an object.
	faults []fault
	// broken: objects may be missing from defs because of faults.
	broken bool
	// names are those of objects that may be missing because of faults.
	names []string
	// written are the hashes of the objects as the text has them, where there are
	// several.
	written []uint64
}

// A definition is one object as one place in a file has it. There is one for each
// object, so it has no field that most objects can do without.
type definition struct {
	doc     *document
	object  source.Object // nil when it never was valid
	sum     uint64        // hash of the object with defaults, or of its stand-in
	spec    uint64        // the same without metadata: a change is a new generation
	refused *refusal      // nil for valid text
	next    *definition   // the index's
	line    int32         // relative to the document, 0-based
	order   int32         // position in the document
}

// A refusal is what is known of a definition whose text is invalid.
type refusal struct {
	key    object.Key
	faults []fault
	// standIn is what is in force instead of an object that never was valid; nil for a kind
	// that guards nothing.
	standIn source.Object
	// unread are the parents and hosts of which nothing can be read, for a stand-in.
	unread []string
	// kept is the last valid version, as JSON, that this process can't use: it needs
	// another channel.
	kept []byte
}

// key names the object. A valid definition has it in its object, so it is not stored a
// second time.
func (d *definition) key() object.Key {
	if d.object != nil {
		return source.KeyOf(d.object)
	}
	return d.refused.key
}

// inForce is what consumers hold if this is the definition that counts; nil for nothing.
func (d *definition) inForce() source.Object {
	switch {
	case d.object != nil:
		return d.object
	case d.refused != nil:
		return d.refused.standIn
	}
	return nil
}

// faults are what is wrong with the text.
func (d *definition) faults() []fault {
	if d.refused == nil {
		return nil
	}
	return d.refused.faults
}

// definitions returns pointers to defs. The pointer identifies a definition.
func (doc *document) definitions() []*definition {
	if doc.only.doc != nil {
		return []*definition{&doc.only}
	}
	if doc.rest == nil {
		return nil
	}
	defs := make([]*definition, len(doc.rest.many))
	for i := range defs {
		defs[i] = &doc.rest.many[i]
	}
	return defs
}

// hold makes definitions those of a document that has none yet.
func (doc *document) hold(defs []definition) {
	if len(defs) == 1 {
		doc.only = defs[0]
	} else if len(defs) > 1 {
		doc.extra().many = slices.Clip(defs)
	}
}

func (doc *document) faults() []fault {
	if doc.rest == nil {
		return nil
	}
	return doc.rest.faults
}

// extra returns rest, and makes it first if there is none.
func (doc *document) extra() *rest {
	if doc.rest == nil {
		doc.rest = &rest{}
	}
	return doc.rest
}

// note records a fault that may be about any object of a name, or about any at all if
// there is none.
func (doc *document) note(f fault, name string) {
	extra := doc.extra()
	if name == "" {
		extra.broken = true
	} else {
		extra.names = append(extra.names, name)
	}
	extra.faults = append(extra.faults, f)
}

// mayHide reports whether objects may be missing because of the document's faults, and
// mayBe whether one of them may.
func (doc *document) mayHide() bool {
	return doc.rest != nil && (doc.rest.broken || len(doc.rest.names) > 0)
}

func (doc *document) mayBe(key object.Key) bool {
	return doc.rest != nil && (doc.rest.broken || slices.Contains(doc.rest.names, key.Name.Name))
}

// A fault is a problem whose place is relative to its document.
type fault struct {
	line    int // 0-based
	field   string
	message string
	reason  source.Reason
	guess   object.Key // that the text seems to be about, if it can't be attributed
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
	nodes, err := parse(text, isJSON)
	for _, n := range nodes {
		c := &converter{recent: r.recent}
		value, err := c.value(n, 0)
		if err != nil {
			doc.fail(err, r.guess(text))
			continue
		}
		switch value := value.(type) {
		case nil:
		case map[string]any:
			defs = r.define(doc, defs, item{node: n, content: value, duplicates: c.duplicates}, earlier, 0)
		default:
			doc.note(fault{line: n.Line - 1, reason: source.Syntax, message: "a document must be a mapping with apiVersion and kind"}, "")
		}
	}
	if err != nil {
		doc.fail(err, r.guess(text))
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
	case len(rest.faults) == 0 && !rest.broken:
		doc.rest = nil
	default:
		rest.written = nil
	}
}

// fail records that the document, or the rest of it, can't be understood.
func (doc *document) fail(err error, guess object.Key) {
	f := fault{reason: source.Syntax, message: err.Error(), guess: guess}
	if syntax := new(syntaxError); errors.As(err, &syntax) {
		f.line = max(0, syntax.line-1)
	}
	doc.note(f, "")
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

// define appends what an item defines to the definitions of its document.
func (r *reader) define(doc *document, defs []definition, it item, earlier map[uint64]*definition, depth int) []definition {
	if items, ok := listItems(it.content); ok && depth < maxListDepth {
		return r.defineItems(doc, defs, it, items, earlier, depth)
	}
	raw := hashOf(it.content)
	line := it.node.Line - 1
	id, err := r.validator.Identify(it.content)
	if err != nil {
		r.unidentified(doc, it, err)
		return defs
	}
	def := definition{doc: doc, line: int32(line), order: int32(len(defs))}
	if was := earlier[raw]; was != nil && was.key() == id.Key && len(it.duplicates) == 0 {
		def.object, def.sum, def.spec = was.object, was.sum, was.spec
	} else {
		r.decode(&def, id, it)
	}
	extra := doc.extra()
	extra.written = append(extra.written, raw)
	return append(defs, def)
}

// decode validates an object's text.
func (r *reader) decode(def *definition, id schema.Identity, it item) {
	refused := &refusal{key: id.Key}
	for _, dup := range it.duplicates {
		refused.add(def, fault{line: dup.line - 1, field: dup.field, reason: source.Invalid, message: "the field is there twice: remove one"})
	}
	object, errs := r.validator.Decode(id, it.content)
	for _, err := range errs {
		refused.add(def, it.fault(err))
	}
	if len(refused.faults) > 0 {
		def.refused = refused
		if refused.standIn, refused.unread = r.validator.StandIn(id, it.content, errs); refused.standIn != nil {
			def.sum = sumOf(refused.standIn)
			def.spec = def.sum
		}
		return
	}
	meta := it.content["metadata"]
	delete(it.content, "metadata")
	def.spec = hashOf(it.content)
	def.sum = hashOf(meta, int64(def.spec))
	def.object = object
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

// unidentified handles a document that isn't an object that Gatehouse reads.
func (r *reader) unidentified(doc *document, it item, err error) {
	var invalid *field.Error
	var unknown *schema.UnknownKindError
	switch {
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

func (r *reader) defineItems(doc *document, defs []definition, list item, items []any, earlier map[uint64]*definition, depth int) []definition {
	kind, _ := list.content["kind"].(string)
	for i, value := range items {
		path := fmt.Sprintf("items[%d]", i)
		node := nodeAt(list.node, path)
		content, ok := value.(map[string]any)
		if !ok {
			doc.note(fault{line: node.Line - 1, field: joinPaths(list.path, path), reason: source.Syntax, message: "an item of a List must be a mapping"}, "")
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
		defs = r.define(doc, defs, it, earlier, depth+1)
	}
	return defs
}

func inherit(content map[string]any, key string, value any) {
	if _, ok := content[key]; !ok && value != nil {
		content[key] = value
	}
}
