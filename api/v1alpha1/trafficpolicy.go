package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// TrafficPolicy says how requests and answers pass, and how backends are chosen. A setting that
// is broken has no effect, and all others stay.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=trafficpolicies,singular=trafficpolicy,categories=gateway-api,shortName=tp
// +kubebuilder:metadata:labels="gateway.networking.k8s.io/policy=Inherited"
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.targetRefs[0].kind`
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.targetRefs[0].name`
// +kubebuilder:printcolumn:name="Selector",type=string,JSONPath=`.spec.targetSelectors[0].matchLabels`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.ancestors[0].conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Programmed",type=string,JSONPath=`.status.ancestors[0].conditions[?(@.type=="Programmed")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type TrafficPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec TrafficPolicySpec `json:"spec"`

	// +optional
	Status gwv1.PolicyStatus `json:"status,omitzero"`
}

// TrafficPolicyList is a list of TrafficPolicies.
//
// +kubebuilder:object:root=true
type TrafficPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []TrafficPolicy `json:"items"`
}

// TrafficPolicySpec is what a policy is for, and what it says. Its settings stand in defaults, in
// overrides, or beside the targets, which is the same as defaults with the strategy atomic.
//
// +kubebuilder:validation:XValidation:rule="[has(self.defaults), has(self.overrides), has(self.request) || has(self.response) || has(self.backend)].filter(x, x).size() == 1",message="settings stand in defaults, in overrides, or beside targetRefs, in one of them"
// +kubebuilder:validation:XValidation:rule="has(self.targetRefs) || has(self.targetSelectors)",message="a TrafficPolicy needs targetRefs or targetSelectors, which say what it is for"
// +kubebuilder:validation:XValidation:rule="!has(self.targetRefs) || !self.targetRefs.exists(t, t.kind in ['Service', 'ServiceImport']) || !has(self.request) && !has(self.response) && (!has(self.defaults) || !has(self.defaults.request) && !has(self.defaults.response)) && (!has(self.overrides) || !has(self.overrides.request) && !has(self.overrides.response))",message="a TrafficPolicy for a Service has settings of backend alone"
type TrafficPolicySpec struct {
	// TargetRefs are what the policy is for, in its own namespace: Gateways and ListenerSets,
	// or one of their listeners by sectionName, HTTPRoutes and GRPCRoutes, or one of their
	// rules by its name, and Services, for which it has settings of backend alone.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.group == 'gateway.networking.k8s.io' && t.kind in ['Gateway', 'ListenerSet', 'HTTPRoute', 'GRPCRoute'] || t.group == '' && t.kind == 'Service' || t.group == 'multicluster.x-k8s.io' && t.kind == 'ServiceImport')",message="a TrafficPolicy is for a Gateway, a ListenerSet, an HTTPRoute or a GRPCRoute of group gateway.networking.k8s.io, or for a Service, or a ServiceImport of group multicluster.x-k8s.io"
	// +kubebuilder:validation:XValidation:rule="self.all(t, !(t.kind in ['Service', 'ServiceImport']) || !has(t.sectionName))",message="a TrafficPolicy is for a whole Service, without sectionName"
	TargetRefs []gwv1.LocalPolicyTargetReferenceWithSectionName `json:"targetRefs,omitzero"`

	// TargetSelectors are what the policy is for besides, by labels. At least one of targetRefs and
	// targetSelectors is needed.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.group == 'gateway.networking.k8s.io' && t.kind in ['Gateway', 'ListenerSet', 'HTTPRoute', 'GRPCRoute'])",message="a TrafficPolicy is for a Gateway, a ListenerSet, an HTTPRoute or a GRPCRoute of group gateway.networking.k8s.io"
	TargetSelectors []TargetSelector `json:"targetSelectors,omitzero"`

	// Defaults give way to policies with more specific targets. Without any settings, {}, the policy is
	// invalid and takes the place of no other.
	// +optional
	Defaults *TrafficLayer `json:"defaults,omitempty"`

	// Overrides don't give way to them.
	// +optional
	Overrides *TrafficLayer `json:"overrides,omitempty"`

	TrafficSettings `json:",inline"`
}

// TrafficLayer is settings with what becomes of them where other policies say something.
//
// +kubebuilder:validation:XValidation:rule="!has(self.strategy) || has(self.request) || has(self.response) || has(self.backend)",message="a strategy is of settings, and there are none"
type TrafficLayer struct {
	// Strategy is atomic, which is the default, or merge: different settings are in force
	// together then, each from the policy that has the last word about it.
	// +optional
	Strategy Strategy `json:"strategy,omitempty"`

	TrafficSettings `json:",inline"`
}

// TrafficSettings are what a policy says. Policies are merged by single settings, such as
// request.maxBodySize.
type TrafficSettings struct {
	// Request is about requests.
	// +optional
	Request TrafficRequest `json:"request,omitzero"`

	// Response is about answers.
	// +optional
	Response TrafficResponse `json:"response,omitzero"`

	// Backend is about backends, for the requests that the policy is for: another route to the same
	// Service is not touched, unless the policy is for the Service.
	// +optional
	Backend TrafficBackend `json:"backend,omitzero"`
}

// TrafficRequest is settings of requests.
type TrafficRequest struct {
	// MaxBodySize is how large the body of a request may be, such as 512Ki, 10Mi or a number of
	// bytes. One that is larger is answered with 413, also where its length is not told before.
	// Unlimited takes the place of what is inherited; it is the default.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]{0,11}(k|M|G|Ki|Mi|Gi)?|Unlimited)$`
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self > 0 && self <= 2147483647",message="a number is 1 to 2147483647; write a larger size as a text, such as 3Gi"
	MaxBodySize *intstr.IntOrString `json:"maxBodySize,omitempty"`

	// Buffering holds back a request until its whole body is there, so that no slow client occupies a
	// backend. There is none by default.
	// +optional
	Buffering *Buffering `json:"buffering,omitempty"`

	// Timeout is how long a request may take, from its end to the end of its answer, retries
	// included, such as 30s; 0s is no limit, which is the default. What the rule of a route says
	// in timeouts.request has the last word. While the client still sends, as over a WebSocket, idleTimeout ends
	// what stands still, and this one nothing.
	// +optional
	Timeout *gwv1.Duration `json:"timeout,omitempty"`

	// IdleTimeout is how long nothing may move in a request or its answer, such as 1h; 0s is no limit.
	// By default it is 5m for HTTPRoutes, and no limit for GRPCRoutes.
	// +optional
	IdleTimeout *gwv1.Duration `json:"idleTimeout,omitempty"`

	// Retry repeats requests that a backend has not taken. A retry of the rule of a route has the last word.
	// +optional
	Retry *TrafficRetry `json:"retry,omitempty"`

	// Bandwidth is how many bytes a second of bodies of requests pass, such as 512Ki or 10Mi, and what is more waits. It is for
	// all requests together of the port, host or rule to which a policy says it, and for each proxy. Unlimited takes the
	// place of what is inherited; it is the default.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]{0,11}(k|M|G|Ki|Mi|Gi)?|Unlimited)$`
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 1024 && self <= 2147483647",message="a number is 1024 to 2147483647; write more as a text, such as 3Gi"
	Bandwidth *intstr.IntOrString `json:"bandwidth,omitempty"`

	// AdmissionControl answers a share of the requests with 503 in place of a backend of which too few succeed, the larger the
	// fewer do. So a backend that has too much to do recovers.
	// +optional
	AdmissionControl *AdmissionControl `json:"admissionControl,omitempty"`

	// Faults are made for a share of the requests, to see how clients take them.
	// +optional
	Faults *Faults `json:"faults,omitempty"`
}

// AdmissionControl turns requests away from backends that fail. Answers of 5xx fail, and calls of gRPC by their status, retries
// included.
//
// +kubebuilder:validation:XValidation:rule="!has(self.disabled) || !self.disabled || !has(self.successRate) && !has(self.window) && !has(self.minRequestRate) && !has(self.maxRejectedPercent)",message="disabled: true has nothing beside it"
type AdmissionControl struct {
	// SuccessRate is below how many successes of a hundred requests are turned away: 95 by default.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	SuccessRate *int32 `json:"successRate,omitempty"`

	// Window is for how long a success or a failure counts: 30s by default, 1s to 10m, in whole seconds.
	// +optional
	Window *gwv1.Duration `json:"window,omitempty"`

	// MinRequestRate is from how many requests a second on any are turned away: 5 by default. Each proxy counts
	// for itself.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	MinRequestRate *int32 `json:"minRequestRate,omitempty"`

	// MaxRejectedPercent is how many of a hundred requests are turned away at most: 80 by default.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxRejectedPercent *int32 `json:"maxRejectedPercent,omitempty"`

	// Disabled turns nothing away, in place of what is inherited. Nothing stands beside it.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
}

// Faults are made for a share of the requests.
//
// +kubebuilder:validation:XValidation:rule="(has(self.disabled) && self.disabled) != (has(self.delay) || has(self.abort))",message="there are delay or abort, or disabled: true"
type Faults struct {
	// Delay has requests wait before they go on.
	// +optional
	Delay *FaultDelay `json:"delay,omitempty"`

	// Abort answers requests in place of the backend.
	// +optional
	Abort *FaultAbort `json:"abort,omitempty"`

	// Disabled makes no faults, in place of what is inherited. Nothing stands beside it.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
}

// FaultDelay has requests wait.
type FaultDelay struct {
	// Duration is how long, such as 2s.
	// +required
	Duration gwv1.Duration `json:"duration,omitempty"`

	// Percent is how many of a hundred: 100 by default.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percent *int32 `json:"percent,omitempty"`
}

// FaultAbort answers requests.
type FaultAbort struct {
	// Status is that of the answer: 503 by default.
	//
	// +optional
	// +kubebuilder:validation:Minimum=400
	// +kubebuilder:validation:Maximum=599
	Status *int32 `json:"status,omitempty"`

	// Percent is how many of a hundred: 100 by default.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percent *int32 `json:"percent,omitempty"`
}

// Buffering holds back requests.
//
// +kubebuilder:validation:XValidation:rule="!has(self.disabled) || !self.disabled || !has(self.maxSize)",message="disabled: true has nothing beside it"
type Buffering struct {
	// MaxSize is how large a body that is held back may be, up to 64Mi; 1Mi by default. One that is larger is answered with 413. All
	// of it is in the memory of the proxy.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]{0,11}(k|M|G|Ki|Mi|Gi)?$`
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self > 0 && self <= 67108864",message="a number is 1 to 67108864"
	MaxSize *intstr.IntOrString `json:"maxSize,omitempty"`

	// Disabled holds nothing back, in place of what is inherited. Nothing stands beside it.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
}

// TrafficRetry says when an attempt at a backend is repeated. One is repeated where no connection comes
// about, where the backend refuses the stream, and where the connection breaks before anything is sent. Up to 1 MiB of
// each body is kept for it.
type TrafficRetry struct {
	// Attempts is how often at most; 0 is never, in place of what is inherited. It is 1 by default.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	Attempts *int32 `json:"attempts,omitempty"`

	// Codes are statuses of answers after which an attempt is repeated too, though the backend has taken it: name
	// them only where requests may be repeated.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Minimum=400
	// +kubebuilder:validation:items:Maximum=599
	Codes []int32 `json:"codes,omitzero"`

	// Backoff is the least time between two attempts, such as 100ms; 25ms by default.
	// +optional
	Backoff *gwv1.Duration `json:"backoff,omitempty"`
}

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

// TrafficBackend is settings of backends.
type TrafficBackend struct {
	// LoadBalancing is how an endpoint of a backend is chosen.
	// +optional
	LoadBalancing *LoadBalancing `json:"loadBalancing,omitempty"`

	// ConnectTimeout is how long a connection to an endpoint may take to come about: 5s by default.
	// +optional
	ConnectTimeout *gwv1.Duration `json:"connectTimeout,omitempty"`

	// Connections are how long connections to endpoints are used.
	// +optional
	Connections *BackendConnections `json:"connections,omitempty"`

	// CircuitBreaker bounds what a backend has to do at once, for each proxy. What is over it is answered with 503.
	// +optional
	CircuitBreaker *CircuitBreaker `json:"circuitBreaker,omitempty"`

	// RetryBudget is how many retries may be under way at once. An XBackendTrafficPolicy of the Service has the last word.
	// +optional
	RetryBudget *RetryBudget `json:"retryBudget,omitempty"`

	// OutlierDetection sends nothing, for a while, to endpoints that fail (passive health checks).
	// +optional
	OutlierDetection *OutlierDetection `json:"outlierDetection,omitempty"`

	// HealthCheck asks endpoints whether they are well (active health checks), and sends nothing to those that aren't.
	// +optional
	HealthCheck *HealthCheck `json:"healthCheck,omitempty"`

	// RoutingType is where requests are sent: to the endpoints of a backend, which is the default, or to its cluster IP,
	// behind which the cluster's network chooses the endpoint.
	// +optional
	RoutingType *RoutingType `json:"routingType,omitempty"`

	// Clusters says which clusters' endpoints get requests, where a backend is a ServiceImport. By default all endpoints
	// of all clusters are alike.
	// +optional
	Clusters *BackendClusters `json:"clusters,omitempty"`
}

// BackendClusters says which clusters' endpoints of a ServiceImport get requests.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type BackendClusters struct {
	// Order says it of clusters by their names, as the label multicluster.kubernetes.io/source-cluster of EndpointSlices has
	// them. Those that are not named get requests when none of the others has an endpoint that is well.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Order []ClusterShare `json:"order,omitempty"`

	// Equal has the endpoints of all clusters be alike, whatever an outer policy says.
	// +optional
	Equal bool `json:"equal,omitempty"`
}

// ClusterShare is what the endpoints of a cluster get of the requests.
type ClusterShare struct {
	// Name is the name of the cluster.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// Weight is the share of the cluster among those of the same priority: 1 by default, and 0 for no requests at all.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Weight *int32 `json:"weight,omitempty"`

	// Priority is 0, the default, for clusters that get all requests while enough of their endpoints are well. Those of 1 get
	// what they can't take, and so on.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=15
	Priority *int32 `json:"priority,omitempty"`
}

// RoutingType is where requests to a backend are sent.
//
// +kubebuilder:validation:Enum=Endpoint;Service
type RoutingType string

// The routing types.
const (
	RoutingEndpoint RoutingType = "Endpoint" // to an endpoint, as its EndpointSlices have it
	RoutingService  RoutingType = "Service"  // to the cluster IP of the Service, or the IPs of the ServiceImport
)

// BackendConnections are how long connections to endpoints are used.
//
// +kubebuilder:validation:MinProperties=1
type BackendConnections struct {
	// MaxRequests is after how many requests a connection is closed. By default there is no limit.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxRequests *int32 `json:"maxRequests,omitempty"`

	// IdleTimeout is how long a connection is kept without a request: 1h by default. It should be shorter than the
	// backend's own.
	// +optional
	IdleTimeout *gwv1.Duration `json:"idleTimeout,omitempty"`

	// KeepAlive is how long a connection may be silent before TCP looks whether the other side is still there, at least 1s. By
	// default it is 60s for HTTP/2 and gRPC, and else it doesn't look.
	// +optional
	KeepAlive *gwv1.Duration `json:"keepAlive,omitempty"`
}

// CircuitBreaker bounds what a backend has to do at once. What isn't said is 65536, which is also the most: it protects
// the proxy.
//
// +kubebuilder:validation:MinProperties=1
type CircuitBreaker struct {
	// MaxConnections is how many connections there may be.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	MaxConnections *int32 `json:"maxConnections,omitempty"`

	// MaxPendingRequests is how many requests may wait for a connection.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	MaxPendingRequests *int32 `json:"maxPendingRequests,omitempty"`

	// MaxRequests is how many requests may be under way.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	MaxRequests *int32 `json:"maxRequests,omitempty"`
}

// RetryBudget is how many retries may be under way at once.
//
// +kubebuilder:validation:MinProperties=1
type RetryBudget struct {
	// Percent is how many of a hundred requests under way may be retries: 20 by default.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percent *int32 `json:"percent,omitempty"`

	// MinRetries is how many may always be: 64 by default.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	MinRetries *int32 `json:"minRetries,omitempty"`
}

// OutlierDetection sends nothing, for a while, to endpoints that fail. {} has all by default.
//
// +kubebuilder:validation:XValidation:rule="!has(self.disabled) || !self.disabled || !(has(self.consecutiveErrors) || has(self.interval) || has(self.ejectionTime) || has(self.maxEjectedPercent))",message="disabled: true has nothing beside it"
type OutlierDetection struct {
	// ConsecutiveErrors are how many answers of 5xx, connections that don't come about or timeouts, one after the other,
	// are too many: 5 by default.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	ConsecutiveErrors *int32 `json:"consecutiveErrors,omitempty"`

	// Interval is how often it is looked whether endpoints may come back: 10s by default.
	// +optional
	Interval *gwv1.Duration `json:"interval,omitempty"`

	// EjectionTime is for how long an endpoint gets nothing, each time longer by this: 30s by default.
	// +optional
	EjectionTime *gwv1.Duration `json:"ejectionTime,omitempty"`

	// MaxEjectedPercent is how many of a hundred endpoints may get nothing: 50 by default.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxEjectedPercent *int32 `json:"maxEjectedPercent,omitempty"`

	// Disabled has all endpoints get requests, in place of what is inherited. Nothing stands beside it.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
}

// HealthCheck asks endpoints whether they are well.
//
// +kubebuilder:validation:XValidation:rule="(has(self.disabled) && self.disabled) != has(self.type)",message="there is a type, or disabled: true"
// +kubebuilder:validation:XValidation:rule="!has(self.http) || has(self.type) && self.type == 'HTTP'",message="http stands with type: HTTP, and only there"
// +kubebuilder:validation:XValidation:rule="!has(self.grpc) || has(self.type) && self.type == 'GRPC'",message="grpc stands with type: GRPC, and only there"
// +kubebuilder:validation:XValidation:rule="!has(self.timeout) || duration(self.timeout) <= duration('10s')",message="timeout is at most 10s, since a proxy that starts waits for it"
type HealthCheck struct {
	// Type is HTTP, GRPC (grpc.health.v1.Health) or TCP, for which a connection is enough.
	// +optional
	Type HealthCheckType `json:"type,omitempty"`

	// HTTP is what is asked for.
	// +optional
	HTTP *HTTPHealthCheck `json:"http,omitempty"`

	// GRPC is what is asked for.
	// +optional
	GRPC *GRPCHealthCheck `json:"grpc,omitempty"`

	// Interval is how often, for each proxy and endpoint: 10s by default, at least 100ms.
	// +optional
	Interval *gwv1.Duration `json:"interval,omitempty"`

	// Timeout is how long an answer may take: 1s by default, at most 10s. A proxy that starts waits for the first results.
	// +optional
	Timeout *gwv1.Duration `json:"timeout,omitempty"`

	// UnhealthyThreshold is after how many failures an endpoint gets nothing: 3 by default.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	UnhealthyThreshold *int32 `json:"unhealthyThreshold,omitempty"`

	// HealthyThreshold is after how many successes it gets requests again: 1 by default.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	HealthyThreshold *int32 `json:"healthyThreshold,omitempty"`

	// Disabled asks nothing, in place of what is inherited. Nothing stands beside it.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
}

// HealthCheckType is how endpoints are asked.
//
// +kubebuilder:validation:Enum=HTTP;GRPC;TCP
type HealthCheckType string

// How endpoints are asked.
const (
	HTTPCheck HealthCheckType = "HTTP"
	GRPCCheck HealthCheckType = "GRPC"
	TCPCheck  HealthCheckType = "TCP"
)

// HTTPHealthCheck is a GET that is to be answered with a status from 200 to 399.
type HTTPHealthCheck struct {
	// Path is the path, with a query if there is one: / by default.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/[!-~]*$`
	Path string `json:"path,omitempty"`

	// Hostname is the Host of the request. By default it is that of the backend's certificate, or SERVICE.NAMESPACE.svc.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._-]+$`
	Hostname string `json:"hostname,omitempty"`
}

// GRPCHealthCheck is a call of grpc.health.v1.Health/Check.
type GRPCHealthCheck struct {
	// Service is whose health is asked for. By default it is that of the server.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._-]*$`
	Service string `json:"service,omitempty"`
}

// LoadBalancing is how an endpoint of a backend is chosen.
//
// +kubebuilder:validation:XValidation:rule="(self.type == 'ConsistentHash') == has(self.consistentHash)",message="consistentHash stands with type: ConsistentHash, and only there"
// +kubebuilder:validation:XValidation:rule="!has(self.slowStart) || self.type in ['LeastRequest', 'RoundRobin']",message="slowStart stands with LeastRequest or RoundRobin"
type LoadBalancing struct {
	// Type is LeastRequest, by which the one of two that has fewer requests under way is taken, and
	// which is the default without a policy; RoundRobin, Random, or ConsistentHash.
	//
	// +required
	Type LoadBalancingType `json:"type,omitempty"`

	// ConsistentHash is what requests have in common that go to the same endpoint.
	// +optional
	ConsistentHash *ConsistentHash `json:"consistentHash,omitempty"`

	// SlowStart is how long a new endpoint gets fewer requests than others, such as 30s. It stands with LeastRequest and RoundRobin.
	// +optional
	SlowStart *gwv1.Duration `json:"slowStart,omitempty"`
}

// LoadBalancingType is how an endpoint is chosen.
//
// +kubebuilder:validation:Enum=RoundRobin;LeastRequest;Random;ConsistentHash
type LoadBalancingType string

// The ways to choose an endpoint.
const (
	RoundRobinLoadBalancing     LoadBalancingType = "RoundRobin"
	LeastRequestLoadBalancing   LoadBalancingType = "LeastRequest"
	RandomLoadBalancing         LoadBalancingType = "Random"
	ConsistentHashLoadBalancing LoadBalancingType = "ConsistentHash"
)

// ConsistentHash is what requests have in common that go to the same endpoint. Endpoints that come
// and go move few of the others' clients. Requests that don't have it go to any endpoint.
//
// +kubebuilder:validation:XValidation:rule="(self.type == 'Header') == has(self.header)",message="header stands with type: Header, and only there"
// +kubebuilder:validation:XValidation:rule="(self.type == 'Cookie') == has(self.cookie)",message="cookie stands with type: Cookie, and only there"
// +kubebuilder:validation:XValidation:rule="(self.type == 'QueryParam') == has(self.queryParam)",message="queryParam stands with type: QueryParam, and only there"
type ConsistentHash struct {
	// Type is Header, Cookie, SourceIP or QueryParam. SourceIP is the client's address, as
	// the Gateway's settings find it out.
	//
	// +required
	Type ConsistentHashType `json:"type,omitempty"`

	// Header is a header of requests.
	// +optional
	Header *HashHeader `json:"header,omitempty"`

	// Cookie is a cookie. Clients without it are given one.
	// +optional
	Cookie *HashCookie `json:"cookie,omitempty"`

	// QueryParam is a parameter of the query.
	// +optional
	QueryParam *HashQueryParam `json:"queryParam,omitempty"`

	// Algorithm is Ring, which is the default, or Maglev, which spreads more evenly and takes more memory for few endpoints.
	// +optional
	Algorithm HashAlgorithm `json:"algorithm,omitempty"`

	// RingSize is how many places a ring has at least: 1024 by default. The more, the more evenly it spreads. It stands with Ring.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	RingSize *int32 `json:"ringSize,omitempty"`
}

// HashAlgorithm is how a hash leads to an endpoint.
//
// +kubebuilder:validation:Enum=Ring;Maglev
type HashAlgorithm string

// The algorithms.
const (
	RingHash   HashAlgorithm = "Ring"
	MaglevHash HashAlgorithm = "Maglev"
)

// ConsistentHashType is what is hashed.
//
// +kubebuilder:validation:Enum=Header;Cookie;SourceIP;QueryParam
type ConsistentHashType string

// What can be hashed.
const (
	HeaderHash     ConsistentHashType = "Header"
	CookieHash     ConsistentHashType = "Cookie"
	SourceIPHash   ConsistentHashType = "SourceIP"
	QueryParamHash ConsistentHashType = "QueryParam"
)

// HashHeader is a header of requests.
type HashHeader struct {
	// Name is that of the header, such as X-User.
	//
	// +required
	Name gwv1.HTTPHeaderName `json:"name,omitempty"`
}

// HashCookie is a cookie.
type HashCookie struct {
	// Name is that of the cookie.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9!#$%&'*+.^_|~-]+$`
	Name string `json:"name,omitempty"`

	// TTL is how long clients keep one that they are given, such as 1h. Without it they keep it until
	// the browser is closed.
	// +optional
	TTL *gwv1.Duration `json:"ttl,omitempty"`

	// Path is below which path of the host clients send it: / by default.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^/[!-+\--:<-~]*$`
	Path *string `json:"path,omitempty"`

	// Domain is a domain to whose hosts clients send it, such as example.com for www.example.com too. Without it they
	// send it to the host that they have it from.
	// +optional
	Domain *gwv1.PreciseHostname `json:"domain,omitempty"`

	// SameSite says whether clients send it with requests that other sites cause: Lax, which is the default and
	// sends it where somebody follows a link, Strict or None. Over HTTPS it always is Secure, which None asks for.
	// +optional
	SameSite *SameSite `json:"sameSite,omitempty"`
}

// SameSite is an attribute of cookies.
//
// +kubebuilder:validation:Enum=Lax;Strict;None
type SameSite string

// The values of SameSite.
const (
	SameSiteLax    SameSite = "Lax"
	SameSiteStrict SameSite = "Strict"
	SameSiteNone   SameSite = "None"
)

// HashQueryParam is a parameter of the query.
type HashQueryParam struct {
	// Name is that of the parameter.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`
}
