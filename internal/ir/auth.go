package ir

import "time"

// Auth asks a service whether a request may pass. What else answers requests
// comes after it, except for preflights. A service that can't be asked lets
// nothing pass.
type Auth struct {
	Backend string `json:"backend"`
	// GRPC speaks Envoy's ext_authz protocol; otherwise the request's headers are
	// sent over HTTP, and 200 is the permission.
	GRPC bool `json:"grpc,omitempty"`
	// Authority is the host in gRPC requests; HTTP requests have the client's.
	Authority string `json:"authority,omitempty"`
	// PathPrefix is put before the client's path, for HTTP.
	PathPrefix string `json:"pathPrefix,omitempty"`
	// RequestHeaders are sent to the service, in lower case: none means all of them
	// for gRPC, and no others than those that always are for HTTP.
	RequestHeaders []string `json:"requestHeaders,omitempty"`
	// ResponseHeaders are copied from the permission into the request, in lower
	// case; none means all of them. For HTTP.
	ResponseHeaders []string `json:"responseHeaders,omitempty"`
	// MaxBody is up to how many bytes of body are sent too; requests with more are
	// answered with 413. Zero sends none.
	MaxBody uint32 `json:"maxBody,omitempty"`
	// Timeout bounds the wait for the answer.
	Timeout time.Duration `json:"timeout"`
}
