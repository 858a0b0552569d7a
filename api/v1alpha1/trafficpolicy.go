package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// TrafficPolicy says how requests and answers pass, and how backends are chosen. A setting that
// is broken has no effect, and all others stay.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=trafficpolicies,singular=trafficpolicy,categories=gateway-api,shortName=tp
// +kubebuilder:metadata:labels="gateway.networking.k8s.io/policy=Inherited"
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.targetRefs[0].kind`
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.targetRefs[0].name`
// +kubebuilder:printcolumn:name="Selector",type=string,JSONPath=`.spec.targetSelectors[0].matchLabels`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.ancestors[0].conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Programmed",type=string,JSONPath=`.status.ancestors[0].conditions[?(@.type=="Programmed")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type TrafficPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec TrafficPolicySpec `json:"spec"`

	// +optional
	Status gwv1.PolicyStatus `json:"status,omitzero"`
}

// TrafficPolicyList is a list of TrafficPolicies.
//
// +kubebuilder:object:root=true
type TrafficPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []TrafficPolicy `json:"items"`
}

// TrafficPolicySpec is what a policy is for, and what it says. Its settings stand in defaults, in
// overrides, or beside the targets, which is the same as defaults with the strategy atomic.
//
// +kubebuilder:validation:XValidation:rule="[has(self.defaults), has(self.overrides), has(self.request) || has(self.response) || has(self.backend)].filter(x, x).size() == 1",message="settings stand in defaults, in overrides, or beside targetRefs, in one of them"
// +kubebuilder:validation:XValidation:rule="has(self.targetRefs) || has(self.targetSelectors)",message="a TrafficPolicy needs targetRefs or targetSelectors, which say what it is for"
// +kubebuilder:validation:XValidation:rule="!has(self.targetRefs) || !self.targetRefs.exists(t, t.kind in ['Service', 'ServiceImport']) || !has(self.request) && !has(self.response) && (!has(self.defaults) || !has(self.defaults.request) && !has(self.defaults.response)) && (!has(self.overrides) || !has(self.overrides.request) && !has(self.overrides.response))",message="a TrafficPolicy for a Service has settings of backend alone"
type TrafficPolicySpec struct {
	// TargetRefs are what the policy is for, in its own namespace: Gateways and ListenerSets,
	// or one of their listeners by sectionName, HTTPRoutes and GRPCRoutes, or one of their
	// rules by its name, and Services, for which it has settings of backend alone.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.group == 'gateway.networking.k8s.io' && t.kind in ['Gateway', 'ListenerSet', 'HTTPRoute', 'GRPCRoute'] || t.group == '' && t.kind == 'Service' || t.group == 'multicluster.x-k8s.io' && t.kind == 'ServiceImport')",message="a TrafficPolicy is for a Gateway, a ListenerSet, an HTTPRoute or a GRPCRoute of group gateway.networking.k8s.io, or for a Service, or a ServiceImport of group multicluster.x-k8s.io"
	// +kubebuilder:validation:XValidation:rule="self.all(t, !(t.kind in ['Service', 'ServiceImport']) || !has(t.sectionName))",message="a TrafficPolicy is for a whole Service, without sectionName"
	TargetRefs []gwv1.LocalPolicyTargetReferenceWithSectionName `json:"targetRefs,omitzero"`

	// TargetSelectors are what the policy is for besides, by labels. At least one of targetRefs and
	// targetSelectors is needed.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.group == 'gateway.networking.k8s.io' && t.kind in ['Gateway', 'ListenerSet', 'HTTPRoute', 'GRPCRoute'])",message="a TrafficPolicy is for a Gateway, a ListenerSet, an HTTPRoute or a GRPCRoute of group gateway.networking.k8s.io"
	TargetSelectors []TargetSelector `json:"targetSelectors,omitzero"`

	// Defaults give way to policies with more specific targets. Without any settings, {}, the policy is
	// invalid and takes the place of no other.
	// +optional
	Defaults *TrafficLayer `json:"defaults,omitempty"`

	// Overrides don't give way to them.
	// +optional
	Overrides *TrafficLayer `json:"overrides,omitempty"`

	TrafficSettings `json:",inline"`
}

// TrafficLayer is settings with what becomes of them where other policies say something.
//
// +kubebuilder:validation:XValidation:rule="!has(self.strategy) || has(self.request) || has(self.response) || has(self.backend)",message="a strategy is of settings, and there are none"
type TrafficLayer struct {
	// Strategy is atomic, which is the default, or merge: different settings are in force
	// together then, each from the policy that has the last word about it.
	// +optional
	Strategy Strategy `json:"strategy,omitempty"`

	TrafficSettings `json:",inline"`
}

// TrafficSettings are what a policy says. Policies are merged by single settings, such as
// request.maxBodySize.
type TrafficSettings struct {
	// Request is about requests.
	// +optional
	Request TrafficRequest `json:"request,omitzero"`

	// Response is about answers.
	// +optional
	Response TrafficResponse `json:"response,omitzero"`

	// Backend is about backends, for the requests that the policy is for: another route to the same
	// Service is not touched, unless the policy is for the Service.
	// +optional
	Backend TrafficBackend `json:"backend,omitzero"`
}
