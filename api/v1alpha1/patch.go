package v1alpha1

import apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

// Patch changes one of a Gateway's objects.
type Patch struct {
	// Target is the object.
	// +required
	Target PatchTarget `json:"target"`

	// Type is StrategicMerge by default.
	// +optional
	// +kubebuilder:default=StrategicMerge
	// +kubebuilder:validation:Enum=StrategicMerge;JSONPatch
	Type PatchType `json:"type,omitempty"`

	// Value is the patch: an object for StrategicMerge, a list of operations for
	// JSONPatch.
	// +required
	Value apiextensionsv1.JSON `json:"value"`
}

// PatchTarget says which of a Gateway's objects is patched. There is one of a kind.
type PatchTarget struct {
	// Kind is that of the object. A patch of one that the Gateway doesn't have, as a
	// Gateway with a DaemonSet has no Deployment, has no effect.
	// +required
	// +kubebuilder:validation:Enum=Deployment;DaemonSet;Service;ServiceAccount;ConfigMap;HorizontalPodAutoscaler;PodDisruptionBudget
	Kind string `json:"kind"`
}

// PatchType is a way to write a patch.
type PatchType string

// The ways to write a patch.
const (
	StrategicMerge PatchType = "StrategicMerge" // as kubectl patch does by default
	JSONPatch      PatchType = "JSONPatch"      // RFC 6902
)
