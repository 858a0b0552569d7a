package file

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// maxListDepth bounds Lists of Lists.
const maxListDepth = 4

// defineList appends what the items of a List define, or of a list of a single kind
// (HTTPRouteList), which kubectl and API servers write; false if an item is no list.
func (r *reader) defineList(doc *document, defs []definition, of item, earlier map[uint64]*definition, depth int) ([]definition, bool) {
	name, _ := of.content["kind"].(string)
	single, isList := strings.CutSuffix(name, "List")
	items, ok := of.content["items"].([]any)
	wrong := func(field, message string) ([]definition, bool) {
		doc.unreadable(fault{line: lineOf(of.node, field) - 1, field: joinPaths(of.path, field), reason: source.Invalid, message: message})
		return defs, true
	}
	switch {
	case isList && ok:
	case name == "List":
		return wrong("items", "must be a list of objects: write one, such as [], or remove the document")
	case slices.ContainsFunc(items, isObject):
		return wrong("kind", fmt.Sprintf("%q is no List, and there are objects in items: write kind: List", name))
	default:
		return defs, false
	}
	for i, value := range items {
		at := fmt.Sprintf("items[%d]", i)
		it := item{node: nodeAt(of.node, at), path: joinPaths(of.path, at)}
		if it.content, ok = value.(map[string]any); !ok {
			doc.unreadable(fault{line: it.node.Line - 1, field: it.path, reason: source.Syntax, message: "an item of a List must be a mapping"})
			continue
		}
		if single != "" { // what the list says need not be repeated
			for field, value := range map[string]any{"kind": single, "apiVersion": of.content["apiVersion"]} {
				if _, ok := it.content[field]; !ok && value != nil {
					it.content[field] = value
				}
			}
		}
		for _, dup := range of.duplicates {
			if rest, ok := strings.CutPrefix(dup.field, at+"."); ok {
				it.duplicates = append(it.duplicates, duplicate{field: rest, line: dup.line})
			}
		}
		defs = r.define(doc, defs, it, earlier, depth+1)
	}
	return defs, true
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
