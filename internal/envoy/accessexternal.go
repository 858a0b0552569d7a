package envoy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/gatehouse-dev/gatehouse/internal/expression"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// externalFilters are those that ask the service of a condition: the one that does, and, where not
// all requests are its business, one before it that says so. They stand behind all other conditions.
func externalFilters(c *ir.AccessCondition) (all []accessFilter) {
	if c.External == nil {
		return nil
	}
	if c.When != "" {
		all = append(all, accessFilter{name: accessAsked + c.Name, make: func(*ir.Access) (message, error) { return unasked(c) }})
	}
	return append(all, accessFilter{name: accessExternal + c.Name, make: func(a *ir.Access) (message, error) { return external(c, a) }})
}

const (
	rbacMetadata = "envoy.filters.http.rbac"
	rbacShadow   = "shadow_engine_result" // behind a prefix: what a filter that enforces nothing has found
)

// shadowOf begins the name under which the filter finds what the one before it has.
func shadowOf(c *ir.AccessCondition) string { return c.Name + "_" }

// unasked refuses nobody. It says "allowed" of the requests of which it is certain that the condition is
// not for them.
func unasked(c *ir.AccessCondition) (message, error) {
	when, err := expression.Condition(c.When)
	if err != nil {
		return nil, fmt.Errorf("when of %s: %w", c.Name, err)
	}
	return &rbacv3.RBAC{
		ShadowRulesStatPrefix: shadowOf(c),
		ShadowRules: &rbacconfigv3.RBAC{
			Action: rbacconfigv3.RBAC_ALLOW, Policies: map[string]*rbacconfigv3.Policy{"not asked": notAsked(when)},
		},
	}, nil
}

// external asks a service about all requests but those of which the filter before has said that they
// are none of its business: whatever goes wrong with that one, the service is asked.
func external(c *ir.AccessCondition, a *ir.Access) (message, error) {
	e := c.External
	if e.Backend.IsZero() {
		return nil, errors.New("external authorization: no backend")
	}
	f := ownAuth(&e.Auth)
	f.FailureModeAllow = e.Open
	f.DecoderHeaderMutationRules.DisallowExpression = regex(keptFrom(e, a))
	if c.When != "" {
		f.FilterEnabledMetadata = &matcherv3.MetadataMatcher{
			Filter: rbacMetadata,
			Path:   []*matcherv3.MetadataMatcher_PathSegment{{Segment: &matcherv3.MetadataMatcher_PathSegment_Key{Key: shadowOf(c) + rbacShadow}}},
			Value:  textValue("allowed"), Invert: true,
		}
	}
	return f, nil
}

// keptFrom are the headers of a request that a service may not change: those by which requests are
// told apart and sent somewhere, and those by which the backend is told who the client is, unless the
// policy says that the service has the say.
func keptFrom(e *ir.External, a *ir.Access) string {
	kept := []string{unaltered, "host", ":.*", internalHeaders + ".*", "x-gatehouse-.*"}
	if !e.GRPC && len(e.ResponseHeaders) == 0 {
		kept = append(kept, foreign)
	}
	for _, name := range a.Hidden {
		if !slices.Contains(e.ResponseHeaders, name) {
			kept = append(kept, likeHeader(name))
		}
	}
	return strings.Join(kept, "|")
}

// notInNames is what backends may not tell from a hyphen in a header's name: many servers make
// variables of names (RFC 3875), with _ for whatever is no letter and no digit.
var notInNames = regexp.MustCompile(`[^a-z0-9]`)

// likeHeader matches a header's name in lower case, and those which backends can't tell from it.
func likeHeader(name string) string { return notInNames.ReplaceAllString(name, "[^a-z0-9:]") } // no :path
