package translate

import (
	"slices"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// filters translates the filters of a rule or, inside of a backend, of that
// backend. Mirrors are what the mirrors among them refer to, in their order.
//
// Filters take effect in Envoy's order, not in the list's: CORS, external
// authorization, redirect, mirror, request headers, rewrite, response headers.
func (t *translation) filters(at position, list []gwv1.HTTPRouteFilter, mirrors []topology.BackendRef) (out ir.Filters, redirect *ir.Redirect) {
	mirror := 0
	for i := range list {
		f, at := &list[i], at.inFilter(i)
		if !t.placed(at, f, list[:i]) {
			continue
		}
		switch f.Type {
		case gwv1.HTTPRouteFilterRequestHeaderModifier:
			out.RequestHeaders = t.headerChanges(at, "requestHeaderModifier", f.RequestHeaderModifier)
		case gwv1.HTTPRouteFilterResponseHeaderModifier:
			out.ResponseHeaders = t.headerChanges(at, "responseHeaderModifier", f.ResponseHeaderModifier)
		case gwv1.HTTPRouteFilterURLRewrite:
			out.Rewrite = t.rewrite(at, f.URLRewrite)
		case gwv1.HTTPRouteFilterRequestRedirect:
			redirect = t.redirect(at, f.RequestRedirect)
		case gwv1.HTTPRouteFilterRequestMirror:
			var ref topology.BackendRef
			if mirror < len(mirrors) {
				ref = mirrors[mirror]
			}
			mirror++
			if m, ok := t.mirror(at, f.RequestMirror, ref); ok {
				out.Mirrors = append(out.Mirrors, m)
			}
		case gwv1.HTTPRouteFilterCORS:
			out.CORS = t.cors(at, f.CORS)
		case gwv1.HTTPRouteFilterExternalAuth:
			// The rule's alone: see auth.
		case gwv1.HTTPRouteFilterExtensionRef:
			// The rule's alone: see extensions.
		}
	}
	return out, redirect
}

// placed checks that a filter is of a supported type, has its settings, and may
// stand where it does, after the ones before it.
func (t *translation) placed(at position, f *gwv1.HTTPRouteFilter, before []gwv1.HTTPRouteFilter) bool {
	kind := string(f.Type)
	name, set, repeatable, inBackend := "", false, false, false
	switch f.Type {
	case gwv1.HTTPRouteFilterRequestHeaderModifier:
		name, set, inBackend = "requestHeaderModifier", f.RequestHeaderModifier != nil, true
	case gwv1.HTTPRouteFilterResponseHeaderModifier:
		name, set, inBackend = "responseHeaderModifier", f.ResponseHeaderModifier != nil, true
	case gwv1.HTTPRouteFilterURLRewrite:
		name, set, inBackend = "urlRewrite", f.URLRewrite != nil, true
	case gwv1.HTTPRouteFilterRequestRedirect:
		name, set = "requestRedirect", f.RequestRedirect != nil
	case gwv1.HTTPRouteFilterRequestMirror:
		name, set, repeatable = "requestMirror", f.RequestMirror != nil, true
	case gwv1.HTTPRouteFilterCORS:
		name, set = "cors", f.CORS != nil
	case gwv1.HTTPRouteFilterExtensionRef:
		field := at.field("extensionRef")
		if f.ExtensionRef == nil {
			t.refuse(field, condition.MissingFilterValue(field, kind))
			return false
		}
		switch ref := f.ExtensionRef; {
		case at.backend == 0:
			return true
		case topology.IsRouteFilter(ref):
			t.refuse(field, condition.UnsupportedFilter(field, kind))
		default:
			t.refuse(field, condition.UnknownFilterKind(field, string(ref.Group), string(ref.Kind), string(ref.Name)))
		}
		return false
	case gwv1.HTTPRouteFilterExternalAuth:
		name, set = "externalAuth", f.ExternalAuth != nil
	default:
		field := at.field("type")
		t.refuse(field, condition.UnknownValue(field, kind,
			"RequestHeaderModifier", "ResponseHeaderModifier", "RequestRedirect", "URLRewrite", "RequestMirror", "CORS", "ExternalAuth", "ExtensionRef"))
		return false
	}
	field := at.field("")
	switch {
	case at.backend > 0 && !inBackend:
		t.refuse(field, condition.UnsupportedFilter(field, kind))
		return false
	case !set:
		field = at.field(name)
		t.refuse(field, condition.MissingFilterValue(field, kind))
		return false
	case !repeatable && slices.ContainsFunc(before, func(o gwv1.HTTPRouteFilter) bool { return o.Type == f.Type }):
		t.refuse(field, condition.RepeatedFilter(field, kind))
		return false
	}
	return true
}

// compatible checks combinations within a rule. A redirect answers the request
// itself, so nothing is left to forward, rewrite or mirror.
func (t *translation) compatible(at position, spec *gwv1.HTTPRouteRule, a *ir.Rule) {
	if a.Redirect == nil {
		return
	}
	field := at.field("filters")
	if len(spec.BackendRefs) > 0 {
		t.refuse(field, condition.RedirectWithBackends(field))
	}
	for i := range spec.Filters {
		if kind := spec.Filters[i].Type; kind == gwv1.HTTPRouteFilterURLRewrite || kind == gwv1.HTTPRouteFilterRequestMirror {
			t.refuse(field, condition.FiltersExclude(field, string(gwv1.HTTPRouteFilterRequestRedirect), string(kind)))
		}
	}
}
