package v1alpha1

import gwv1 "sigs.k8s.io/gateway-api/apis/v1"

// ExternalAuth is a service that is asked about each request. Its fields are those of the
// ExternalAuth filter of HTTPRoutes (GEP-1494), with failureMode and timeout besides.
//
// +kubebuilder:validation:XValidation:rule="!has(self.grpc) || self.protocol == 'GRPC'",message="grpc goes with the protocol GRPC"
// +kubebuilder:validation:XValidation:rule="!has(self.http) || self.protocol == 'HTTP'",message="http goes with the protocol HTTP"
type ExternalAuth struct {
	// Protocol is HTTP, or GRPC for Envoy's ext_authz protocol. An HTTP service is asked by the
	// client's method, host and path, and permits by any status of 2xx. Of its other answers the
	// client gets status, headers and body, but for those of 5xx, which are failures.
	//
	// +required
	// +kubebuilder:validation:Enum=HTTP;GRPC
	Protocol gwv1.HTTPRouteExternalAuthProtocol `json:"protocol,omitzero"`

	// BackendRef is the service: a port of a Service, in the policy's namespace or in one with a
	// ReferenceGrant, or an XBackend in the policy's namespace. As long as it can't be used
	// nobody passes, whatever failureMode says.
	//
	// +required
	BackendRef gwv1.BackendObjectReference `json:"backendRef,omitzero"`

	// GRPC is how a service of protocol GRPC is asked.
	// +optional
	GRPC *ExternalAuthGRPC `json:"grpc,omitempty"`

	// HTTP is how a service of protocol HTTP is asked.
	// +optional
	HTTP *ExternalAuthHTTP `json:"http,omitempty"`

	// ForwardBody sends the service the request's body too.
	// +optional
	ForwardBody *ExternalAuthBody `json:"forwardBody,omitempty"`

	// FailureMode is what becomes of requests about which the service doesn't say anything: it
	// can't be reached, takes too long, or answers 5xx. With Closed, the default, they are
	// answered with 503; with Open they pass.
	// +optional
	FailureMode FailureMode `json:"failureMode,omitempty"`

	// Timeout bounds how long the service may take: from 1ms to 1m. The default is 10s.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1ms') && duration(self) <= duration('1m')",message="must be from 1ms to 1m"
	Timeout *gwv1.Duration `json:"timeout,omitempty"`
}

// ExternalAuthGRPC is how a service is asked over gRPC.
type ExternalAuthGRPC struct {
	// AllowedHeaders are the request's headers that the service is told. Without any, it is told
	// all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern="^:?[A-Za-z0-9!#$%&'*+\\-.^_\\x60|~]+$"
	AllowedHeaders []string `json:"allowedHeaders,omitzero"`
}

// ExternalAuthHTTP is how a service is asked over HTTP.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.path) && has(self.replaceFullPath))",message="path and replaceFullPath can't stand together"
type ExternalAuthHTTP struct {
	// Path is put before the client's path.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern="^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})*$"
	Path string `json:"path,omitempty"`

	// ReplaceFullPath is the path that the service is asked for in place of the client's, whose query goes too: for
	// services that have one path for all questions, as with auth_request of nginx. What they decide
	// can't depend on the client's path then.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern="^/(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})*$"
	ReplaceFullPath string `json:"replaceFullPath,omitempty"`

	// AllowedHeaders are the request's headers that the service gets, beside Authorization.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern="^:?[A-Za-z0-9!#$%&'*+\\-.^_\\x60|~]+$"
	AllowedHeaders []string `json:"allowedHeaders,omitzero"`

	// AllowedResponseHeaders are the headers of a permission that the backend gets. Those of them
	// that the service isn't sent never come from a client. Without any, the backend gets all
	// but those that are about the answer itself.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern="^[A-Za-z0-9!#$%&'*+\\-.^_\\x60|~]+$"
	AllowedResponseHeaders []string `json:"allowedResponseHeaders,omitzero"`
}

// ExternalAuthBody is how much of a request's body a service gets.
type ExternalAuthBody struct {
	// MaxSize is how many bytes a body may have. Requests with more are answered with 413. With 0
	// no body is sent. With protocol GRPC it may be 3932160 at most, since services refuse messages of
	// more than 4 MiB.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=16777216
	MaxSize int32 `json:"maxSize,omitempty"`
}

// FailureMode is what becomes of requests about which a service doesn't say anything.
//
// +kubebuilder:validation:Enum=Closed;Open
type FailureMode string

// These are the failure modes.
const (
	FailureClosed FailureMode = "Closed"
	FailureOpen   FailureMode = "Open"
)
