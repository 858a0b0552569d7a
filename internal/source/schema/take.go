package schema

import "strconv"

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
// missing. It reports whether there was something to take.
func take(spec map[string]any, path []string) bool {
	way := walk(spec, path)
	if len(way) == 0 || len(way) == 1 && way[0].name == "parentRefs" {
		return false // a route without parents holds nothing
	}
	way[len(way)-1].take()
	return true
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

// sweep removes what take has marked, and empty lists.
func sweep(spec map[string]any) {
	for name, value := range spec {
		value = swept(value)
		if list, ok := value.([]any); ok && len(list) == 0 {
			delete(spec, name)
		} else {
			spec[name] = value
		}
	}
}

func swept(value any) any {
	switch value := value.(type) {
	case map[string]any:
		sweep(value)
	case []any:
		out := value[:0]
		for _, item := range value {
			if item != any(taken{}) {
				out = append(out, swept(item))
			}
		}
		return out
	}
	return value
}
