package kube

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/gateway-api/pkg/consts"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
)

// CacheOptions are what the manager's cache must be made with. With namespaces,
// nothing is read of others, and no right to do so is needed.
func CacheOptions(kinds *kind.Table, namespaces ...string) cache.Options {
	types := kinds.Types()
	transform := func(strip func(client.Object)) toolscache.TransformFunc { return transform(types, strip) }
	opts := cache.Options{
		DefaultTransform: transform(stripForeign),
		NewInformer:      newInformer,
		// A kind is read because somebody watches it, never as a side effect of a Get.
		ReaderFailOnMissingInformer: true,
		// Only kinds that each cluster has can stand here.
		ByObject: map[client.Object]cache.ByObject{
			&discoveryv1.EndpointSlice{}: {Transform: transform(stripSlice)},
			&corev1.Pod{}:                {Transform: transform(stripPod)},
		},
	}
	for k := range kinds.Rows() {
		strip := map[kind.Reading]func(client.Object){kind.ByName: stripContent, kind.MetadataOnly: stripDefinition}[k.Reading]
		if strip == nil {
			continue
		}
		for _, v := range k.Watched() {
			opts.ByObject[v.New()] = cache.ByObject{Transform: transform(strip)}
		}
	}
	for _, ns := range namespaces {
		if opts.DefaultNamespaces == nil {
			opts.DefaultNamespaces = map[string]cache.Config{}
		}
		opts.DefaultNamespaces[ns] = cache.Config{}
	}
	return opts
}

// transform makes a cache's transformation, which gets each object before the cache
// has it. It also says in the object what kind it is, which decoding leaves out.
func transform(types map[reflect.Type]metav1.TypeMeta, strip func(client.Object)) toolscache.TransformFunc {
	return func(in any) (any, error) {
		o, ok := in.(client.Object)
		if !ok {
			return in, nil
		}
		strip(o)
		if t, ok := types[reflect.TypeOf(o)]; ok {
			setType(o, t)
		}
		return in, nil
	}
}

// setType fills in an object's TypeMeta with strings that all objects share.
func setType(o client.Object, t metav1.TypeMeta) {
	if meta, ok := o.GetObjectKind().(*metav1.TypeMeta); ok {
		*meta = t
	}
}

// stripForeign leaves of another implementation's policy what it targets.
func stripForeign(o client.Object) {
	stripMeta(o)
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return
	}
	for field := range u.Object {
		if field != "apiVersion" && field != "kind" && field != "metadata" && field != "spec" {
			delete(u.Object, field)
		}
	}
	if spec, ok := u.Object["spec"].(map[string]any); ok {
		for field := range spec {
			if field != "targetRef" && field != "targetRefs" {
				delete(spec, field)
			}
		}
	}
}

// stripMeta removes what is about how an object came to be: often half of it.
func stripMeta(o client.Object) {
	if o.GetManagedFields() != nil {
		o.SetManagedFields(nil)
	}
	if a := o.GetAnnotations(); a[corev1.LastAppliedConfigAnnotation] != "" {
		delete(a, corev1.LastAppliedConfigAnnotation)
		if len(a) == 0 {
			o.SetAnnotations(nil)
		}
	}
}

// stripSlice leaves what routing reads. Annotations change with each write.
func stripSlice(o client.Object) {
	s, ok := o.(*discoveryv1.EndpointSlice)
	if !ok {
		stripMeta(o)
		return
	}
	var service map[string]string
	for _, label := range []string{discoveryv1.LabelServiceName, mcsv1beta1.LabelServiceName, mcsv1beta1.LabelSourceCluster} {
		if name := s.Labels[label]; name != "" && service == nil {
			service = map[string]string{label: name}
		} else if name != "" {
			service[label] = name
		}
	}
	s.ObjectMeta = metav1.ObjectMeta{
		Namespace: s.Namespace, Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion, Labels: service,
	}
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		s.Endpoints[i] = discoveryv1.Endpoint{Addresses: e.Addresses, Conditions: e.Conditions}
	}
}

// stripPod leaves what makes a Pod an endpoint, since a cluster may have very many.
func stripPod(o client.Object) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		stripMeta(o)
		return
	}
	var ready []corev1.PodCondition
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			ready = []corev1.PodCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	p.ObjectMeta = metav1.ObjectMeta{
		Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion, Labels: p.Labels,
		DeletionTimestamp: p.DeletionTimestamp,
	}
	p.Spec = corev1.PodSpec{}
	p.Status = corev1.PodStatus{Phase: p.Status.Phase, PodIP: p.Status.PodIP, Conditions: ready}
}

// stripContent leaves the name and the version of what is read when it is wanted.
func stripContent(o client.Object) {
	m, ok := o.(*metav1.PartialObjectMetadata)
	if !ok {
		stripMeta(o)
		return
	}
	m.ObjectMeta = metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion}
}

// stripDefinition leaves of a CustomResourceDefinition what is said of its version.
func stripDefinition(o client.Object) {
	m, ok := o.(*metav1.PartialObjectMetadata)
	if !ok {
		stripMeta(o)
		return
	}
	said := map[string]string{}
	for _, key := range []string{consts.BundleVersionAnnotation, consts.ChannelAnnotation} {
		if value, ok := m.Annotations[key]; ok && strings.HasSuffix(m.Name, "k8s.io") {
			said[key] = value
		}
	}
	m.ObjectMeta = metav1.ObjectMeta{Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Generation: m.Generation, Annotations: said}
}
