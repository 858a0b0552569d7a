package file

import (
	"encoding/base64"
	"math"
	"strconv"
	"strings"
	"unique"

	"go.yaml.in/yaml/v3"
)

// maxAliased bounds the nodes that aliases and merge keys may add to a document,
// so that nine lines of YAML can't fill the memory.
const maxAliased = 100_000

// duplicate is a key that a mapping has twice.
type duplicate struct {
	field string
	line  int
}

// converter turns a tree into the generic value that kubectl would send for it:
// mappings with string keys, int64 and float64 for numbers, and YAML 1.1's booleans
// (yes, on, …).
type converter struct {
	path       []string
	duplicates []duplicate
	aliased    int                 // nodes added by aliases so far
	open       map[*yaml.Node]bool // aliases being followed
	recent     *recent             // nil: every string is a copy of its own
	drops      bool                // fields whose value is written as null
}

func (c *converter) value(n *yaml.Node, depth int) (any, error) {
	if depth > maxDepth {
		return nil, tooDeep(n)
	}
	if len(c.open) > 0 {
		if c.aliased++; c.aliased > maxAliased {
			return nil, &syntaxError{line: n.Line, text: "the aliases of the document expand to too much"}
		}
	}
	switch n.Kind {
	case yaml.MappingNode:
		return c.mapping(n, depth)
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for i, child := range n.Content {
			c.path = append(c.path, "["+strconv.Itoa(i)+"]")
			v, err := c.value(child, depth+1)
			c.path = c.path[:len(c.path)-1]
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case yaml.AliasNode:
		var v any
		err := c.follow(n, func(target *yaml.Node) (err error) {
			v, err = c.value(target, depth+1)
			return err
		})
		return v, err
	default:
		v, err := scalar(n)
		if text, ok := v.(string); ok {
			v = c.recent.copyOf(text)
		}
		return v, err
	}
}

// follow calls f with the target of an alias and refuses one that contains itself.
func (c *converter) follow(alias *yaml.Node, f func(*yaml.Node) error) error {
	target := alias.Alias
	if c.open[target] {
		return &syntaxError{line: alias.Line, text: "the anchor " + alias.Value + " contains itself"}
	}
	if c.open == nil {
		c.open = map[*yaml.Node]bool{}
	}
	c.open[target] = true
	err := f(target)
	delete(c.open, target)
	return err
}

func (c *converter) mapping(n *yaml.Node, depth int) (any, error) {
	object := make(map[string]any, len(n.Content)/2)
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		keyNode, valueNode := n.Content[i], n.Content[i+1]
		if keyNode.Tag == "!!merge" {
			merges = append(merges, valueNode)
			continue
		}
		key, err := keyText(keyNode)
		if err != nil {
			return nil, err
		}
		c.path = append(c.path, key)
		_, twice := object[key]
		if twice {
			c.duplicates = append(c.duplicates, duplicate{field: joinPath(c.path), line: keyNode.Line})
		}
		v, err := c.value(valueNode, depth+1)
		c.path = c.path[:len(c.path)-1]
		if err != nil {
			return nil, err
		}
		if c.drops && v == nil && valueNode.Value != "" && !twice {
			continue // said to be nothing, as templates do; an API server drops it too
		}
		if text, ok := v.(string); ok && repeats[key] {
			v = unique.Make(text).Value()
		}
		object[key] = v
	}
	for _, m := range merges {
		if err := c.merge(object, m, depth+1); err != nil {
			return nil, err
		}
	}
	return object, nil
}

// merge adds what a merge key refers to: keys already there win.
func (c *converter) merge(object map[string]any, n *yaml.Node, depth int) error {
	if depth > maxDepth {
		return tooDeep(n)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return c.follow(n, func(target *yaml.Node) error { return c.merge(object, target, depth+1) })
	case yaml.SequenceNode:
		for _, child := range n.Content {
			if err := c.merge(object, child, depth+1); err != nil {
				return err
			}
		}
		return nil
	case yaml.MappingNode:
		v, err := c.value(n, depth+1)
		if err != nil {
			return err
		}
		for key, value := range v.(map[string]any) {
			if _, ok := object[key]; !ok {
				object[key] = value
			}
		}
		return nil
	default:
		return &syntaxError{line: n.Line, text: "a merge key (<<) takes a mapping or a list of mappings"}
	}
}

// repeats are the fields that have the same few values in every object. All objects
// share one copy of each value, which saves a good part of the memory of many small
// objects.
var repeats = map[string]bool{
	"apiVersion": true, "kind": true, "group": true, "namespace": true,
	"type": true, "protocol": true, "addressType": true, "appProtocol": true,
	"method": true, "sectionName": true, "from": true, "mode": true,
}

func keyText(n *yaml.Node) (string, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
		return "", &syntaxError{line: n.Line, text: "a key must be a string"}
	}
	v, err := scalar(n)
	if err != nil {
		return "", err
	}
	switch v := v.(type) {
	case string:
		return unique.Make(v).Value(), nil
	case bool:
		return strconv.FormatBool(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	default:
		return "", &syntaxError{line: n.Line, text: "a key must be a string, not null"}
	}
}

func scalar(n *yaml.Node) (any, error) {
	switch n.Tag {
	case "!!null":
		return nil, nil
	case "!!bool":
		if b, ok := booleans[n.Value]; ok {
			return b, nil
		}
		return n.Value, nil
	case "!!int", "!!float":
		return number(n)
	case "!!binary":
		data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), ""))
		if err != nil {
			return nil, &syntaxError{line: n.Line, text: "!!binary needs base64"}
		}
		return string(data), nil
	}
	if n.Style == 0 { // plain
		if b, ok := booleans[n.Value]; ok {
			return b, nil
		}
	}
	return n.Value, nil
}

var booleans = map[string]bool{
	"true": true, "True": true, "TRUE": true, "yes": true, "Yes": true, "YES": true,
	"on": true, "On": true, "ON": true, "y": true, "Y": true,
	"false": false, "False": false, "FALSE": false, "no": false, "No": false, "NO": false,
	"off": false, "Off": false, "OFF": false, "n": false, "N": false,
}

// number returns int64 for everything integral that fits. That includes 1.0 and 1e3,
// which are sent to an API server without their point as well.
func number(n *yaml.Node) (any, error) {
	plain := strings.ReplaceAll(n.Value, "_", "")
	if n.Tag == "!!int" {
		if i, err := strconv.ParseInt(plain, 0, 64); err == nil {
			return i, nil
		}
	}
	f, err := strconv.ParseFloat(plain, 64)
	if err != nil {
		if i, ierr := strconv.ParseUint(plain, 0, 64); ierr == nil {
			return float64(i), nil
		}
		return nil, &syntaxError{line: n.Line, text: strconv.Quote(n.Value) + " is not a number that JSON can hold"}
	}
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return nil, &syntaxError{line: n.Line, text: strconv.Quote(n.Value) + " is not a number that JSON can hold"}
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return int64(f), nil
	}
	return f, nil
}

func joinPath(path []string) string {
	var b strings.Builder
	for i, step := range path {
		if i > 0 && !strings.HasPrefix(step, "[") {
			b.WriteByte('.')
		}
		b.WriteString(step)
	}
	return b.String()
}
