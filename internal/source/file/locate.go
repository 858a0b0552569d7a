package file

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// lineOf returns the line of a field, given its path as the API server writes
// it: spec.rules[0].name, metadata.labels[app], metadata.annotations.example.com/a.
// A field that isn't there (a required one) gets the line of what should hold it.
func lineOf(n *yaml.Node, path string) int {
	line := n.Line
	for range maxDepth {
		path = strings.TrimPrefix(path, ".")
		for n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		if path == "" {
			return line
		}
		at, child, rest := step(n, path)
		if child == nil {
			return line
		}
		line, n, path = at, child, rest
	}
	return line
}

// step goes one field down. Keys may contain dots, so several keys may be a beginning
// of the path. The longest one is meant.
func step(n *yaml.Node, path string) (line int, child *yaml.Node, rest string) {
	switch n.Kind {
	case yaml.SequenceNode:
		index, after, ok := bracket(path)
		if i, err := strconv.Atoi(index); ok && err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i].Line, n.Content[i], after
		}
	case yaml.MappingNode:
		best := -1
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if after, ok := cutKey(path, key); ok && len(key) > best {
				best = len(key)
				line, child, rest = n.Content[i].Line, n.Content[i+1], after
			}
		}
		if child == nil {
			return stepMerged(n, path)
		}
	}
	return line, child, rest
}

func stepMerged(n *yaml.Node, path string) (line int, child *yaml.Node, rest string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Tag != "!!merge" {
			continue
		}
		sources := []*yaml.Node{n.Content[i+1]}
		if sources[0].Kind == yaml.SequenceNode {
			sources = sources[0].Content
		}
		for _, from := range sources {
			if from.Kind == yaml.AliasNode {
				from = from.Alias
			}
			if from.Kind != yaml.MappingNode {
				continue
			}
			for j := 0; j+1 < len(from.Content); j += 2 {
				if after, ok := cutKey(path, from.Content[j].Value); ok {
					return from.Content[j].Line, from.Content[j+1], after
				}
			}
		}
	}
	return 0, nil, ""
}

// cutKey removes a key from the front of a path, written plainly or in brackets.
func cutKey(path, key string) (rest string, ok bool) {
	if inside, after, isBracket := bracket(path); isBracket {
		return after, inside == key
	}
	rest, ok = strings.CutPrefix(path, key)
	return rest, ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func bracket(path string) (inside, rest string, ok bool) {
	if !strings.HasPrefix(path, "[") {
		return "", "", false
	}
	inside, rest, ok = strings.Cut(path[1:], "]")
	return inside, rest, ok
}

// nodeAt returns the tree at a path, or the deepest on the way to it.
func nodeAt(n *yaml.Node, path string) *yaml.Node {
	for range maxDepth {
		path = strings.TrimPrefix(path, ".")
		for n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		if path == "" {
			break
		}
		_, child, rest := step(n, path)
		if child == nil {
			break
		}
		n, path = child, rest
	}
	return n
}
