package envoy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filterchainv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/filter_chain/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"

	"github.com/gatehouse-dev/gatehouse/internal/expression"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// accessSlot is the place in the chain for the filters that decide who may pass. Any level
// fills it, and Envoy runs what the levels around a route have put there together: an inner
// filter takes the place of one of its name, and all others stay. So a level says something
// about every name that one around it has.
const accessSlot = "gatehouse.access"

// The filters in the slot, in the order in which requests meet them.
const (
	accessHeaders     = "headers"     // removes headers that only the proxy may set
	accessTokens      = "tokens"      // verifies tokens, and lets all others pass
	accessCredentials = "credentials" //nolint:gosec // a name: refuses those without any credential, by a script
	accessLogin       = "login"       // leads those to log in who have no credentials
	accessSession     = "session"     // verifies the tokens of those who have
	accessEntered     = "entered"     // refuses those who haven't, by a script, and takes the cookies of sessions away
	accessConditions  = "conditions"  // refuses those that don't meet a condition that is for all
	accessAddresses   = "addresses "  // and the name of a condition: refuses those of other addresses, where these are many
	accessWhen        = "when "       // and the name of a condition: refuses those that it is for and that don't meet it
	accessAsked       = "asked "      // and the name of a condition: finds out whether its service is to be asked
	accessExternal    = "external "   // and the name of a condition: asks a service
)

// Where the filters find what others of them have found out.
const (
	tokenMetadata  = expression.TokenFilter
	tokenKey       = expression.TokenKey
	accessMetadata = expression.ClientFilter
)

// accessFilter is a filter of those in the slot.
type accessFilter struct {
	name string
	make func(*ir.Access) (message, error)
	idle message // does nothing, in place of one of a level around
}

// accessFilters are those that may be needed, whatever is said of conditions.
var accessFilters = []accessFilter{
	{accessHeaders, hiddenHeaders, &headermutationv3.HeaderMutation{}},
	{accessTokens, tokens, &jwtv3.JwtAuthentication{}},
	{accessCredentials, credentials, idleScript},
	{accessLogin, entrance, &rbacv3.RBAC{}},
	{accessSession, session, &jwtv3.JwtAuthentication{}},
	{accessEntered, entered, idleScript},
	{accessConditions, conditions, &rbacv3.RBAC{}},
}

var idleScript = &luav3.Lua{DefaultSourceCode: inlined("function envoy_on_request(handle) end")}

// accessNeeds are the names of the filters that an Access needs.
func accessNeeds(a *ir.Access) map[string]bool {
	needs := map[string]bool{
		accessHeaders:     len(a.Hidden) > 0,
		accessTokens:      len(a.Tokens) > 0,
		accessCredentials: scripted(a),
		accessLogin:       a.Login != nil,
		accessSession:     a.Login != nil,
		accessEntered:     a.Login != nil,
		accessConditions:  a.Authenticated,
	}
	for i := range a.Conditions {
		for _, f := range slices.Concat(conditionFilters(&a.Conditions[i]), externalFilters(&a.Conditions[i])) {
			needs[f.name] = true
		}
	}
	return needs
}

// scripted reports whether an Access needs the script that looks for credentials.
func scripted(a *ir.Access) bool {
	return a.Authenticated || len(a.Tokens)+len(a.Keys)+len(a.Passwords)+len(a.Certificates) > 0 || a.Forbidden != nil && len(a.Conditions) > 0
}

// access returns what fills the slot; outer are the levels around, from the outside. There is
// nothing to fill it with where everybody passes, which is not to say that it is empty.
func access(a *ir.Access, outer guards) (*filterchainv3.FilterChainConfigPerRoute, error) {
	needs := accessNeeds(a)
	replaces := map[string]bool{}
	for _, o := range outer.access {
		for name, needed := range accessNeeds(o) {
			replaces[name] = replaces[name] || needed
		}
	}
	if outer.beside != "" {
		replaces[accessArrived] = true
	}
	filters := slices.Clone(accessFilters)
	if outer.sessions {
		replaces[accessEntered] = true
		i := slices.IndexFunc(filters, func(f accessFilter) bool { return f.name == accessEntered })
		filters[i].idle = withoutSessions
	}
	var asked, services []accessFilter
	for i := range a.Conditions {
		for _, f := range conditionFilters(&a.Conditions[i]) {
			if f.make != nil {
				filters = append(filters, f)
			}
		}
		for _, f := range externalFilters(&a.Conditions[i]) {
			if strings.HasPrefix(f.name, accessExternal) {
				services = append(services, f)
			} else {
				asked = append(asked, f)
			}
		}
	}
	// No service has a say in which requests are another's business.
	filters = slices.Concat(filters, asked, services)
	for _, name := range slices.Sorted(maps.Keys(replaces)) {
		if !needs[name] && !slices.ContainsFunc(accessFilters, func(f accessFilter) bool { return f.name == name }) {
			filters = append(filters, accessFilter{name: name, idle: &rbacv3.RBAC{}})
		}
	}
	chain := &filterchainv3.FilterChain{}
	for _, f := range filters {
		m := f.idle
		var err error
		switch {
		case needs[f.name]:
			m, err = f.make(a)
		case !replaces[f.name]:
			continue
		}
		if err != nil {
			return nil, err
		}
		config, err := pack(m)
		if err != nil {
			return nil, err
		}
		chain.Filters = append(chain.Filters, &corev3.TypedExtensionConfig{Name: f.name, TypedConfig: config})
	}
	if len(chain.Filters) == 0 {
		return nil, nil //nolint:nilnil // there is nothing to do
	}
	return &filterchainv3.FilterChainConfigPerRoute{FilterChain: chain}, nil
}

// hiddenHeaders removes headers, and those which backends can't tell from them.
func hiddenHeaders(a *ir.Access) (message, error) {
	m := &headermutationv3.HeaderMutation{Mutations: &headermutationv3.Mutations{}}
	for _, name := range a.Hidden {
		m.Mutations.RequestMutations = append(m.Mutations.RequestMutations, removeHeaders(matching(likeHeader(name))))
	}
	return m, nil
}

// tokens verifies tokens. A request without a good one goes on: there may be other credentials.
func tokens(a *ir.Access) (message, error) { return verified(a.Tokens), nil }

// verified verifies the tokens of some issuers, up to the first good one. Envoy wants all tokens to be
// good that it finds for a provider, and takes the claims of all of them, so that each place is a provider.
// Last stands that nothing is required: what allows bad tokens in so many words looks at all of them again.
func verified(issuers []ir.TokenIssuer) *jwtv3.JwtAuthentication {
	m := &jwtv3.JwtAuthentication{Providers: map[string]*jwtv3.JwtProvider{}}
	any := &jwtv3.JwtRequirementOrList{}
	for i := range issuers {
		t := &issuers[i]
		marks := tokenMarks(t)
		for n, from := range t.From {
			p := &jwtv3.JwtProvider{
				Issuer: t.Issuer, Audiences: t.Audiences, Forward: true, PayloadInMetadata: tokenKey, HeaderInMetadata: marks[n], FailedStatusInMetadata: notGood + marks[n],
				JwksSourceSpecifier: &jwtv3.JwtProvider_LocalJwks{LocalJwks: inlined(t.JWKS)},
				JwtCacheConfig:      &jwtv3.JwtCacheConfig{},
			}
			switch {
			case from.Header != "":
				p.FromHeaders = append(p.FromHeaders, &jwtv3.JwtHeader{Name: from.Header, ValuePrefix: from.Prefix})
				if small := strings.ToLower(from.Prefix); small != from.Prefix { // schemes have no case (RFC 9110)
					p.FromHeaders = append(p.FromHeaders, &jwtv3.JwtHeader{Name: from.Header, ValuePrefix: small})
				}
			case from.Query != "":
				p.FromParams = append(p.FromParams, from.Query)
			default:
				p.FromCookies = append(p.FromCookies, from.Cookie)
			}
			name := t.Name
			if n > 0 {
				name = fmt.Sprintf("%s.%d", name, n) // no rule's, whose names have no dots
			}
			m.Providers[name] = p
			any.Requirements = append(any.Requirements, &jwtv3.JwtRequirement{RequiresType: &jwtv3.JwtRequirement_ProviderName{ProviderName: name}})
		}
	}
	any.Requirements = append(any.Requirements, &jwtv3.JwtRequirement{})
	m.Rules = []*jwtv3.RequirementRule{{
		Match: everything(),
		RequirementType: &jwtv3.RequirementRule_Requires{Requires: &jwtv3.JwtRequirement{
			RequiresType: &jwtv3.JwtRequirement_RequiresAny{RequiresAny: any},
		}},
	}}
	return m
}

// notGood stands before the mark of a place that has a token which isn't good. There may be good ones too, if
// a header comes several times: Envoy verifies them from the last one on, and leaves what it knows of a good one
// where one before it is bad.
const notGood = "not "

// tokenMarks are what Envoy leaves in the metadata where a token in one of an issuer's places is good.
func tokenMarks(t *ir.TokenIssuer) []string {
	marks := make([]string, len(t.From))
	for n := range marks {
		marks[n] = fmt.Sprintf("of %s.%d", t.Name, n)
	}
	return marks
}

func inlined(text string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: text}}
}
