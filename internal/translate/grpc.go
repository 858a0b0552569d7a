package translate

import (
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/re2"
)

// everyCall is what a rule of gRPC without matches takes.
var everyCall = []gwv1.GRPCRouteMatch{{}}

// grpcMatches is matches for rules of GRPCRoutes.
func (t *translation) grpcMatches(spec *gwv1.GRPCRouteRule) []ir.Rule {
	list := spec.Matches
	if len(list) == 0 {
		list = everyCall
	}
	rules := make([]ir.Rule, 0, len(list))
	for i := range list {
		at := inRule(t.index).inMatch(i)
		m := t.grpcMethod(at, list[i].Method)
		m.Headers = t.headers(at, httpHeaders(list[i].Headers))
		rules = append(rules, ir.Rule{Source: t.source(i), Match: m})
	}
	return rules
}

func (t *translation) grpcMethod(at position, m *gwv1.GRPCMethodMatch) ir.Match {
	if m == nil {
		return ir.Match{Path: ir.PathMatch{Kind: ir.Service}}
	}
	kind, service, method := gwv1.GRPCMethodMatchExact, valueOf(m.Service), valueOf(m.Method)
	if m.Type != nil {
		kind = *m.Type
	}
	if service == "" && method == "" {
		f := at.field("method")
		t.refuse(f, condition.EmptyMethodMatch(f))
		return ir.Match{Path: ir.PathMatch{Kind: ir.Service}}
	}
	switch kind {
	case gwv1.GRPCMethodMatchExact:
		serviceOK := t.grpcName(at, "method.service", service)
		methodOK := t.grpcName(at, "method.method", method)
		if !serviceOK {
			return grpcWider(service, method)
		}
		m := ir.Match{Path: ir.PathMatch{Kind: ir.Service, Value: service}, Method: method}
		if !methodOK { // the service keeps its place before all that isn't exact
			m.Method, m.MethodRegex = re2.Wider(method), true
		}
		return m
	case gwv1.GRPCMethodMatchRegularExpression:
		service := t.grpcRegex(at, "method.service", "services", service)
		method := t.grpcRegex(at, "method.method", "methods", method)
		return ir.Match{Path: ir.PathMatch{Kind: ir.ServiceRegex, Value: service}, Method: method}
	default:
		f := at.field("method.type")
		t.refuse(f, condition.UnknownValue(f, string(kind), "Exact", "RegularExpression"))
		return grpcWider(service, method)
	}
}

// grpcWider is the match in place of one whose names can't be compared.
func grpcWider(service, method string) ir.Match {
	m := ir.Match{Path: ir.PathMatch{Kind: ir.ServiceRegex}}
	if service != "" {
		m.Path.Value = re2.Wider(service)
	}
	if method != "" {
		m.Method = re2.Wider(method)
	}
	return m
}

func valueOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// grpcName checks the name of a service or a method.
func (t *translation) grpcName(at position, name, value string) bool {
	for i := range len(value) {
		c := value[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' {
			continue
		}
		f := at.field(name)
		t.refuse(f, condition.InvalidMethodName(f, value))
		return false
	}
	return true
}

// grpcRegex checks the expression of a service or a method, which becomes a part
// of one for the path. There anchors would match nothing, so that those around an
// expression, which has to match all anyway, are taken off, and others refused.
func (t *translation) grpcRegex(at position, name, what, pattern string) string {
	if pattern == "" {
		return ""
	}
	if !t.regex(at, name, pattern, func() string { return refusedBy(what, pattern) }) {
		return re2.Wider(pattern)
	}
	inner := strings.TrimPrefix(pattern, "^")
	if strings.HasSuffix(inner, "$") && !strings.HasSuffix(inner, `\$`) {
		inner = strings.TrimSuffix(inner, "$")
	}
	if inner == "" || re2.Anchored(inner) {
		f := at.field(name)
		t.refuse(f, condition.AnchoredRegex(f, pattern))
		return re2.Wider(pattern)
	}
	return inner
}

// httpHeaders gives matches of headers the form that they have in HTTPRoutes, which
// differs in nothing but the names of types.
func httpHeaders(list []gwv1.GRPCHeaderMatch) []gwv1.HTTPHeaderMatch {
	out := make([]gwv1.HTTPHeaderMatch, len(list))
	for i, h := range list {
		out[i] = gwv1.HTTPHeaderMatch{
			Type: (*gwv1.HeaderMatchType)(h.Type), Name: gwv1.HTTPHeaderName(h.Name), Value: h.Value,
		}
	}
	return out
}

// httpRule gives all of a rule but its matches the form that it would have in an
// HTTPRoute. Fields have the same paths in both.
func httpRule(r *gwv1.GRPCRouteRule) *gwv1.HTTPRouteRule {
	out := &gwv1.HTTPRouteRule{
		Name:               r.Name,
		Filters:            httpFilters(r.Filters),
		SessionPersistence: r.SessionPersistence, //nolint:staticcheck // deprecated, and still there to be written
	}
	if n := len(r.BackendRefs); n > 0 {
		out.BackendRefs = make([]gwv1.HTTPBackendRef, n)
	}
	for i := range r.BackendRefs {
		b := &r.BackendRefs[i]
		out.BackendRefs[i] = gwv1.HTTPBackendRef{BackendRef: b.BackendRef, Filters: httpFilters(b.Filters)}
	}
	return out
}

func httpFilters(list []gwv1.GRPCRouteFilter) []gwv1.HTTPRouteFilter {
	if len(list) == 0 {
		return nil
	}
	out := make([]gwv1.HTTPRouteFilter, len(list))
	for i, f := range list {
		out[i] = gwv1.HTTPRouteFilter{
			Type:                   gwv1.HTTPRouteFilterType(f.Type),
			RequestHeaderModifier:  f.RequestHeaderModifier,
			ResponseHeaderModifier: f.ResponseHeaderModifier,
			RequestMirror:          f.RequestMirror,
			ExtensionRef:           f.ExtensionRef,
		}
	}
	return out
}
