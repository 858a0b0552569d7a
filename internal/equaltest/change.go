package equaltest

import (
	"reflect"
	"slices"
	"strings"
	"time"
	"unsafe"
)

// yield gets the path of a field, what has happened to it, and a copy of the whole in
// which nothing else is different.
type yield func(path, how string, v reflect.Value)

var timeType = reflect.TypeFor[time.Time]()

// variants yields copies of a value, each with one change.
func (c *checker) variants(v reflect.Value, path string, yield yield) {
	if o := c.others[path]; o != nil {
		o.met = true
		yield(path, "replaced", converted(o.value, v.Type()))
		return
	}
	t := v.Type()
	change := func(how string, set func(reflect.Value)) {
		n := copied(v)
		set(n)
		yield(path, how, n)
	}
	if t == timeType {
		change("an hour later", func(n reflect.Value) {
			n.Set(reflect.ValueOf(v.Interface().(time.Time).Add(time.Hour)))
		})
		return
	}
	switch t.Kind() {
	case reflect.Bool:
		change("inverted", func(n reflect.Value) { n.SetBool(!v.Bool()) })
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		change("plus 1", func(n reflect.Value) { n.SetInt(v.Int() + 1) })
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		change("plus 1", func(n reflect.Value) { n.SetUint(v.Uint() + 1) })
	case reflect.Float32, reflect.Float64:
		change("plus 1", func(n reflect.Value) { n.SetFloat(v.Float() + 1) })
	case reflect.String:
		change("longer", func(n reflect.Value) { n.SetString(v.String() + "x") })
	case reflect.Struct:
		c.structs(v, path, yield)
	case reflect.Array:
		for i := range v.Len() {
			c.variants(v.Index(i), path+"[]", func(path, how string, e reflect.Value) {
				n := copied(v)
				n.Index(i).Set(e)
				yield(path, how, n)
			})
		}
	case reflect.Pointer:
		c.pointers(v, path, yield)
	case reflect.Slice:
		c.slices(v, path, yield)
	case reflect.Map:
		c.maps(v, path, yield)
	default:
		c.problem("%s is of kind %s: name another value for it by Other", path, t.Kind())
	}
}

func (c *checker) structs(v reflect.Value, path string, yield yield) {
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if name == "_" {
			continue
		}
		c.variants(field(addressable(v), i), join(path, name), func(path, how string, f reflect.Value) {
			n := copied(v)
			field(n, i).Set(f)
			yield(path, how, n)
		})
	}
}

func (c *checker) pointers(v reflect.Value, path string, yield yield) {
	if v.IsNil() { // of a type within itself
		yield(path, "set", reflect.New(v.Type().Elem()))
		return
	}
	if !c.isNotNil(path) && !strings.HasSuffix(path, "[]") && !strings.HasSuffix(path, "{}") {
		yield(path, "nil", reflect.Zero(v.Type()))
	}
	c.variants(v.Elem(), path, func(path, how string, e reflect.Value) { yield(path, how, pointerTo(e)) })
}

func (c *checker) slices(v reflect.Value, path string, yield yield) {
	if v.Len() == 0 { // of a type within itself
		yield(path, "longer", reflect.MakeSlice(v.Type(), 1, 1))
		return
	}
	if v.Len() > 1 || !c.isNotNil(path) {
		yield(path, "shorter", v.Slice(0, v.Len()-1))
	}
	yield(path, "longer", reflect.Append(v.Slice3(0, v.Len(), v.Len()), v.Index(v.Len()-1)))
	for i := range v.Len() {
		c.variants(v.Index(i), path+"[]", func(path, how string, e reflect.Value) {
			n := reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, v.Len()), v)
			n.Index(i).Set(e)
			yield(path, how, n)
		})
	}
}

func (c *checker) maps(v reflect.Value, path string, yield yield) {
	without := func(key reflect.Value) reflect.Value {
		n := reflect.MakeMap(v.Type())
		for _, k := range v.MapKeys() {
			if !k.Equal(key) {
				n.SetMapIndex(k, v.MapIndex(k))
			}
		}
		return n
	}
	if v.Len() == 0 { // of a type within itself
		n := reflect.MakeMap(v.Type())
		n.SetMapIndex(reflect.Zero(v.Type().Key()), reflect.Zero(v.Type().Elem()))
		yield(path, "longer", n)
		return
	}
	for _, key := range v.MapKeys() {
		if v.Len() > 1 || !c.isNotNil(path) {
			yield(path, "shorter", without(key))
		}
		value := v.MapIndex(key)
		c.variants(key, path, func(path, _ string, k reflect.Value) {
			n := without(key)
			n.SetMapIndex(k, value)
			yield(path, "under another key", n)
		})
		c.variants(value, path+"{}", func(path, how string, e reflect.Value) {
			n := without(key)
			n.SetMapIndex(key, e)
			yield(path, how, n)
		})
	}
}

func (c *checker) isNotNil(path string) bool {
	_, named := c.notNil[path]
	if named {
		c.notNil[path] = true
	}
	return named
}

// filled returns a value with something in each pointer, slice and map. The types are
// those that it is within.
func (c *checker) filled(v reflect.Value, path string, within []reflect.Type) reflect.Value {
	t := v.Type()
	if c.others[path] != nil || t == timeType {
		return v
	}
	switch t.Kind() {
	case reflect.Pointer:
		if v.IsNil() && slices.Contains(within, t.Elem()) {
			return v
		}
		e := reflect.Zero(t.Elem())
		if !v.IsNil() {
			e = v.Elem()
		}
		return pointerTo(c.filled(e, path, within))
	case reflect.Struct:
		within = append(slices.Clip(within), t)
		n := copied(v)
		for i := range t.NumField() {
			if name := t.Field(i).Name; name != "_" {
				field(n, i).Set(c.filled(field(addressable(v), i), join(path, name), within))
			}
		}
		return n
	case reflect.Slice:
		if v.Len() == 0 {
			if slices.Contains(within, target(t.Elem())) {
				return v
			}
			v = reflect.MakeSlice(t, 1, 1)
		}
		n := reflect.MakeSlice(t, 0, v.Len())
		for i := range v.Len() {
			n = reflect.Append(n, c.filled(v.Index(i), path+"[]", within))
		}
		return n
	case reflect.Map:
		n := reflect.MakeMap(t)
		if v.Len() == 0 {
			if slices.Contains(within, target(t.Elem())) {
				return v
			}
			n.SetMapIndex(reflect.Zero(t.Key()), c.filled(reflect.Zero(t.Elem()), path+"{}", within))
		}
		for _, k := range v.MapKeys() {
			n.SetMapIndex(k, c.filled(v.MapIndex(k), path+"{}", within))
		}
		return n
	default:
		return v
	}
}

// target is the type that pointers lead to.
func target(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

func copied(v reflect.Value) reflect.Value {
	n := reflect.New(v.Type()).Elem()
	n.Set(v)
	return n
}

func pointerTo(v reflect.Value) reflect.Value { return copied(v).Addr() }

func addressable(v reflect.Value) reflect.Value {
	if v.CanAddr() {
		return v
	}
	return copied(v)
}

// field returns a field of an addressable struct, exported or not.
func field(v reflect.Value, i int) reflect.Value {
	f := v.Field(i)
	return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem() //nolint:gosec // the only way to an unexported field
}

func converted(value any, t reflect.Type) reflect.Value {
	n := reflect.New(t).Elem()
	if value != nil {
		n.Set(reflect.ValueOf(value).Convert(t))
	}
	return n
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
