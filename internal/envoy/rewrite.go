package envoy

import (
	"fmt"
	"regexp"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// rewrite changes host and path of what is forwarded to one backend. Where both
// the rule and the backend say something, the backend's filters run last and
// win.
func rewrite(a *routev3.RouteAction, match ir.PathMatch, rule, backend *ir.Filters) error {
	if err := rewriteHost(a, rule, backend); err != nil {
		return err
	}
	switch {
	case rewritesPath(backend):
		return rewritePath(a, match, backend.Rewrite.Path)
	case rewritesPath(rule):
		return rewritePath(a, match, rule.Rewrite.Path)
	default:
		return nil
	}
}

func rewriteHost(a *routev3.RouteAction, rule, backend *ir.Filters) error {
	host, err := hostname(rule, backend)
	if host != "" {
		a.HostRewriteSpecifier = &routev3.RouteAction_HostRewriteLiteral{HostRewriteLiteral: host}
	}
	return err
}

// regexRewrite replaces what an expression finds in a path.
func regexRewrite(p *ir.PathRewrite) *matcherv3.RegexMatchAndSubstitute {
	return &matcherv3.RegexMatchAndSubstitute{Pattern: &matcherv3.RegexMatcher{Regex: p.Pattern}, Substitution: p.Value}
}

// hostOf has a request say where its Host is from, unless a filter says which it is.
func hostOf(a *routev3.RouteAction, rule *ir.Filters) {
	switch w := rule.Rewrite; {
	case w == nil:
	case w.HostHeader != "":
		a.HostRewriteSpecifier = &routev3.RouteAction_HostRewriteHeader{HostRewriteHeader: w.HostHeader}
	case w.HostPath != nil:
		a.HostRewriteSpecifier = &routev3.RouteAction_HostRewritePathRegex{HostRewritePathRegex: regexRewrite(w.HostPath)}
	}
}

// hostname returns the Host that filters ask for, or nothing. A filter that
// sets the Host header means the same, and Envoy takes it in no other way.
func hostname(rule, backend *ir.Filters) (string, error) {
	var host string
	for _, f := range []*ir.Filters{rule, backend} {
		if f.RequestHeaders != nil {
			for _, h := range f.RequestHeaders.Set {
				if isHost(h.Name) {
					host = h.Value
				}
			}
		}
		if f.Rewrite != nil && f.Rewrite.Hostname != "" {
			host = f.Rewrite.Hostname
		}
	}
	return host, checkHost(host)
}

func rewritesPath(f *ir.Filters) bool { return f.Rewrite != nil && f.Rewrite.Path != nil }

func rewritePath(a *routev3.RouteAction, match ir.PathMatch, p *ir.PathRewrite) error {
	if p.Full {
		path, err := fullPath(p.Value)
		a.PathRewrite = literal(path)
		return err
	}
	if p.Pattern != "" {
		a.RegexRewrite = regexRewrite(p)
		return nil
	}
	prefix, regex, err := replacePrefix(match, p.Value)
	a.PrefixRewrite, a.RegexRewrite = prefix, regex
	return err
}

// fullPath returns a path that can be sent: it starts with a slash.
func fullPath(value string) (string, error) {
	if !strings.HasPrefix(value, "/") {
		value = "/" + value
	}
	return value, checkPath(value)
}

// replacePrefix returns how Envoy replaces the prefix that matched, either as
// the text that takes its place or as a regex; neither if nothing changes.
//
// A prefix ends where a path element ends, with or without a slash. Envoy
// replaces text, so the slashes around the seam need care (the table at
// HTTPPathModifier.replacePrefixMatch of the Gateway API):
//
//	match  replacement  /foo/bar     /foo
//	/foo   /xyz         /xyz/bar     /xyz
//	/foo   /            /bar         /
//	/      /xyz         /xyz/foo/bar /xyz/foo
func replacePrefix(match ir.PathMatch, value string) (string, *matcherv3.RegexMatchAndSubstitute, error) {
	if match.Kind != ir.PathPrefix {
		return "", nil, fmt.Errorf("a path prefix can only be replaced where a prefix is matched, not with a match of kind %s", match.Kind)
	}
	value = strings.TrimRight(value, "/")
	if value != "" && value[0] != '/' {
		value = "/" + value
	}
	if err := checkPath(value); err != nil {
		return "", nil, err
	}
	prefix := strings.TrimRight(match.Value, "/")
	switch {
	case prefix == value:
		return "", nil, nil
	case prefix == "":
		// Envoy's matched prefix is the slash itself.
		return value + "/", nil, nil
	case value != "":
		return value, nil, nil
	default:
		// The slashes after the prefix go with it, and one comes back: never
		// an empty path, never two slashes, which would read as a host.
		return "", &matcherv3.RegexMatchAndSubstitute{
			Pattern:      &matcherv3.RegexMatcher{Regex: "^" + regexp.QuoteMeta(prefix) + "/*"},
			Substitution: "/",
		}, nil
	}
}
