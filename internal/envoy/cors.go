package envoy

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

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
