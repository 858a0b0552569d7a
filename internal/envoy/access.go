package envoy

import (
	"math"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	filterchainv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/filter_chain/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

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
	accessConditions  = "conditions"  // refuses those that don't meet a condition
)

// Where the filters find what others of them have found out.
const (
	tokenMetadata  = "envoy.filters.http.jwt_authn" //nolint:gosec // a name
	tokenKey       = "jwt"
	accessMetadata = "gatehouse.access"
)

// accessNeeds are the filters that an Access needs.
func accessNeeds(a *ir.Access) map[string]bool {
	return map[string]bool{
		accessHeaders:     len(a.Hidden) > 0,
		accessTokens:      len(a.Tokens) > 0,
		accessCredentials: a.Authenticated || len(a.Keys)+len(a.Passwords) > 0,
		accessConditions:  a.Authenticated || len(a.Conditions) > 0,
	}
}

// access returns what fills the slot; outer are the levels around, from the outside. There is
// nothing to fill it with where everybody passes, which is not to say that it is empty.
func access(a *ir.Access, outer []*ir.Access) (*filterchainv3.FilterChainConfigPerRoute, error) {
	needs := accessNeeds(a)
	replaces := map[string]bool{}
	for _, o := range outer {
		for name, needed := range accessNeeds(o) {
			replaces[name] = replaces[name] || needed
		}
	}
	chain := &filterchainv3.FilterChain{}
	for _, f := range []struct {
		name string
		make func(*ir.Access) (message, error)
		idle message
	}{
		{accessHeaders, hiddenHeaders, &headermutationv3.HeaderMutation{}},
		{accessTokens, tokens, &jwtv3.JwtAuthentication{}},
		{accessCredentials, credentials, &luav3.Lua{DefaultSourceCode: inlined("function envoy_on_request(handle) end")}},
		{accessConditions, conditions, &rbacv3.RBAC{}},
	} {
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

// notInNames is what backends may not tell from a hyphen in a header's name: many servers make
// variables of names (RFC 3875), with _ for whatever is no letter and no digit.
var notInNames = regexp.MustCompile(`[^a-z0-9]`)

// hiddenHeaders removes headers, and those which backends can't tell from them.
func hiddenHeaders(a *ir.Access) (message, error) {
	m := &headermutationv3.HeaderMutation{Mutations: &headermutationv3.Mutations{}}
	for _, name := range a.Hidden {
		like := notInNames.ReplaceAllString(name, "[^a-z0-9:]") // no :path
		m.Mutations.RequestMutations = append(m.Mutations.RequestMutations, removeHeaders(matching(like)))
	}
	return m, nil
}

// tokens verifies tokens. A request without a good one goes on: there may be other credentials.
func tokens(a *ir.Access) (message, error) {
	m := &jwtv3.JwtAuthentication{Providers: map[string]*jwtv3.JwtProvider{}}
	any := &jwtv3.JwtRequirementOrList{}
	for i := range a.Tokens {
		t := &a.Tokens[i]
		p := &jwtv3.JwtProvider{
			Issuer: t.Issuer, Audiences: t.Audiences, Forward: true, PayloadInMetadata: tokenKey,
			JwksSourceSpecifier: &jwtv3.JwtProvider_LocalJwks{LocalJwks: inlined(t.JWKS)},
			JwtCacheConfig:      &jwtv3.JwtCacheConfig{},
		}
		for _, from := range t.From {
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
		}
		for _, h := range t.Headers {
			p.ClaimToHeaders = append(p.ClaimToHeaders, &jwtv3.JwtClaimToHeader{HeaderName: h.Header, ClaimName: strings.Join(h.Claim, ".")})
		}
		m.Providers[t.Name] = p
		any.Requirements = append(any.Requirements, &jwtv3.JwtRequirement{RequiresType: &jwtv3.JwtRequirement_ProviderName{ProviderName: t.Name}})
	}
	any.Requirements = append(any.Requirements, &jwtv3.JwtRequirement{
		RequiresType: &jwtv3.JwtRequirement_AllowMissingOrFailed{AllowMissingOrFailed: &emptypb.Empty{}},
	})
	m.Rules = []*jwtv3.RequirementRule{{
		Match: everything(),
		RequirementType: &jwtv3.RequirementRule_Requires{Requires: &jwtv3.JwtRequirement{
			RequiresType: &jwtv3.JwtRequirement_RequiresAny{RequiresAny: any},
		}},
	}}
	return m, nil
}

// conditions are one policy of which all must hold. That a request has passed the script before
// is among them: if the script fails, the request goes on without having been looked at.
func conditions(a *ir.Access) (message, error) {
	var all []*rbacconfigv3.Principal
	if a.Authenticated {
		all = append(all, metadata(accessMetadata, []string{"passed"}, &matcherv3.ValueMatcher{
			MatchPattern: &matcherv3.ValueMatcher_BoolMatch{BoolMatch: true},
		}))
	}
	for i := range a.Conditions {
		all = append(all, condition(&a.Conditions[i])...)
	}
	return &rbacv3.RBAC{Rules: &rbacconfigv3.RBAC{
		Action: rbacconfigv3.RBAC_ALLOW,
		Policies: map[string]*rbacconfigv3.Policy{"access": {
			Permissions: []*rbacconfigv3.Permission{{Rule: &rbacconfigv3.Permission_Any{Any: true}}},
			Principals:  []*rbacconfigv3.Principal{{Identifier: &rbacconfigv3.Principal_AndIds{AndIds: &rbacconfigv3.Principal_Set{Ids: all}}}},
		}},
	}}, nil
}

func condition(c *ir.AccessCondition) (all []*rbacconfigv3.Principal) {
	if c.Never {
		return []*rbacconfigv3.Principal{not(&rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_Any{Any: true}})}
	}
	if len(c.Allow) > 0 {
		all = append(all, addresses(c.Allow))
	}
	if len(c.Deny) > 0 {
		all = append(all, not(addresses(c.Deny)))
	}
	for _, claim := range c.Claims {
		values := make([]*matcherv3.ValueMatcher, 0, 2*len(claim.Values))
		for _, v := range claim.Values {
			for _, m := range claimValues(v) {
				values = append(values, m, &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_ListMatch{
					ListMatch: &matcherv3.ListMatcher{MatchPattern: &matcherv3.ListMatcher_OneOf{OneOf: m}},
				}})
			}
		}
		all = append(all, metadata(tokenMetadata, append([]string{tokenKey}, claim.Claim...), either(values)))
	}
	if len(c.Clients) > 0 {
		names := make([]*matcherv3.ValueMatcher, len(c.Clients))
		for i, name := range c.Clients {
			names[i] = textValue(name)
		}
		all = append(all, metadata(accessMetadata, []string{"client"}, either(names)))
	}
	return all
}

// maxExact is up to where no two integers are the same number to Envoy, which reads claims as
// doubles: beyond it another's number would do.
const maxExact = 1<<53 - 1

// claimValues are the values that a text may be of: itself, a number, true or false.
func claimValues(text string) []*matcherv3.ValueMatcher {
	out := []*matcherv3.ValueMatcher{textValue(text)}
	if n, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(n) <= maxExact && strconv.FormatFloat(n, 'f', -1, 64) == text {
		out = append(out, &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_DoubleMatch{
			DoubleMatch: &matcherv3.DoubleMatcher{MatchPattern: &matcherv3.DoubleMatcher_Exact{Exact: n}},
		}})
	}
	if text == "true" || text == "false" {
		out = append(out, &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_BoolMatch{BoolMatch: text == "true"}})
	}
	return out
}

func textValue(text string) *matcherv3.ValueMatcher {
	return &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_StringMatch{StringMatch: exactly(text)}}
}

// either matches one of some values.
func either(values []*matcherv3.ValueMatcher) *matcherv3.ValueMatcher {
	if len(values) == 1 {
		return values[0]
	}
	return &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_OrMatch{OrMatch: &matcherv3.OrMatcher{ValueMatchers: values}}}
}

// metadata matches what a filter has found out. What is not there matches nothing.
func metadata(filter string, path []string, value *matcherv3.ValueMatcher) *rbacconfigv3.Principal {
	m := &matcherv3.MetadataMatcher{Filter: filter, Value: value}
	for _, key := range path {
		m.Path = append(m.Path, &matcherv3.MetadataMatcher_PathSegment{Segment: &matcherv3.MetadataMatcher_PathSegment_Key{Key: key}})
	}
	return &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_SourcedMetadata{
		SourcedMetadata: &rbacconfigv3.SourcedMetadata{MetadataMatcher: m, MetadataSource: rbacconfigv3.MetadataSource_DYNAMIC},
	}}
}

func addresses(ranges []netip.Prefix) *rbacconfigv3.Principal {
	set := &rbacconfigv3.Principal_Set{}
	for _, r := range ranges {
		set.Ids = append(set.Ids, &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_RemoteIp{RemoteIp: &corev3.CidrRange{
			AddressPrefix: r.Addr().String(), PrefixLen: wrapperspb.UInt32(uint32(r.Bits())), //nolint:gosec // at most 128
		}}})
	}
	return &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_OrIds{OrIds: set}}
}

func not(p *rbacconfigv3.Principal) *rbacconfigv3.Principal {
	return &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_NotId{NotId: p}}
}

func inlined(text string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: text}}
}
