package file

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// headFields name an object: each has them once.
var headFields = []string{"apiVersion", "kind", "metadata"}

// topFields are those that every object has.
var topFields = []string{"apiVersion", "kind", "metadata", "spec"}

// separator is what separates objects: documents of a file, or items of a List.
type separator string

const (
	documentSeparator separator = "---"
	itemSeparator     separator = "-"
)

// missing are the faults of an object that another one follows, and of that.
func (s separator) missing(line int) (before, after fault) {
	where := "in a line of its own"
	if s == itemSeparator {
		where = "before its first field"
	}
	before = fault{line: line, reason: source.Syntax, message: fmt.Sprintf("another object begins here, and %s is missing between the two: write it %s", s, where)}
	after = fault{line: line, reason: source.Syntax, message: fmt.Sprintf("%s is missing before this object: write it %s", s, where)}
	return before, after
}

// parts returns the objects that a mapping holds where what separates them is missing; nil if
// it is one object.
func (it item) parts() []item {
	if !slices.ContainsFunc(it.duplicates, func(d duplicate) bool { return slices.Contains(headFields, d.field) }) {
		return nil
	}
	nodes := cutMapping(it.node)
	if len(nodes) < 2 {
		return nil
	}
	var parts []item
	for i, n := range nodes {
		c := &converter{drops: true}
		value, err := c.value(n, 0)
		content, ok := value.(map[string]any)
		if err != nil || !ok {
			return nil
		}
		it.inherit(content)
		part := item{node: n, path: it.path, content: content, inherited: it.inherited, duplicates: c.duplicates, separator: it.separator, salvaged: it.salvaged, lost: it.lost}
		var f fault
		if i == 0 {
			f, _ = it.separator.missing(nodes[1].Line - 1)
		} else {
			_, f = it.separator.missing(n.Line - 1)
		}
		part.glued = &f
		parts = append(parts, part)
	}
	return parts
}

// cutMapping cuts a mapping where a field that names an object comes again. Each part has to name
// an object: else a field is just there twice.
func cutMapping(n *yaml.Node) (parts []*yaml.Node) {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		head := slices.Contains(headFields, key.Value)
		if len(parts) == 0 || head && seen[key.Value] {
			if len(parts) > 0 && len(seen) < 2 {
				return nil
			}
			clear(seen)
			parts = append(parts, &yaml.Node{Kind: n.Kind, Tag: n.Tag, Style: n.Style, Line: key.Line, Column: key.Column})
		}
		part := parts[len(parts)-1]
		part.Content = append(part.Content, key, n.Content[i+1])
		if head {
			seen[key.Value] = true
		}
	}
	if len(seen) < 2 {
		return nil
	}
	return parts
}
