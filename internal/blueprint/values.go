package blueprint

import (
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Layer is what one object, its origin, says of values. What it says is as JSON has it, and nobody writes
// into it.
type Layer struct {
	Origin    object.Key
	Defaults  map[string]any
	Overrides map[string]any
}

// Map is what an object says of values; the API's schema has seen to it that it is a map.
func Map(v *apiextensionsv1.JSON) map[string]any {
	if v == nil {
		return nil
	}
	out := map[string]any{}
	if err := json.Unmarshal(v.Raw, &out); err != nil {
		return nil
	}
	return out
}

// Conflict is a layer that can't be used, since it has something of another form than a layer
// with more authority.
type Conflict struct {
	Origin  object.Key
	Message string
}

// Values are what layers come to.
type Values struct {
	Values map[string]any
	// Origins say of each leaf, by its path, such as dns.zone, which layer it is from.
	Origins map[string]object.Key
	// Conflicts are of layers that have been left out.
	Conflicts []Conflict
	// Problems are what all of them together are not and must be.
	Problems []Problem
}

// Merge lays layers over each other. They come with the most authority first: the blueprint's,
// then the platform's, then the team's. Of defaults the last one counts, of overrides the first
// one, and overrides beat defaults. Maps are merged, and all else, lists too, is replaced.
//
// A layer that has a map where one with more authority has none, or none where that one has a
// map, is left out as a whole.
func Merge(layers []Layer) Values {
	var conflicts []Conflict
	used := make([]Layer, 0, len(layers))
	var shape map[string]any // all that is said by layers so far, to compare forms with
	for _, l := range layers {
		next, at, ok := sameForm(shape, l.Defaults, "")
		if ok {
			next, at, ok = sameForm(next, l.Overrides, "")
		}
		if !ok {
			conflicts = append(conflicts, Conflict{l.Origin, fmt.Sprintf("%s has another form than values with more authority give it: it is a map in one place and none in the other", at)})
			continue
		}
		shape = next
		used = append(used, l)
	}
	out := Values{Values: map[string]any{}, Origins: map[string]object.Key{}, Conflicts: conflicts}
	for _, l := range used {
		out.lay(out.Values, l.Defaults, "", l.Origin)
	}
	for _, l := range slices.Backward(used) {
		out.lay(out.Values, l.Overrides, "", l.Origin)
	}
	return out
}

// sameForm adds to a shape what is said more, and reports where that has another form.
func sameForm(shape, more map[string]any, under string) (out map[string]any, at string, ok bool) {
	out = clone(shape)
	for name, v := range more {
		path := under + name
		had, there := out[name]
		sub, isMap := v.(map[string]any)
		had2, wasMap := had.(map[string]any)
		switch {
		case there && isMap != wasMap && v != nil && had != nil:
			return nil, path, false
		case isMap:
			if out[name], at, ok = sameForm(had2, sub, path+"."); !ok {
				return nil, at, false
			}
		case !there || had == nil:
			out[name] = v
		}
	}
	return out, "", true
}

// lay lays a map over another one, which is ours.
func (v *Values) lay(over, in map[string]any, under string, origin object.Key) {
	for _, name := range slices.Sorted(maps.Keys(in)) {
		path := under + name
		sub, isMap := in[name].(map[string]any)
		if !isMap {
			v.forget(path)
			over[name], v.Origins[path] = in[name], origin
			continue
		}
		into, ok := over[name].(map[string]any)
		if !ok {
			into = map[string]any{}
			over[name] = into
			delete(v.Origins, path)
		}
		v.lay(into, sub, path+".", origin)
	}
}

// forget removes the origins of what is replaced.
func (v *Values) forget(path string) {
	maps.DeleteFunc(v.Origins, func(p string, _ object.Key) bool { return len(p) > len(path) && p[:len(path)+1] == path+"." })
}

// Leaf is a value that is no map, by the names that lead to it, such as dns.zone.
type Leaf struct {
	Name   string
	Value  any
	Origin object.Key
}

// Leaves are all of them, sorted.
func (v *Values) Leaves() (out []Leaf) {
	var walk func(in map[string]any, under string)
	walk = func(in map[string]any, under string) {
		for _, name := range slices.Sorted(maps.Keys(in)) {
			path := under + name
			if sub, isMap := in[name].(map[string]any); isMap {
				walk(sub, path+".")
				continue
			}
			out = append(out, Leaf{path, in[name], v.Origins[path]})
		}
	}
	walk(v.Values, "")
	return out
}
