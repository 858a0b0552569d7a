package translate

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// failed is the answer where a rule or a backend can't do what it says. The
// specification wants 500 for HTTPRoutes, and UNAVAILABLE for GRPCRoutes, which is
// what Envoy makes of a 503 for clients of gRPC.
func (t *translation) failed() uint32 {
	if t.key.Kind == kind.GRPCRoute {
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// Rules is what a route says, wherever it is attached.
type Rules struct {
	// Rules are in the order of the spec: rule by rule, match by match. Redirects
	// are templates that Host finishes.
	Rules    []*ir.Rule
	Problems []Problem // in the order of the spec
	Notes    []string  // of what is served, and may not be meant
}

// Problem is a value of a route that can't be served.
type Problem struct {
	Rule int    // position in the route
	Name string // the rule's name, where it has one
	// Field is the path of the value, such as spec.rules[0].matches[1].path.
	Field string
	// Condition is of type Accepted where the value makes its rule invalid, and of
	// type ResolvedRefs where it refers to something that can't be used.
	Condition metav1.Condition
}

// Route translates the rules of a route. A rule with a problem answers failed by
// those of its matches that can be expressed.
func Route(r *topology.Route) Rules {
	t := translation{key: r.Key}
	switch o := r.Object.(type) {
	case *gwv1.HTTPRoute:
		for i := range o.Spec.Rules {
			rule := &o.Spec.Rules[i]
			t.begin(i, rule.Name)
			t.finish(t.matches(rule), rule, refsOf(r, i))
		}
	case *gwv1.GRPCRoute:
		for i := range o.Spec.Rules {
			rule := &o.Spec.Rules[i]
			t.begin(i, rule.Name)
			t.finish(t.grpcMatches(rule), httpRule(rule), refsOf(r, i))
		}
	case *gwv1.TLSRoute:
		for i := range o.Spec.Rules {
			t.forward(i, o.Spec.Rules[i].Name, o.Spec.Rules[i].BackendRefs, refsOf(r, i))
		}
	case *gwv1.TCPRoute:
		for i := range o.Spec.Rules {
			t.forward(i, o.Spec.Rules[i].Name, o.Spec.Rules[i].BackendRefs, refsOf(r, i))
		}
	case *gwv1.UDPRoute:
		for i := range o.Spec.Rules {
			t.forward(i, o.Spec.Rules[i].Name, o.Spec.Rules[i].BackendRefs, refsOf(r, i))
		}
	}
	return Rules{Rules: t.rules, Problems: t.problems, Notes: t.notes}
}

// refsOf returns what the references of a rule resolve to.
func refsOf(r *topology.Route, rule int) topology.RouteRule {
	if rule < len(r.Rules) {
		return r.Rules[rule]
	}
	return topology.RouteRule{}
}

// translation is the state of translating one route.
type translation struct {
	key      object.Key
	rules    []*ir.Rule
	problems []Problem
	notes    []string

	// Of the rule at hand:
	index   int
	name    string
	invalid bool
	// prefixes says that all matches are by prefix, which a rewrite may then
	// replace.
	prefixes bool
}

// refuse notes that the value of a field can't be served; it makes the rule at
// hand invalid.
func (t *translation) refuse(field string, c metav1.Condition) {
	t.invalid = true
	t.problems = append(t.problems, Problem{Rule: t.index, Name: t.name, Field: field, Condition: c})
}

// begin turns to the next rule.
func (t *translation) begin(index int, name *gwv1.SectionName) {
	t.index, t.name, t.invalid = index, "", false
	if name != nil {
		t.name = string(*name)
	}
}

// finish gives the rules that matches made what the rule at hand does.
func (t *translation) finish(matched []ir.Rule, spec *gwv1.HTTPRouteRule, refs topology.RouteRule) {
	action := t.action(spec, refs)
	if t.invalid {
		action = ir.Rule{Status: t.failed()}
	}
	for i := range matched {
		r := &matched[i]
		r.Redirect, r.Status, r.Body, r.Backends = action.Redirect, action.Status, action.Body, action.Backends
		r.Filters, r.Timeouts, r.Retry = action.Filters, action.Timeouts, action.Retry
		t.rules = append(t.rules, r)
	}
}

// action is what a rule does with the requests that it takes.
func (t *translation) action(spec *gwv1.HTTPRouteRule, refs topology.RouteRule) ir.Rule {
	at := inRule(t.index)
	var a ir.Rule
	a.Filters, a.Redirect = t.filters(at, spec.Filters, refs.Mirrors)
	direct := t.extensions(at, spec.Filters, refs.Extensions, &a.Filters)
	a.Timeouts = t.timeouts(at, spec.Timeouts)
	a.Retry = t.retry(at, spec.Retry)
	a.Filters.Auth = t.auth(at, spec.Filters, refs.Auth, a.Timeouts)
	session := t.session(at, spec.SessionPersistence) //nolint:staticcheck // deprecated, and still there to be written
	a.Backends = t.backends(at, spec.BackendRefs, refs.Backends, session)
	if a.Retry != nil {
		for i := range a.Backends {
			a.Backends[i].Backend = a.Backends[i].Backend.WithOwnRetries()
		}
	}
	t.compatible(at, spec, &a)
	if direct.status != 0 {
		if a.Redirect != nil {
			field := at.field("filters")
			t.refuse(field, condition.FiltersExclude(field, string(gwv1.HTTPRouteFilterRequestRedirect), "a directResponse"))
		}
		a.Backends, a.Status, a.Body = nil, direct.status, direct.body
	} else if a.Redirect == nil && a.Backends == nil {
		a.Status = t.failed()
		if len(spec.BackendRefs) == 0 && !t.invalid {
			t.notes = append(t.notes, condition.NoteNoBackends(at.field("backendRefs")))
		}
	}
	if auth := a.Filters.Auth; auth != nil && auth.Backend.IsZero() {
		// Nobody to ask: nothing may pass, not even a redirect.
		a.Redirect, a.Backends, a.Filters.Auth, a.Status, a.Body = nil, nil, nil, t.failed(), ""
	}
	if a.Backends == nil {
		// Nothing is forwarded, so what changes or bounds forwarding is moot.
		a.Filters = ir.Filters{ResponseHeaders: a.Filters.ResponseHeaders, CORS: a.Filters.CORS, Auth: a.Filters.Auth}
		a.Timeouts, a.Retry = nil, nil
	}
	return a
}
