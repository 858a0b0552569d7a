package ir

import "github.com/gatehouse-dev/gatehouse/internal/object"

// WeightedBackend is one of a rule's destinations.
type WeightedBackend struct {
	// Backend names the destination. It is empty where the reference can't be used. The
	// backend's share of the requests is then answered with 500, or with UNAVAILABLE
	// for gRPC.
	Backend string  `json:"backend,omitempty"`
	Weight  uint32  `json:"weight"`           // those of weight zero are left out, unless all are zero
	Filters Filters `json:"filters,omitzero"` // no mirrors, no CORS
	// Session keeps clients with their endpoint of the backend; nil for none.
	Session *Session `json:"session,omitempty"`
}

// Protocol is what a backend speaks.
type Protocol string

// These are the protocols of backends: of requests (GEP-1911), of bytes and of
// datagrams.
const (
	HTTP1     Protocol = "http/1.1"
	H2C       Protocol = "h2c"
	WebSocket Protocol = "ws" // HTTP/1.1 with the upgrade allowed
	TCP       Protocol = "tcp"
	UDP       Protocol = "udp"
)

// Backend is a destination with its own connection pool: one port of a Service.
type Backend struct {
	// Name is ns/service:port plus a hash of all else in this struct.
	Name     string      `json:"name"`
	Service  object.Name `json:"service"`
	Port     int32       `json:"port"`
	PortName string      `json:"portName,omitempty"` // selects the EndpointSlices' port
	Protocol Protocol    `json:"protocol"`
	// DNS is the name to resolve, for a Service of type ExternalName; empty where
	// the endpoints come from EndpointSlices.
	DNS string `json:"dns,omitempty"`
	// TLS is nil where the backend is spoken to in clear text.
	TLS *BackendTLS `json:"tls,omitempty"`
	// Retry is nil where the limits of retries are the proxies' own.
	Retry *RetryBudget `json:"retry,omitempty"`
}

// Endpoints is where a backend's requests go.
type Endpoints struct {
	Backend   string     `json:"backend"`
	Endpoints []Endpoint `json:"endpoints,omitempty"` // sorted, each address and port once
}

// Endpoint is one address of a backend.
type Endpoint struct {
	Address string `json:"address"` // an IP address; a host name in slices of type FQDN
	Port    uint16 `json:"port"`
	// Draining endpoints get requests only while there is no other one.
	Draining bool `json:"draining,omitempty"`
	// Weight is the endpoint's share among those of a pool; 0 where all are equal.
	Weight uint32 `json:"weight,omitempty"`
}
