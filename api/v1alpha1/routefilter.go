package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RouteFilter is a filter for rules of HTTPRoutes and GRPCRoutes of its namespace, which refer to it by a
// filter of type ExtensionRef. A rule whose filter is missing or can't be used answers with an error.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=routefilters,singular=routefilter,categories=gateway-api
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RouteFilter struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec RouteFilterSpec `json:"spec"`

	// +optional
	Status RouteFilterStatus `json:"status,omitzero"`
}

// RouteFilterList is a list of RouteFilters.
//
// +kubebuilder:object:root=true
type RouteFilterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []RouteFilter `json:"items"`
}

// RouteFilterStatus is whether the filter can be used.
type RouteFilterStatus struct {
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RouteFilterSpec is what the filter does. It does all that is set.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.directResponse) || !(has(self.urlRewrite) || has(self.requestHeaders))",message="a directResponse goes to no backend: there is no request to rewrite"
type RouteFilterSpec struct {
	// DirectResponse answers all requests, whatever backends the rule has. It is for HTTPRoutes.
	// +optional
	DirectResponse *DirectResponse `json:"directResponse,omitempty"`

	// URLRewrite changes path and host of requests, after the route was chosen, by regular expressions. It is for
	// HTTPRoutes.
	// +optional
	URLRewrite *URLRewrite `json:"urlRewrite,omitempty"`

	// RequestHeaders change headers of requests.
	// +optional
	RequestHeaders *HeaderTemplates `json:"requestHeaders,omitempty"`

	// ResponseHeaders change headers of answers.
	// +optional
	ResponseHeaders *HeaderTemplates `json:"responseHeaders,omitempty"`
}

// DirectResponse is an answer, the same for all.
//
// +kubebuilder:validation:XValidation:rule="!has(self.body) || !has(self.configMapRef)",message="one of body and configMapRef is the body"
type DirectResponse struct {
	// Status is the status code.
	// +required
	// +kubebuilder:validation:Minimum=200
	// +kubebuilder:validation:Maximum=599
	Status int32 `json:"status,omitzero"`

	// Body is the text of the answer. There is none by default.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Body *string `json:"body,omitempty"`

	// ConfigMapRef is a ConfigMap in the filter's namespace with the body, of at most 64 KiB. The default of its key
	// is body.
	// +optional
	ConfigMapRef *KeyRef `json:"configMapRef,omitempty"`

	// Headers are those of the answer, by name, such as Content-Type, which is text/plain without.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^[A-Za-z0-9!#$%&\\'*+.^_\\x60|~-]{1,256}$'))",message="a header's name has letters, digits and hyphens"
	Headers map[string]ResponseHeader `json:"headers,omitzero"`
}

// URLRewrite changes path and host of a request.
//
// +kubebuilder:validation:MinProperties=1
type URLRewrite struct {
	// Path changes the path. The query stays.
	// +optional
	Path *RegexRewrite `json:"path,omitempty"`

	// Hostname changes the host that the backend is told.
	// +optional
	Hostname *HostnameRewrite `json:"hostname,omitempty"`
}

// RegexRewrite replaces what an expression finds.
type RegexRewrite struct {
	// Pattern is a regular expression of RE2. All that it finds is replaced; ^ and $ are the ends of the path.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Pattern string `json:"pattern,omitzero"`

	// Substitution takes the place of it. \1 to \9 are the groups of the pattern, and \0 is all of it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Substitution string `json:"substitution,omitempty"`
}

// HostnameRewrite is where the host is from.
//
// +kubebuilder:validation:XValidation:rule="[has(self.header), has(self.path)].filter(x, x).size() == 1",message="exactly one of header and path is needed"
type HostnameRewrite struct {
	// Header is the name of a header with the host. Without the header the host stays.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern="^[A-Za-z0-9!#$%&'*+\\-.^_\\x60|~]+$"
	Header *string `json:"header,omitempty"`

	// Path makes the host of the path. A path in which the pattern finds nothing would be the host as it is: have it
	// match all paths of the rule.
	// +optional
	Path *RegexRewrite `json:"path,omitempty"`
}

// HeaderTemplates set, add and remove headers. Values may have variables: ${request.path}, ${request.method},
// ${request.host}, ${request.scheme}, ${request.id}, ${request.headers.NAME}, ${request.query.NAME} and
// ${client.address}. What a request hasn't got is empty. In answers, path and host are those that the backend was asked for.
//
// +kubebuilder:validation:MinProperties=1
type HeaderTemplates struct {
	// Set headers take the place of those that there are.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Set []HeaderTemplate `json:"set,omitempty"`

	// Add headers beside those that there are.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Add []HeaderTemplate `json:"add,omitempty"`

	// Remove headers.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=256
	Remove []string `json:"remove,omitempty"`
}

// HeaderTemplate is a header.
type HeaderTemplate struct {
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern="^[A-Za-z0-9!#$%&'*+\\-.^_\\x60|~]+$"
	Name string `json:"name,omitzero"`

	// Value is text with variables. $${ stands for ${.
	// +required
	// +kubebuilder:validation:MaxLength=4096
	Value string `json:"value"`
}
