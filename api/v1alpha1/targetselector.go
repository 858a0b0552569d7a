package v1alpha1

import gwv1 "sigs.k8s.io/gateway-api/apis/v1"

// TargetSelector selects what a policy is for by labels: all objects of a kind in the policy's
// own namespace that have all of these, now or later.
type TargetSelector struct {
	// Group is the API group of the objects: gateway.networking.k8s.io, which is the default.
	//
	// +optional
	// +kubebuilder:default=gateway.networking.k8s.io
	Group gwv1.Group `json:"group,omitempty"`

	// Kind is the kind of the objects.
	//
	// +required
	Kind gwv1.Kind `json:"kind,omitempty"`

	// MatchLabels are labels that an object has to have, all of them and at least one.
	//
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:validation:XValidation:rule="self.all(key, key.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$'))",message="a label is named as in app or example.com/app, by at most 63 letters, digits and -_. behind the slash"
	MatchLabels map[string]gwv1.LabelValue `json:"matchLabels,omitzero"`

	// SectionName is a section that each of the objects has: a listener of a Gateway or a
	// ListenerSet, a rule of a route.
	//
	// +optional
	SectionName *gwv1.SectionName `json:"sectionName,omitempty"`
}
