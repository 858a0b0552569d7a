package parameters

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// Unallowed returns the fields that the parameters of a Gateway set although the class
// allows no more than this. A field that is set to nothing counts: it removes what the
// class has set.
func Unallowed(s *v1alpha1.Settings, allowed v1alpha1.AllowedParameters) []string {
	if allowed == v1alpha1.AllowAll {
		return nil
	}
	return unallowed("spec", reflect.ValueOf(*s), allowed)
}

// Allowed is what Gateways may set by parameters of their own.
func Allowed(a *v1alpha1.Allow) v1alpha1.AllowedParameters {
	if a == nil || a.Parameters == nil {
		return v1alpha1.AllowSafe
	}
	return *a.Parameters
}

// Trusted returns the fields that whoever runs Envoy beside himself should let nobody set
// whom he doesn't trust: those that name a file, which Envoy makes and appends to, and what
// Envoy starts with, which can name any. at is the path of the settings.
func Trusted(at string, s *v1alpha1.Settings) (fields []string) {
	for i := range s.AccessLog {
		if p := s.AccessLog[i].Path; p != nil && !slices.Contains(streams, *p) {
			fields = append(fields, fmt.Sprintf("%s.accessLog[%d].path", at, i))
		}
	}
	if s.Envoy != nil && s.Envoy.Bootstrap != nil {
		fields = append(fields, at+".envoy.bootstrap")
	}
	if s.Envoy != nil && len(s.Envoy.Patches) > 0 {
		fields = append(fields, at+".envoy.patches")
	}
	return fields
}

// streams are the files that are no files.
var streams = []string{"/dev/stdout", "/dev/stderr", "/dev/null"}

// unallowed goes through the fields of a structure of ours. One that nobody has called
// safe isn't.
func unallowed(at string, v reflect.Value, allowed v1alpha1.AllowedParameters) (fields []string) {
	for i := range v.NumField() {
		f, value := v.Type().Field(i), v.Field(i)
		if value.IsZero() || allowed == v1alpha1.AllowSafe && f.Tag.Get("allow") == string(v1alpha1.AllowSafe) {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		path := at + "." + name
		switch within := structure(f.Type); {
		case allowed != v1alpha1.AllowSafe || within == nil || !hasSafe(within):
			fields = append(fields, path)
		case value.Kind() == reflect.Pointer:
			fields = append(fields, unallowed(path, value.Elem(), allowed)...)
		default:
			for j := range value.Len() {
				fields = append(fields, unallowed(fmt.Sprintf("%s[%d]", path, j), value.Index(j), allowed)...)
			}
		}
	}
	return fields
}

// structure returns the structure of ours that a field points to or is a list of; nil
// for none.
func structure(t reflect.Type) reflect.Type {
	if k := t.Kind(); k != reflect.Pointer && k != reflect.Slice {
		return nil
	}
	if t = t.Elem(); t.Kind() != reflect.Struct || t.PkgPath() != ownTypes {
		return nil
	}
	return t
}

// hasSafe reports whether some of a structure is safe.
func hasSafe(t reflect.Type) bool {
	for f := range t.Fields() {
		if f.Tag.Get("allow") != "" {
			return true
		}
	}
	return false
}
