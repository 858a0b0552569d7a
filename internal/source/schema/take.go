package schema

import (
	"strconv"
	"strings"
)

// taken marks an item of a list that sweep removes.
type taken struct{}

// place is a field of a mapping or an item of a list.
type place struct {
	fields map[string]any
	name   string
	items  []any
	index  int
}

func (p place) take() {
	if p.fields != nil {
		delete(p.fields, p.name)
	} else {
		p.items[p.index] = taken{}
	}
}

// take takes a value out of a draft: that at a path, or what should hold it where it is
// missing. What says how another value is to be understood goes with that. It reports whether
// there was something to take.
func take(spec map[string]any, path []string) bool {
	way := walk(spec, path)
	if len(way) == 0 || len(way) == 1 && way[0].name == "parentRefs" {
		return false // a route without parents holds nothing
	}
	last := len(way) - 1
	if held := way[last]; len(way) == len(path) && last > 0 && held.fields != nil && !readable(way[last-1].name, held.name, held.fields) {
		last--
	}
	way[last].take()
	return true
}

// readable reports whether a condition of a match is still one without one of its fields. A
// value without its type may be compared in a way that takes less than was meant.
func readable(condition, without string, fields map[string]any) bool {
	switch {
	case condition == "path" && without == "type":
		value, ok := fields["value"].(string)
		return ok && plain(value)
	case without == "type", condition == "path":
		return false
	}
	return true
}

// plain reports whether a text is the same by any way to compare it.
func plain(value string) bool {
	return strings.HasPrefix(value, "/") && !strings.ContainsAny(value, `\.+*?()|[]{}^$`)
}

// walk returns the places on the way to a path, as far as there are any.
func walk(spec map[string]any, path []string) []place {
	var way []place
	var at any = spec
	for _, step := range path {
		switch value := at.(type) {
		case map[string]any:
			next, ok := value[step]
			if !ok {
				return way
			}
			way, at = append(way, place{fields: value, name: step}), next
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(value) {
				return way
			}
			way, at = append(way, place{items: value, index: i}), value[i]
		default:
			return way
		}
	}
	return way
}

// sweep removes what take has marked, and empty lists. A rule or a match is replaced by one
// that takes everything: without it, requests that it took would go elsewhere.
func sweep(spec map[string]any) {
	for name, value := range spec {
		value = swept(name, value)
		if list, ok := value.([]any); ok && len(list) == 0 {
			delete(spec, name)
		} else {
			spec[name] = value
		}
	}
}

func swept(name string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		sweep(value)
	case []any:
		out := value[:0]
		for _, item := range value {
			switch {
			case item != taken{}:
				out = append(out, swept("", item))
			case name == "rules" || name == "matches":
				out = append(out, map[string]any{})
			}
		}
		return out
	}
	return value
}
