package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

	// Quotas bound what each namespace may have on a Gateway that it shares with others.
	// No bounds by default.
	// +optional
	Quotas *Quotas `json:"quotas,omitempty"`

	// Hostnames are those that namespaces may use on Gateways of other namespaces: in
	// the listeners of ListenerSets, and in routes. By default each may use all that the
	// listeners of a Gateway take. With a list, a namespace may use what the entries
	// for it say, and nothing else. What is in a Gateway's own namespace is not bound by
	// it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Hostnames []AllowedHostnames `json:"hostnames,omitzero"`

	// KeySets are hosts from which the controller may fetch the public keys of token
	// issuers, for AuthPolicies with jwt, beside those with public names and addresses.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	KeySets []AllowedKeySets `json:"keySets,omitzero"`
}

// Quotas bound what a namespace may have on a Gateway. Where it has more, the oldest objects
// are served, and the status of the others says so. The objects in a namespace and their
// endpoints are for a ResourceQuota to bound.
type Quotas struct {
	// Hosts is how many hosts HTTPRoutes and GRPCRoutes may have: each hostname of a route
	// counts once for each listener that it is on.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Hosts *int32 `json:"hosts,omitempty"`

	// Rules is how many rules HTTPRoutes and GRPCRoutes may have: each match of a rule
	// counts once for each host of its route, as it does in the proxies' memory.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Rules *int32 `json:"rules,omitempty"`

	// Listeners is how many listeners ListenerSets may have.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Listeners *int32 `json:"listeners,omitempty"`
}

// AllowedHostnames are hostnames that some namespaces may use.
type AllowedHostnames struct {
	// Namespaces are the namespaces.
	// +required
	Namespaces SelectedNamespaces `json:"namespaces"`

	// Hostnames are names such as shop.example.com; *.shop.example.com stands for all
	// below, of any depth, and * for all there are.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	Hostnames []string `json:"hostnames"`
}

// AllowedKeySets are hosts from which key sets may be fetched.
type AllowedKeySets struct {
	// Names are those of the hosts: id.corp.example for one, *.corp.example for all below.
	// Names without a dot, and names in .svc and .local, count only where they stand here
	// as a policy writes them.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	Names []string `json:"names"`

	// Addresses are ranges of private addresses, such as 10.96.0.0/12, that these names may
	// resolve to. Loopback, link-local and multicast addresses can't be allowed, and neither
	// can that of the API server.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	Addresses []string `json:"addresses,omitzero"`
}

// SelectedNamespaces are namespaces, by name or by their labels.
//
// +kubebuilder:validation:XValidation:rule="has(self.names) || has(self.selector)",message="names or selector must be set"
type SelectedNamespaces struct {
	// Names are the names of namespaces.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	Names []string `json:"names,omitzero"`

	// Selector selects namespaces by their labels. Whoever may set labels of namespaces
	// decides then.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// AllowedParameters is what the parameters of a Gateway may set.
type AllowedParameters string

// What the parameters of a Gateway may set.
const (
	AllowNone AllowedParameters = "None"
	AllowSafe AllowedParameters = "Safe" // what does not reach beyond the Gateway's own proxies, see Settings
	AllowAll  AllowedParameters = "All"  // as much as who may create Deployments in the namespace
)
