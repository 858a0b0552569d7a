package envoy

import (
	"fmt"
	"regexp"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/re2"
)

// everything matches all requests.
func everything() *routev3.RouteMatch {
	return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}}
}

// routeMatch returns a match that is checked.
func routeMatch(m *ir.Match) (*routev3.RouteMatch, error) {
	out, err := requestMatch(m)
	if err != nil {
		return nil, err
	}
	if n := len(m.Headers); n > 0 || m.Method != "" {
		out.Headers = make([]*routev3.HeaderMatcher, 0, n+1)
	}
	if m.Method != "" && !m.Path.Kind.GRPC() {
		out.Headers = append(out.Headers, headerMatcher(":method", exactly(m.Method)))
	}
	for _, h := range m.Headers {
		if err := checkHeaderName(h.Name); err != nil {
			return nil, fmt.Errorf("header match: %w", err)
		}
		name := h.Name
		if strings.EqualFold(name, "host") {
			name = ":authority" // by which Envoy knows it
		}
		if m.Wide && h.Regex {
			out.Headers = append(out.Headers, present(name))
			continue
		}
		value, err := stringMatch(h)
		if err != nil {
			return nil, fmt.Errorf("header match %q: %w", h.Name, err)
		}
		out.Headers = append(out.Headers, headerMatcher(name, value))
	}
	for _, q := range m.Query {
		if m.Wide && expressive(q) {
			out.QueryParameters = append(out.QueryParameters, &routev3.QueryParameterMatcher{
				Name: q.Name, QueryParameterMatchSpecifier: &routev3.QueryParameterMatcher_PresentMatch{PresentMatch: true},
			})
			continue
		}
		value, err := queryMatch(q)
		if err != nil {
			return nil, fmt.Errorf("query parameter match %q: %w", q.Name, err)
		}
		out.QueryParameters = append(out.QueryParameters, &routev3.QueryParameterMatcher{
			Name: q.Name,
			QueryParameterMatchSpecifier: &routev3.QueryParameterMatcher_StringMatch{
				StringMatch: value,
			},
		})
	}
	return out, out.ValidateAll()
}

// requestMatch looks at the path, and at what tells gRPC from other requests.
func requestMatch(m *ir.Match) (*routev3.RouteMatch, error) {
	if m.Path.Kind.GRPC() {
		return callMatch(m)
	}
	if m.Wide && m.Path.Kind == ir.PathRegex {
		return beginning(re2.Literal(m.Path.Value)), nil
	}
	return pathMatch(m.Path)
}

// beginning matches all paths that begin with a text.
func beginning(text string) *routev3.RouteMatch {
	if text == "" {
		return everything()
	}
	return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: text}}
}

func pathMatch(p ir.PathMatch) (*routev3.RouteMatch, error) {
	switch p.Kind {
	case ir.PathExact:
		return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Path{Path: p.Value}}, nil
	case ir.PathPrefix:
		if p.Value == "/" || p.Value == "" {
			return everything(), nil
		}
		return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_PathSeparatedPrefix{
			PathSeparatedPrefix: p.Value,
		}}, nil
	case ir.PathRegex:
		if err := checkRegex(p.Value); err != nil {
			return nil, fmt.Errorf("path match: %w", err)
		}
		return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_SafeRegex{SafeRegex: regex(p.Value)}}, nil
	default:
		return nil, fmt.Errorf("path match: unknown kind %q", p.Kind)
	}
}

func headerMatcher(name string, value *matcherv3.StringMatcher) *routev3.HeaderMatcher {
	return &routev3.HeaderMatcher{
		Name:                 name,
		HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: value},
	}
}

func present(header string) *routev3.HeaderMatcher {
	return &routev3.HeaderMatcher{Name: header, HeaderMatchSpecifier: &routev3.HeaderMatcher_PresentMatch{PresentMatch: true}}
}

func stringMatch(m ir.ValueMatch) (*matcherv3.StringMatcher, error) {
	if !m.Regex {
		return exactly(m.Value), nil
	}
	if err := checkRegex(m.Value); err != nil {
		return nil, err
	}
	return matching(m.Value), nil
}

// queryMatch compares with the parameter as it is in the URL, since Envoy does:
// it doesn't decode. Where the value has characters that clients encode, every
// form of it is matched. A regex sees what the client sent.
func queryMatch(q ir.ValueMatch) (*matcherv3.StringMatcher, error) {
	if q.Regex || !expressive(q) {
		return stringMatch(q)
	}
	var re strings.Builder
	for i := range len(q.Value) {
		switch c := q.Value[i]; {
		case c == ' ':
			re.WriteString(`(?:\+|%20)`)
		case !isEncoded(rune(c)):
			re.WriteString(regexp.QuoteMeta(string(rune(c))))
		case c > ' ' && c < 0x7f && c != '+' && c != '&' && c != '%' && c != '#':
			fmt.Fprintf(&re, `(?:%s|(?i:%%%02x))`, regexp.QuoteMeta(string(rune(c))), c)
		default:
			fmt.Fprintf(&re, `(?i:%%%02x)`, c)
		}
	}
	return stringMatch(ir.ValueMatch{Value: re.String(), Regex: true})
}

// expressive reports whether a query parameter is compared by an expression.
func expressive(q ir.ValueMatch) bool { return q.Regex || strings.ContainsFunc(q.Value, isEncoded) }

// isEncoded reports whether clients may percent-encode a character, that is,
// whether it is none of RFC 3986's unreserved ones.
func isEncoded(c rune) bool {
	return c > 0x7f || !ir.IsAlphanumeric(byte(c)) && !strings.ContainsRune("-._~", c)
}

func exactly(value string) *matcherv3.StringMatcher {
	return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: value}}
}

// matching compares with a regex that has been checked.
func matching(re string) *matcherv3.StringMatcher {
	return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: regex(re)}}
}

// regex wraps a regex that has been checked. Envoy matches the whole value.
func regex(re string) *matcherv3.RegexMatcher { return &matcherv3.RegexMatcher{Regex: re} }
