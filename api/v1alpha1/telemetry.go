package v1alpha1

import gwv1 "sigs.k8s.io/gateway-api/apis/v1"

// AccessLog is one place where a line for each request and each connection goes:
// a file or a collector.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.path) && has(self.openTelemetry))",message="path and openTelemetry can't be had together: use two entries"
// +kubebuilder:validation:XValidation:rule="!(has(self.text) && has(self.json))",message="text and json can't be had together"
type AccessLog struct {
	// Path is the file, /dev/stdout by default.
	// +optional
	// +kubebuilder:validation:Pattern=`^/`
	// +kubebuilder:validation:MaxLength=4096
	Path *string `json:"path,omitempty"`

	// OpenTelemetry sends log records to a collector instead.
	// +optional
	OpenTelemetry *OpenTelemetry `json:"openTelemetry,omitempty"`

	// Text is the format of a line, with Envoy's operators such as %RESPONSE_CODE%. An
	// empty one is Envoy's own format.
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	Text *string `json:"text,omitempty" allow:"Safe"`

	// JSON are the fields of an object for each line, with Envoy's operators as
	// values; of a log record its attributes. Without json and text there is a default
	// set of fields.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=128
	JSON map[string]string `json:"json,omitzero" allow:"Safe"`
}

// OpenTelemetry is a collector that speaks OTLP over gRPC.
type OpenTelemetry struct {
	// Host is an IP address or a DNS name, such as collector.observability.svc.cluster.local.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Host string `json:"host"`

	// Port is 4317 by default.
	// +optional
	// +kubebuilder:default=4317
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// ServiceName is the service.name of what is sent; by default the Gateway's name
	// and namespace with a dot between.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	ServiceName *string `json:"serviceName,omitempty"`
}

// Tracing sends spans of requests to a collector.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.samplingPercent) && has(self.samplingFraction))",message="samplingPercent and samplingFraction can't be had together"
type Tracing struct {
	// OpenTelemetry is the collector. One of the levels must set it.
	// +optional
	OpenTelemetry *OpenTelemetry `json:"openTelemetry,omitempty" merge:"whole"`

	// SamplingPercent is how many of a hundred requests are traced that come without
	// a decision in their traceparent header, 100 by default. 0 turns tracing off.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	SamplingPercent *int32 `json:"samplingPercent,omitempty" merge:"choice" allow:"Safe"`

	// SamplingFraction is the same for less than one in a hundred.
	// +optional
	SamplingFraction *gwv1.Fraction `json:"samplingFraction,omitempty" merge:"choice,whole" allow:"Safe"`
}
