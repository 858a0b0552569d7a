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
		Note:  "wildcard hostnames, HTTP/2; TLS 1.2 and up",
		Cases: []string{"https", "certificate-rotation", "invalid-certificates"},
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
		Note:     "421",
		Cases:    []string{"https-misdirected"},
	},
	{
		Features: names{features.SupportGatewayStaticAddresses},
		Note:     "`type: IPAddress`",
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
		Cases:    []string{"hostname-precedence", "hostname-intersection"},
	},
	{
		Features: names{features.SupportReferenceGrant},
		Note:     "to Services and Secrets",
		Cases:    []string{"reference-grant", "secret-grant"},
	},
	{Features: names{features.SupportListenerSet}},
	{Features: names{features.SupportGatewayFrontendClientCertificateValidation}},
	{Features: names{features.SupportGatewayFrontendClientCertificateValidationInsecureFallback}},
	{Features: names{features.SupportGatewayBackendClientCertificate}},
	{
		Features: names{features.SupportGatewayInfrastructure},
		Note:     "there is nothing to label where Envoy is a process of this host",
	},
	{
		Features: names{features.SupportGatewayListenerFilters},
		Note:     "the listener is refused (`UnsupportedValue`); use `ExternalAuth` in the rules of routes",
	},
	{
		Features: names{features.SupportGatewayAddressRoutability},
		Note:     "`gatehouse.dev/Loopback`, `gatehouse.dev/Private`, `gatehouse.dev/Public`; see [Gateways](../guide/gateways.md#addresses-by-reachability)",
		Cases:    []string{"address-routability"},
	},
	{
		Features: names{features.SupportGatewayAddressRoutabilityCluster},
		Note:     "there are no ClusterIPs where Envoy is a process of this host",
	},
	{Features: names{features.SupportClusterTrustBundle}},
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
		Note:  "regular expressions are RE2 and match the whole path",
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
		Note:  "there is none to refer to; the rule answers 500",
	},
	{Title: "`ExternalAuth` filters", Experimental: true},
	{Title: "`sessionPersistence`", Experimental: true},
}

var grpcRoute = []Row{
	{Features: names{features.SupportGRPCRoute}},
	{Features: names{features.SupportGRPCRouteNamedRouteRule}},
	{Features: names{features.SupportGRPCRouteRequestHeaderModifier}},
}

var tlsRoute = []Row{
	{Features: names{features.SupportTLSRoute}},
	{Features: names{features.SupportTLSRouteModeTerminate}},
	{Features: names{features.SupportTLSRouteModeMixed}},
}

var streamRoutes = []Row{
	{Features: names{features.SupportTCPRoute}},
	{Features: names{features.SupportUDPRoute}},
}

var backends = []Row{
	{
		Title: "Service with EndpointSlices of type `IPv4` and `IPv6`, headless Services",
		Cases: []string{"service-types", "endpoints-change", "backend-appears"},
	},
	{
		Title: "Service of type `ExternalName`",
		Note:  "by DNS",
		Cases: []string{"service-types", "TestUnresolvableName"},
	},
	{
		Title: "EndpointSlices of type `FQDN`",
		Note:  "such endpoints get no traffic, and the route says so (`endpoint-names`); use `ExternalName`",
	},
	{
		Title: "other kinds",
		Note:  "`ResolvedRefs: False`, `InvalidKind` (`invalid-backends`)",
	},
	{Features: names{features.SupportBackendTLSPolicy}},
	{Features: names{features.SupportBackendTLSPolicySANValidation}},
	{Title: "XBackendTrafficPolicy", Experimental: true},
	{Title: "XBackend", Experimental: true},
}
