package auth

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// authorization reads a condition. One that is broken is met by nobody, whatever it is asked of.
func (r *reader) authorization(in *v1alpha1.Authorization) *ir.AccessCondition {
	found := len(r.Problems)
	out := &ir.AccessCondition{Clients: slices.Clone(in.Clients), Methods: slices.Clone(in.Methods), When: in.When}
	if in.Addresses == nil && in.External == nil && in.CSRF == nil && len(in.Claims)+len(in.Clients)+len(in.Methods)+len(in.Headers) == 0 {
		r.Problem("", "says nothing that must hold; set addresses, claims, clients, methods, headers, csrf or external")
	}
	if len(in.Claims) > 0 && len(in.Clients) > 0 {
		r.Problem("", "wants both claims, which tokens have, and clients, which keys, users and certificates are; of a request one credential counts, so that nobody passes")
	}
	if a := in.Addresses; a != nil {
		out.Allow = r.Addresses(".addresses.allow", a.Allow)
		out.Deny = r.Addresses(".addresses.deny", a.Deny)
		if len(a.Allow)+len(a.Deny) == 0 {
			r.Problem(".addresses", "says nothing; set allow or deny")
		}
	}
	out.Claims = r.claims(in.Claims)
	out.Headers = r.headers(in.Headers)
	if in.CSRF != nil {
		out.CSRF = r.csrf(in.CSRF)
	}
	if in.External != nil {
		out.External = r.external(in.External)
	}
	r.When(in.When)
	if len(r.Problems) > found {
		return &ir.AccessCondition{Never: true}
	}
	return out
}

// origin is how browsers write one (RFC 6454).
var origin = regexp.MustCompile(`^https?://[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$`)

func (r *reader) csrf(in *v1alpha1.CSRF) *ir.CSRF {
	for i, text := range in.AllowedOrigins {
		if !origin.MatchString(text) {
			r.Problem(fmt.Sprintf(".csrf.allowedOrigins[%d]", i), "is %q; write an origin as browsers do, such as https://admin.example.com", text)
		}
	}
	return &ir.CSRF{Origins: slices.Clone(in.AllowedOrigins)}
}

func (r *reader) claims(in map[string]v1alpha1.ClaimValues) (out []ir.ClaimMatch) {
	for _, claim := range slices.Sorted(maps.Keys(in)) {
		switch {
		case slices.Contains(ClaimPath(claim), ""):
			r.Problem(".claims["+claim+"]", "is no path to a claim, which is names with dots between")
		case len(in[claim]) == 0:
			r.Problem(".claims["+claim+"]", "has no values, so that nobody passes; give those of which one is needed")
		default:
			out = append(out, ir.ClaimMatch{Claim: ClaimPath(claim), Values: slices.Clone(in[claim])})
		}
	}
	return out
}

// headers reads what headers must be.
func (r *reader) headers(in map[string]v1alpha1.HeaderValues) (out []ir.HeaderValues) {
	byName := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		lower := strings.ToLower(name)
		switch {
		case lower == "" || lower == "host" || strings.HasPrefix(lower, ":"):
			r.Problem(".headers["+name+"]", "can't be looked at as a header; for the host there are hostnames of routes, and request.host in when")
		case byName[lower] != nil:
			r.Problem(".headers["+name+"]", "is there twice: headers have no case")
		case len(in[name]) == 0 || slices.Contains(in[name], ""):
			r.Problem(".headers["+name+"]", "has no values, or an empty one; give those of which one is needed")
		default:
			byName[lower] = slices.Clone(in[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, ir.HeaderValues{Name: name, Values: byName[name]})
	}
	return out
}
