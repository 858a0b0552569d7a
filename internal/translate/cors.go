package translate

import (
	"regexp"
	"time"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// defaultMaxAge is the Access-Control-Max-Age where none is given.
const defaultMaxAge = 5 * time.Second

// origins is what the specification lets an origin be.
var origins = regexp.MustCompile(`^(\*|https?://(\*|(\*\.)?[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)*)(:[0-9]{1,5})?)$`)

func (t *translation) cors(at position, f *gwv1.HTTPCORSFilter) *ir.CORS {
	c := &ir.CORS{
		AllowOrigins:     texts(f.AllowOrigins),
		AllowMethods:     texts(f.AllowMethods),
		AllowHeaders:     texts(f.AllowHeaders),
		ExposeHeaders:    texts(f.ExposeHeaders),
		AllowCredentials: f.AllowCredentials != nil && *f.AllowCredentials,
		MaxAge:           time.Duration(f.MaxAge) * time.Second,
	}
	if f.MaxAge == 0 {
		c.MaxAge = defaultMaxAge
	}
	for i, o := range c.AllowOrigins {
		if !origins.MatchString(o) {
			field := at.field(item("cors.allowOrigins", i))
			t.refuse(field, condition.InvalidOrigin(field, o))
		}
	}
	t.corsNames(at, "cors.allowMethods", c.AllowMethods)
	t.corsNames(at, "cors.allowHeaders", c.AllowHeaders)
	t.corsNames(at, "cors.exposeHeaders", c.ExposeHeaders)
	return c
}

// corsNames checks names that go into a header of the answer. A * is a token.
func (t *translation) corsNames(at position, list string, names []string) {
	for i, n := range names {
		if !ir.IsToken(n) {
			f := at.field(item(list, i))
			t.refuse(f, condition.InvalidHeaderName(f, n))
		}
	}
}

func texts[T ~string](list []T) []string {
	if len(list) == 0 {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}
