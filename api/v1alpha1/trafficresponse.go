package v1alpha1

import (
	"k8s.io/apimachinery/pkg/util/intstr"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// TrafficResponse is settings of answers.
type TrafficResponse struct {
	// Bandwidth is how many bytes a second of bodies of answers pass, likewise.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]{0,11}(k|M|G|Ki|Mi|Gi)?|Unlimited)$`
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 1024 && self <= 2147483647",message="a number is 1024 to 2147483647; write more as a text, such as 3Gi"
	Bandwidth *intstr.IntOrString `json:"bandwidth,omitempty"`

	// Compression compresses answers for clients that accept it. Answers that the backend has compressed
	// stay as they are.
	// +optional
	Compression *Compression `json:"compression,omitempty"`

	// Headers are changed in all answers, also those of the Gateway itself, after what filters of routes change.
	// +optional
	Headers *AnswerHeaders `json:"headers,omitempty"`

	// StrictTransportSecurity tells browsers to come by HTTPS only (HSTS, RFC 6797). It is said over HTTPS, and
	// never over HTTP.
	// +optional
	StrictTransportSecurity *StrictTransportSecurity `json:"strictTransportSecurity,omitempty"`

	// SecurityHeaders are headers by which browsers are more careful, in answers that don't have them: {} is
	// X-Content-Type-Options: nosniff, X-Frame-Options: SAMEORIGIN and
	// Referrer-Policy: strict-origin-when-cross-origin.
	// +optional
	SecurityHeaders *SecurityHeaders `json:"securityHeaders,omitempty"`

	// ErrorPages are bodies of answers that are errors, in place of those of backends and of the Gateway.
	// +optional
	ErrorPages *ErrorPages `json:"errorPages,omitempty"`
}

// AnswerHeaders changes the headers of answers. Of each header it has one action. Strict-Transport-Security is a setting of
// its own, and Content-Encoding, WWW-Authenticate, Set-Cookie and Vary can only be added to.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.disabled) || !self.disabled || !(has(self.set) || has(self.setIfAbsent) || has(self.add) || has(self.remove))",message="disabled: true has nothing beside it"
type AnswerHeaders struct {
	// Set headers take the place of those that there are.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Set []gwv1.HTTPHeader `json:"set,omitempty"`

	// SetIfAbsent headers are set in answers that don't have them.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	SetIfAbsent []gwv1.HTTPHeader `json:"setIfAbsent,omitempty"`

	// Add headers stand beside those that there are.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Add []gwv1.HTTPHeader `json:"add,omitempty"`

	// Remove headers are taken out.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=256
	Remove []string `json:"remove,omitempty"`

	// Disabled changes nothing, in place of what is inherited. Nothing stands beside it.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
}

// StrictTransportSecurity tells browsers to come by HTTPS only.
//
// +kubebuilder:validation:XValidation:rule="!has(self.disabled) || !self.disabled || !(has(self.maxAge) || has(self.includeSubDomains) || has(self.preload))",message="disabled: true has nothing beside it"
type StrictTransportSecurity struct {
	// MaxAge is how long browsers remember it, in whole seconds: 8760h by default, which is a year; 0s has them forget it.
	// +optional
	MaxAge *gwv1.Duration `json:"maxAge,omitempty"`

	// IncludeSubDomains is for all hosts below this one, too.
	// +optional
	IncludeSubDomains bool `json:"includeSubDomains,omitempty"`

	// Preload lets browsers be delivered with it. It needs includeSubDomains and a maxAge of at least 8760h, and can hardly be taken back.
	// +optional
	Preload bool `json:"preload,omitempty"`

	// Disabled says nothing, in place of what is inherited. Nothing stands beside it.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
}

// SecurityHeaders are headers by which browsers are more careful. A backend that sets one itself has the last word.
//
// +kubebuilder:validation:XValidation:rule="!has(self.disabled) || !self.disabled || !(has(self.frameOptions) || has(self.referrerPolicy) || has(self.contentSecurityPolicy) || has(self.permissionsPolicy))",message="disabled: true has nothing beside it"
type SecurityHeaders struct {
	// FrameOptions says who may show a page in a frame: SameOrigin, which is the default, Deny for nobody, or Any.
	// +optional
	FrameOptions FrameOptions `json:"frameOptions,omitempty"`

	// ReferrerPolicy is the value of that header, strict-origin-when-cross-origin by default.
	// +optional
	ReferrerPolicy ReferrerPolicy `json:"referrerPolicy,omitempty"`

	// ContentSecurityPolicy is the value of that header. By default there is none.
	// +optional
	ContentSecurityPolicy ResponseHeader `json:"contentSecurityPolicy,omitempty"`

	// PermissionsPolicy is the value of that header. By default there is none.
	// +optional
	PermissionsPolicy ResponseHeader `json:"permissionsPolicy,omitempty"`

	// Disabled sets none, in place of what is inherited. Nothing stands beside it.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
}

// FrameOptions is who may show a page in a frame.
//
// +kubebuilder:validation:Enum=SameOrigin;Deny;Any
type FrameOptions string

// Who may show a page in a frame.
const (
	FrameSameOrigin FrameOptions = "SameOrigin"
	FrameDeny       FrameOptions = "Deny"
	FrameAny        FrameOptions = "Any"
)

// ReferrerPolicy is what other sites are told of where their visitors come from.
//
// +kubebuilder:validation:Enum=no-referrer;no-referrer-when-downgrade;origin;origin-when-cross-origin;same-origin;strict-origin;strict-origin-when-cross-origin;unsafe-url
type ReferrerPolicy string

// ErrorPages are bodies of answers that are errors.
//
// +kubebuilder:validation:XValidation:rule="(has(self.disabled) && self.disabled) != has(self.pages)",message="there are pages, or disabled: true"
type ErrorPages struct {
	// Pages are looked through in their order. The first one for the status of an answer is taken. All their texts together
	// have at most 64 KiB.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Pages []ErrorPage `json:"pages,omitzero"`

	// Disabled leaves all answers as they are, in place of what is inherited. Nothing stands beside it.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
}

// ErrorPage is the body of answers of some statuses.
//
// +kubebuilder:validation:XValidation:rule="(has(self.body) ? 1 : 0) + (has(self.configMapRef) ? 1 : 0) + (has(self.backendRef) ? 1 : 0) == 1",message="a page has body, configMapRef or backendRef, one of the three"
// +kubebuilder:validation:XValidation:rule="!has(self.backendRef) || !(has(self.contentType) || has(self.from))",message="contentType and from don't go with backendRef"
type ErrorPage struct {
	// Statuses are the answers whose body it is: single ones, such as 404, 4xx or 5xx. 401 and 407 stay as they are, since browsers ask for
	// a password by their headers, of which a page has none.
	//
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Pattern=`^[45]([0-9][0-9]|xx)$`
	Statuses []string `json:"statuses,omitzero"`

	// Body is the text of the answer.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Body *string `json:"body,omitempty"`

	// ConfigMapRef is a ConfigMap in the policy's namespace with the text, of at most 64 KiB. The default of its key is
	// body.
	// +optional
	ConfigMapRef *KeyRef `json:"configMapRef,omitempty"`

	// BackendRef is a backend that is asked for the page: a port of a Service, in the policy's namespace or in one with a
	// ReferenceGrant, or an XBackend in the policy's namespace. It gets a GET of / with the client's host and these headers:
	// X-Code, the status; X-Format, the client's Accept; X-Original-Method and X-Original-URI; X-Namespace and X-Route-Name, of
	// the route; and X-Request-ID. The body and the type of its answer are the page, if its status is of 2xx or is that of the
	// error, and if it comes within 3s; otherwise the error stays as it is.
	//
	// +optional
	BackendRef *gwv1.BackendObjectReference `json:"backendRef,omitempty"`

	// ContentType is the type of the text: text/html; charset=utf-8 by default.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9!#$&^_.+-]+/[ -~]*[!-~]$`
	ContentType string `json:"contentType,omitempty"`

	// From is whose answers it takes the place of: Any, which is the default, or Gateway for those alone that the
	// Gateway gives itself, such as 503 where no endpoint is ready.
	// +optional
	From ErrorSource `json:"from,omitempty"`
}

// ErrorSource is who has answered.
//
// +kubebuilder:validation:Enum=Any;Gateway
type ErrorSource string

// Who has answered.
const (
	ErrorsOfAny     ErrorSource = "Any"
	ErrorsOfGateway ErrorSource = "Gateway"
)

// Compression says which answers are compressed, and how.
//
// +kubebuilder:validation:XValidation:rule="!has(self.disabled) || !self.disabled || !(has(self.algorithms) || has(self.contentTypes) || has(self.minSize))",message="disabled: true has nothing beside it"
type Compression struct {
	// Algorithms are those that clients can choose from. The first one is taken where a client likes no other
	// one better. By default they are Brotli, Zstd and Gzip.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	Algorithms []CompressionAlgorithm `json:"algorithms,omitzero"`

	// ContentTypes are the types of answers that are compressed, without parameters, such as text/html
	// or text/*, which has streams of events (text/event-stream) among them. By default they are text/html, text/css, text/plain, text/xml, text/javascript,
	// application/javascript, application/json, application/xml, application/xhtml+xml and image/svg+xml.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9][a-z0-9!#$&^_.+-]*/([a-z0-9][a-z0-9!#$&^_.+-]*|[*])$`
	ContentTypes []string `json:"contentTypes,omitzero"`

	// MinSize is how large an answer has to be, by its Content-Length: 256 bytes by default. Answers
	// without one are compressed.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]{0,11}(k|M|G|Ki|Mi|Gi)?$`
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self > 0 && self <= 2147483647",message="a number is 1 to 2147483647; write a larger size as a text, such as 3Gi"
	MinSize *intstr.IntOrString `json:"minSize,omitempty"`

	// Disabled compresses nothing, in place of what is inherited. Nothing stands beside it.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
}

// CompressionAlgorithm is a way to compress answers.
//
// +kubebuilder:validation:XValidation:rule="!has(self.level) || (self.type == 'Gzip' ? self.level >= 1 && self.level <= 9 : self.type == 'Brotli' ? self.level <= 11 : self.level >= 1 && self.level <= 19)",message="a level is 1 to 9 for Gzip, 0 to 11 for Brotli and 1 to 19 for Zstd"
type CompressionAlgorithm struct {
	// Type is Gzip, Brotli or Zstd.
	//
	// +required
	Type CompressionType `json:"type,omitempty"`

	// Level says how hard is tried: the higher, the smaller the answers, and the more time it takes.
	// For Gzip it is 1 to 9, 6 by default; for Brotli, whose levels are known as qualities, 0 to 11,
	// 3 by default; for Zstd 1 to 19, 3 by default.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=19
	Level *int32 `json:"level,omitempty"`
}

// CompressionType is an algorithm.
//
// +kubebuilder:validation:Enum=Gzip;Brotli;Zstd
type CompressionType string

// The algorithms.
const (
	Gzip   CompressionType = "Gzip"
	Brotli CompressionType = "Brotli"
	Zstd   CompressionType = "Zstd"
)
