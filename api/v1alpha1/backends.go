package v1alpha1

// Backends is where routes may lead beside what Services select.
type Backends struct {
	// ExternalNames are the DNS names that Services of type ExternalName and XBackends
	// may lead to: api.example.com for one, *.example.com for all below, * for all. A
	// name that is not among them gets no traffic, which is the default for every name.
	// TCPRoutes and TLSRoutes need a name to be listed by itself. IP addresses, names
	// without a dot, and names in .svc, .local or .localhost can't be allowed. Where
	// `gatehouse run` reads files, every name is allowed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=253
	ExternalNames []string `json:"externalNames,omitzero"`

	// PrivateAddresses are ranges of private addresses, such as 10.1.0.0/16, that those
	// names may resolve to. Requests to other private addresses are answered with 403,
	// which is the default for all of them. Loopback, link-local and multicast addresses
	// can't be allowed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=64
	PrivateAddresses []string `json:"privateAddresses,omitzero"`
}
