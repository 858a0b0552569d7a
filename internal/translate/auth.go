package translate

import (
	"strings"
	"time"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

const (
	// authTimeout is how long an authorization service may take; less where the
	// rule's requests have less.
	authTimeout = 10 * time.Second
	// maxAuthBody bounds the bodies that wait in memory for an authorization
	// service. The field's own bound is 2 GiB a request.
	maxAuthBody = 16 << 20
)

// auth translates a rule's ExternalAuth filter; nil without one. The result has
// no backend where the service can't be used, of which the topology tells.
func (t *translation) auth(at position, filters []gwv1.HTTPRouteFilter, ref *topology.BackendRef, timeouts *ir.Timeouts) *ir.Auth {
	for i := range filters {
		f := filters[i].ExternalAuth
		if f == nil {
			continue
		}
		a := t.authOf(at.inFilter(i), f, ref)
		if timeouts != nil && timeouts.Request != nil && *timeouts.Request > 0 {
			a.Timeout = min(a.Timeout, *timeouts.Request)
		}
		return a
	}
	return nil
}

// authOf translates a filter at a position.
func (t *translation) authOf(at position, f *gwv1.HTTPExternalAuthFilter, ref *topology.BackendRef) *ir.Auth {
	a := &ir.Auth{Timeout: authTimeout, MaxBody: t.authBody(at, f.ForwardBody)}
	switch f.ExternalAuthProtocol {
	case gwv1.HTTPRouteExternalAuthGRPCProtocol:
		a.GRPC = true
		if g := f.GRPCAuthConfig; g != nil {
			a.RequestHeaders = t.authHeaders(at, "externalAuth.grpc.allowedHeaders", g.AllowedRequestHeaders)
		}
	case gwv1.HTTPRouteExternalAuthHTTPProtocol:
		if h := f.HTTPAuthConfig; h != nil {
			a.PathPrefix = t.authPath(at, h.Path)
			a.RequestHeaders = t.authHeaders(at, "externalAuth.http.allowedHeaders", h.AllowedRequestHeaders)
			a.ResponseHeaders = t.copiedHeaders(at, "externalAuth.http.allowedResponseHeaders", h.AllowedResponseHeaders)
		}
	default:
		field := at.field("externalAuth.protocol")
		t.refuse(field, condition.UnknownValue(field, string(f.ExternalAuthProtocol), "HTTP", "GRPC"))
	}
	if ref != nil && !ref.Backend.IsZero() {
		a.Backend = ref.Backend
		if a.GRPC {
			to := ref.Backend.Backend().Object
			a.Authority = to.Name.Name + "." + to.Namespace
		}
	}
	return a
}

// authPath checks what is put before the client's path. A trailing slash would
// double the slash that the path begins with.
func (t *translation) authPath(at position, path string) string {
	if path == "" {
		return ""
	}
	clean := "/" + strings.Trim(path, "/")
	why := pathProblem(clean, "?#")
	for segment := range strings.SplitSeq(clean, "/") {
		if s := strings.ReplaceAll(strings.ToLower(segment), "%2e", "."); s == "." || s == ".." {
			why = "remove the segments . and .., escaped ones too"
		}
	}
	if why != "" {
		field := at.field("externalAuth.http.path")
		t.refuse(field, condition.InvalidPath(field, path, why))
	}
	return strings.TrimSuffix(clean, "/")
}

// authHeaders checks the names of headers that are sent to a service.
func (t *translation) authHeaders(at position, list string, names []string) []string {
	if len(names) == 0 {
		return nil
	}
	out := make([]string, len(names))
	for i, name := range names {
		if !ir.IsToken(strings.TrimPrefix(name, ":")) {
			f := at.field(item(list, i))
			t.refuse(f, condition.InvalidHeaderName(f, name))
		}
		out[i] = strings.ToLower(name)
	}
	return out
}

// copiedHeaders checks the names of headers that a service's answer may change in
// the request: the same that a header modifier may.
func (t *translation) copiedHeaders(at position, list string, names []string) []string {
	if len(names) == 0 {
		return nil
	}
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = t.headerName(at, list, i, name)
		if strings.HasPrefix(out[i], internalHeaders) {
			f := at.field(item(list, i))
			t.refuse(f, condition.HeaderInternal(f, name))
		}
	}
	return out
}

func (t *translation) authBody(at position, b *gwv1.ForwardBodyConfig) uint32 {
	if b == nil || b.MaxSize == 0 {
		return 0
	}
	if b.MaxSize < 0 || b.MaxSize > maxAuthBody {
		f := at.field("externalAuth.forwardBody.maxSize")
		t.refuse(f, condition.OutOfRange(f, int64(b.MaxSize), 0, maxAuthBody))
		return 0
	}
	return uint32(b.MaxSize)
}
