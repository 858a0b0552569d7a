package file

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/spelling"
)

// list is what a document holds that is a List of objects.
type list struct {
	kind  string // of its items, if it says so
	paths []string
	items []any
	// fault is what is wrong with the list; its items are objects with a mistake then.
	fault *fault
}

// listOf recognises kind List and the lists of single kinds (HTTPRouteList) that kubectl and API
// servers write, and what can only have been meant to be one: else all that it holds would be of
// no concern.
func (it item) listOf() *list {
	name, _ := it.content["kind"].(string)
	single, isList := strings.CutSuffix(name, "List")
	l := &list{kind: single}
	value, said := it.content["items"]
	if items, ok := value.([]any); ok {
		l.add("items", items)
		switch {
		case isList:
		case !slices.ContainsFunc(items, isObject):
			return nil // something else that has items
		default:
			l.kind = ""
			l.fail(it, "kind", fmt.Sprintf("%q is no List, and there are objects in items: write kind: List", name))
		}
		return l
	}
	isList = isList && single == "" || spelling.Nearest(name, slices.Values([]string{"List"})) != ""
	switch value := value.(type) {
	case map[string]any:
		switch {
		case isObject(value):
			l.paths, l.items = []string{"items"}, []any{value}
			l.fail(it, "items", "must be a list, not a mapping: write - before the object's first field")
			return l
		case slices.ContainsFunc(slices.Collect(maps.Values(value)), isObject):
			for _, name := range slices.Sorted(maps.Keys(value)) {
				l.paths, l.items = append(l.paths, "items."+name), append(l.items, value[name])
			}
			l.fail(it, "items", "must be a list, not a mapping: write - in place of each name")
			return l
		}
	case nil:
		for _, name := range slices.Sorted(maps.Keys(it.content)) {
			items, ok := it.content[name].([]any)
			if ok && slices.ContainsFunc(items, isObject) && (isList || spelling.Nearest(name, slices.Values([]string{"items"})) != "") {
				l.add(name, items)
				l.fail(it, name, "unknown field: did you mean items?")
				return l
			}
		}
	}
	if !isList {
		return nil
	}
	message := "required, but missing"
	if said {
		message = "must be a list of objects: write one, such as [], or remove the document"
	}
	l.fail(it, "items", message)
	return l
}

// bareList is a document that is a list, as the List that it can have been meant to be; false if
// there is no object in it.
func bareList(n *yaml.Node, items []any) (item, bool) {
	if !slices.ContainsFunc(items, isObject) {
		return item{}, false
	}
	node := &yaml.Node{Kind: yaml.MappingNode, Line: n.Line, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: "items", Line: n.Line}, n}}
	f := &fault{line: n.Line - 1, reason: source.Syntax, message: noMapping + ": remove the -, or write the objects as items of kind: List"}
	return item{node: node, content: map[string]any{"kind": "List", "items": items}, glued: f, separator: documentSeparator}, true
}

func (l *list) add(name string, items []any) {
	l.items = items
	for i := range items {
		l.paths = append(l.paths, fmt.Sprintf("%s[%d]", name, i))
	}
}

func (l *list) fail(it item, field, message string) {
	l.fault = &fault{line: lineOf(it.node, field) - 1, field: joinPaths(it.path, field), reason: source.Invalid, message: message}
}

// isObject reports whether a value looks like an object.
func isObject(value any) bool {
	fields, _ := value.(map[string]any)
	named := 0
	for _, name := range headFields {
		if _, ok := fields[name]; ok {
			named++
		}
	}
	return named > 1
}

// defineList appends what the items of a list define.
func (r *reader) defineList(doc *document, defs []definition, of item, l *list, earlier map[uint64]*definition, depth int) []definition {
	if l.fault != nil && len(l.items) == 0 {
		doc.note(*l.fault, "")
	}
	for i, value := range l.items {
		node := nodeAt(of.node, l.paths[i])
		path := joinPaths(of.path, l.paths[i])
		content, ok := value.(map[string]any)
		if !ok {
			doc.note(fault{line: node.Line - 1, field: path, reason: source.Syntax, message: "an item of a List must be a mapping"}, "")
			continue
		}
		it := item{node: node, path: path, content: content, separator: itemSeparator, glued: of.glued, salvaged: of.salvaged, lost: of.lost}
		if l.fault != nil && it.glued == nil {
			it.glued = l.fault
		}
		if l.kind != "" {
			// Items of a typed list need not repeat what the list says.
			it.inherited = map[string]any{"kind": l.kind, "apiVersion": of.content["apiVersion"]}
			it.inherit(content)
		}
		for _, dup := range of.duplicates {
			if rest, ok := strings.CutPrefix(dup.field, l.paths[i]+"."); ok {
				it.duplicates = append(it.duplicates, duplicate{field: rest, line: dup.line})
			}
		}
		defs = r.define(doc, defs, it, earlier, depth+1)
	}
	return defs
}
