package object

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Lines writes what is known of objects as JSON, a line for each of them. What doesn't fit into a limit of bytes is left
// out, the largest first: nobody can crowd out others by writing much.
func Lines[V any](all map[Name]V, limit int) (text string, left []Name, err error) {
	type line struct {
		name Name
		text string
	}
	var lines []line
	for name, v := range all {
		text, err := json.Marshal(map[string]V{name.String(): v})
		if err != nil {
			return "", nil, fmt.Errorf("%s: %w", name, err)
		}
		lines = append(lines, line{name, string(text[1 : len(text)-1])})
	}
	slices.SortFunc(lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(len(a.text), len(b.text)), a.name.Compare(b.name))
	})
	size, fit := len("{}"), 0
	for ; fit < len(lines); fit++ {
		if size += len(lines[fit].text) + len(",\n"); size > limit {
			break
		}
	}
	for _, l := range lines[fit:] {
		left = append(left, l.name)
	}
	if lines = lines[:fit]; fit == 0 {
		return "", left, nil
	}
	slices.SortFunc(lines, func(a, b line) int { return a.name.Compare(b.name) })
	texts := make([]string, fit)
	for i, l := range lines {
		texts[i] = l.text
	}
	return "{" + strings.Join(texts, ",\n") + "}", left, nil
}

// ParseLines reads what Lines wrote.
func ParseLines[V any](text string) (map[Name]V, error) {
	if text == "" {
		return nil, nil
	}
	var all map[string]V
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, err
	}
	out := make(map[Name]V, len(all))
	for name, v := range all {
		if n, ok := ParseName(name); ok {
			out[n] = v
		}
	}
	return out, nil
}
