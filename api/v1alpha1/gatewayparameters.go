package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GatewayParameters say how the proxies of Gateways run and how clients reach
// them. A GatewayClass refers to one by spec.parametersRef, for all its Gateways, a
// Gateway by spec.infrastructure.parametersRef, for itself.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=gatewayparameters,singular=gatewayparameters,shortName=gwp,categories=gateway-api
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.deployment.replicas`
// +kubebuilder:printcolumn:name="Min",type=integer,JSONPath=`.spec.deployment.autoscaling.minReplicas`
// +kubebuilder:printcolumn:name="Max",type=integer,JSONPath=`.spec.deployment.autoscaling.maxReplicas`
// +kubebuilder:printcolumn:name="Service",type=string,JSONPath=`.spec.service.type`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type GatewayParameters struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec GatewayParametersSpec `json:"spec,omitzero"`
}

// GatewayParametersList is a list of GatewayParameters.
//
// +kubebuilder:object:root=true
type GatewayParametersList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []GatewayParameters `json:"items"`
}

// GatewayParametersSpec is the settings of a Gateway, or of the Gateways of a class
// where those don't say otherwise.
type GatewayParametersSpec struct {
	Settings `json:",inline"`

	// Overrides beat what Gateways of the class set for themselves. They are for
	// parameters of a GatewayClass only.
	// +optional
	Overrides *Settings `json:"overrides,omitempty"`

	// Allow is what Gateways of the class may ask for. It is for parameters of a
	// GatewayClass only.
	// +optional
	Allow *Allow `json:"allow,omitempty"`

	// BlueprintRef names the GatewayBlueprint by which Gateways of the class have further
	// objects. It is for parameters of a GatewayClass only.
	// +optional
	BlueprintRef *BlueprintRef `json:"blueprintRef,omitempty"`

	// MergeGateways has all Gateways of the class share one set of proxies, in a cluster in the
	// namespace of these parameters. Each port, protocol and hostname belongs to the oldest Gateway
	// that has a listener with it. It is for parameters of a GatewayClass only.
	// +optional
	MergeGateways *bool `json:"mergeGateways,omitempty"`
}

// BlueprintRef names a GatewayBlueprint.
type BlueprintRef struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Settings are all that can be chosen about a Gateway's proxies. Each level's
// settings are laid over those of the weaker one: the class's own, the Gateway's,
// the class's overrides.
//
// A field that isn't set is inherited. Structures and maps are merged key by key,
// lists are replaced. An empty list or map removes what would be inherited. What is
// Kubernetes' own, such as an affinity or a securityContext, is merged by its direct
// fields.
//
// The tag merge says where that isn't so. Of the fields of a structure that are a
// choice, one that is set removes the inherited others. A field that is whole is
// replaced, not merged.
//
// The tag allow says what a Gateway may set, with all below it, where its class allows
// what is Safe. A field without the tag is not.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.deployment) && has(self.daemonSet))",message="deployment and daemonSet can't be had together"
type Settings struct {
	// Deployment runs the proxies as a Deployment, which is the default.
	// +optional
	Deployment *Deployment `json:"deployment,omitempty" merge:"choice" allow:"Safe"`

	// DaemonSet runs a proxy on every node; {} for the default of everything.
	// +optional
	DaemonSet *DaemonSet `json:"daemonSet,omitempty" merge:"choice" allow:"Safe"`

	// Pod is the template of the proxies' pods.
	// +optional
	Pod *Pod `json:"pod,omitempty"`

	// Container is the proxy's own container in those pods.
	// +optional
	Container *Container `json:"container,omitempty"`

	// Rollout is how proxies are replaced when what they run changes.
	// +optional
	Rollout *Rollout `json:"rollout,omitempty" allow:"Safe"`

	// Service is how clients reach the proxies.
	// +optional
	Service *Service `json:"service,omitempty" allow:"Safe"`

	// Patches change the objects that come of all the above, in order. They are the
	// last resort: nothing keeps a patch right when those objects change.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Patches []Patch `json:"patches,omitzero"`

	// Envoy is how the Envoy process runs.
	// +optional
	Envoy *Envoy `json:"envoy,omitempty"`

	// Drain is how a proxy ends.
	// +optional
	Drain *Drain `json:"drain,omitempty" allow:"Safe"`

	// RouteTables is how Envoy keeps routes.
	// +optional
	RouteTables *RouteTables `json:"routeTables,omitempty" allow:"Safe"`

	// Certificates is how Envoy gets certificates.
	// +optional
	Certificates *Certificates `json:"certificates,omitempty" allow:"Safe"`

	// AccessLog is where a line for each request and each connection goes. By
	// default proxies in a cluster write JSON to their standard output; [] turns it
	// off.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	AccessLog []AccessLog `json:"accessLog,omitzero"`

	// Tracing sends spans of requests to a collector.
	// +optional
	Tracing *Tracing `json:"tracing,omitempty"`

	// Metrics is what the proxies count.
	// +optional
	Metrics *Metrics `json:"metrics,omitempty" allow:"Safe"`

	// Client is how those who connect are treated.
	// +optional
	Client *Client `json:"client,omitempty" allow:"Safe"`

	// Limits is what counts requests for all proxies together, where a RateLimitPolicy has
	// limits of the scope Global.
	// +optional
	Limits *LimitsService `json:"limits,omitempty"`

	// Backends is where routes may lead beside what Services select. It is for the
	// parameters of a GatewayClass only.
	// +optional
	Backends *Backends `json:"backends,omitempty"`
}
