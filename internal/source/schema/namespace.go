package schema

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// finishNamespace adds the label with the namespace's own name that the API
// server puts on each, and that selectors of allowedRoutes commonly use.
func finishNamespace(ns *corev1.Namespace) field.ErrorList {
	ns.Status = corev1.NamespaceStatus{}
	if ns.Labels == nil {
		ns.Labels = map[string]string{}
	}
	ns.Labels[corev1.LabelMetadataName] = ns.Name
	return nil
}
