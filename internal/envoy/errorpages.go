package envoy

import (
	"net/http"
	"strings"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	customresponsev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/custom_response/v3"
	localresponsev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/custom_response/local_response_policy/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

const errorPagesName = "gatehouse.error-pages"

// errorPagesSlot puts bodies in the place of those of errors. Envoy makes a new answer then, which no
// other filter sees: so the page has the headers of answerHeadersSlot itself.
var errorPagesSlot = trafficSlot{
	name: errorPagesName,
	setting: func(t *ir.Traffic) any {
		if t.ErrorPages == nil || len(t.ErrorPages.Pages) == 0 {
			return t.ErrorPages
		}
		return [...]any{t.ErrorPages, t.Headers, t.StrictTransportSecurity, t.SecurityHeaders}
	},
	// For answers the last is the first: what a text is there for, no backend is asked for.
	filters: []trafficFilter{{name: "asked", make: askedPages}, {name: "pages", make: errorPages}},
}

func errorPages(t *ir.Traffic) (message, error) {
	if t.ErrorPages == nil || len(t.ErrorPages.Pages) == 0 {
		return nil, nil //nolint:nilnil // there are no pages
	}
	list := &xdsmatcherv3.Matcher_MatcherList{}
	var asked []*xdsmatcherv3.Matcher_MatcherList_Predicate // what backends are asked for by pages before
	for i := range t.ErrorPages.Pages {
		page := &t.ErrorPages.Pages[i]
		if !page.Backend.IsZero() {
			for _, status := range page.Statuses {
				asked = append(asked, noneOf(statusIs(status)))
			}
			continue
		}
		var of []*xdsmatcherv3.Matcher_MatcherList_Predicate
		for _, status := range page.Statuses {
			of = append(of, statusIs(status))
		}
		when := oneOf(of)
		if page.Own {
			when = allOf(when, predicate(localReply, "true"))
		}
		if len(asked) > 0 {
			when = allOf(append([]*xdsmatcherv3.Matcher_MatcherList_Predicate{when}, asked...)...)
		}
		answer, err := pack(&localresponsev3.LocalResponsePolicy{
			Body: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: page.Body}},
			ResponseHeadersToAdd: append([]*corev3.HeaderValueOption{{
				Header:       &corev3.HeaderValue{Key: "content-type", Value: literal(page.ContentType)},
				AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
			}}, answerHeaders(t)...),
			ResponseCodeDetailsAction: &localresponsev3.LocalResponsePolicy_PreserveResponseCodeDetails{PreserveResponseCodeDetails: true},
		})
		if err != nil {
			return nil, err
		}
		list.Matchers = append(list.Matchers, &xdsmatcherv3.Matcher_MatcherList_FieldMatcher{
			Predicate: when,
			OnMatch: &xdsmatcherv3.Matcher_OnMatch{OnMatch: &xdsmatcherv3.Matcher_OnMatch_Action{
				Action: &xdscorev3.TypedExtensionConfig{Name: "page", TypedConfig: answer},
			}},
		})
	}
	if len(list.Matchers) == 0 {
		return nil, nil //nolint:nilnil // all are asked for
	}
	return &customresponsev3.CustomResponse{CustomResponseMatcher: &xdsmatcherv3.Matcher{
		MatcherType: &xdsmatcherv3.Matcher_MatcherList_{MatcherList: list},
	}}, nil
}

// withoutPages returns the rule without error pages if it is for calls of gRPC, whose clients would get a page as their
// message.
func withoutPages(r *ir.Rule, around guards) *ir.Rule {
	t := around.within(&r.Filters).traffic
	if !r.Match.Path.Kind.GRPC() || t == nil || t.ErrorPages == nil {
		return r
	}
	rule, calls := *r, *t
	calls.ErrorPages = &ir.ErrorPages{}
	rule.Filters.Traffic = &calls
	return &rule
}

var (
	statusCode  = constant(&matcherv3.HttpResponseStatusCodeMatchInput{})
	statusClass = constant(&matcherv3.HttpResponseStatusCodeClassMatchInput{})
	localReply  = constant(&matcherv3.HttpResponseLocalReplyMatchInput{})
)

// statusIs matches a status, or a class of them without those by whose headers browsers ask for a password.
func statusIs(status string) *xdsmatcherv3.Matcher_MatcherList_Predicate {
	if !strings.HasSuffix(status, "xx") {
		return predicate(statusCode, status)
	}
	class := predicate(statusClass, status)
	if status != "4xx" {
		return class
	}
	return allOf(class, noneOf(predicate(statusCode, "401")), noneOf(predicate(statusCode, "407")))
}

func predicate(input *anypb.Any, value string) *xdsmatcherv3.Matcher_MatcherList_Predicate {
	return &xdsmatcherv3.Matcher_MatcherList_Predicate{MatchType: &xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate_{
		SinglePredicate: &xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate{
			Input: &xdscorev3.TypedExtensionConfig{Name: "input", TypedConfig: input},
			Matcher: &xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate_ValueMatch{
				ValueMatch: &xdsmatcherv3.StringMatcher{MatchPattern: &xdsmatcherv3.StringMatcher_Exact{Exact: value}},
			},
		},
	}}
}

func noneOf(p *xdsmatcherv3.Matcher_MatcherList_Predicate) *xdsmatcherv3.Matcher_MatcherList_Predicate {
	return &xdsmatcherv3.Matcher_MatcherList_Predicate{MatchType: &xdsmatcherv3.Matcher_MatcherList_Predicate_NotMatcher{NotMatcher: p}}
}

// oneOf matches what one of some does. Envoy wants at least two in a list.
func oneOf(of []*xdsmatcherv3.Matcher_MatcherList_Predicate) *xdsmatcherv3.Matcher_MatcherList_Predicate {
	if len(of) == 1 {
		return of[0]
	}
	return &xdsmatcherv3.Matcher_MatcherList_Predicate{MatchType: &xdsmatcherv3.Matcher_MatcherList_Predicate_OrMatcher{
		OrMatcher: &xdsmatcherv3.Matcher_MatcherList_Predicate_PredicateList{Predicate: of},
	}}
}

func allOf(of ...*xdsmatcherv3.Matcher_MatcherList_Predicate) *xdsmatcherv3.Matcher_MatcherList_Predicate {
	return &xdsmatcherv3.Matcher_MatcherList_Predicate{MatchType: &xdsmatcherv3.Matcher_MatcherList_Predicate_AndMatcher{
		AndMatcher: &xdsmatcherv3.Matcher_MatcherList_Predicate_PredicateList{Predicate: of},
	}}
}

// unmatched answers what no rule of a host is for, where policies say something of answers: without a route
// Envoy gives its 404 without any filter of host or table.
func unmatched(vh *routev3.VirtualHost, t *ir.Traffic) {
	if t == nil || t.ErrorPages == nil && t.Headers == nil && t.StrictTransportSecurity == nil && t.SecurityHeaders == nil {
		return
	}
	if n := len(vh.Routes); n > 0 && takesAll(vh.Routes[n-1].Match) {
		return
	}
	vh.Routes = append(vh.Routes, &routev3.Route{Match: everything(), Action: direct(http.StatusNotFound)})
}

// takesAll reports whether a match is of all requests.
func takesAll(m *routev3.RouteMatch) bool {
	return m.GetPrefix() == "/" && len(m.Headers) == 0 && len(m.QueryParameters) == 0 && m.Grpc == nil && m.RuntimeFraction == nil
}
