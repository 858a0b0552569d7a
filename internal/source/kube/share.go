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

// informer shares between an object and its next version what is the same in both.
// The pipeline goes on with the version that it was given when only the status
// changes after it: without this, each object that has a status would be in memory
// twice.
type informer struct {
	toolscache.SharedIndexInformer
}

func newInformer(lw toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	return informer{toolscache.NewSharedIndexInformer(lw, example, resync, indexers)}
}

// SetTransform adds sharing after the transformation.
func (i informer) SetTransform(transform toolscache.TransformFunc) error {
	return i.SharedIndexInformer.SetTransform(func(in any) (any, error) {
		out := in
		if transform != nil {
			var err error
			if out, err = transform(in); err != nil {
				return nil, err
			}
		}
		next, ok := out.(client.Object)
		if !ok {
			return out, nil
		}
		if last, exists, err := i.GetStore().Get(next); err == nil && exists && last != any(next) {
			share(last, next)
		}
		return out, nil
	})
}

// share lets next refer to what is equal in last. Both are pointers to structs;
// last may be read by others meanwhile.
func share(last, next any) {
	from, to := reflect.ValueOf(last).Elem(), reflect.ValueOf(next).Elem()
	if from.Type() != to.Type() {
		return
	}
	for i := range to.NumField() {
		if meta, ok := reflect.TypeAssert[*metav1.ObjectMeta](to.Field(i).Addr()); ok {
			share(from.Field(i).Addr().Interface(), meta)
			continue
		}
		if to.Field(i).CanSet() && reflect.DeepEqual(from.Field(i).Interface(), to.Field(i).Interface()) {
			to.Field(i).Set(from.Field(i))
		}
	}
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
