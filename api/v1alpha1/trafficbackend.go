package v1alpha1

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
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
