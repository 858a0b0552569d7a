package auth

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/keyset"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/policy/inherited"
)

// reader reads the rules of a policy. Whatever is broken lets nobody pass, and is among
// the problems.
type reader struct {
	inherited.Reader // of a rule
	world            *World
	namespace        string // of the policy
	policy           string // its name
	created          time.Time
	entries          []string // of Secrets, that are broken beside others that aren't
	// policyTargets are what external rules refer to, as those of a Route.
	policyTargets []object.Key
}

// brokenEntry notes what is wrong with an entry of a Secret below the field that is being read.
func (r *reader) brokenEntry(field, format string, args ...any) {
	r.entries = append(r.entries, r.Field+field+" "+fmt.Sprintf(format, args...))
}

// noneLeft makes problems of what is wrong with entries, from one on: by none of them anybody
// passes.
func (r *reader) noneLeft(from int) {
	r.Problems = append(r.Problems, r.entries[from:]...)
	r.entries = r.entries[:from]
}

func (r *reader) rules(in *v1alpha1.AuthRules) []policy.Rule[Rule] {
	out := make([]policy.Rule[Rule], 0, len(in.Authentication)+len(in.Authorization))
	under := r.Field
	for _, name := range slices.Sorted(maps.Keys(in.Authentication)) {
		r.Field = under + ".authentication[" + name + "]"
		out = append(out, policy.Rule[Rule]{
			Name: authentication + name, Value: r.authentication(name, in.Authentication[name]), Sufficient: true,
		})
	}
	for _, name := range slices.Sorted(maps.Keys(in.Authorization)) {
		r.Field = under + ".authorization[" + name + "]"
		rule := in.Authorization[name]
		condition := r.authorization(&rule)
		condition.Name = name
		value := Rule{Condition: condition}
		if condition.External != nil {
			value.Headers = condition.External.OnlyService()
		}
		out = append(out, policy.Rule[Rule]{Name: authorization + name, Value: value})
	}
	r.Field = under
	r.onlyLogin(in.Authentication)
	if in.Responses != nil {
		r.Field = under + ".responses"
		out = append(out, r.responses(in.Responses)...)
	}
	return out
}

func (r *reader) authentication(name string, in v1alpha1.Authentication) Rule {
	var out Rule
	said := 0
	if in.JWT != nil {
		said++
		out.Token, out.Fetched, out.Headers = r.token(name, in.JWT)
	}
	if in.OIDC != nil {
		said++
		out = r.login(name, in.OIDC)
	}
	if in.APIKey != nil {
		said++
		out.Keys = r.apiKeys(name, in.APIKey)
		out.Headers = identityHeader(in.APIKey.IdentityHeader)
	}
	if in.Basic != nil {
		said++
		out.Passwords = r.passwords(name, in.Basic)
		out.Headers = identityHeader(in.Basic.IdentityHeader)
	}
	if in.ClientCertificate != nil {
		said++
		out.Certificates = r.certificates(name, in.ClientCertificate)
		out.Headers = identityHeader(in.ClientCertificate.IdentityHeader)
	}
	if in.Anonymous != nil {
		said++
		out.Anonymous = true
	}
	if said != 1 {
		r.Problem("", "needs exactly one of jwt, oidc, apiKey, basic, clientCertificate and anonymous; nobody passes by it")
		return Rule{}
	}
	return out
}

// token reads an issuer of tokens; nil where none of its tokens can be accepted. Its keys are
// missing where they are fetched, from the location that is returned.
func (r *reader) token(name string, in *v1alpha1.JWT) (*ir.TokenIssuer, *keyset.Location, []string) {
	out := &ir.TokenIssuer{Name: name, Issuer: in.Issuer, Audiences: slices.Clone(in.Audiences), Hide: in.HideCredentials}
	ok := true
	if in.Issuer == "" {
		r.Problem(".jwt.issuer", "is missing")
		ok = false
	}
	var fetched *keyset.Location
	if out.JWKS, fetched = r.jwks(in); out.JWKS == "" && fetched == nil {
		ok = false
	}
	out.From = r.sources(".jwt.from", in.From, ir.CredentialSource{Header: "authorization", Prefix: "Bearer "})
	var headers []string
	claims, fine := r.claimsToHeaders(".jwt.claimsToHeaders", in.ClaimsToHeaders, &headers)
	out.Headers, ok = claims, ok && fine
	if !ok {
		return nil, nil, headers
	}
	return out, fetched, headers
}

// claimsToHeaders reads which headers say what claims say; false where one of them can't. All names
// that only the proxy may set are added to headers.
func (r *reader) claimsToHeaders(field string, in []v1alpha1.ClaimToHeader, headers *[]string) (out []ir.ClaimHeader, ok bool) {
	ok = true
	for i, h := range in {
		header := strings.ToLower(h.Header)
		if reservedHeader(header) {
			r.Problem(fmt.Sprintf("%s[%d].header", field, i), "can't be %q, which others set; choose another name", h.Header)
			ok = false
			continue
		}
		*headers = append(*headers, header)
		if slices.Contains(ClaimPath(h.Claim), "") {
			r.Problem(fmt.Sprintf("%s[%d].claim", field, i), "is %q, which is no path to a claim: names with dots between, or one name with a slash", h.Claim)
			ok = false
			continue
		}
		out = append(out, ir.ClaimHeader{Claim: ClaimPath(h.Claim), Header: header})
	}
	return out, ok
}

// ClaimPath is the path to a claim. Names with a slash, which are URLs, are one name.
func ClaimPath(claim string) []string {
	if strings.Contains(claim, "/") {
		return []string{claim}
	}
	return strings.Split(claim, ".")
}

// identityHeader is the header that tells who a client is, in a list.
func identityHeader(name string) []string {
	if name == "" {
		return nil
	}
	return []string{strings.ToLower(name)}
}

// reservedHeader reports whether a header that others rely on has a name in lower case.
func reservedHeader(name string) bool {
	switch name {
	case "", "host", "authorization", "cookie", "connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade",
		"keep-alive", "proxy-connection", "via", "expect", "http2-settings":
		return true
	}
	return strings.HasPrefix(name, ":") || strings.HasPrefix(name, "x-forwarded-") || strings.HasPrefix(name, "x-envoy-") ||
		strings.HasPrefix(name, "x-gatehouse-")
}

// sources returns where credentials are; otherwise is the default.
func (r *reader) sources(field string, in []v1alpha1.CredentialSource, otherwise ir.CredentialSource) []ir.CredentialSource {
	if len(in) == 0 {
		return []ir.CredentialSource{otherwise}
	}
	out := make([]ir.CredentialSource, 0, len(in))
	for i, s := range in {
		source := ir.CredentialSource{
			Header: strings.ToLower(ptr.Deref(s.Header, "")), Prefix: ptr.Deref(s.Prefix, ""), Query: ptr.Deref(s.Query, ""), Cookie: ptr.Deref(s.Cookie, ""),
		}
		said := 0
		for _, name := range []string{source.Header, source.Query, source.Cookie} {
			if name != "" {
				said++
			}
		}
		if said != 1 || source.Prefix != "" && source.Header == "" {
			r.Problem(fmt.Sprintf("%s[%d]", field, i), "needs exactly one of header, query and cookie, and only a header has a prefix")
			continue
		}
		out = append(out, source)
	}
	return out
}
