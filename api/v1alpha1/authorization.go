package v1alpha1

// Authorization is what must hold for a request. All that is set must.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="has(self.addresses) || has(self.claims) || has(self.clients) || has(self.methods) || has(self.headers) || has(self.csrf) || has(self.external)",message="when says of which requests something must hold; set addresses, claims, clients, methods, headers, csrf or external"
type Authorization struct {
	// When is an expression in CEL that says of which requests the rule is asked; the others
	// it has nothing to say about. It is asked of all without, and of those for which the
	// expression fails, such as by a header or a claim that isn't there. There are
	// request.path (without the query), request.query, request.method, request.host (in lower
	// case, without the port), request.headers, auth.claims and auth.client, the operators of
	// CEL, has(), contains, endsWith, matches, size and startsWith.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	When string `json:"when,omitempty"`

	// Addresses are those that clients may have, as the proxy sees them: behind trusted
	// proxies the address that those tell of.
	// +optional
	Addresses *AuthAddresses `json:"addresses,omitempty"`

	// Claims are what the request's token must say, by claim: one of the values, or a list
	// that has one of them. A claim inside of others has their names before its own, with dots
	// between: realm_access.roles. A name with a slash is one name, whatever dots it has.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	Claims map[string]ClaimValues `json:"claims,omitzero"`

	// Clients are the names of clients with API keys, of users with passwords and of
	// certificates, of which the request must be one's.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Clients []string `json:"clients,omitzero"`

	// Methods are those of which the request's must be one, such as GET. They have case.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=32
	// +kubebuilder:validation:items:Pattern="^[A-Za-z0-9!#$%&'*+\\-.^_\\x60|~]+$"
	Methods []string `json:"methods,omitzero"`

	// Headers are what the request's must be, by name: exactly one of the values. A request
	// that has not got the header, or has it twice, doesn't meet it.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^[A-Za-z0-9!#$%&\\'*+.^_\\x60|~-]{1,256}$'))",message="a header's name has letters, digits and hyphens"
	Headers map[string]HeaderValues `json:"headers,omitzero"`

	// CSRF refuses requests that pages of other sites have browsers send, with the cookies of the user (cross-site request
	// forgery): those of other methods than GET, HEAD, OPTIONS and TRACE whose Origin is neither the host that they ask for nor one of
	// the allowed ones. Who sends no Origin, as programs do, is refused too: when can make an exception for those who have
	// no cookies.
	// +optional
	CSRF *CSRF `json:"csrf,omitempty"`

	// External is a service that must permit the request. It is asked about those that meet all
	// other rules.
	// +optional
	External *ExternalAuth `json:"external,omitempty"`
}

// CSRF says which pages may have browsers send requests that change something.
type CSRF struct {
	// AllowedOrigins are origins beside the host's own, such as https://admin.example.com, without a path, and with a port where
	// it is not the scheme's own.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=269
	// +kubebuilder:validation:items:Pattern=`^https?://[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$`
	AllowedOrigins []string `json:"allowedOrigins,omitzero"`
}

// HeaderValues are values of which a header must have one.
//
// +listType=set
// +kubebuilder:validation:MinItems=1
// +kubebuilder:validation:MaxItems=64
// +kubebuilder:validation:items:MinLength=1
// +kubebuilder:validation:items:MaxLength=1024
type HeaderValues []string

// ClaimValues are values of which a claim must have one.
//
// +listType=set
// +kubebuilder:validation:MinItems=1
// +kubebuilder:validation:MaxItems=64
// +kubebuilder:validation:items:MaxLength=1024
type ClaimValues []string

// AuthAddresses are ranges of IP addresses, such as 192.0.2.0/24 or 2001:db8::/32; an address
// alone is a range of its own.
//
// +kubebuilder:validation:MinProperties=1
type AuthAddresses struct {
	// Allow are those that pass. Without any, all that are not denied do.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4096
	// +kubebuilder:validation:items:MaxLength=43
	Allow []string `json:"allow,omitzero"`

	// Deny are those that don't pass, though allow may have them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4096
	// +kubebuilder:validation:items:MaxLength=43
	Deny []string `json:"deny,omitzero"`
}
