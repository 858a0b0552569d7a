package features

import "sigs.k8s.io/gateway-api/pkg/features"

// List is the list.
var List = []Section{
	{"Gateway", gateway},
	{"HTTPRoute", httpRoute},
	{"GRPCRoute", grpcRoute},
	{"TLSRoute", tlsRoute},
	{"TCPRoute and UDPRoute", streamRoutes},
	{"Backends", backends},
}

type names = []features.FeatureName

var gateway = []Row{
	{
		Features: names{features.SupportGateway},
		Note:     "any number of listeners on any ports; several Gateways, several GatewayClasses (`controllerName: gatehouse.dev/controller`)",
		Cases:    []string{"listener-ports", "listener-hostname", "listeners-modified", "multiple-gateways", "classes"},
	},
	{
		Title: "HTTPS listeners, `mode: Terminate`",
		Note:  "wildcard hostnames, HTTP/2, [HTTP/3](../guide/edge.md); several certificates, RSA and ECDSA; TLS 1.2 and up",
		Cases: []string{"https", "http3", "certificate-choice", "certificate-rotation", "invalid-certificates", "TestCertificateRotation", "TestTLSVersionsAndKeys"},
	},
	{
		Title: "`allowedRoutes` by kind, namespace, selector",
		Cases: []string{"allowed-routes", "route-kinds"},
	},
	{
		Title: "listener conditions, conflicts, `attachedRoutes`",
		Cases: []string{"listener-conflicts", "attached-routes"},
	},
	{
		Features: names{features.SupportGatewayHTTPListenerIsolation},
		Note:     "a host is served by the listener with the most specific hostname",
		Cases:    []string{"listener-isolation"},
	},
	{
		Features: names{features.SupportGatewayHTTPSListenerDetectMisdirectedRequests},
		Note:     "421; beyond 64 HTTPS listeners on a port, none of them without a hostname, also for hosts that nobody has",
		Cases:    []string{"https-misdirected", "listener-set-tls", "listener-set-many"},
	},
	{
		Features: names{features.SupportGatewayStaticAddresses},
		Modes:    []Mode{Host, Fleets}, // else the address is that of a pod, or of a Service that isn't ours
		Note:     "`type: IPAddress`; not with `infrastructure.type: None`",
		Cases:    []string{"static-addresses"},
	},
	{Features: names{features.SupportGatewayAddressEmpty}, Cases: []string{"empty-address"}},
	{
		Features: names{features.SupportGatewayPort8080},
		Note:     "like any other port",
		Cases:    []string{"listener-ports"},
	},
	{
		Features: names{features.SupportGatewayRouteHostnameIntersectionPrecedence},
		Cases:    []string{"hostname-precedence", "hostname-intersection", "grpc-hostname-precedence", "tls-route"},
	},
	{
		Features: names{features.SupportReferenceGrant},
		Note:     "to Services and Secrets",
		Cases:    []string{"reference-grant", "secret-grant"},
	},
	{
		Features: names{features.SupportListenerSet},
		Note:     "the Gateway's own listeners go first, then the oldest set; see [ListenerSets](../guide/listener-sets.md)",
		Cases:    []string{"listener-set-routing", "listener-set-allowed", "listener-set-conflicts", "listener-set-tls", "listener-set-many", "TestListenerSetsComeAndGo"},
	},
	{
		Features: names{features.SupportGatewayFrontendClientCertificateValidation},
		Note:     "for HTTPS, and for TLS that is terminated; not with HTTP/3",
		Cases:    []string{"client-certificates", "client-certificates-invalid", "client-certificates-isolation", "client-certificates-tls", "TestClientCertificates", "TestResumptionChecksClients"},
	},
	{
		Features: names{features.SupportGatewayFrontendClientCertificateValidationInsecureFallback},
		Note:     "backends are told nothing of the client's certificate",
		Cases:    []string{"client-certificates-fallback"},
	},
	{
		Features: names{features.SupportGatewayBackendClientCertificate},
		Cases:    []string{"backend-client-certificate", "TestBackendTLSComesAndGoes"},
	},
	{
		Features: names{features.SupportGatewayInfrastructure},
		Modes:    []Mode{Fleets},
		Note:     "labels and annotations are on all that is made for a Gateway, see [Fleets](../architecture/fleets.md); where Envoy is a process of this host there is nothing to label",
		Cases:    []string{"TestRender", "TestFleets"},
	},
	{
		Features: names{features.SupportGatewayListenerFilters},
		Note:     "`ExternalAuth`; `ExtensionRef` is refused (`UnsupportedValue`). See [Before a route is chosen](../guide/external-auth.md#before-a-route-is-chosen)",
		Cases:    []string{"TestListenerFilters"},
	},
	{
		Features: names{features.SupportGatewayAddressRoutability},
		Note:     "`gatehouse.dev/Loopback`, `gatehouse.dev/Private`, `gatehouse.dev/Public`; see [Gateways](../guide/gateways.md#addresses-by-reachability)",
		Cases:    []string{"address-routability"},
	},
	{
		Features: names{features.SupportGatewayAddressRoutabilityCluster},
		Modes:    []Mode{Fleets},
		Note:     "the ClusterIP of the Gateway's Service; where Envoy is a process of this host there is none",
		Cases:    []string{"TestRoutabilityCluster"},
	},
	{
		Features: names{features.SupportClusterTrustBundle},
		Note:     "as authorities of backends and of clients; claimed by a GatewayClass where the cluster serves the kind",
		Cases:    []string{"backend-tls-trust-bundle"},
	},
	{
		Title:        "default Gateways (`defaultScope`, `useDefaultGateways`)",
		Experimental: true,
		Note:         "see [Gateways](../guide/gateways.md#default-gateways)",
		Cases:        []string{"default-gateways"},
	},
}

var httpRoute = []Row{
	{
		Features: names{features.SupportHTTPRoute},
		Cases:    []string{"matching-across-routes", "path-precedence", "rule-order", "hostname-overlap"},
		Note:     "precedence within and across routes as specified; among equals the first rule wins",
	},
	{
		Title: "matches by path: `Exact`, `PathPrefix`, `RegularExpression`",
		Note:  "regular expressions are RE2 and match the whole path; [how large they may be](../guide/security.md#regular-expressions-that-fill-memory)",
		Cases: []string{"path-match", "path-regex"},
	},
	{
		Title: "matches by header",
		Note:  "exact and regular expression",
		Cases: []string{"header-match"},
	},
	{
		Features: names{features.SupportHTTPRouteQueryParamMatching},
		Note:     "exact and regular expression",
		Cases:    []string{"query-match"},
	},
	{Features: names{features.SupportHTTPRouteMethodMatching}, Cases: []string{"method-match"}},
	{
		Features: names{features.SupportHTTPRouteParentRefPort, features.SupportHTTPRouteDestinationPortMatching},
		Cases:    []string{"parentref-port-section"},
	},
	{Features: names{features.SupportHTTPRouteNamedRouteRule}, Cases: []string{"named-rules"}},
	{
		Title: "RequestHeaderModifier",
		Note:  "not of [headers that frame messages](../guide/backends.md#headers-at-the-edge)",
		Cases: []string{"request-headers", "header-framing", "edge-headers"},
	},
	{
		Features: names{features.SupportHTTPRouteResponseHeaderModification},
		Note:     "likewise",
		Cases:    []string{"response-headers", "header-framing"},
	},
	{
		Features: names{features.SupportHTTPRouteBackendRequestHeaderModification},
		Note:     "response headers of a backend too",
		Cases:    []string{"backend-headers"},
	},
	{
		Features: names{features.SupportHTTPRouteHostRewrite, features.SupportHTTPRoutePathRewrite},
		Cases:    []string{"rewrite-host", "rewrite-path"},
	},
	{Features: names{features.SupportHTTPRouteBackendURLRewrite}, Cases: []string{"backend-rewrite"}},
	{
		Features: names{features.SupportHTTPRouteSchemeRedirect, features.SupportHTTPRoutePortRedirect},
		Cases:    []string{"redirect-scheme-port"},
	},
	{Features: names{features.SupportHTTPRoutePathRedirect}, Cases: []string{"redirect-path"}},
	{
		Features: names{
			features.SupportHTTPRoute303RedirectStatusCode, features.SupportHTTPRoute307RedirectStatusCode,
			features.SupportHTTPRoute308RedirectStatusCode,
		},
		Note:  "and 301, 302",
		Cases: []string{"redirect-status-host"},
	},
	{
		Features: names{
			features.SupportHTTPRouteRequestMirror, features.SupportHTTPRouteRequestMultipleMirrors,
			features.SupportHTTPRouteRequestPercentageMirror,
		},
		Note:  "fractions too",
		Cases: []string{"mirror"},
	},
	{Features: names{features.SupportHTTPRouteCORS}, Cases: []string{"cors"}},
	{
		Features: names{features.SupportHTTPRouteRequestTimeout, features.SupportHTTPRouteBackendTimeout},
		Note:     "no limit unless the route sets one, but 5 minutes without any data end a request",
		Cases:    []string{"timeouts"},
	},
	{
		Features: names{features.SupportHTTPRouteRetryCodes},
		Note:     "attempts, backoff, interplay with timeouts",
		Cases:    []string{"retry", "retry-timeouts"},
	},
	{Features: names{features.SupportHTTPRouteRetryConnectionError}, Cases: []string{"retry-connection"}},
	{
		Title: "weights",
		Note:  "the share of an invalid backend answers 500",
		Cases: []string{"weights", "weights-invalid", "invalid-backends"},
	},
	{
		Features: names{features.SupportHTTPRouteBackendProtocolH2C, features.SupportHTTPRouteBackendProtocolWebSocket},
		Cases:    []string{"backend-protocols"},
	},
	{
		Title: "backends in other namespaces",
		Note:  "with a ReferenceGrant",
		Cases: []string{"reference-grant"},
	},
	{
		Title: "`ExtensionRef` filters",
		Note:  "of kind RouteFilter, see [Filters of routes](../guide/route-filters.md); with any other kind the rule answers 500",
		Cases: []string{"route-filter"},
	},
	{
		Title:        "`ExternalAuth` filters",
		Experimental: true,
		Note:         "HTTP and gRPC; see [External authorization](../guide/external-auth.md)",
		Cases:        []string{"external-auth"},
	},
	{
		Title:        "`sessionPersistence`",
		Experimental: true,
		Note:         "by cookie and by header, of GRPCRoutes too",
		Cases:        []string{"session-persistence"},
	},
}

var grpcRoute = []Row{
	{
		Features: names{features.SupportGRPCRoute},
		Note:     "exact and regular expression; a host may have HTTPRoutes too",
		Cases: []string{
			"grpc-method-match", "grpc-header-match", "grpc-precedence", "grpc-listener-hostname", "grpc-hostname-precedence",
			"grpc-shared-host", "grpc-multiple-gateways", "grpc-weights", "grpc-invalid-backends", "grpc-mirror", "grpc-https", "TestGRPCStreams",
		},
	},
	{Features: names{features.SupportGRPCRouteNamedRouteRule}, Cases: []string{"grpc-named-rules"}},
	{
		Features: names{features.SupportGRPCRouteRequestHeaderModifier},
		Note:     "response headers, and those of a backend, too",
		Cases:    []string{"grpc-headers"},
	},
}

var tlsRoute = []Row{
	{
		Features: names{features.SupportTLSRoute},
		Note:     "passed through by server name; connections for a name without a route are closed",
		Cases:    []string{"tls-route", "TestTLSRoutesComeAndGo", "TestWhatDrains"},
	},
	{
		Features: names{features.SupportTLSRouteModeTerminate},
		Cases:    []string{"tls-route", "backend-tls-tls-route"},
	},
	{
		Features: names{features.SupportTLSRouteModeMixed},
		Note:     "and beside HTTPS on the same port",
		Cases:    []string{"tls-route"},
	},
}

var streamRoutes = []Row{
	{
		Features: names{features.SupportTCPRoute},
		Note:     "weights by connection, half-close",
		Cases:    []string{"tcp", "TestTCPRouteRemovedUnderConnection", "TestWhatDrains"},
	},
	{
		Features: names{features.SupportUDPRoute},
		Note:     "weights by source address and port",
		Cases:    []string{"udp", "TestUDPSessionsSurviveEdits"},
	},
}

var backends = []Row{
	{
		Title: "Service with EndpointSlices of type `IPv4` and `IPv6`, headless Services",
		Cases: []string{"service-types", "endpoints-change", "backend-appears"},
	},
	{
		Title: "Service: `sessionAffinity: ClientIP`",
		Note:  "by the client's address as the Gateway's settings find it out, for HTTPRoutes and GRPCRoutes, as long as the endpoints stay the same: `timeoutSeconds` can't be honoured, since nothing is remembered. A [TrafficPolicy](../guide/traffic.md#choose-the-endpoint) has the last word; not of type `ExternalName`",
		Cases: []string{"TestServiceSettings"},
	},
	{
		Title: "Service: `trafficDistribution`, and zones of endpoints",
		Note:  "all endpoints get the same share. Which are close differs from proxy to proxy, and all proxies of a Gateway get the same endpoints, made once; Envoy's own choice by zones needs to know which zone each proxy is in, and how many there are in each",
	},
	{
		Title: "Service of type `ExternalName`",
		Note:  "by DNS; in a cluster only [names that the class lists](../guide/backends.md#names-outside-of-a-cluster)",
		Cases: []string{"service-types", "TestUnresolvableName", "TestExternalNamesAreListed"},
	},
	{
		Title: "ServiceImport of `multicluster.x-k8s.io`, `v1beta1` and `v1alpha1`",
		Note:  "by its EndpointSlices; see [Services of several clusters](../guide/backends.md#services-of-several-clusters-serviceimport)",
		Cases: []string{"service-import"},
	},
	{
		Title: "InferencePool of `inference.networking.k8s.io`, `v1`",
		Note:  "of HTTPRoutes; the endpoint picker is asked; see [Models](../guide/inference.md)",
		Cases: []string{"inference-pool"},
	},
	{
		Title: "EndpointSlices of type `FQDN`",
		Note:  "such endpoints get no traffic, and the route says so (`endpoint-names`); use `ExternalName`",
	},
	{
		Title: "other kinds",
		Note:  "`ResolvedRefs: False`, `InvalidKind` (`invalid-backends`)",
	},
	{
		Features: names{features.SupportBackendTLSPolicy},
		Note:     "for HTTP, gRPC and terminated TLS; see [TLS to backends](../guide/backend-tls.md)",
		Cases: []string{
			"backend-tls", "backend-tls-grpc", "backend-tls-tls-route", "backend-tls-protocols", "backend-tls-conflict", "backend-tls-invalid",
			"TestBackendTLSComesAndGoes", "TestAuthoritiesRotateUnderLoad", "TestBackendTLSPolicyUnderLoad", "TestSystemAuthorities",
		},
	},
	{
		Features: names{features.SupportBackendTLSPolicySANValidation},
		Note:     "DNS names and URIs",
		Cases:    []string{"backend-tls-names"},
	},
	{
		Title:        "XBackendTrafficPolicy: `retryConstraint`",
		Experimental: true,
		Note:         "a budget by percentage",
		Cases:        []string{"TestRetryBudget"},
	},
	{
		Title:        "XBackend",
		Experimental: true,
		Note:         "external hosts",
		Cases:        []string{"xbackend"},
	},
}
