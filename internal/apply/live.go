package apply

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// kind is a kind of object that fleets consist of.
type kind struct {
	name   string
	object client.Object
	list   func() client.ObjectList
	// eager says that an object of the kind is deleted as soon as it is not wanted.
	// Other objects stay until what replaces them works.
	eager bool
}

// kinds are the kinds of objects of a fleet. Objects that others depend on are deleted
// last.
var kinds = []kind{
	{"HorizontalPodAutoscaler", &autoscalingv2.HorizontalPodAutoscaler{}, func() client.ObjectList { return &autoscalingv2.HorizontalPodAutoscalerList{} }, true},
	{"PodDisruptionBudget", &policyv1.PodDisruptionBudget{}, func() client.ObjectList { return &policyv1.PodDisruptionBudgetList{} }, true},
	{"Service", &corev1.Service{}, func() client.ObjectList { return &corev1.ServiceList{} }, false},
	{"Deployment", &appsv1.Deployment{}, func() client.ObjectList { return &appsv1.DeploymentList{} }, false},
	{"DaemonSet", &appsv1.DaemonSet{}, func() client.ObjectList { return &appsv1.DaemonSetList{} }, false},
	{"ConfigMap", &corev1.ConfigMap{}, func() client.ObjectList { return &corev1.ConfigMapList{} }, false},
	{"ServiceAccount", &corev1.ServiceAccount{}, func() client.ObjectList { return &corev1.ServiceAccountList{} }, false},
}

// byGateway is the index of the cache by which the objects of a Gateway's fleets are found, wherever they are.
const byGateway = "gateway"

// newCache returns a cache of what is labelled as ours, and of nothing else.
func newCache(ctx context.Context, config *rest.Config, places infra.Places, namespaces []string) (cache.Cache, error) {
	opts := cache.Options{
		Scheme:               clientgoscheme.Scheme,
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{infra.ManagedByLabel: infra.ManagedBy}),
		DefaultTransform:     cache.TransformStripManagedFields(),
		ByObject:             map[client.Object]cache.ByObject{&corev1.Pod{}: {Transform: stripPod}},
	}
	if len(namespaces) > 0 {
		opts.DefaultNamespaces = map[string]cache.Config{}
		for _, ns := range namespaces {
			opts.DefaultNamespaces[ns] = cache.Config{}
		}
	}
	c, err := cache.New(config, opts)
	if err != nil {
		return nil, err
	}
	for _, k := range kinds {
		err := c.IndexField(ctx, k.object, byGateway, func(o client.Object) []string {
			if gateway, ok := places.GatewayOf(o); ok {
				return []string{gateway.String()}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

// stripPod keeps of a pod what says whether it works.
func stripPod(o any) (any, error) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			Labels: pod.Labels, Annotations: map[string]string{infra.GatewayAnnotation: pod.Annotations[infra.GatewayAnnotation]},
			DeletionTimestamp: pod.DeletionTimestamp, CreationTimestamp: pod.CreationTimestamp,
		},
		Status: corev1.PodStatus{
			PodIP: pod.Status.PodIP, Phase: pod.Status.Phase, Reason: pod.Status.Reason, Message: pod.Status.Message, Conditions: pod.Status.Conditions,
			InitContainerStatuses: pod.Status.InitContainerStatuses, ContainerStatuses: pod.Status.ContainerStatuses,
		},
	}, nil
}

// children returns what the cache has of a Gateway's fleets, of all its classes.
func children(ctx context.Context, c client.Reader, k kind, gateway object.Name) ([]client.Object, error) {
	return list(ctx, c, k, client.MatchingFields{byGateway: gateway.String()})
}

// list returns objects of the cache, which nobody may change.
func list(ctx context.Context, c client.Reader, k kind, opts ...client.ListOption) ([]client.Object, error) {
	l := k.list()
	if err := c.List(ctx, l, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list %ss: %w", k.name, err)
	}
	var out []client.Object
	err := meta.EachListItem(l, func(o runtime.Object) error {
		out = append(out, o.(client.Object))
		return nil
	})
	return out, err
}

// fingerprint identifies the content of a live object, without what changes by itself.
func fingerprint(fields map[string]any) (string, error) {
	short := make(map[string]any, len(fields))
	for k, v := range fields {
		switch k {
		case "apiVersion", "kind", "status": // objects of the cache don't have the former
		case "metadata":
			m, _ := v.(map[string]any)
			short[k] = map[string]any{"labels": m["labels"], "annotations": m["annotations"], "ownerReferences": m["ownerReferences"]}
		default:
			short[k] = v
		}
	}
	text, err := json.Marshal(short)
	return string(text), err
}

// typed returns the fields of an object as one of the cache has them.
func typed(o *unstructured.Unstructured) (map[string]any, error) {
	k, err := kindOf(o)
	if err != nil {
		return nil, err
	}
	as := k.object.DeepCopyObject()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, as); err != nil {
		return nil, err
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(as)
}

func kindOf(o client.Object) (kind, error) {
	name := o.GetObjectKind().GroupVersionKind().Kind
	for _, k := range kinds {
		if k.name == name {
			return k, nil
		}
	}
	return kind{}, fmt.Errorf("%s is not a kind of a fleet", name)
}

// cached returns an object of the cache, which nobody may change; nil if there is
// none.
func cached(ctx context.Context, c client.Reader, want client.Object) (client.Object, error) {
	k, err := kindOf(want)
	if err != nil {
		return nil, err
	}
	live := k.object.DeepCopyObject().(client.Object)
	err = c.Get(ctx, client.ObjectKeyFromObject(want), live, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return live, err
}
