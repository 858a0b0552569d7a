package envoy

import (
	"fmt"
	"net/http"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

var redirectCodes = map[uint32]routev3.RedirectAction_RedirectResponseCode{
	http.StatusMovedPermanently:  routev3.RedirectAction_MOVED_PERMANENTLY,
	http.StatusFound:             routev3.RedirectAction_FOUND,
	http.StatusSeeOther:          routev3.RedirectAction_SEE_OTHER,
	http.StatusTemporaryRedirect: routev3.RedirectAction_TEMPORARY_REDIRECT,
	http.StatusPermanentRedirect: routev3.RedirectAction_PERMANENT_REDIRECT,
}

// redirectRoutes completes a route that redirects, and puts another one before
// it where Envoy's own redirect can't leave out the port that a client sent.
func redirectRoutes(r *ir.Rule, route *routev3.Route, domain string) ([]*routev3.Route, error) {
	action, err := redirectAction(r.Redirect, r.Match.Path)
	if err != nil {
		return nil, fmt.Errorf("redirect: %w", err)
	}
	route.Action = &routev3.Route_Redirect{Redirect: action}
	if err := setResponseHeaders(route, r.Filters.ResponseHeaders); err != nil {
		return nil, err
	}
	routes := []*routev3.Route{route}
	if action.HostRedirect != "" || action.PortRedirect != 0 {
		return routes, nil
	}
	if !strings.HasPrefix(domain, "*") {
		action.HostRedirect = domain // what the request says, less the port
		return routes, nil
	}
	return []*routev3.Route{portless(r, route), route}, nil
}

// hostWithPort matches the Host of a client that named a port.
var hostWithPort = headerMatcher(":authority", matching(`.*:[0-9]*`))

// portless returns the redirect of requests that come with a port, for a host
// whose name only the request knows. Envoy's redirects keep such a port, which
// is wrong when the scheme changes and when a load balancer maps ports; so this
// is an answer with a Location of our own making. Its regexes cost some 100 µs
// a request, hence only for these.
func portless(r *ir.Rule, plain *routev3.Route) *routev3.Route {
	scheme := "%REQ(:SCHEME)%"
	if r.Redirect.Scheme != "" {
		scheme = r.Redirect.Scheme
	}
	location := scheme + "://" + extract("request.host", `^(\[.*\]|[^:]*)`)
	switch a := plain.GetRedirect(); a.PathRewriteSpecifier.(type) {
	case *routev3.RedirectAction_PathRedirect:
		location += literal(a.GetPathRedirect())
		if !strings.Contains(a.GetPathRedirect(), "?") { // else the query is replaced too
			location += extract("request.path", `^[^?]*(.*)$`)
		}
	case *routev3.RedirectAction_PrefixRewrite:
		location += literal(a.GetPrefixRewrite()) + extract("request.path", "^"+hexed(r.Match.Path.Value)+"(.*)$")
	case *routev3.RedirectAction_RegexRewrite:
		location += "/" + extract("request.path", "^"+hexed(strings.TrimRight(r.Match.Path.Value, "/"))+"/*(.*)$")
	default:
		location += "%REQ(:PATH)%"
	}
	m := plain.Match
	return &routev3.Route{
		Name: plain.Name,
		Match: &routev3.RouteMatch{
			PathSpecifier:   m.PathSpecifier,
			Headers:         append([]*routev3.HeaderMatcher{hostWithPort}, m.Headers...),
			QueryParameters: m.QueryParameters,
		},
		Action:               direct(r.Redirect.Status),
		TypedPerFilterConfig: plain.TypedPerFilterConfig,
		ResponseHeadersToAdd: append([]*corev3.HeaderValueOption{{
			Header:       &corev3.HeaderValue{Key: "location", Value: location},
			AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
		}}, plain.ResponseHeadersToAdd...),
		ResponseHeadersToRemove: plain.ResponseHeadersToRemove,
	}
}

// hexed quotes text for a regex within a format, where percent signs and brackets
// have a meaning too.
func hexed(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c == '/' || c == '-' || c == '_' || ir.IsAlphanumeric(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String()
}

// extract returns a format that yields the first group of a regex in an
// attribute of the request, by a CEL expression. The regex has no quotes.
func extract(attribute, regex string) string {
	return `%CEL(re.extract(` + attribute + `, '` + strings.ReplaceAll(regex, `\`, `\\`) + `', '\\1'))%`
}

// redirectAction returns a redirect. The query of the request is kept.
func redirectAction(r *ir.Redirect, match ir.PathMatch) (*routev3.RedirectAction, error) {
	code, ok := redirectCodes[r.Status]
	if !ok {
		return nil, fmt.Errorf("status %d is none of 301, 302, 303, 307 and 308", r.Status)
	}
	if err := checkHost(r.Hostname); err != nil {
		return nil, err
	}
	a := &routev3.RedirectAction{
		HostRedirect: r.Hostname,
		PortRedirect: uint32(r.Port),
		ResponseCode: code,
	}
	switch r.Scheme {
	case "":
	case "http", "https":
		a.SchemeRewriteSpecifier = &routev3.RedirectAction_SchemeRedirect{SchemeRedirect: r.Scheme}
	default:
		return nil, fmt.Errorf("scheme %q is neither http nor https", r.Scheme)
	}
	return a, redirectPath(a, match, r.Path)
}

func redirectPath(a *routev3.RedirectAction, match ir.PathMatch, p *ir.PathRewrite) error {
	if p == nil {
		return nil
	}
	if p.Full {
		path, err := fullPath(p.Value)
		a.PathRewriteSpecifier = &routev3.RedirectAction_PathRedirect{PathRedirect: path}
		return err
	}
	prefix, regex, err := replacePrefix(match, p.Value)
	switch {
	case err != nil:
		return err
	case regex != nil:
		a.PathRewriteSpecifier = &routev3.RedirectAction_RegexRewrite{RegexRewrite: regex}
	case prefix != "":
		a.PathRewriteSpecifier = &routev3.RedirectAction_PrefixRewrite{PrefixRewrite: prefix}
	}
	return nil
}
