package v1alpha1

import corev1 "k8s.io/api/core/v1"

// LimitsService is what counts requests for all proxies of a Gateway together.
type LimitsService struct {
	// Replicas is how many pods count, 1 by default. More need redis: each would count by
	// itself.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Replicas *int32 `json:"replicas,omitempty" allow:"Safe"`

	// Resources are 10m CPU and 64Mi memory requested, and a limit of 384Mi memory, by
	// default. A million counts in its memory, of which there are no more, take 200 MB.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty" allow:"Safe"`

	// Redis keeps the counts, by default the memory of the pod does.
	// +optional
	Redis *Redis `json:"redis,omitempty" merge:"whole"`
}

// Redis is a server of Redis or Valkey.
type Redis struct {
	// Host is an IP address or a DNS name, such as redis.shared.svc.cluster.local.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Host string `json:"host"`

	// Port is 6379 by default.
	// +optional
	// +kubebuilder:default=6379
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// SecretRef is a Secret in the Gateway's namespace with the entry password, and with
	// the entry username unless the user is the server's default one.
	// +optional
	SecretRef *SecretRef `json:"secretRef,omitempty"`

	// TLS is how the server is known; {} for the authorities of the image. Without it the
	// connection is not encrypted.
	// +optional
	TLS *RedisTLS `json:"tls,omitempty"`
}

// RedisTLS is how a server of Redis is known.
type RedisTLS struct {
	// CACertificateRef is where the certificates of its authority are, in the Gateway's
	// namespace, in the entry ca.crt.
	// +optional
	CACertificateRef *CACertificateRef `json:"caCertificateRef,omitempty"`

	// ServerName is what its certificate must be for, by default its host.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ServerName *string `json:"serverName,omitempty"`
}

// CACertificateRef is an object with the entry ca.crt.
type CACertificateRef struct {
	// Kind is ConfigMap by default.
	// +optional
	// +kubebuilder:default=ConfigMap
	// +kubebuilder:validation:Enum=ConfigMap;Secret
	Kind string `json:"kind,omitempty"`

	// Name is that of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitzero"`
}
