package envoy

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	exprpb "google.golang.org/genproto/googleapis/api/expr/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/internal/expression"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// conditionFilters are the filters that have a condition: one of its own, where not all requests must
// meet it; or else one of its own for addresses that are many, and the one for all that is left.
func conditionFilters(c *ir.AccessCondition) (all []accessFilter) {
	alone := !c.Never && len(c.Allow)+len(c.Deny)+len(c.Claims)+len(c.Clients)+len(c.Methods)+len(c.Headers) == 0 && c.CSRF == nil
	switch {
	case c.External != nil && alone: // the service has the say
		return nil
	case c.When != "":
		return []accessFilter{{name: accessWhen + c.Name, make: func(*ir.Access) (message, error) { return conditionWhen(c) }}}
	}
	if inTree(c) {
		all = append(all, accessFilter{name: accessAddresses + c.Name, make: func(*ir.Access) (message, error) { return addressTree(c) }})
	}
	if !inTree(c) || len(c.Claims)+len(c.Clients)+len(c.Methods)+len(c.Headers) > 0 || c.CSRF != nil {
		all = append(all, accessFilter{name: accessConditions})
	}
	return all
}

// conditions are one policy of which all must hold. That a request has passed the script before
// is among them: if the script fails, the request goes on without having been looked at.
func conditions(a *ir.Access) (message, error) {
	var all []*rbacconfigv3.Principal
	var has []*exprpb.Expr
	if a.Authenticated {
		all = append(all, metadata(accessMetadata, []string{"passed"}, &matcherv3.ValueMatcher{
			MatchPattern: &matcherv3.ValueMatcher_BoolMatch{BoolMatch: true},
		}))
	}
	for i := range a.Conditions {
		if c := &a.Conditions[i]; c.When == "" {
			all, has = append(all, condition(c)...), append(has, headers(c)...)
		}
	}
	return allow(map[string]*rbacconfigv3.Policy{"access": meets(all, has)}), nil
}

// conditionWhen is a condition that only some requests must meet. The others pass by a policy of
// which Envoy knows for certain that it is for them: where the expression fails it is for nobody,
// and so is one that is negated.
func conditionWhen(c *ir.AccessCondition) (message, error) {
	when, err := expression.Condition(c.When)
	if err != nil {
		return nil, fmt.Errorf("when of %s: %w", c.Name, err)
	}
	return allow(map[string]*rbacconfigv3.Policy{
		"met":       meets(condition(c), headers(c)),
		"not asked": notAsked(when),
	}), nil
}

// notAsked is a policy for requests for which an expression is false for certain.
func notAsked(when *exprpb.Expr) *rbacconfigv3.Policy {
	return &rbacconfigv3.Policy{
		Permissions: []*rbacconfigv3.Permission{{Rule: &rbacconfigv3.Permission_Any{Any: true}}},
		Principals:  []*rbacconfigv3.Principal{anybody()},
		Condition:   expression.Not(when),
		CelConfig:   expressionConfig,
	}
}

// expressionConfig lets expressions tell hosts apart, which takes functions of texts.
var expressionConfig = &corev3.CelExpressionConfig{EnableStringFunctions: true}

// allow lets those pass whom one of some policies is for. Envoy reads the expressions of all of them
// as it is told to by the first one that has some, so that all say the same.
func allow(policies map[string]*rbacconfigv3.Policy) *rbacv3.RBAC {
	for _, p := range policies {
		if p.Condition != nil {
			p.CelConfig = expressionConfig
		}
	}
	return &rbacv3.RBAC{Rules: &rbacconfigv3.RBAC{Action: rbacconfigv3.RBAC_ALLOW, Policies: policies}}
}

// meets is a policy for requests for which all of some things hold.
func meets(all []*rbacconfigv3.Principal, has []*exprpb.Expr) *rbacconfigv3.Policy {
	who := anybody()
	if len(all) > 0 {
		who = &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_AndIds{AndIds: &rbacconfigv3.Principal_Set{Ids: all}}}
	}
	return &rbacconfigv3.Policy{
		Permissions: []*rbacconfigv3.Permission{{Rule: &rbacconfigv3.Permission_Any{Any: true}}},
		Principals:  []*rbacconfigv3.Principal{who}, Condition: expression.And(has),
	}
}

func anybody() *rbacconfigv3.Principal {
	return &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_Any{Any: true}}
}

func condition(c *ir.AccessCondition) (all []*rbacconfigv3.Principal) {
	if c.Never {
		return []*rbacconfigv3.Principal{not(anybody())}
	}
	if !inTree(c) {
		if len(c.Allow) > 0 {
			all = append(all, addresses(c.Allow))
		}
		if len(c.Deny) > 0 {
			all = append(all, not(addresses(c.Deny)))
		}
	}
	for _, claim := range c.Claims {
		values := make([]*matcherv3.ValueMatcher, 0, 2*len(claim.Values))
		for _, v := range claim.Values {
			for _, m := range append(claimValues(v), wordsOf(claim.Claim, v)...) {
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
		all = append(all, metadata(accessMetadata, []string{expression.ClientKey}, either(names)))
	}
	if len(c.Methods) > 0 {
		all = append(all, methods(c.Methods))
	}
	return all
}

func methods(names []string) *rbacconfigv3.Principal {
	any := &rbacconfigv3.Principal_Set{}
	for _, name := range names {
		any.Ids = append(any.Ids, &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_Header{Header: &routev3.HeaderMatcher{
			Name: ":method", HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: exactly(name)},
		}}})
	}
	return &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_OrIds{OrIds: any}}
}

// headers are those that a condition needs, and what they must say of who has a browser send the request. Not by a matcher of principals, to which one of
// several values is enough.
func headers(c *ir.AccessCondition) (all []*exprpb.Expr) {
	for _, h := range c.Headers {
		all = append(all, expression.HeaderIn(h.Name, h.Values))
	}
	if c.CSRF != nil {
		all = append(all, expression.OwnOrigin(c.CSRF.Origins))
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

// wordsOf are the values that have a text as one of their words: those of scopes, which are words with blanks
// between (RFC 8693, section 4.2; some issuers call them scp).
func wordsOf(claim []string, word string) []*matcherv3.ValueMatcher {
	if len(claim) != 1 || claim[0] != "scope" && claim[0] != "scp" || word == "" || strings.Contains(word, " ") {
		return nil
	}
	var out []*matcherv3.ValueMatcher
	for _, m := range []*matcherv3.StringMatcher{
		{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: word + " "}},
		{MatchPattern: &matcherv3.StringMatcher_Suffix{Suffix: " " + word}},
		{MatchPattern: &matcherv3.StringMatcher_Contains{Contains: " " + word + " "}},
	} {
		out = append(out, &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_StringMatch{StringMatch: m}})
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

func not(p *rbacconfigv3.Principal) *rbacconfigv3.Principal {
	return &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_NotId{NotId: p}}
}
