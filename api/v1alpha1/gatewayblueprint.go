package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// GatewayBlueprint says which objects Gateways of a class consist of, beside their
// proxies: certificates, names, autoscalers, lists of addresses.
// The parameters of a GatewayClass name it by blueprintRef. Many classes may have the same one
// and differ by values.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=gatewayblueprints,scope=Cluster,shortName=gwbp,categories=gateway-api
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type GatewayBlueprint struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec GatewayBlueprintSpec `json:"spec,omitzero"`
	// +optional
	Status GatewayBlueprintStatus `json:"status,omitzero"`
}

// GatewayBlueprintList is a list of GatewayBlueprints.
//
// +kubebuilder:object:root=true
type GatewayBlueprintList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []GatewayBlueprint `json:"items"`
}

// GatewayBlueprintSpec is what is rendered for each Gateway.
//
// Texts of templates may hold expressions in CEL, ${…}. A text that is one expression has its
// value, whatever its type; an optional without a value leaves the field out. $${ stands for ${.
// Expressions read gateway, listeners, hostnames, attachedRoutes and values, in resources for
// routes route as well, and other resources by their ids, as they are in the cluster.
type GatewayBlueprintSpec struct {
	// Values are the weakest defaults and the strongest overrides.
	// +optional
	Values *Values `json:"values,omitempty"`

	// ValuesSchema is what values may be: a structural schema as CustomResourceDefinitions have it.
	// Its defaults are the weakest ones.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +optional
	ValuesSchema *apiextensionsv1.JSON `json:"valuesSchema,omitempty"`

	// Resources are the objects, in any order: what they read of each other orders them.
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Resources []BlueprintResource `json:"resources,omitempty"`

	// Addresses are those of Gateways, in place of those that the Service in front of their proxies has.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Addresses []BlueprintAddress `json:"addresses,omitempty"`

	// Datapath says who serves what comes to Gateways: the proxies that Gatehouse makes for each of them, or
	// what the blueprint makes, such as a Gateway of another class. Rendered needs addresses.
	// +kubebuilder:default=Gatehouse
	// +optional
	Datapath BlueprintDatapath `json:"datapath,omitempty"`
}

// BlueprintAddress is where addresses of a Gateway come from.
type BlueprintAddress struct {
	// +kubebuilder:validation:Enum=IPAddress;Hostname
	Type gwv1.AddressType `json:"type"`
	// Value is a text as in templates. It may be an expression with a list of addresses.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Value string `json:"value"`
}

// BlueprintDatapath says who serves.
// +kubebuilder:validation:Enum=Gatehouse;Rendered
type BlueprintDatapath string

// Who serves.
const (
	DatapathGatehouse BlueprintDatapath = "Gatehouse"
	DatapathRendered  BlueprintDatapath = "Rendered"
)

// BlueprintResource is an object, or a list of objects, of a Gateway.
type BlueprintResource struct {
	// ID is its name in expressions of other resources.
	// +kubebuilder:validation:Pattern=`^[a-z][a-zA-Z0-9]*$`
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`

	// For says for what there is one: for each Gateway, or for each route attached to it.
	// +kubebuilder:default=Gateway
	// +optional
	For BlueprintScope `json:"for,omitempty"`

	// Template is the object. Its apiVersion and kind are written out; without a namespace a
	// namespaced object is in the Gateway's.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Template apiextensionsv1.JSON `json:"template"`

	// ForEach is an expression without ${}, a list: there is an object for each element, which
	// expressions read as each. Other resources read a list of objects.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	ForEach string `json:"forEach,omitempty"`

	// IncludeWhen is an expression without ${}: where it is false there is no object, and other
	// resources read null.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	IncludeWhen string `json:"includeWhen,omitempty"`

	// ReadyWhen is an expression without ${} that also reads the resource's own id: whether the
	// object is ready. Without one, the conventions of Kubernetes' statuses say it.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	ReadyWhen string `json:"readyWhen,omitempty"`

	// Replace says what becomes of an object whose place one of another name takes. By default it
	// is deleted once the new one is made. With CreateBeforeDestroy it stays, and is read by other
	// resources, until the new one is ready; and then until those that read it are
	// ready with the new one.
	// +optional
	Replace BlueprintReplacement `json:"replace,omitempty"`
}

// BlueprintReplacement says what becomes of an object whose place another one takes.
// +kubebuilder:validation:Enum=CreateBeforeDestroy
type BlueprintReplacement string

// CreateBeforeDestroy has the new object be in use before the old one goes.
const CreateBeforeDestroy BlueprintReplacement = "CreateBeforeDestroy"

// BlueprintScope says for what there is an object.
// +kubebuilder:validation:Enum=Gateway;Route
type BlueprintScope string

// The scopes.
const (
	ForGateway BlueprintScope = "Gateway"
	ForRoute   BlueprintScope = "Route"
)

// GatewayBlueprintStatus is what became of a blueprint.
type GatewayBlueprintStatus struct {
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// InForce is the newest revision without a mistake, by which Gateways are rendered.
	// +optional
	InForce *BlueprintRevision `json:"inForce,omitempty"`
}

// BlueprintRevision is a blueprint as it was.
type BlueprintRevision struct {
	Generation int64 `json:"generation"`
	// Spec is the blueprint's at that generation. A controller that starts reads it.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Spec apiextensionsv1.JSON `json:"spec"`
}
