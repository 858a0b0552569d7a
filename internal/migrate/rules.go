package migrate

import (
	"cmp"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// rules makes the rules of an Ingress.
type rules struct {
	c            *conversion
	in           *ingress
	routeFilters map[string]string             // names, by what they do
	services     []gwv1.BackendObjectReference // that are spoken to, each port by itself
}

// http makes the rules of a group.
func (r *rules) http(g *group) (out []gwv1.HTTPRouteRule) {
	if r.in.parts.appRoot != "" && !r.in.parts.grpc { // whatever paths the Ingress has
		out = append(out, redirectRule("/", r.in.parts.appRoot, 302))
	}
	for _, l := range g.own {
		matches, ok := r.matches(g, l)
		if !ok {
			continue
		}
		if l.refused {
			out = append(out, gwv1.HTTPRouteRule{Matches: matches, Filters: []gwv1.HTTPRouteFilter{extension(r.answer(503, "-refused"))}})
			continue
		}
		if path, bare := r.bare(g, l); bare {
			out = append(out, redirectRule(path, l.path, 301))
		}
		if status := r.in.parts.status; status != 0 {
			out = append(out, gwv1.HTTPRouteRule{Matches: matches, Filters: []gwv1.HTTPRouteFilter{extension(r.answer(status, "-answer"))}})
			continue
		}
		if r.in.parts.redirect != nil {
			out = append(out, gwv1.HTTPRouteRule{Matches: matches, Filters: []gwv1.HTTPRouteFilter{{Type: gwv1.HTTPRouteFilterRequestRedirect, RequestRedirect: r.in.parts.redirect}}})
			continue
		}
		if l.backend == nil {
			out = append(out, gwv1.HTTPRouteRule{Matches: matches, Filters: []gwv1.HTTPRouteFilter{extension(r.answer(404, "-not-found"))}})
			continue
		}
		filters, ok := r.filters(l)
		if !ok { // it answers 500, so that no other path has its requests
			out = append(out, gwv1.HTTPRouteRule{Matches: matches})
			continue
		}
		main, ok := r.backend(r.in, l.backend)
		if !ok { // it answers 500: what it would have served is not somebody else's
			out = append(out, gwv1.HTTPRouteRule{Matches: matches, Filters: filters})
			continue
		}
		for _, rule := range r.withCanaries(l, matches, main) {
			rule.Filters = filters
			out = append(out, rule)
		}
	}
	return out
}

// matches are what requests a location is for; false where that can't be said.
func (r *rules) matches(g *group, l *location) ([]gwv1.HTTPRouteMatch, bool) {
	kind, value := gwv1.PathMatchPathPrefix, l.path
	switch {
	case l.path == "/" && (g.server.regex || l.kind != networkingv1.PathTypeExact):
	case g.server.regex:
		parsed, err := syntax.Parse(l.path, syntax.Perl)
		if err != nil {
			r.c.find(r.in, Finding{Annotation: "use-regex", Verdict: NotPossible, Opens: true, host: hostKey(g.server.host), Message: fmt.Sprintf(
				"path %s is left out, and other paths may have its requests: as a regular expression of RE2 it says: %s", l.path, err)})
			return nil, false
		}
		if parsed.Op == syntax.OpAlternate {
			r.c.find(r.in, Finding{Annotation: "use-regex", Verdict: Differs, Opens: true, host: hostKey(g.server.host), Message: fmt.Sprintf(
				"path %s has | outside of brackets: to nginx what is behind it is anywhere in the path, and here it begins it: write a path for each", l.path)})
		}
		kind, value = gwv1.PathMatchRegularExpression, "(?i:"+l.path+").*"
	case l.kind == networkingv1.PathTypeExact:
		kind = gwv1.PathMatchExact
	default:
		value = cmp.Or(strings.TrimRight(l.path, "/"), "/")
	}
	if wrong := wrongPath(kind, value); wrong != "" {
		r.c.find(r.in, Finding{Verdict: NotPossible, Opens: true, host: hostKey(g.server.host), Message: fmt.Sprintf(
			"path %.100q is left out, and other paths may have its requests: %s", l.path, wrong)})
		return nil, false
	}
	return []gwv1.HTTPRouteMatch{{Path: &gwv1.HTTPPathMatch{Type: &kind, Value: &value}}}, true
}

// maxPath is how long the path of a match is at most.
const maxPath = 1024

var (
	plainPath = regexp.MustCompile("^/(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})*$")
	oddPath   = regexp.MustCompile(`(?i)//|%2f|/\.\.?(?:/|$)`)
)

// wrongPath says why no match of a route has a path; empty where one has.
func wrongPath(kind gwv1.PathMatchType, value string) string {
	switch {
	case len(value) > maxPath:
		return "a path has 1024 characters at most"
	case kind != gwv1.PathMatchRegularExpression && (!plainPath.MatchString(value) || oddPath.MatchString(value)):
		return "a path that is no regular expression (use-regex) begins with /, has no //, /., /.. or %2F, and no other characters than those of a URL's path"
	}
	return ""
}

// bare is a path without the slash at its end, which nginx redirects to the one with it.
func (r *rules) bare(g *group, l *location) (string, bool) {
	path, slash := strings.CutSuffix(l.path, "/")
	if !slash || path == "" || g.server.regex || l.kind == networkingv1.PathTypeExact {
		return "", false
	}
	return path, !slices.ContainsFunc(g.server.locations, func(o *location) bool { return o.path == path })
}

func redirectRule(from, to string, code int) gwv1.HTTPRouteRule {
	kind := gwv1.PathMatchExact
	return gwv1.HTTPRouteRule{
		Matches: []gwv1.HTTPRouteMatch{{Path: &gwv1.HTTPPathMatch{Type: &kind, Value: &from}}},
		Filters: []gwv1.HTTPRouteFilter{{Type: gwv1.HTTPRouteFilterRequestRedirect, RequestRedirect: &gwv1.HTTPRequestRedirectFilter{
			Path: &gwv1.HTTPPathModifier{Type: gwv1.FullPathHTTPPathModifier, ReplaceFullPath: &to}, StatusCode: &code,
		}}},
	}
}

// filters are those of a location's rules; false where the path for the backend can't be made.
func (r *rules) filters(l *location) (filters []gwv1.HTTPRouteFilter, ok bool) {
	out := slices.Clone(r.in.parts.filters)
	set := slices.Clone(r.in.parts.requestHeaders)
	defer func() {
		if len(set) > 0 {
			filters = append(filters, gwv1.HTTPRouteFilter{Type: gwv1.HTTPRouteFilterRequestHeaderModifier, RequestHeaderModifier: &gwv1.HTTPHeaderFilter{Set: set}})
		}
	}()
	if !l.rewrites() {
		return out, true
	}
	target := r.in.annotation("rewrite-target")
	substitution, ok := r.substitution(l.path, target)
	if !ok {
		return nil, false
	}
	rewrite := &v1alpha1.URLRewrite{Path: &v1alpha1.RegexRewrite{Pattern: "^(?i:" + l.path + ").*$", Substitution: substitution}}
	if i := slices.IndexFunc(out, func(f gwv1.HTTPRouteFilter) bool { return f.URLRewrite != nil }); i >= 0 {
		// A rule has one of the two rewrites: the host goes into the RouteFilter.
		rewrite.Hostname = &v1alpha1.HostnameRewrite{Path: &v1alpha1.RegexRewrite{Pattern: "^.*$", Substitution: string(*out[i].URLRewrite.Hostname)}}
		out = slices.Delete(out, i, i+1)
	}
	out = append(out, extension(r.rewrite(rewrite)))
	if header := r.in.annotation("x-forwarded-prefix"); header != "" {
		set = append(set, gwv1.HTTPHeader{Name: "X-Forwarded-Prefix", Value: header})
	}
	return out, true
}

var reference = regexp.MustCompile(`\$([0-9]|[A-Za-z_{][A-Za-z0-9_}]*)`)

// substitution writes a target of nginx with the references of RE2.
func (r *rules) substitution(path, target string) (string, bool) {
	expression, err := regexp.Compile(path)
	if err != nil {
		return "", false // it is said where it is matched
	}
	wrong := ""
	out := reference.ReplaceAllStringFunc(strings.ReplaceAll(target, `\`, `\\`), func(text string) string {
		n, err := strconv.Atoi(text[1:])
		switch {
		case err != nil:
			wrong = text
		case n <= expression.NumSubexp():
			return `\` + text[1:]
		}
		return "" // a group that there isn't is empty
	})
	switch {
	case wrong != "":
		r.c.find(r.in, Finding{Annotation: "rewrite-target", Value: target, Verdict: NotPossible, Message: "path " + path + " answers 500: the variable " + wrong + " has no counterpart"})
		return "", false
	case !strings.HasPrefix(target, "/") && !strings.HasPrefix(target, "$"), strings.ContainsAny(target, "?#"):
		r.c.find(r.in, Finding{Annotation: "rewrite-target", Value: target, Verdict: NotPossible, Message: "path " + path + " answers 500: a target is a path, without a query"})
		return "", false
	}
	return out, true
}

// rewrite returns the name of the RouteFilter that does something.
func (r *rules) rewrite(to *v1alpha1.URLRewrite) string {
	return r.routeFilter(fmt.Sprintf("%q %q %v", to.Path.Pattern, to.Path.Substitution, to.Hostname != nil), "-rewrite", v1alpha1.RouteFilterSpec{URLRewrite: to})
}

// answer returns the name of a RouteFilter that answers with a status.
func (r *rules) answer(status int, ending string) string {
	return r.routeFilter(ending, ending, v1alpha1.RouteFilterSpec{DirectResponse: &v1alpha1.DirectResponse{Status: int32(status)}}) //nolint:gosec // of three digits
}

// routeFilter returns the name of the RouteFilter that does something, which is made once.
func (r *rules) routeFilter(does, ending string, spec v1alpha1.RouteFilterSpec) string {
	if r.routeFilters[does] == "" {
		o := &v1alpha1.RouteFilter{ObjectMeta: meta(r.in.Namespace, r.in.Name+ending), Spec: spec}
		r.c.add(o)
		r.routeFilters[does] = o.Name
	}
	return r.routeFilters[does]
}

func extension(name string) gwv1.HTTPRouteFilter {
	return gwv1.HTTPRouteFilter{Type: gwv1.HTTPRouteFilterExtensionRef, ExtensionRef: &gwv1.LocalObjectReference{
		Group: gwv1.Group(v1alpha1.GroupVersion.Group), Kind: "RouteFilter", Name: gwv1.ObjectName(name),
	}}
}

// backend finds a Service's port, and remembers the Service.
func (r *rules) backend(in *ingress, b *networkingv1.IngressBackend) (gwv1.HTTPBackendRef, bool) {
	ref, ok := r.c.backend(in, b)
	if ok && !slices.ContainsFunc(r.services, func(o gwv1.BackendObjectReference) bool { return o.Name == ref.Name && *o.Port == *ref.Port }) {
		r.services = append(r.services, ref.BackendObjectReference)
	}
	return gwv1.HTTPBackendRef{BackendRef: ref}, ok
}

// withCanaries are the rules of a location: by header, by cookie, and by weight, in this order.
func (r *rules) withCanaries(l *location, matches []gwv1.HTTPRouteMatch, main gwv1.HTTPBackendRef) []gwv1.HTTPRouteRule {
	rest := gwv1.HTTPRouteRule{Matches: matches, BackendRefs: []gwv1.HTTPBackendRef{main}}
	if len(l.canaries) == 0 {
		return []gwv1.HTTPRouteRule{rest}
	}
	more := l.canaries[0] // ingress-nginx takes one
	for _, other := range l.canaries[1:] {
		r.c.find(other.of, Finding{Annotation: "canary", Verdict: NotNeeded, Message: fmt.Sprintf("path %s has a canary already: ingress-nginx takes one", l.path)})
	}
	to, ok := r.backend(more.of, more.backend)
	if !ok {
		return []gwv1.HTTPRouteRule{rest}
	}
	var out []gwv1.HTTPRouteRule
	by := func(name, value string, isRegex bool, backend gwv1.HTTPBackendRef) {
		m := *matches[0].DeepCopy()
		h := gwv1.HTTPHeaderMatch{Name: gwv1.HTTPHeaderName(name), Value: value}
		if isRegex {
			h.Type = new(gwv1.HeaderMatchRegularExpression)
		}
		m.Headers = []gwv1.HTTPHeaderMatch{h}
		out = append(out, gwv1.HTTPRouteRule{Matches: []gwv1.HTTPRouteMatch{m}, BackendRefs: []gwv1.HTTPBackendRef{backend}})
	}
	if header := more.of.annotation("canary-by-header"); header != "" {
		value, pattern := more.of.annotation("canary-by-header-value"), more.of.annotation("canary-by-header-pattern")
		switch {
		case value != "":
			by(header, value, false, to)
		case pattern != "":
			if _, err := regexp.Compile(pattern); err != nil {
				r.c.find(more.of, Finding{Annotation: "canary-by-header-pattern", Value: pattern, Verdict: NotPossible, Message: fmt.Sprintf("as a regular expression of RE2 it says: %s", err)})
				break
			}
			by(header, ".*(?:"+pattern+").*", true, to)
		default:
			by(header, "always", false, to)
			by(header, "never", false, main)
		}
	}
	if cookie := more.of.annotation("canary-by-cookie"); cookie != "" {
		by("Cookie", `(.*; *)?`+regexp.QuoteMeta(cookie)+`=always(;.*)?`, true, to)
		by("Cookie", `(.*; *)?`+regexp.QuoteMeta(cookie)+`=never(;.*)?`, true, main)
	}
	total := int64(100)
	if n, err := strconv.ParseInt(more.of.annotation("canary-weight-total"), 10, 32); err == nil && n > total {
		total = min(n, maxWeight)
	}
	if weight, err := strconv.ParseInt(more.of.annotation("canary-weight"), 10, 32); err == nil && weight > 0 {
		weight = min(weight, total)
		main.Weight, to.Weight = new(int32(total-weight)), new(int32(weight)) //nolint:gosec // both are of 32 bits
		rest.BackendRefs = []gwv1.HTTPBackendRef{main, to}
	}
	return append(out, rest)
}

// maxWeight is the greatest weight of a backend.
const maxWeight = 1_000_000

var method = regexp.MustCompile(`^/([A-Za-z0-9_.]+)(?:/([A-Za-z0-9_]+)?)?$`)

// grpc makes the rules of a group whose backends speak gRPC.
func (r *rules) grpc(g *group) (out []gwv1.GRPCRouteRule) {
	p := &r.in.parts
	if len(p.filters) > 0 || len(p.requestHeaders) > 0 || p.status != 0 || p.redirect != nil || p.appRoot != "" || slices.ContainsFunc(g.own, func(l *location) bool { return len(l.canaries) > 0 || l.rewrites() }) {
		r.c.find(r.in, Finding{Annotation: "backend-protocol", Verdict: NotPossible, Opens: p.redirect != nil || p.status != 0, Message: "redirects, rewrites, CORS, mirrors and canaries are for HTTP: the GRPCRoute has none"})
	}
	for _, l := range g.own {
		var rule gwv1.GRPCRouteRule
		if backend, ok := r.backend(r.in, l.backend); ok { // otherwise it fails: what it would have served is not somebody else's
			rule.BackendRefs = []gwv1.GRPCBackendRef{{BackendRef: backend.BackendRef}}
		}
		if l.path != "/" {
			m := method.FindStringSubmatch(l.path)
			if m == nil {
				r.c.find(r.in, Finding{Annotation: "backend-protocol", Verdict: NotPossible, Opens: true, Message: fmt.Sprintf("path %s is left out, and other paths may have its requests: it is no service of gRPC", l.path)})
				continue
			}
			rule.Matches = []gwv1.GRPCRouteMatch{{Method: &gwv1.GRPCMethodMatch{Service: &m[1]}}}
			if m[2] != "" {
				rule.Matches[0].Method.Method = &m[2]
			}
		}
		out = append(out, rule)
	}
	return out
}

// addBackendTLS makes the policy of backends that speak TLS.
func (r *rules) addBackendTLS() {
	if !r.in.parts.tls {
		return
	}
	for _, ref := range r.services {
		service := string(ref.Name)
		o := &gwv1.BackendTLSPolicy{ObjectMeta: meta(r.in.Namespace, service)}
		o.Spec.TargetRefs = target("", "Service", service)
		if port := r.c.portName(r.in.Namespace, service, *ref.Port); port != "" { // another port may speak in clear
			o.Spec.TargetRefs[0].SectionName = new(gwv1.SectionName(port))
		}
		o.Spec.Validation.Hostname = gwv1.PreciseHostname(cmp.Or(r.in.annotation("proxy-ssl-name"), service+"."+r.in.Namespace+".svc"))
		authority := gwv1.LocalObjectReference{Kind: "ConfigMap", Name: gwv1.ObjectName(service + "-ca")}
		if namespace, name, ok := strings.Cut(r.in.annotation("proxy-ssl-secret"), "/"); ok && namespace == r.in.Namespace {
			authority = gwv1.LocalObjectReference{Kind: "Secret", Name: gwv1.ObjectName(name)}
		} else {
			r.c.find(r.in, Finding{Annotation: "backend-protocol", Verdict: Differs, Message: fmt.Sprintf(
				"write the authority of Service %s into ConfigMap %s, entry ca.crt; until then it isn't reached", service, authority.Name)})
		}
		o.Spec.Validation.CACertificateRefs = []gwv1.LocalObjectReference{authority}
		r.c.add(o)
	}
}
