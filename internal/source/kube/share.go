package kube

import (
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// informer keeps in memory once what is equal in its objects. A new version of an object
// refers to what is the same in the last one: the pipeline goes on with the version that it
// was given when only the status changes after it. What is new refers to what is equal in
// the object that came before it, whichever that is: thousands of routes name the same
// Gateway, in strings and pointers that decoding makes anew for each.
type informer struct {
	toolscache.SharedIndexInformer
}

// newInformer makes an informer without indices: nobody lists what it has.
func newInformer(lw toolscache.ListerWatcher, example runtime.Object, resync time.Duration, _ toolscache.Indexers) toolscache.SharedIndexInformer {
	return informer{toolscache.NewSharedIndexInformer(lw, example, resync, toolscache.Indexers{})}
}

// SetTransform adds sharing after the transformation.
func (i informer) SetTransform(transform toolscache.TransformFunc) error {
	return i.SharedIndexInformer.SetTransform(sharing(i.GetStore(), transform))
}

// transformed are the managed fields of an object that has been transformed. The API server sends
// some, or none at all, but never an empty list.
var transformed = []metav1.ManagedFieldsEntry{}

// sharing makes a transformation that shares after another one. An informer transforms one
// object after another.
func sharing(store toolscache.Store, transform toolscache.TransformFunc) toolscache.TransformFunc {
	var before reflect.Value
	return func(in any) (any, error) {
		// An informer's first list comes here twice. The second time it shares with others,
		// and writing to it would be writing to them.
		if o, ok := in.(client.Object); ok && o.GetManagedFields() != nil && len(o.GetManagedFields()) == 0 {
			return in, nil
		}
		out := in
		if transform != nil {
			var err error
			if out, err = transform(in); err != nil {
				return nil, err
			}
		}
		o, ok := out.(client.Object)
		if !ok {
			return out, nil
		}
		o.SetManagedFields(transformed)
		var last reflect.Value
		if was, exists, err := store.Get(o); err == nil && exists {
			last = reflect.ValueOf(was).Elem()
		}
		next := reflect.ValueOf(o).Elem()
		share(last, before, next)
		before = next
		return out, nil
	}
}

// share lets a struct that nobody else knows yet refer to what is equal in its last version
// and, where it differs from that, to what is equal in another struct. Neither of these need
// be there. Both may be read meanwhile.
func share(last, other, next reflect.Value) {
	for i := range next.NumField() {
		to, was, model := next.Field(i), fieldOf(next.Type(), last, i), fieldOf(next.Type(), other, i)
		switch {
		case to.Type() == reflect.TypeFor[metav1.ObjectMeta]():
			share(was, model, to)
		case !to.CanSet():
		case was.IsValid() && reflect.DeepEqual(was.Interface(), to.Interface()):
			to.Set(was)
		case model.IsValid():
			shareEqual(model, to)
		}
	}
}

// fieldOf is a field of a struct that is of a type, if there is such a struct.
func fieldOf(t reflect.Type, v reflect.Value, i int) reflect.Value {
	if !v.IsValid() || v.Type() != t {
		return reflect.Value{}
	}
	return v.Field(i)
}

// shareEqual lets a value refer to what is equal in another one of its type, at whatever
// depth, and reports whether all of it is.
func shareEqual(from, to reflect.Value) (equal bool) {
	switch to.Kind() {
	case reflect.String:
		if from.String() != to.String() {
			return false
		}
		to.SetString(from.String())
		return true
	case reflect.Struct:
		equal = true
		for i := range to.NumField() {
			if !to.Field(i).CanSet() { // as in a time, which has nothing to share
				return reflect.DeepEqual(from.Interface(), to.Interface())
			}
			equal = shareEqual(from.Field(i), to.Field(i)) && equal
		}
		return equal
	case reflect.Pointer:
		if from.IsNil() || to.IsNil() {
			return from.IsNil() && to.IsNil()
		}
		equal = shareEqual(from.Elem(), to.Elem())
	case reflect.Slice:
		if from.Len() == 0 || to.Len() == 0 {
			return from.Len() == to.Len() && from.IsNil() == to.IsNil()
		}
		equal = from.Len() == to.Len()
		for i := range to.Len() {
			equal = shareEqual(from.Index(min(i, from.Len()-1)), to.Index(i)) && equal
		}
		if equal {
			from = from.Slice3(0, from.Len(), from.Len()) // who appends to it writes elsewhere
		}
	case reflect.Map, reflect.Interface:
		equal = reflect.DeepEqual(from.Interface(), to.Interface())
	default:
		return from.Equal(to)
	}
	if equal {
		to.Set(from)
	}
	return equal
}

// unchanged reports whether two versions of an object say the same to the pipeline:
// everything but status and what each write changes. Of Services the addresses of
// load balancers count.
func unchanged(last, next client.Object) bool {
	if last == next {
		return true
	}
	from, to := reflect.ValueOf(last).Elem(), reflect.ValueOf(next).Elem()
	if from.Type() != to.Type() {
		return false
	}
	for i := range to.NumField() {
		switch a, b := from.Field(i).Interface(), to.Field(i).Interface(); a := a.(type) {
		case metav1.TypeMeta:
		case metav1.ObjectMeta:
			b := b.(metav1.ObjectMeta)
			a.ResourceVersion, b.ResourceVersion = "", ""
			if !reflect.DeepEqual(a, b) {
				return false
			}
		case corev1.ServiceStatus:
			if !reflect.DeepEqual(a.LoadBalancer, b.(corev1.ServiceStatus).LoadBalancer) {
				return false
			}
		default:
			if to.Type().Field(i).Name != "Status" && !reflect.DeepEqual(a, b) {
				return false
			}
		}
	}
	return true
}
