package kind

import (
	"fmt"
	"iter"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Table is a set of kinds, in the order in which people are told of them. Nobody
// changes it.
type Table struct {
	rows   []*Descriptor
	byKind map[object.Kind]*Descriptor
	byType map[reflect.Type]*Descriptor
}

// NewTable returns a table of these rows. It panics if two are about one kind or one Go
// type, and if one is about none.
func NewTable(rows ...*Descriptor) *Table {
	t := &Table{rows: rows, byKind: map[object.Kind]*Descriptor{}, byType: map[reflect.Type]*Descriptor{}}
	for _, d := range rows {
		if d.Kind == (object.Kind{}) || d.Plural == "" || len(d.Versions) == 0 {
			panic(fmt.Sprintf("kind %q has no name, plural or version", d.Kind))
		}
		of := reflect.TypeOf(d.New())
		if t.byKind[d.Kind] != nil || t.byType[of] != nil {
			panic(fmt.Sprintf("kind %s or its type %v is in the table twice", d.Kind, of))
		}
		t.byKind[d.Kind], t.byType[of] = d, d
	}
	return t
}

// With returns a table of these rows too.
func (t *Table) With(rows ...*Descriptor) *Table { return NewTable(slices.Concat(t.rows, rows)...) }

// OfFleets returns a table of those rows that fleets depend on.
func (t *Table) OfFleets() *Table {
	return NewTable(slices.DeleteFunc(slices.Clone(t.rows), func(d *Descriptor) bool { return !d.Fleets })...)
}

// Rows are all kinds.
func (t *Table) Rows() iter.Seq[*Descriptor] { return slices.Values(t.rows) }

// Of returns the row of a kind; nil if it is not in the table.
func (t *Table) Of(k object.Kind) *Descriptor { return t.byKind[k] }

// OfObject returns the row of an object by its Go type, since not every source fills in
// its TypeMeta; nil if it is not in the table.
func (t *Table) OfObject(o Object) *Descriptor { return t.OfType(reflect.TypeOf(o)) }

// OfType returns the row of the kind whose objects are of a Go type; nil if there is
// none.
func (t *Table) OfType(of reflect.Type) *Descriptor { return t.byType[of] }

// StatusOf returns how the status of a kind is reached; nil if there is none.
func (t *Table) StatusOf(k object.Kind) *Status {
	if d := t.byKind[k]; d != nil {
		return d.Status
	}
	return nil
}

// Types returns what objects say of themselves, by Go type, for all versions that have
// a Go type of their own.
func (t *Table) Types() map[reflect.Type]metav1.TypeMeta {
	out := map[reflect.Type]metav1.TypeMeta{}
	for _, d := range t.rows {
		for _, v := range d.Versions {
			if v.New == nil {
				continue
			}
			if o := v.New(); o.GetObjectKind().GroupVersionKind().Empty() {
				out[reflect.TypeOf(o)] = d.TypeMeta(v.Name)
			}
		}
	}
	return out
}

// AddToScheme makes a scheme know all kinds that are read whole.
func (t *Table) AddToScheme(s *runtime.Scheme) error {
	for _, d := range t.rows {
		for _, v := range d.Versions {
			if v.List == nil || d.Reading == MetadataOnly {
				continue
			}
			gvk := d.GroupVersionKind(v.Name)
			s.AddKnownTypeWithName(gvk, v.New())
			s.AddKnownTypeWithName(gvk.GroupVersion().WithKind(gvk.Kind+"List"), v.List())
			metav1.AddToGroupVersion(s, gvk.GroupVersion())
		}
	}
	return nil
}
