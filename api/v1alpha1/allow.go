package v1alpha1

// Allow is what Gateways of a class may ask for.
type Allow struct {
	// Addresses are the ranges of IP addresses, such as 198.51.100.0/24, that Gateways may
	// ask their load balancer for by spec.addresses. None by default: a load balancer may
	// have addresses that are meant for others.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=64
	Addresses []string `json:"addresses,omitzero"`

	// ExternalIPs are the ranges of IP addresses that Gateways may have as externalIPs of
	// their Service, by spec.addresses too, where no load balancer is asked for them. None
	// by default: every node of the cluster takes what is sent to such an address,
	// whoever has it, so allow only those that nothing else has.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=64
	ExternalIPs []string `json:"externalIPs,omitzero"`
}
