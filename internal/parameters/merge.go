package parameters

import (
	"reflect"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// Merge lays settings over each other, the weakest first; nil ones say
// nothing. See v1alpha1.Settings for the rules. The result may share parts with what
// it comes from, and nobody writes into either.
func Merge(levels ...*v1alpha1.Settings) *v1alpha1.Settings {
	merged := reflect.ValueOf(v1alpha1.Settings{})
	for _, level := range levels {
		if level != nil {
			merged = overlayStruct(merged, reflect.ValueOf(*level))
		}
	}
	out := merged.Interface().(v1alpha1.Settings)
	return &out
}

// ownTypes is the package of the types that are merged to any depth. Those of
// Kubernetes are merged by their direct fields: what lies deeper are unions and
// the like, of which a mixture makes no sense.
var ownTypes = reflect.TypeFor[v1alpha1.Settings]().PkgPath()

// overlayStruct lays the fields of strong over those of weak, in a new value.
func overlayStruct(weak, strong reflect.Value) reflect.Value {
	t := strong.Type()
	out := reflect.New(t).Elem()
	chosen := false
	for i := range t.NumField() {
		chosen = chosen || isTagged(t.Field(i), "choice") && !strong.Field(i).IsZero()
	}
	for i := range t.NumField() {
		w, s := weak.Field(i), strong.Field(i)
		switch {
		case s.IsZero() && chosen && isTagged(t.Field(i), "choice"):
		case s.IsZero():
			out.Field(i).Set(w)
		case w.IsZero() || isTagged(t.Field(i), "whole") || t.PkgPath() != ownTypes && s.Kind() != reflect.Map:
			out.Field(i).Set(s)
		default:
			out.Field(i).Set(overlay(w, s))
		}
	}
	return out
}

func isTagged(f reflect.StructField, tag string) bool {
	return slices.Contains(strings.Split(f.Tag.Get("merge"), ","), tag)
}

// overlay lays one value over another; both are set.
func overlay(weak, strong reflect.Value) reflect.Value {
	switch {
	case strong.Kind() == reflect.Pointer && strong.Type().Elem().Kind() == reflect.Struct:
		p := reflect.New(strong.Type().Elem())
		p.Elem().Set(overlayStruct(weak.Elem(), strong.Elem()))
		return p
	case strong.Kind() == reflect.Map && strong.Len() > 0:
		m := reflect.MakeMapWithSize(strong.Type(), weak.Len()+strong.Len())
		for _, from := range []reflect.Value{weak, strong} {
			for entries := from.MapRange(); entries.Next(); {
				m.SetMapIndex(entries.Key(), entries.Value())
			}
		}
		return m
	default:
		return strong
	}
}
