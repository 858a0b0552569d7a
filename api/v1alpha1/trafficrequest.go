package v1alpha1

import (
	"k8s.io/apimachinery/pkg/util/intstr"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

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
