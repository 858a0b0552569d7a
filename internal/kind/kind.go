package kind

import "github.com/gatehouse-dev/gatehouse/internal/object"

// The API groups.
const (
	Core         = ""
	Discovery    = "discovery.k8s.io"
	Certificates = "certificates.k8s.io"
	Extensions   = "apiextensions.k8s.io"
	Networking   = "networking.k8s.io"
	MultiCluster = "multicluster.x-k8s.io"       // of services of several clusters
	Inference    = "inference.networking.k8s.io" // of the Gateway API's inference extension
	GatewayAPI   = "gateway.networking.k8s.io"
	Experimental = "gateway.networking.x-k8s.io" // kinds that are only in the experimental channel
	Gatehouse    = "gatehouse.dev"
)

// The kinds.
var (
	GatewayClass         = object.KindOf(GatewayAPI, "GatewayClass")
	Gateway              = object.KindOf(GatewayAPI, "Gateway")
	ListenerSet          = object.KindOf(GatewayAPI, "ListenerSet")
	HTTPRoute            = object.KindOf(GatewayAPI, "HTTPRoute")
	GRPCRoute            = object.KindOf(GatewayAPI, "GRPCRoute")
	TLSRoute             = object.KindOf(GatewayAPI, "TLSRoute")
	TCPRoute             = object.KindOf(GatewayAPI, "TCPRoute")
	UDPRoute             = object.KindOf(GatewayAPI, "UDPRoute")
	ReferenceGrant       = object.KindOf(GatewayAPI, "ReferenceGrant")
	BackendTLSPolicy     = object.KindOf(GatewayAPI, "BackendTLSPolicy")
	XBackend             = object.KindOf(Experimental, "XBackend")
	BackendTrafficPolicy = object.KindOf(Experimental, "XBackendTrafficPolicy")
	GatewayParameters    = object.KindOf(Gatehouse, "GatewayParameters")
	AuthPolicy           = object.KindOf(Gatehouse, "AuthPolicy")
	RateLimitPolicy      = object.KindOf(Gatehouse, "RateLimitPolicy")
	TrafficPolicy        = object.KindOf(Gatehouse, "TrafficPolicy")
	GatewayBlueprint     = object.KindOf(Gatehouse, "GatewayBlueprint")
	GatewayClassValues   = object.KindOf(Gatehouse, "GatewayClassValues")
	GatewayValues        = object.KindOf(Gatehouse, "GatewayValues")
	RouteFilter          = object.KindOf(Gatehouse, "RouteFilter")
	Service              = object.KindOf(Core, "Service")
	ServiceImport        = object.KindOf(MultiCluster, "ServiceImport")
	InferencePool        = object.KindOf(Inference, "InferencePool")
	Pod                  = object.KindOf(Core, "Pod")
	Secret               = object.KindOf(Core, "Secret")
	ConfigMap            = object.KindOf(Core, "ConfigMap")
	Namespace            = object.KindOf(Core, "Namespace")
	EndpointSlice        = object.KindOf(Discovery, "EndpointSlice")
	ClusterTrustBundle   = object.KindOf(Certificates, "ClusterTrustBundle")
	Definition           = object.KindOf(Extensions, "CustomResourceDefinition")
	Ingress              = object.KindOf(Networking, "Ingress")
)

// IsService reports whether objects of a kind are Services to policies: of one cluster, or of several.
func IsService(of object.Kind) bool { return of == Service || of == ServiceImport }
