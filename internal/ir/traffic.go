package ir

import (
	"reflect"
	"time"
)

// Traffic is what policies say of how requests and answers pass. What is nil is not said. The zero
// value says nothing.
type Traffic struct {
	// MaxBodySize is how many bytes the body of a request may have; 0 for any.
	MaxBodySize *uint64 `json:"maxBodySize,omitempty"`
	// Compression compresses answers; the zero value does not.
	Compression *Compression `json:"compression,omitempty"`
	// LoadBalancing is how an endpoint is chosen; the zero value is the default.
	LoadBalancing *LoadBalancing `json:"loadBalancing,omitempty"`
}

// Equal reports whether both say the same. Nil is not the same as to say nothing.
func (t *Traffic) Equal(o *Traffic) bool { return t == o || reflect.DeepEqual(t, o) }

// Balancer is how endpoints of a backend are chosen.
type Balancer string

// The balancers. The zero value takes the one of two endpoints that has fewer requests under way.
const (
	LeastRequest   Balancer = ""
	RoundRobin     Balancer = "RoundRobin"
	Random         Balancer = "Random"
	ConsistentHash Balancer = "ConsistentHash" // by what the route says
)

// Balancer is the one that a backend is to have.
func (t *Traffic) Balancer() Balancer {
	if t == nil || t.LoadBalancing == nil {
		return LeastRequest
	}
	return t.LoadBalancing.Balancer
}

// Compression says which answers are compressed, and how.
type Compression struct {
	Algorithms []CompressionAlgorithm `json:"algorithms,omitempty"` // the first is preferred; none compress nothing
	// ContentTypes are exact, or type/*.
	ContentTypes []string `json:"contentTypes,omitempty"`
	MinSize      uint32   `json:"minSize,omitempty"` // in bytes
}

// CompressionType is the name of an algorithm, as answers have it in Content-Encoding.
type CompressionType string

// The algorithms.
const (
	Gzip   CompressionType = "gzip"
	Brotli CompressionType = "br"
	Zstd   CompressionType = "zstd"
)

// CompressionAlgorithm is an algorithm with how hard it tries.
type CompressionAlgorithm struct {
	Type  CompressionType `json:"type"`
	Level uint32          `json:"level"`
}

// LoadBalancing is how an endpoint is chosen.
type LoadBalancing struct {
	Balancer Balancer `json:"balancer,omitempty"`
	Hash     *Hash    `json:"hash,omitempty"` // of ConsistentHash
}

// Hash is what requests have in common that go to the same endpoint: one of these.
type Hash struct {
	Header     string        `json:"header,omitempty"`
	Cookie     string        `json:"cookie,omitempty"`
	CookieTTL  time.Duration `json:"cookieTTL,omitempty"` // 0 until the browser is closed
	QueryParam string        `json:"queryParam,omitempty"`
	SourceIP   bool          `json:"sourceIP,omitempty"`
}
