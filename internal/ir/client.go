package ir

import (
	"net/netip"
	"time"
)

// Client says how a listener treats its clients. It is the same for all that the
// listener serves.
type Client struct {
	// ProxyProtocol says that every connection begins with a header of the PROXY
	// protocol, version 1 or 2, which names the client. Others are refused.
	ProxyProtocol bool `json:"proxyProtocol,omitempty"`
	// TrustedHops is how many proxies in front of this one are trusted. What they say
	// of a request is believed: X-Forwarded-For, to which they have appended
	// TrustedHops-1 addresses, X-Forwarded-Proto and the like.
	TrustedHops uint32 `json:"trustedHops,omitempty"`
	// TrustedAddresses are those of proxies in front of this one that are believed X-Forwarded-For,
	// and nothing else. There are no TrustedHops then.
	TrustedAddresses []netip.Prefix `json:"trustedAddresses,omitempty"`
	// AddressHeader is the header in which those at TrustedAddresses say who the client is, in lower case; empty for
	// X-Forwarded-For.
	AddressHeader string `json:"addressHeader,omitempty"`
	// HTTP10 says that requests of HTTP/1.0 are served. They are answered 426 otherwise.
	HTTP10 bool   `json:"http10,omitempty"`
	Limits Limits `json:"limits,omitzero"`
	Paths  Paths  `json:"paths,omitzero"`
}

// Paths say what becomes of slashes that are doubled or escaped, before a route is chosen
// by the path. The zero value is the default: both are closed ways around a route.
type Paths struct {
	// KeepDoubled leaves several slashes as they are. They are one otherwise.
	KeepDoubled bool           `json:"keepDoubled,omitempty"`
	Escaped     EscapedSlashes `json:"escaped,omitempty"`
}

// EscapedSlashes is what becomes of a request whose path has %2F or %5C.
type EscapedSlashes string

// What can become of it.
const (
	RejectEscaped   EscapedSlashes = ""         // 400
	RedirectEscaped EscapedSlashes = "Redirect" // 307 to the path with slashes, for gRPC 400
	KeepEscaped     EscapedSlashes = "Keep"     // ordinary characters, for routes and backends
)

// Limits bound what one client may take. Zero stands for the default of a limit, which
// package envoy has.
type Limits struct {
	HeadersKiB     uint32        `json:"headersKiB,omitempty"`     // of a request, 1 to 8192
	Headers        uint32        `json:"headers,omitempty"`        // of a request
	Streams        uint32        `json:"streams,omitempty"`        // at a time, in a connection of HTTP/2 or HTTP/3
	BufferKiB      uint32        `json:"bufferKiB,omitempty"`      // of a connection, which it may leave unread; a soft limit
	HeadersTimeout time.Duration `json:"headersTimeout,omitempty"` // for a request's headers, from their first byte
	IdleTimeout    time.Duration `json:"idleTimeout,omitempty"`    // of a connection without requests, or bytes
	Duration       time.Duration `json:"duration,omitempty"`       // of a connection; unlimited by default
}
