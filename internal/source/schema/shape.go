package schema

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkShape compares a generic value with the Go type that it is to be decoded
// to, and reports every field that the type doesn't have or can't hold, each by
// its path: the decoders of apimachinery stop at the first, and name the Go type
// instead of the path.
func checkShape(path *field.Path, value any, t reflect.Type) field.ErrorList {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if value == nil {
		return nil
	}
	if reflect.PointerTo(t).Implements(unmarshaler) {
		return checkUnmarshal(path, value, t)
	}
	switch t.Kind() {
	case reflect.Struct:
		return checkStruct(path, value, t)
	case reflect.Map:
		return checkMap(path, value, t)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return checkBytes(path, value)
		}
		return checkSlice(path, value, t)
	case reflect.String:
		if _, ok := value.(string); !ok {
			return wrongType(path, "a string", value)
		}
	case reflect.Bool:
		if _, ok := value.(bool); !ok {
			return wrongType(path, "true or false", value)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, ok := value.(int64)
		if !ok {
			return wrongType(path, "an integer", value)
		}
		if reflect.Zero(t).OverflowInt(n) {
			return field.ErrorList{field.TypeInvalid(path, field.OmitValueType{}, "the number is out of range")}
		}
	}
	return nil
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

func checkUnmarshal(path *field.Path, value any, t reflect.Type) field.ErrorList {
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, reflect.New(t).Interface())
	}
	if err != nil {
		return field.ErrorList{field.TypeInvalid(path, field.OmitValueType{}, "not a valid "+t.Name())}
	}
	return nil
}

func checkStruct(path *field.Path, value any, t reflect.Type) field.ErrorList {
	object, ok := value.(map[string]any)
	if !ok {
		return wrongType(path, "a mapping", value)
	}
	var errs field.ErrorList
	known := fieldsOf(t)
	for _, key := range sortedKeys(object) {
		child := childOf(path, key)
		if ft, ok := known[key]; ok {
			errs = append(errs, checkShape(child, object[key], ft)...)
		} else {
			errs = append(errs, misspelt(child.String(), key, sortedKeys(known)))
		}
	}
	return errs
}

func checkMap(path *field.Path, value any, t reflect.Type) field.ErrorList {
	object, ok := value.(map[string]any)
	if !ok {
		return wrongType(path, "a mapping", value)
	}
	var errs field.ErrorList
	for _, key := range sortedKeys(object) {
		errs = append(errs, checkShape(path.Key(key), object[key], t.Elem())...)
	}
	return errs
}

func checkSlice(path *field.Path, value any, t reflect.Type) field.ErrorList {
	list, ok := value.([]any)
	if !ok {
		return wrongType(path, "a list", value)
	}
	var errs field.ErrorList
	for i, item := range list {
		errs = append(errs, checkShape(path.Index(i), item, t.Elem())...)
	}
	return errs
}

func checkBytes(path *field.Path, value any) field.ErrorList {
	text, ok := value.(string)
	if !ok {
		return wrongType(path, "a base64 string", value)
	}
	if _, err := base64.StdEncoding.DecodeString(text); err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "not base64: encode the value, or put it as it is under stringData (Secret) or data (ConfigMap)")}
	}
	return nil
}

func wrongType(path *field.Path, want string, value any) field.ErrorList {
	detail := fmt.Sprintf("must be %s, not %s", want, nameOf(value))
	switch value.(type) {
	case bool, int64, float64:
		if want == "a string" {
			detail += ": put it in quotes"
		}
	}
	return field.ErrorList{field.TypeInvalid(path, field.OmitValueType{}, detail)}
}

func nameOf(value any) string {
	switch value.(type) {
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case int64:
		return "an integer"
	case float64:
		return "a number"
	case []any:
		return "a list"
	default:
		return "a mapping"
	}
}

func childOf(path *field.Path, key string) *field.Path {
	if path == nil {
		return field.NewPath(key)
	}
	return path.Child(key)
}

func sortedKeys[V any](object map[string]V) []string { return slices.Sorted(maps.Keys(object)) }

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" || !f.IsExported() {
		return ""
	}
	return name
}

var fieldCache sync.Map // reflect.Type → map[string]reflect.Type

// fieldsOf returns the JSON fields of a struct, those of embedded structs included.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if known, ok := fieldCache.Load(t); ok {
		return known.(map[string]reflect.Type)
	}
	known := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		if name := jsonName(f); name != "" {
			known[name] = f.Type
		}
	}
	fieldCache.Store(t, known)
	return known
}
