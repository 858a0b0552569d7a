package ir

import (
	"slices"
	"time"
)

// Auth asks a service whether a request may pass. It comes before all else that answers
// requests, except for preflights. If the service can't be asked, no request passes.
type Auth struct {
	Backend BackendKey `json:"backend"`
	// GRPC speaks Envoy's ext_authz protocol; otherwise the request's headers are
	// sent over HTTP, and any answer of 2xx is the permission.
	GRPC bool `json:"grpc,omitempty"`
	// Authority is the host in requests over gRPC. Requests over HTTP have the
	// client's.
	Authority string `json:"authority,omitempty"`
	// PathPrefix is put before the client's path, for HTTP.
	PathPrefix string `json:"pathPrefix,omitempty"`
	// FullPath takes the place of the client's path and query, for HTTP; empty for none.
	FullPath string `json:"fullPath,omitempty"`
	// RequestHeaders are sent to the service, in lower case. If there are none, all
	// headers are sent over gRPC, and over HTTP only those that always are.
	RequestHeaders []string `json:"requestHeaders,omitempty"`
	// ResponseHeaders are copied from the permission into the request, in lower
	// case; none means all of them. For HTTP.
	ResponseHeaders []string `json:"responseHeaders,omitempty"`
	// MaxBody is how many bytes of a request's body are sent at most. Requests with
	// more are answered with 413. Zero sends none.
	MaxBody uint32 `json:"maxBody,omitempty"`
	// Timeout bounds the wait for the answer.
	Timeout time.Duration `json:"timeout"`
}

// OnlyService are the headers of which the backend believes that the service has set them: those of the
// permission that the service isn't told itself. What it is told of, credentials above all, it may replace.
func (a *Auth) OnlyService() (all []string) {
	for _, name := range a.ResponseHeaders {
		if name != "authorization" && name != "cookie" && !slices.Contains(a.RequestHeaders, name) {
			all = append(all, name)
		}
	}
	return all
}
