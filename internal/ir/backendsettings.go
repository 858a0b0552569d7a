package ir

import "time"

// BackendSettings are what policies say of a backend. They compare, since they make it the one that it is. What is
// zero is the proxies' default.
type BackendSettings struct {
	Balancer         Balancer         `json:"balancer,omitempty"`
	SlowStart        time.Duration    `json:"slowStart,omitempty"`
	RingSize         uint32           `json:"ringSize,omitempty"`
	ConnectTimeout   time.Duration    `json:"connectTimeout,omitempty"`
	Connections      Connections      `json:"connections,omitzero"`
	CircuitBreaker   CircuitBreaker   `json:"circuitBreaker,omitzero"`
	OutlierDetection OutlierDetection `json:"outlierDetection,omitzero"`
	HealthCheck      HealthCheck      `json:"healthCheck,omitzero"`
	// ClusterIP says that requests go to its cluster IP, where it has one, and not to its endpoints.
	ClusterIP bool `json:"clusterIP,omitempty"`
	// Clusters says which clusters' endpoints get requests.
	Clusters Clusters `json:"clusters,omitzero"`
	// OwnRetries says that the routes say when a request is repeated.
	OwnRetries bool `json:"ownRetries,omitempty"`
	// Hash is what requests have in common that go to the same endpoint, whatever their route says of it.
	Hash Hash `json:"hash,omitzero"`
	// ClientIP has all requests of a client's address go to the same endpoint, where policies say nothing of
	// load balancing.
	ClientIP bool `json:"clientIP,omitempty"`
	// OfService says that policies of the Service have said something, and not only those of routes.
	OfService bool `json:"ofService,omitempty"`
}

// Connections are how long connections to endpoints are used.
type Connections struct {
	MaxRequests uint32        `json:"maxRequests,omitempty"`
	IdleTimeout time.Duration `json:"idleTimeout,omitempty"`
	KeepAlive   time.Duration `json:"keepAlive,omitempty"` // of TCP
}

// CircuitBreaker bounds what a backend has to do at once.
type CircuitBreaker struct {
	Connections uint32 `json:"connections,omitempty"`
	Pending     uint32 `json:"pending,omitempty"` // requests that wait for a connection
	Requests    uint32 `json:"requests,omitempty"`
}

// OutlierDetection sends nothing to endpoints that fail.
type OutlierDetection struct {
	Errors     uint32        `json:"errors,omitempty"` // one after the other; 0 for no detection
	Interval   time.Duration `json:"interval,omitempty"`
	Ejection   time.Duration `json:"ejection,omitempty"`
	MaxPercent uint32        `json:"maxPercent,omitempty"` // of the endpoints
}

// HealthCheckType is how endpoints are asked.
type HealthCheckType string

// How endpoints are asked. The zero value is not at all.
const (
	HTTPCheck HealthCheckType = "HTTP"
	GRPCCheck HealthCheckType = "GRPC"
	TCPCheck  HealthCheckType = "TCP"
)

// HealthCheck asks endpoints whether they are well.
type HealthCheck struct {
	Type      HealthCheckType `json:"type,omitempty"`
	Path      string          `json:"path,omitempty"`     // of HTTP
	Hostname  string          `json:"hostname,omitempty"` // of HTTP; empty for the backend's
	Service   string          `json:"service,omitempty"`  // of gRPC
	Interval  time.Duration   `json:"interval,omitempty"`
	Timeout   time.Duration   `json:"timeout,omitempty"`
	Unhealthy uint32          `json:"unhealthy,omitempty"` // failures
	Healthy   uint32          `json:"healthy,omitempty"`   // successes
}

// Equal reports whether both are the same.
func (s BackendSettings) Equal(o BackendSettings) bool { return s == o }

// Backend is what is said of backends.
func (t *Traffic) Backend() (s BackendSettings) {
	if t == nil {
		return s
	}
	if l := t.LoadBalancing; l != nil {
		s.Balancer, s.SlowStart, s.RingSize = l.Balancer, l.SlowStart, l.RingSize
	}
	assign(&s.ConnectTimeout, t.ConnectTimeout)
	assign(&s.Connections, t.Connections)
	assign(&s.CircuitBreaker, t.CircuitBreaker)
	assign(&s.OutlierDetection, t.OutlierDetection)
	assign(&s.HealthCheck, t.HealthCheck)
	assign(&s.ClusterIP, t.ClusterIP)
	assign(&s.Clusters, t.Clusters)
	s.OwnRetries = t.Retry != nil
	return s
}

func assign[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}
