package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// GatewayClassValues are what the platform says of the values of blueprints: for a
// GatewayClass, in the controller's namespace for all its Gateways and in another one for
// those there, or for all Gateways of its own namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=gatewayclassvalues,singular=gatewayclassvalues,shortName=gwcv,categories=gateway-api
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.targetRef.name`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type GatewayClassValues struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec GatewayClassValuesSpec `json:"spec"`
	// +optional
	Status ValuesStatus `json:"status,omitzero"`
}

// GatewayClassValuesList is a list of GatewayClassValues.
//
// +kubebuilder:object:root=true
type GatewayClassValuesList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []GatewayClassValues `json:"items"`
}

// GatewayClassValuesSpec says for what there are values, and which.
//
// +kubebuilder:validation:XValidation:rule="self.targetRef.group == 'gateway.networking.k8s.io' && self.targetRef.kind == 'GatewayClass' || size(self.targetRef.group) == 0 && self.targetRef.kind == 'Namespace'",message="targetRef must be a GatewayClass of gateway.networking.k8s.io, or a Namespace"
type GatewayClassValuesSpec struct {
	// TargetRef is a GatewayClass, or the object's own Namespace.
	TargetRef ValuesTarget `json:"targetRef"`

	Values `json:",inline"`
}

// GatewayValues are what a team says of the values of blueprints: for a Gateway, or for all
// Gateways of its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=gatewayvalues,singular=gatewayvalues,shortName=gwv,categories=gateway-api
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.targetRef.name`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type GatewayValues struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec GatewayValuesSpec `json:"spec"`
	// +optional
	Status ValuesStatus `json:"status,omitzero"`
}

// GatewayValuesList is a list of GatewayValues.
//
// +kubebuilder:object:root=true
type GatewayValuesList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []GatewayValues `json:"items"`
}

// GatewayValuesSpec says for what there are values, and which.
//
// +kubebuilder:validation:XValidation:rule="self.targetRef.group == 'gateway.networking.k8s.io' && self.targetRef.kind == 'Gateway' || size(self.targetRef.group) == 0 && self.targetRef.kind == 'Namespace'",message="targetRef must be a Gateway of gateway.networking.k8s.io, or a Namespace"
type GatewayValuesSpec struct {
	// TargetRef is a Gateway of the namespace, or the object's own Namespace.
	TargetRef ValuesTarget `json:"targetRef"`

	Values `json:",inline"`
}

// ValuesTarget is what there are values for.
type ValuesTarget struct {
	Group gwv1.Group      `json:"group"`
	Kind  gwv1.Kind       `json:"kind"`
	Name  gwv1.ObjectName `json:"name"`
}

// Values are what one object says of values.
type Values struct {
	// Defaults are in force where nobody nearer to the Gateway says otherwise.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +optional
	Defaults *apiextensionsv1.JSON `json:"defaults,omitempty"`
	// Overrides are in force whatever is said nearer to the Gateway.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +optional
	Overrides *apiextensionsv1.JSON `json:"overrides,omitempty"`
}

// ValuesStatus is what became of values.
type ValuesStatus struct {
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
