package v1alpha1

import corev1 "k8s.io/api/core/v1"

// Service is how clients reach the proxies. The fields are those of a Service; one
// that the type of the Service doesn't have is left out.
type Service struct {
	// Type is LoadBalancer by default.
	// +optional
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	Type *corev1.ServiceType `json:"type,omitempty"`

	// Labels are further labels.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitzero"`

	// Annotations are further annotations, such as those that load balancers read.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitzero"`

	// LoadBalancerClass is whose load balancer it is.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	LoadBalancerClass *string `json:"loadBalancerClass,omitempty"`

	// LoadBalancerSourceRanges are the addresses that a load balancer lets in, such as
	// 10.0.0.0/8.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=64
	LoadBalancerSourceRanges []string `json:"loadBalancerSourceRanges,omitzero"`

	// AllocateLoadBalancerNodePorts says whether a load balancer gets node ports too.
	// +optional
	AllocateLoadBalancerNodePorts *bool `json:"allocateLoadBalancerNodePorts,omitempty"`

	// ExternalTrafficPolicy is Local by default, which keeps the addresses of clients.
	// +optional
	// +kubebuilder:validation:Enum=Cluster;Local
	ExternalTrafficPolicy *corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty"`

	// InternalTrafficPolicy is Cluster by default.
	// +optional
	// +kubebuilder:validation:Enum=Cluster;Local
	InternalTrafficPolicy *corev1.ServiceInternalTrafficPolicy `json:"internalTrafficPolicy,omitempty"`

	// IPFamilyPolicy says whether the Service has one family of addresses or two.
	// +optional
	// +kubebuilder:validation:Enum=SingleStack;PreferDualStack;RequireDualStack
	IPFamilyPolicy *corev1.IPFamilyPolicy `json:"ipFamilyPolicy,omitempty"`

	// IPFamilies are the families, in order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:Enum=IPv4;IPv6
	IPFamilies []corev1.IPFamily `json:"ipFamilies,omitzero"`

	// NodePorts are fixed node ports of listeners; others are chosen by the cluster.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	NodePorts []NodePort `json:"nodePorts,omitzero"`
}

// NodePort is the node port of a listener's port.
type NodePort struct {
	// ListenerPort is the port of one or more listeners.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	ListenerPort int32 `json:"listenerPort"`

	// NodePort is the port on every node. The cluster has a range for them.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	NodePort int32 `json:"nodePort"`
}
