package condition

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// The functions below are about values of a route that pass its schema and still can't
// be served. Each names the field by its path, says what is wrong and what to write
// instead.

func unsupportedValue(field, format string, args ...any) metav1.Condition {
	return RouteUnsupportedValue(field, fmt.Sprintf(format, args...))
}

func incompatibleFilters(field, format string, args ...any) metav1.Condition {
	return RouteIncompatibleFilters(field, fmt.Sprintf(format, args...))
}

// UnknownValue is a value that the field's list of values doesn't have.
func UnknownValue(field, value string, allowed ...string) metav1.Condition {
	return unsupportedValue(field, "%q is not supported; use one of %s", value, strings.Join(allowed, ", "))
}

// UnsupportedField is a field of the API that has no effect here.
func UnsupportedField(field string) metav1.Condition {
	return unsupportedValue(field, "not supported; remove it")
}

// OutOfRange is a number beyond the bounds of its field.
func OutOfRange(field string, value, least, most int64) metav1.Condition {
	return unsupportedValue(field, "%d is out of range; use %d to %d", value, least, most)
}

// InvalidRegex is a regular expression that RE2 refuses; refused are the requests that
// are refused instead of those that it was to match.
func InvalidRegex(field, pattern string, err error, refused string) metav1.Condition {
	return unsupportedValue(field, "%s is not an RE2 regular expression: %v; see https://github.com/google/re2/wiki/Syntax; until it is one, %s are refused", quote(pattern), err, refused)
}

// RegexTooLarge is a regular expression whose compiled form is over the limit; refused
// are the requests that are refused instead of those that it was to match.
func RegexTooLarge(field, pattern string, size, limit int, refused string) metav1.Condition {
	return unsupportedValue(field, "%s compiles to %d instructions, over the limit of %d; shorten it, above all its counted repetitions; until then, %s are refused", quote(pattern), size, limit, refused)
}

// RefusedAll names the requests that are refused where nothing is known of what a match that
// can't be expressed takes.
func RefusedAll() string { return "all requests of its hosts" }

// RefusedBeginning names requests by how what they ask for begins.
func RefusedBeginning(what, with string) string {
	return fmt.Sprintf("requests for %s that begin with %s", what, quote(with))
}

// RefusedWith names requests by what they have.
func RefusedWith(what, name string) string {
	return fmt.Sprintf("requests with a %s %s", what, quote(name))
}

// RouteOverRegexBudget is a route whose regular expressions have more instructions, on all
// its hosts of a Gateway, than one route may have.
func RouteOverRegexBudget(gateway string, each, hosts, limit int) metav1.Condition {
	return unsupportedValue("spec.rules",
		"the regular expressions compile to %d instructions on each of %d hosts of Gateway %s, %d in all, over the limit of %d for a route; %s",
		each, hosts, gateway, each*hosts, limit, budgetRemedy)
}

// GatewayOverRegexBudget is a route whose regular expressions no longer fit into what all
// routes of a Gateway may have; spent is what older ones have.
func GatewayOverRegexBudget(gateway string, sum, spent, limit int) metav1.Condition {
	return unsupportedValue("spec.rules",
		"the regular expressions compile to %d instructions on all hosts of Gateway %s, where older routes have %d, %d in all, over the limit of %d for a Gateway; %s",
		sum, gateway, spent, sum+spent, limit, budgetRemedy)
}

const budgetRemedy = "match by prefixes and exact values, use fewer or shorter expressions, above all shorter counted repetitions, " +
	"or give the route fewer hostnames; until then it answers 500 there to all that it may match"

// AnchoredRegex is a regular expression with anchors where it can't have any.
func AnchoredRegex(field, pattern string) metav1.Condition {
	return unsupportedValue(field, "%s is compared with the whole name, and can't have ^ or $ within; remove them", quote(pattern))
}

// InvalidMethodName is a name that no service and no method of gRPC can have.
func InvalidMethodName(field, name string) metav1.Condition {
	return unsupportedValue(field, "%s is no name of a gRPC service or method; use letters, digits, _ and, in services, dots", quote(name))
}

// EmptyMethodMatch is a match that names neither a service nor a method.
func EmptyMethodMatch(field string) metav1.Condition {
	return unsupportedValue(field, "service and method are both empty; name one, or remove the match to take all")
}

// InvalidPath is a path that can't be compared with, or put into, a request.
func InvalidPath(field, path, why string) metav1.Condition {
	return unsupportedValue(field, "%s is not a usable path: %s", quote(path), why)
}

// InvalidHeaderName is a header name with characters that HTTP doesn't allow.
func InvalidHeaderName(field, name string) metav1.Condition {
	return unsupportedValue(field, "%s is not a header name; use letters, digits and !#$%%&'*+-.^_`|~", quote(name))
}

// InvalidHeaderValue is a header value with characters that HTTP doesn't allow.
func InvalidHeaderValue(field, name string) metav1.Condition {
	return unsupportedValue(field, "the value of header %s has control characters; remove them", quote(name))
}

// HeaderNotModifiable is a change of a header that routing itself depends on.
func HeaderNotModifiable(field, name string) metav1.Condition {
	return unsupportedValue(field, "header %s can't be changed by a header modifier; use the URLRewrite filter's hostname to send another Host", quote(name))
}

// HeaderFramesMessage is a change of a header on which the boundary between one
// message and the next depends.
func HeaderFramesMessage(field, name string) metav1.Condition {
	return unsupportedValue(field, "header %s says where a message ends or how its connection is used, which only Envoy may; changed, it would let one request or answer run into the next; remove it from the filter", quote(name))
}

// HeaderInternal is a header that is an order to Envoy itself.
func HeaderInternal(field, name string) metav1.Condition {
	return unsupportedValue(field, "header %s is an order to Envoy, and no x-envoy- header reaches backends or clients; use the route's own fields, such as timeouts and retry, or another name", quote(name))
}

// HeaderEndsLoops is the header by which requests that go round are told.
func HeaderEndsLoops(field, name string) metav1.Condition {
	return unsupportedValue(field, "header %s ends requests that go round, and no route may change it", quote(name))
}

// HeaderTwice is a header that one filter changes by several actions.
func HeaderTwice(field, name string) metav1.Condition {
	return unsupportedValue(field, "header %s has more than one action in this filter; keep one, and separate several values with commas", quote(name))
}

// InvalidDuration is a duration that is not written as GEP-2257 says.
func InvalidDuration(field, value string) metav1.Condition {
	return unsupportedValue(field, "%s is not a duration; write it like 500ms, 10s or 1h30m, without fractions or signs", quote(value))
}

// TimeoutExceedsRequest is a backend timeout that the request timeout cuts off.
func TimeoutExceedsRequest(field, backend, request string) metav1.Condition {
	return unsupportedValue(field, "%s is longer than the request timeout of %s, which includes it; shorten it or lengthen the other", backend, request)
}

// InvalidOrigin is a CORS origin that is neither * nor scheme://host[:port].
func InvalidOrigin(field, origin string) metav1.Condition {
	return unsupportedValue(field, "%s is not an origin; write *, https://host or https://*.domain, with :port if it is not the scheme's own", quote(origin))
}

// InvalidHostname is a host name that can't stand in a Host header.
func InvalidHostname(field, hostname string) metav1.Condition {
	return unsupportedValue(field, "%s is not a host name; use lower-case letters, digits, hyphens and dots", quote(hostname))
}

// MissingFilterValue is a filter without the field that its type requires.
func MissingFilterValue(field, filter string) metav1.Condition {
	return unsupportedValue(field, "a filter of type %s needs its settings beside the type", filter)
}

// UnsupportedFilter is a filter of a type that is not supported where it stands.
func UnsupportedFilter(field, filter string) metav1.Condition {
	return unsupportedValue(field, "filters of type %s are not supported here", filter)
}

// UnknownFilterKind is an ExtensionRef to a kind that no filter has. Requests
// must not pass by a filter that can't be found, so the rule answers with an error.
func UnknownFilterKind(field, group, kind, name string) metav1.Condition {
	return unresolved(gwv1.RouteReasonInvalidKind, field,
		fmt.Sprintf("there are no filters of kind %s in group %q, so %q can't be used; the rule answers with an error until the filter is removed", kind, group, name))
}

// RepeatedFilter is a second filter of a type that may stand only once.
func RepeatedFilter(field, filter string) metav1.Condition {
	return incompatibleFilters(field, "only one filter of type %s is allowed; merge them into one", filter)
}

// FiltersExclude is a pair of filters that can't work on the same request.
func FiltersExclude(field, filter, other string) metav1.Condition {
	return incompatibleFilters(field, "%s can't be combined with %s; remove one of them", filter, other)
}

// RedirectWithBackends is a rule that both answers and forwards.
func RedirectWithBackends(field string) metav1.Condition {
	return incompatibleFilters(field, "a rule with a RequestRedirect filter can't have backendRefs; remove one of them")
}

// PrefixRewriteNeedsPrefix is a replacement of a prefix where none is matched.
func PrefixRewriteNeedsPrefix(field string) metav1.Condition {
	return unsupportedValue(field, "ReplacePrefixMatch needs path matches of type PathPrefix, and only those, in the same rule; use them, or ReplaceFullPath")
}

// NoRuleLeft says that none of a route's rules can be served, each part naming a
// rule and why.
func NoRuleLeft(reason string, rules []string) metav1.Condition {
	return no(gwv1.RouteConditionAccepted, reason, "No rule is valid: "+join(rules, "; "))
}

// quote shows a value in a message. A long value is cut, so that the rest of the
// message can be found.
func quote(s string) string {
	const most = 120
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}

// UnsupportedStatus is a status code that the field doesn't have.
func UnsupportedStatus(field string, code int, allowed string) metav1.Condition {
	return unsupportedValue(field, "%d is not supported; use one of %s", code, allowed)
}
