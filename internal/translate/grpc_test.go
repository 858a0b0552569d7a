package translate_test

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// calls are GRPCRoutes with the hostnames by which they meet a host.
type calls struct {
	route    *gwv1.GRPCRoute
	hostname string
}

func grpcNode(route *gwv1.GRPCRoute) *topology.Route {
	return &topology.Route{
		Key:    object.Key{Kind: kind.GRPCRoute, Name: object.Name{Namespace: route.Namespace, Name: route.Name}},
		Object: route,
	}
}

// TestGRPCPrecedence compares, over random routes and calls, the first rule of the
// host that takes the call with the winner by the specification's own words.
func TestGRPCPrecedence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		routes := rapid.SliceOfN(rapid.Custom(drawCalls), 1, 5).Draw(t, "routes")
		in := translate.HostInput{Domain: "a.example.com", Port: 80}
		for i, a := range routes {
			a.route.Name += fmt.Sprint(i) // unique in a namespace
			n := grpcNode(a.route)
			in.Entries = append(in.Entries, translate.HostEntry{
				Route: n.Key, Hostname: a.hostname, Created: a.route.CreationTimestamp.Time, Rules: translate.Route(n).Rules,
			})
		}
		headers := rapid.MapOfN(rapid.SampledFrom([]string{"x", "y", "z"}), rapid.SampledFrom(texts), 0, 3).Draw(t, "headers")
		host := translate.Host(in)
		for _, service := range services {
			for _, method := range methods {
				want, got := grpcWinner(routes, service, method, headers), grpcFirst(host, service, method, headers)
				if got != want {
					t.Fatalf("%s/%s %v is taken by %s; the specification wants %s", service, method, headers, got, want)
				}
			}
		}
	})
}

// grpcFirst is the first rule of a host that takes a call.
func grpcFirst(host *ir.Host, service, method string, headers map[string]string) string {
	for _, rule := range host.Rules {
		m := &rule.Match
		if m.Path.Kind == ir.Service && (m.Path.Value == "" || m.Path.Value == service) && (m.Method == "" || m.Method == method) &&
			takes(&ir.Match{Headers: m.Headers}, request{headers: headers}) {
			return describe(rule.Source.Name, rule.Source.Rule, rule.Source.Match)
		}
	}
	return "none"
}

var (
	services = []string{"s", "s.S", "t.T"}
	methods  = []string{"Get", "Delete"}
)

func drawCalls(t *rapid.T) calls {
	route := &gwv1.GRPCRoute{}
	route.Namespace = rapid.SampledFrom([]string{"n", "n-m"}).Draw(t, "namespace")
	route.Name = rapid.SampledFrom([]string{"r", "s"}).Draw(t, "name")
	route.CreationTimestamp = at(rapid.IntRange(0, 2).Draw(t, "age"))
	for range rapid.IntRange(1, 3).Draw(t, "rules") {
		route.Spec.Rules = append(route.Spec.Rules, gwv1.GRPCRouteRule{
			Matches: rapid.SliceOfN(rapid.Custom(drawCallMatch), 0, 3).Draw(t, "matches"),
		})
	}
	return calls{route, rapid.SampledFrom(hostnames).Draw(t, "hostname")}
}

func drawCallMatch(t *rapid.T) gwv1.GRPCRouteMatch {
	var m gwv1.GRPCRouteMatch
	some := func(label string, from []string) *string {
		if rapid.Bool().Draw(t, label+"?") {
			return new(rapid.SampledFrom(from).Draw(t, label))
		}
		return nil
	}
	service, method := some("service", services), some("method", methods)
	if service != nil || method != nil {
		m.Method = &gwv1.GRPCMethodMatch{Service: service, Method: method}
	}
	for range rapid.IntRange(0, 2).Draw(t, "headers") {
		m.Headers = append(m.Headers, gwv1.GRPCHeaderMatch{
			Name: gwv1.GRPCHeaderName(rapid.SampledFrom(names).Draw(t, "name")), Value: rapid.SampledFrom(texts).Draw(t, "value"),
		})
	}
	return m
}

// grpcWinner reads the specification (GRPCRouteRule.matches), criterion by
// criterion.
func grpcWinner(routes []calls, service, method string, headers map[string]string) string {
	type match struct {
		calls
		rule, index int
		spec        gwv1.GRPCRouteMatch
	}
	first := func(list []gwv1.GRPCHeaderMatch) map[string]string {
		var same []gwv1.HTTPHeaderMatch
		for _, h := range list {
			same = append(same, gwv1.HTTPHeaderMatch{Name: gwv1.HTTPHeaderName(h.Name), Value: h.Value})
		}
		return firstHeaders(same)
	}
	length := func(s *string) int {
		if s == nil {
			return 0
		}
		return len(*s)
	}
	criteria := []func(match) int{
		func(m match) int { // characters in a matching non-wildcard hostname
			if strings.HasPrefix(m.hostname, "*") {
				return 0
			}
			return len(m.hostname)
		},
		func(m match) int { return len(m.hostname) },
		func(m match) int { // characters in a matching service
			if m.spec.Method == nil {
				return 0
			}
			return length(m.spec.Method.Service)
		},
		func(m match) int { // characters in a matching method
			if m.spec.Method == nil {
				return 0
			}
			return length(m.spec.Method.Method)
		},
		func(m match) int { return len(first(m.spec.Headers)) },
		func(m match) int { return -int(m.route.CreationTimestamp.Unix()) },
	}
	better := func(a, b match) bool {
		for _, criterion := range criteria {
			if c := cmp.Compare(criterion(a), criterion(b)); c != 0 {
				return c > 0
			}
		}
		if c := strings.Compare(a.route.Namespace+"/"+a.route.Name, b.route.Namespace+"/"+b.route.Name); c != 0 {
			return c < 0
		}
		return cmp.Or(cmp.Compare(a.rule, b.rule), cmp.Compare(a.index, b.index)) < 0
	}
	takes := func(m gwv1.GRPCRouteMatch) bool {
		if m.Method != nil && (length(m.Method.Service) > 0 && *m.Method.Service != service ||
			length(m.Method.Method) > 0 && *m.Method.Method != method) {
			return false
		}
		for name, value := range first(m.Headers) {
			if headers[name] != value {
				return false
			}
		}
		return true
	}
	var best *match
	for _, a := range routes {
		for i, rule := range a.route.Spec.Rules {
			specs := rule.Matches
			if len(specs) == 0 {
				specs = []gwv1.GRPCRouteMatch{{}}
			}
			for j, spec := range specs {
				if m := (match{a, i, j, spec}); takes(spec) && (best == nil || better(m, *best)) {
					best = &m
				}
			}
		}
	}
	if best == nil {
		return "none"
	}
	return describe(object.Name{Namespace: best.route.Namespace, Name: best.route.Name}, best.rule, best.index)
}

// TestAnyGRPC translates rules with arbitrary values, such as no schema lets pass:
// nothing panics, and an invalid rule has no other answer than UNAVAILABLE.
func TestAnyGRPC(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		route := &gwv1.GRPCRoute{}
		for range rapid.IntRange(0, 3).Draw(t, "rules") {
			route.Spec.Rules = append(route.Spec.Rules, gwv1.GRPCRouteRule{
				Matches:     rapid.Make[[]gwv1.GRPCRouteMatch]().Draw(t, "matches"),
				Filters:     rapid.Make[[]gwv1.GRPCRouteFilter]().Draw(t, "filters"),
				BackendRefs: rapid.Make[[]gwv1.GRPCBackendRef]().Draw(t, "backendRefs"),
			})
		}
		rules := translate.Route(grpcNode(route))
		for _, r := range rules.Rules {
			if r.Status != http.StatusServiceUnavailable {
				t.Fatalf("nothing is resolved, and a rule answers with %+v", r)
			}
		}
		translate.Host(translate.HostInput{Domain: "a", Port: 80, Entries: []translate.HostEntry{{Rules: rules.Rules}}})
	})
}

// TestGRPCRegex protects what becomes of the anchors of expressions for services
// and methods.
func TestGRPCRegex(t *testing.T) {
	kind := gwv1.GRPCMethodMatchRegularExpression
	for pattern, want := range map[string]string{
		`a.*`:       `a.*`,
		`^a.*`:      `a.*`,
		`^(a|b)$`:   `(a|b)`,
		`a\$`:       `a\$`,
		`[$^]`:      `[$^]`,
		`a|^b`:      "refused",
		`^a$|^b$`:   "refused",
		`(?:a$)`:    "refused",
		`^`:         "refused",
		`\Aa`:       "refused",
		`a)|(?:b`:   "refused",
		`\x{263A}`:  "refused",
		`(a{1000})`: `(a{1000})`,
	} {
		route := &gwv1.GRPCRoute{Spec: gwv1.GRPCRouteSpec{Rules: []gwv1.GRPCRouteRule{{
			Matches: []gwv1.GRPCRouteMatch{{Method: &gwv1.GRPCMethodMatch{Type: &kind, Service: &pattern}}},
		}}}}
		// One that is refused is one whose rule refuses what something wider matches.
		rules, got := translate.Route(grpcNode(route)), "refused"
		if len(rules.Rules) != 1 || rules.Rules[0].Status != http.StatusServiceUnavailable {
			t.Errorf("%s: rules are %v", pattern, rules.Rules)
			continue
		}
		if len(rules.Problems) == 0 {
			got = rules.Rules[0].Match.Path.Value
		}
		if got != want {
			t.Errorf("%s becomes %s, want %s", pattern, got, want)
		}
		if (got == "refused") != (len(rules.Problems) > 0) {
			t.Errorf("%s: problems are %v", pattern, rules.Problems)
		}
	}
}

// A match with a bad method of a good service stands before the service's own rule, of
// whatever route, and behind its good methods: what it guards doesn't fall to either.
func TestBrokenMethodKeepsItsPlace(t *testing.T) {
	match := func(service, method string) gwv1.GRPCRouteRule {
		m := &gwv1.GRPCMethodMatch{Service: &service}
		if method != "" {
			m.Method = &method
		}
		return gwv1.GRPCRouteRule{Matches: []gwv1.GRPCRouteMatch{{Method: m}}}
	}
	entry := func(name string, age int, rules ...gwv1.GRPCRouteRule) translate.HostEntry {
		route := &gwv1.GRPCRoute{Spec: gwv1.GRPCRouteSpec{Rules: rules}}
		route.Name = name
		n := grpcNode(route)
		return translate.HostEntry{Route: n.Key, Created: at(age).Time, Rules: translate.Route(n).Rules}
	}
	host := translate.Host(translate.HostInput{Domain: "a", Port: 80, Entries: []translate.HostEntry{
		entry("older", 0, match("s.S", ""), match("s.S", "Get")),
		entry("guard", 1, match("s.S", "Delete/All")),
	}})
	var got []string
	for _, r := range host.Rules {
		got = append(got, r.Source.Name.Name+" "+r.Match.Path.Value+"/"+r.Match.Method)
	}
	want := []string{"older s.S/Get", "guard s.S/Delete/All.*", "older s.S/"}
	if !slices.Equal(got, want) {
		t.Errorf("the order is %q, want %q", got, want)
	}
}
