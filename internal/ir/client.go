package ir

import "time"

// Client is how a listener treats those who connect to it, the same for all that
// it serves.
type Client struct {
	// ProxyProtocol says that every connection begins with a header of the PROXY
	// protocol, version 1 or 2, which names the client. Others are refused.
	ProxyProtocol bool `json:"proxyProtocol,omitempty"`
	// TrustedHops is how many proxies in front of this one are believed what they
	// say of requests: X-Forwarded-For, of which they have appended the last
	// TrustedHops addresses but one, X-Forwarded-Proto and the like.
	TrustedHops uint32 `json:"trustedHops,omitempty"`
	Limits      Limits `json:"limits,omitzero"`
}

// Limits bound what one client may take. Zero is the default of each, which envoy
// knows.
type Limits struct {
	HeadersKiB     uint32        `json:"headersKiB,omitempty"`     // of a request, 1 to 8192
	Headers        uint32        `json:"headers,omitempty"`        // of a request
	Streams        uint32        `json:"streams,omitempty"`        // at a time, in a connection of HTTP/2 or HTTP/3
	BufferKiB      uint32        `json:"bufferKiB,omitempty"`      // that a connection may leave unread, softly
	HeadersTimeout time.Duration `json:"headersTimeout,omitempty"` // for a request's headers, from their first byte
	IdleTimeout    time.Duration `json:"idleTimeout,omitempty"`    // of a connection without requests, or bytes
	Duration       time.Duration `json:"duration,omitempty"`       // of a connection; unlimited by default
}
