package envoy

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// corsPolicy returns the CORS filter's configuration for one route.
func corsPolicy(c *ir.CORS) (*corsv3.CorsPolicy, error) {
	p := &corsv3.CorsPolicy{
		AllowMethods:  strings.Join(c.AllowMethods, ", "),
		AllowHeaders:  strings.Join(c.AllowHeaders, ", "),
		ExposeHeaders: strings.Join(c.ExposeHeaders, ", "),
		// A preflight from elsewhere is answered here too, without permission:
		// many backends know nothing of OPTIONS.
		ForwardNotMatchingPreflights: wrapperspb.Bool(false),
	}
	for _, o := range c.AllowOrigins {
		m, err := originMatch(o)
		if err != nil {
			return nil, err
		}
		p.AllowOriginStringMatch = append(p.AllowOriginStringMatch, m)
	}
	if c.MaxAge > 0 {
		p.MaxAge = strconv.FormatInt(int64(c.MaxAge/time.Second), 10)
	}
	if c.AllowCredentials {
		p.AllowCredentials = wrapperspb.Bool(true)
	}
	return p, nil
}

// preflight returns the match of preflights for requests that a rule with CORS matches by more
// than a path and a query; nil where its own match takes them. A preflight is of method OPTIONS,
// and has of the request to come only its method and the names of its headers.
func preflight(m *ir.Match) (*routev3.RouteMatch, error) {
	if m.Path.Kind.GRPC() || len(m.Headers) == 0 && (m.Method == "" || m.Method == http.MethodOptions) {
		return nil, nil
	}
	ahead := *m
	ahead.Method, ahead.Headers = http.MethodOptions, nil
	var names []string
	for _, h := range m.Headers {
		switch {
		case h.Name == "host" || h.Name == "origin":
			ahead.Headers = append(ahead.Headers, h)
		case !untold[h.Name]:
			names = append(names, h.Name)
		}
	}
	out, err := routeMatch(&ahead)
	if err != nil {
		return nil, err
	}
	out.Headers = append(out.Headers, present("origin"))
	asked := present("access-control-request-method")
	if m.Method != "" {
		asked = headerMatcher("access-control-request-method", exactly(m.Method))
	}
	out.Headers = append(out.Headers, asked)
	for _, n := range names {
		out.Headers = append(out.Headers, headerMatcher("access-control-request-headers",
			matching(`(?i)(?:.*[, ])?`+regexp.QuoteMeta(n)+`(?:[, ].*)?`)))
	}
	return out, nil
}

// untold are headers that browsers may send without naming them in a preflight: those that
// pages may set to common values, and those that they may not set (Fetch standard).
var untold = map[string]bool{
	"accept": true, "accept-language": true, "content-language": true, "content-type": true, "range": true,
	"accept-encoding": true, "connection": true, "content-length": true, "cookie": true, "date": true, "dnt": true,
	"referer": true, "te": true, "upgrade": true, "user-agent": true, "via": true,
}

// anyHost is what a wildcard stands for in an origin's host: any number of
// labels, or an IPv6 address, but no port, since an origin without one means the
// scheme's own.
const anyHost = `(?:[^:/]+|\[[^]/]+\])`

// originMatch returns the matcher for one allowed origin.
func originMatch(origin string) (*matcherv3.StringMatcher, error) {
	if origin == "*" {
		// Envoy takes a matcher that matches the asterisk for one that allows
		// every origin. It always answers with the origin itself, which is
		// right with and without credentials.
		return exactly("*"), nil
	}
	if err := checkHeaderValue("Origin", origin); err != nil {
		return nil, fmt.Errorf("CORS: %w", err)
	}
	// Browsers leave out the scheme's own port.
	if scheme, rest, ok := strings.Cut(origin, "://"); ok {
		switch scheme {
		case "http":
			origin = scheme + "://" + strings.TrimSuffix(rest, ":80")
		case "https":
			origin = scheme + "://" + strings.TrimSuffix(rest, ":443")
		}
	}
	if !strings.Contains(origin, "*") {
		return exactly(origin), nil
	}
	return matching(strings.ReplaceAll(regexp.QuoteMeta(origin), `\*`, anyHost)), nil
}
