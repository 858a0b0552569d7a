package kind

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// pointer is a pointer to an object of a Go type.
type pointer[T any] interface {
	*T
	Object
}

// listPointer is a pointer to a list of a Go type.
type listPointer[L any] interface {
	*L
	List
}

// Typed is a version with a Go type.
func Typed[T, L any, P pointer[T], PL listPointer[L]](name string) Version {
	return Version{
		Name: name,
		New:  func() Object { return P(new(T)) },
		List: func() List { return PL(new(L)) },
	}
}

// Converted is a version that becomes the Go type of the first one.
func Converted[T, L any, P pointer[T], PL listPointer[L]](name string, convert func(P) Object) Version {
	v := Typed[T, L, P, PL](name)
	v.Convert = func(o Object) Object { return convert(o.(P)) }
	return v
}

// filesOnly is a version that files may have, with the fields of the first one.
func filesOnly(name string) Version { return Version{Name: name} }

// metadata is a version of which only the metadata is read.
func metadata(gvk schema.GroupVersionKind) Version {
	return Version{
		Name: gvk.Version,
		New: func() Object {
			o := &metav1.PartialObjectMetadata{}
			o.SetGroupVersionKind(gvk)
			return o
		},
		List: func() List {
			l := &metav1.PartialObjectMetadataList{}
			l.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
			return l
		},
	}
}
