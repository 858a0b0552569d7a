package auth

import (
	"fmt"
	"strings"
	"time"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

const (
	externalTimeout    = 10 * time.Second
	maxExternalTimeout = time.Minute
	maxExternalBody    = 16 << 20 // bytes that wait in memory

	// Services of gRPC refuse messages of more than 4 MiB unless they are told otherwise, and a proxy takes
	// that for a failure. A message has the body and what else there is to say of a request.
	maxExternalMessage = 4<<20 - 256<<10
)

// external reads which service is asked. Where it can't be, there is a problem.
func (r *reader) external(in *v1alpha1.ExternalAuth) *ir.External {
	out := &ir.External{Open: in.FailureMode == v1alpha1.FailureOpen}
	if m := in.FailureMode; m != "" && m != v1alpha1.FailureClosed && m != v1alpha1.FailureOpen {
		r.Problem(".external.failureMode", "is %q; it must be Closed or Open", m)
	}
	out.Timeout = externalTimeout
	if in.Timeout != nil {
		var err error
		if out.Timeout, err = time.ParseDuration(string(*in.Timeout)); err != nil || out.Timeout < time.Millisecond || out.Timeout > maxExternalTimeout {
			r.Problem(".external.timeout", "is %q; it must be from 1ms to 1m", *in.Timeout)
		}
	}
	if b := in.ForwardBody; b != nil {
		switch {
		case b.MaxSize < 0 || b.MaxSize > maxExternalBody:
			r.Problem(".external.forwardBody.maxSize", "is %d; it must be from 0 to %d", b.MaxSize, maxExternalBody)
		case b.MaxSize > maxExternalMessage && in.Protocol == gwv1.HTTPRouteExternalAuthGRPCProtocol:
			r.Problem(".external.forwardBody.maxSize", "is %d; with protocol GRPC it must be from 0 to %d, since services refuse longer messages", b.MaxSize, maxExternalMessage)
		}
		out.MaxBody = uint32(max(b.MaxSize, 0)) //nolint:gosec // it is not negative
	}
	use := ir.UseAuth
	switch in.Protocol {
	case gwv1.HTTPRouteExternalAuthGRPCProtocol:
		use, out.GRPC = ir.UseGRPC, true
		if in.GRPC != nil {
			out.RequestHeaders = r.toldHeaders(".external.grpc.allowedHeaders", in.GRPC.AllowedHeaders)
		}
	case gwv1.HTTPRouteExternalAuthHTTPProtocol:
		if h := in.HTTP; h != nil {
			out.PathPrefix = r.pathPrefix(".external.http.path", h.Path)
			if out.FullPath = h.ReplaceFullPath; out.FullPath != "" {
				r.fullPath(h)
			}
			out.RequestHeaders = r.toldHeaders(".external.http.allowedHeaders", h.AllowedHeaders)
			out.ResponseHeaders = r.copiedHeaders(".external.http.allowedResponseHeaders", h.AllowedResponseHeaders)
		}
	default:
		r.Problem(".external.protocol", "is %q; it must be HTTP or GRPC", in.Protocol)
	}
	if in.GRPC != nil && !out.GRPC || in.HTTP != nil && out.GRPC {
		r.Problem(".external", "has fields of another protocol than %s", in.Protocol)
	}
	r.service(out, use, &in.BackendRef)
	return out
}

// service follows the reference to a service.
func (r *reader) service(out *ir.External, use ir.Use, ref *gwv1.BackendObjectReference) {
	found, ok := r.refer(".external.backendRef", use, ref)
	if !ok {
		return
	}
	out.Backend = found
	if out.GRPC {
		to := found.Backend().Object
		out.Authority = to.Name.Name + "." + to.Namespace
	}
}

// refer follows the reference of a field to a backend, as a route's is followed; false, and a problem,
// where it can't be.
func (r *reader) refer(field string, use ir.Use, ref *gwv1.BackendObjectReference) (ir.BackendKey, bool) {
	found, targets, problem := r.world.Backend(use, ref, func() string { return r.Field + field })
	r.policyTargets = append(r.policyTargets, targets...)
	if problem != "" {
		r.Problems = append(r.Problems, problem)
		return ir.BackendKey{}, false
	}
	return found, true
}

// fullPath checks the path that the service is asked for whatever the client's is.
func (r *reader) fullPath(h *v1alpha1.ExternalAuthHTTP) {
	const field = ".external.http.replaceFullPath"
	r.pathPrefix(field, h.ReplaceFullPath)
	switch {
	case !strings.HasPrefix(h.ReplaceFullPath, "/"):
		r.Problem(field, "is %q; it begins with /", h.ReplaceFullPath)
	case h.Path != "":
		r.Problem(field, "can't stand beside path")
	}
}

// pathPrefix reads what is put before the client's path. A slash at its end would double the one
// that the path begins with.
func (r *reader) pathPrefix(field, path string) string {
	clean := "/" + strings.Trim(path, "/")
	if strings.ContainsFunc(clean, func(c rune) bool { return c <= ' ' || c > '~' || c == '?' || c == '#' }) {
		r.Problem(field, "is %q; percent-encode spaces, control characters, non-ASCII characters, ? and #", path)
	}
	for segment := range strings.SplitSeq(clean, "/") {
		if s := strings.ReplaceAll(strings.ToLower(segment), "%2e", "."); s == "." || s == ".." {
			r.Problem(field, "is %q; remove the segments . and .., escaped ones too", path)
		}
	}
	return strings.TrimSuffix(clean, "/")
}

// toldHeaders reads the names of headers that a service is told.
func (r *reader) toldHeaders(field string, names []string) (out []string) {
	for i, header := range names {
		if !isHeaderName(strings.TrimPrefix(header, ":")) {
			r.Problem(fmt.Sprintf("%s[%d]", field, i), "is %q, which is no name of a header", header)
		}
		out = append(out, strings.ToLower(header))
	}
	return out
}

// copiedHeaders reads the names of headers that a service's answer may change in the request:
// none that others rely on, except for credentials, since services make one of another.
func (r *reader) copiedHeaders(field string, names []string) (out []string) {
	for i, header := range names {
		lower := strings.ToLower(header)
		switch {
		case !isHeaderName(header):
			r.Problem(fmt.Sprintf("%s[%d]", field, i), "is %q, which is no name of a header", header)
		case reservedHeader(lower) && !isCredential(lower):
			r.Problem(fmt.Sprintf("%s[%d]", field, i), "can't be %q, which others set; choose another name", header)
		}
		out = append(out, lower)
	}
	return out
}

func isCredential(header string) bool { return header == "authorization" || header == "cookie" }

// isHeaderName reports whether a text is a token (RFC 9110, section 5.6.2).
func isHeaderName(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", c)
	})
}

// FieldOf is where a rule of the policy stands, by its name in Asks.
func (p *Policy) FieldOf(rule string) string {
	_, under, _ := layerOf(p.Object)
	section, name, _ := strings.Cut(rule, "/")
	return under + "." + section + "[" + name + "]"
}
