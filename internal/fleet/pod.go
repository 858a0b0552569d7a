package fleet

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// PodOf describes the pod of a proxy; false for one that has ended, and for one that claims to be of a Gateway whose
// proxies are not in its namespace, as anybody could have a pod say.
func PodOf(pod *corev1.Pod, places infra.Places) (Pod, bool) {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return Pod{}, false
	}
	gateway := cmp.Or(pod.Annotations[infra.GatewayAnnotation], pod.Namespace+"/"+pod.Labels[infra.GatewayLabel])
	if name, ok := object.ParseName(gateway); !ok || !places.Has(name, pod.Namespace) {
		return Pod{}, false
	}
	ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	return Pod{
		Gateway: gateway, Name: pod.Name,
		Node: pod.Spec.NodeName, Zone: pod.Labels[corev1.LabelTopologyZone], Ready: ready, Draining: pod.DeletionTimestamp != nil,
	}, true
}
