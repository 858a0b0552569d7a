package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
)

// reads returns which namespaces are read of a cluster; nil for all.
func reads(from configuration.Kubernetes) func(*corev1.Namespace) bool {
	switch {
	case len(from.Namespaces) > 0:
		return func(ns *corev1.Namespace) bool { return slices.Contains(from.Namespaces, ns.Name) }
	case from.NamespaceSelector != nil:
		selector, err := metav1.LabelSelectorAsSelector(from.NamespaceSelector)
		if err != nil {
			return nil // said where the source is made
		}
		return func(ns *corev1.Namespace) bool { return selector.Matches(labels.Set(ns.Labels)) }
	default:
		return nil
	}
}
