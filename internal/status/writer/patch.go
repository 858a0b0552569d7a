package writer

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// operation is one of RFC 6902.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitzero"`
}

// patchOf returns the patch that makes one status of another, for no other version of
// the object than the one given. It names the places that differ and no more: fields
// that the types here don't know stay as they are.
func patchOf(resourceVersion string, from, to any) ([]byte, error) {
	a, err := tree(from)
	if err != nil {
		return nil, err
	}
	b, err := tree(to)
	if err != nil {
		return nil, err
	}
	out := []operation{{"add", "/metadata/resourceVersion", resourceVersion}}
	if old, _ := a.(map[string]any); !slices.ContainsFunc(slices.Collect(maps.Values(old)), present) {
		// There may be no status at all.
		out = append(out, operation{"add", "/status", b})
	} else {
		out = differences(out, "/status", a, b)
	}
	return json.Marshal(out)
}

func tree(status any) (any, error) {
	text, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("a status in JSON: %w", err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("a status in JSON: %w", err)
	}
	return out, nil
}

// present reports whether a value is more than the zero that stands for a field which
// the object doesn't have.
func present(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case []any:
		return len(v) > 0
	default:
		return true
	}
}

// differences appends what makes b of a, which are both present.
func differences(out []operation, path string, a, b any) []operation {
	if reflect.DeepEqual(a, b) {
		return out
	}
	switch from := a.(type) {
	case map[string]any:
		if to, ok := b.(map[string]any); ok {
			return ofObjects(out, path, from, to)
		}
	case []any:
		if to, ok := b.([]any); ok {
			return ofLists(out, path, from, to)
		}
	}
	return append(out, operation{"add", path, b})
}

func ofObjects(out []operation, path string, from, to map[string]any) []operation {
	names := slices.Collect(maps.Keys(from))
	for name := range to {
		if _, both := from[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		at := path + "/" + escape.Replace(name)
		_, required := to[name] // and empty
		switch had, has := present(from[name]), present(to[name]); {
		case had && has:
			out = differences(out, at, from[name], to[name])
		case has:
			out = append(out, operation{"add", at, to[name]})
		case had && required:
			out = append(out, operation{"add", at, empty})
		case had:
			out = append(out, operation{Op: "remove", Path: at})
		}
	}
	return out
}

var escape = strings.NewReplacer("~", "~0", "/", "~1")

// empty is what stands in a required list without elements.
var empty = []any{}

// ofLists takes out what is gone, corrects what has stayed, and adds the rest at the
// end. A list that has another order is replaced.
func ofLists(out []operation, path string, from, to []any) []operation {
	wanted := map[string]bool{}
	for _, e := range to {
		wanted[identity(e)] = true
	}
	var removals []operation
	var kept []any
	for i, e := range from {
		if wanted[identity(e)] {
			kept = append(kept, e)
		} else {
			removals = append(removals, operation{Op: "remove", Path: path + "/" + strconv.Itoa(i)})
		}
	}
	for i, e := range kept {
		if i >= len(to) || identity(e) != identity(to[i]) {
			return append(out, operation{"add", path, to})
		}
	}
	slices.Reverse(removals) // each leaves the places before it as they are
	out = append(out, removals...)
	for i, e := range kept {
		out = differences(out, path+"/"+strconv.Itoa(i), e, to[i])
	}
	for _, e := range to[len(kept):] {
		out = append(out, operation{"add", path + "/-", e})
	}
	return out
}

// identity tells the elements of a list apart: conditions by type, listeners by name,
// entries by whom and what they are about, other things by all that they are.
func identity(element any) string {
	fields, ok := element.(map[string]any)
	if !ok {
		return fmt.Sprint(element)
	}
	var key []any
	switch {
	case fields["conditions"] == nil && fields["lastTransitionTime"] == nil:
		key = []any{fields}
	default:
		key = []any{fields["type"], fields["name"], fields["controllerName"], fields["parentRef"], fields["ancestorRef"]}
	}
	text, _ := json.Marshal(key) //nolint:errchkjson // it was made from JSON
	return string(text)
}
