package v1alpha1

// Allow is what Gateways of a class may ask for.
type Allow struct {
	// Parameters is what Gateways may set by parameters of their own: Safe, which is the
	// default, is how many proxies run, how they are reached and how they treat clients;
	// All is also what else runs in their pods and with which rights; None is nothing.
	// +optional
	// +kubebuilder:validation:Enum=None;Safe;All
	Parameters *AllowedParameters `json:"parameters,omitempty"`

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

// AllowedParameters is what the parameters of a Gateway may set.
type AllowedParameters string

// What the parameters of a Gateway may set.
const (
	AllowNone AllowedParameters = "None"
	AllowSafe AllowedParameters = "Safe" // what does not reach beyond the Gateway's own proxies, see Settings
	AllowAll  AllowedParameters = "All"  // as much as who may create Deployments in the namespace
)
