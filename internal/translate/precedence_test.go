package translate_test

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// request is what a rule is chosen for.
type request struct {
	method, path   string
	headers, query map[string]string
}

// attached is a route with the hostname by which it meets the host.
type attached struct {
	route    *gwv1.HTTPRoute
	hostname string
}

// TestPrecedence compares, over random routes and requests, the first rule of the
// host that takes the request with the winner by the specification's own words.
func TestPrecedence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		routes := rapid.SliceOfN(attachedRoutes(), 1, 5).Draw(t, "routes")
		for i := range routes { // names are unique in a namespace
			routes[i].route.Name += fmt.Sprint(i)
		}
		in := translate.HostInput{Domain: "a.example.com", Port: 80}
		for _, a := range routes {
			n := node(a.route)
			in.Entries = append(in.Entries, translate.HostEntry{
				Route: n.Key, Hostname: a.hostname, Created: a.route.CreationTimestamp.Time, Rules: translate.Route(n).Rules,
			})
		}
		host := translate.Host(in)
		r := requests().Draw(t, "request")
		want, got := winner(routes, r), "none"
		for _, rule := range host.Rules {
			if takes(&rule.Match, r) {
				got = describe(rule.Source.Name, rule.Source.Rule, rule.Source.Match)
				break
			}
		}
		if got != want {
			t.Fatalf("%+v is taken by %s; the specification wants %s", r, got, want)
		}

		shuffled := in
		shuffled.Entries = rapid.Permutation(in.Entries).Draw(t, "order")
		if again := translate.Host(shuffled); !slices.Equal(again.Rules, host.Rules) {
			t.Fatal("the order of the entries changes the order of the rules")
		}
	})
}

func describe(route object.Name, rule, match int) string {
	return fmt.Sprintf("%s rule %d match %d", route, rule, match)
}

var (
	paths     = []string{"/", "/a", "/a/", "/a/b", "/a/b/", "/ab", "/a/b/c"}
	patterns  = []string{"/a.*", "/.*", "/a/.*"}
	names     = []string{"x", "X", "y", "z"}
	texts     = []string{"1", "2"}
	hostnames = []string{"", "*.com", "*.example.com", "a.example.com"}
)

func attachedRoutes() *rapid.Generator[attached] {
	return rapid.Custom(func(t *rapid.T) attached {
		route := &gwv1.HTTPRoute{}
		route.Namespace = rapid.SampledFrom([]string{"n", "n-m"}).Draw(t, "namespace")
		route.Name = rapid.SampledFrom([]string{"r", "s"}).Draw(t, "name")
		route.CreationTimestamp = at(rapid.IntRange(0, 2).Draw(t, "age"))
		for range rapid.IntRange(1, 3).Draw(t, "rules") {
			route.Spec.Rules = append(route.Spec.Rules, gwv1.HTTPRouteRule{
				Matches: rapid.SliceOfN(matches(), 0, 3).Draw(t, "matches"),
			})
		}
		return attached{route, rapid.SampledFrom(hostnames).Draw(t, "hostname")}
	})
}

func matches() *rapid.Generator[gwv1.HTTPRouteMatch] {
	return rapid.Custom(func(t *rapid.T) gwv1.HTTPRouteMatch {
		var m gwv1.HTTPRouteMatch
		if rapid.Bool().Draw(t, "by path") {
			kind := rapid.SampledFrom([]gwv1.PathMatchType{gwv1.PathMatchExact, gwv1.PathMatchPathPrefix, gwv1.PathMatchRegularExpression}).Draw(t, "kind")
			from := paths
			if kind == gwv1.PathMatchRegularExpression {
				from = patterns
			}
			value := rapid.SampledFrom(from).Draw(t, "path")
			m.Path = &gwv1.HTTPPathMatch{Type: &kind, Value: &value}
		}
		if rapid.IntRange(0, 2).Draw(t, "by method") == 0 {
			method := rapid.SampledFrom([]gwv1.HTTPMethod{"GET", "POST"}).Draw(t, "method")
			m.Method = &method
		}
		for range rapid.IntRange(0, 2).Draw(t, "headers") {
			m.Headers = append(m.Headers, gwv1.HTTPHeaderMatch{
				Name: gwv1.HTTPHeaderName(rapid.SampledFrom(names).Draw(t, "name")), Value: rapid.SampledFrom(texts).Draw(t, "value"),
			})
		}
		for range rapid.IntRange(0, 2).Draw(t, "query") {
			m.QueryParams = append(m.QueryParams, gwv1.HTTPQueryParamMatch{
				Name: gwv1.HTTPHeaderName(rapid.SampledFrom(names).Draw(t, "name")), Value: rapid.SampledFrom(texts).Draw(t, "value"),
			})
		}
		return m
	})
}

func requests() *rapid.Generator[request] {
	return rapid.Custom(func(t *rapid.T) request {
		values := func(label string, from []string) map[string]string {
			return rapid.MapOfN(rapid.SampledFrom(from), rapid.SampledFrom(texts), 0, 3).Draw(t, label)
		}
		return request{
			method:  rapid.SampledFrom([]string{"GET", "POST", "PUT"}).Draw(t, "method"),
			path:    rapid.SampledFrom(paths).Draw(t, "path"),
			headers: values("headers", []string{"x", "y", "z"}),
			query:   values("query", names),
		}
	})
}

// winner reads the specification: it looks at every match of every route, and
// keeps the best of those that take the request, criterion by criterion.
func winner(routes []attached, r request) string {
	type match struct {
		attached
		rule, index int
		spec        gwv1.HTTPRouteMatch
	}
	better := func(a, b match) bool {
		for _, criterion := range []func(match) int{
			// "the largest number of characters in a matching non-wildcard hostname,
			// characters in a matching hostname", on the route's own hostname
			func(m match) int {
				if strings.HasPrefix(m.hostname, "*") {
					return 0
				}
				return len(m.hostname)
			},
			func(m match) int { return len(m.hostname) },
			// "Exact" path match
			func(m match) int {
				if m.spec.Path != nil && *m.spec.Path.Type == gwv1.PathMatchExact {
					return 1
				}
				return 0
			},
			// ours to decide: regular expressions, by length, before prefixes
			func(m match) int {
				if m.spec.Path != nil && *m.spec.Path.Type == gwv1.PathMatchRegularExpression {
					return len(*m.spec.Path.Value)
				}
				return 0
			},
			// "Prefix" path match with largest number of characters
			func(m match) int {
				if m.spec.Path == nil {
					return len("/")
				}
				if *m.spec.Path.Type == gwv1.PathMatchPathPrefix {
					return max(1, len(strings.TrimSuffix(*m.spec.Path.Value, "/")))
				}
				return 0
			},
			// Method match
			func(m match) int {
				if m.spec.Method != nil {
					return 1
				}
				return 0
			},
			// Largest number of header matches, then of query param matches
			func(m match) int { return len(firstHeaders(m.spec.Headers)) },
			func(m match) int { return len(firstQuery(m.spec.QueryParams)) },
			// The oldest route
			func(m match) int { return -int(m.route.CreationTimestamp.Unix()) },
			// "alphabetical order by {namespace}/{name}"
			func(m match) int {
				mine := m.route.Namespace + "/" + m.route.Name
				for _, o := range []match{a, b} {
					if o.route.Namespace+"/"+o.route.Name < mine {
						return -1
					}
				}
				return 0
			},
			// the first matching rule in list order
			func(m match) int { return -m.rule },
			func(m match) int { return -m.index },
		} {
			if c := cmp.Compare(criterion(a), criterion(b)); c != 0 {
				return c > 0
			}
		}
		return false
	}

	var best *match
	for _, a := range routes {
		for i, rule := range a.route.Spec.Rules {
			specs := rule.Matches
			if len(specs) == 0 {
				specs = []gwv1.HTTPRouteMatch{{}}
			}
			for j, spec := range specs {
				m := match{a, i, j, spec}
				if satisfies(spec, r) && (best == nil || better(m, *best)) {
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

// satisfies matches a request against the API's own types.
func satisfies(m gwv1.HTTPRouteMatch, r request) bool {
	if m.Path != nil {
		value := *m.Path.Value
		switch *m.Path.Type {
		case gwv1.PathMatchExact:
			if r.path != value {
				return false
			}
		case gwv1.PathMatchRegularExpression:
			if !regexp.MustCompile("^(?:" + value + ")$").MatchString(r.path) {
				return false
			}
		default:
			want, have := elements(value), elements(r.path)
			if len(have) < len(want) || !slices.Equal(have[:len(want)], want) {
				return false
			}
		}
	}
	if m.Method != nil && string(*m.Method) != r.method {
		return false
	}
	for name, value := range firstHeaders(m.Headers) {
		if r.headers[name] != value {
			return false
		}
	}
	for name, value := range firstQuery(m.QueryParams) {
		if r.query[name] != value {
			return false
		}
	}
	return true
}

// elements splits a path; a trailing slash is ignored.
func elements(path string) []string {
	path = strings.Trim(path, "/")
	if path == "" {
		return nil
	}
	return strings.Split(path, "/")
}

func firstHeaders(list []gwv1.HTTPHeaderMatch) map[string]string {
	out := map[string]string{}
	for _, h := range slices.Backward(list) {
		out[strings.ToLower(string(h.Name))] = h.Value
	}
	return out
}

func firstQuery(list []gwv1.HTTPQueryParamMatch) map[string]string {
	out := map[string]string{}
	for _, q := range slices.Backward(list) {
		out[string(q.Name)] = q.Value
	}
	return out
}

// takes matches a request against ir, as Envoy does.
func takes(m *ir.Match, r request) bool {
	switch m.Path.Kind {
	case ir.Service, ir.ServiceRegex:
		return false // of gRPC requests
	case ir.PathExact:
		if r.path != m.Path.Value {
			return false
		}
	case ir.PathRegex:
		if !regexp.MustCompile("^(?:" + m.Path.Value + ")$").MatchString(r.path) {
			return false
		}
	case ir.PathPrefix:
		rest, ok := strings.CutPrefix(r.path, m.Path.Value)
		if !ok || m.Path.Value != "/" && rest != "" && rest[0] != '/' {
			return false
		}
	}
	if m.Method != "" && m.Method != r.method {
		return false
	}
	for _, h := range m.Headers {
		if r.headers[h.Name] != h.Value {
			return false
		}
	}
	for _, q := range m.Query {
		if r.query[q.Name] != q.Value {
			return false
		}
	}
	return true
}

// TestHostShares protects the cost of the common case: a route alone on its host
// lends its rules, and no rule is copied.
func TestHostShares(t *testing.T) {
	route := &gwv1.HTTPRoute{Spec: gwv1.HTTPRouteSpec{Rules: []gwv1.HTTPRouteRule{{}}}}
	rules := translate.Route(node(route)).Rules
	in := translate.HostInput{Domain: "a.example.com", Port: 80, Entries: []translate.HostEntry{{
		Route: object.Key{Kind: kind.HTTPRoute}, Rules: rules,
	}}}
	host := translate.Host(in)
	if &host.Rules[0] != &rules[0] {
		t.Error("the list of rules was copied")
	}
	if n := testing.AllocsPerRun(100, func() { translate.Host(in) }); n > 1 {
		t.Errorf("%v allocations; want 1, the host", n)
	}
}

// TestMisdirected says that a host of another listener has no rules.
func TestMisdirected(t *testing.T) {
	host := translate.Host(translate.HostInput{Domain: "a.example.com", Misdirected: true})
	if !host.Misdirected || host.Rules != nil {
		t.Errorf("got %+v", host)
	}
}

func BenchmarkRoute(b *testing.B) {
	port := gwv1.PortNumber(80)
	value := "/"
	kind := gwv1.PathMatchPathPrefix
	route := &gwv1.HTTPRoute{Spec: gwv1.HTTPRouteSpec{Rules: []gwv1.HTTPRouteRule{{
		Matches:     []gwv1.HTTPRouteMatch{{Path: &gwv1.HTTPPathMatch{Type: &kind, Value: &value}}},
		BackendRefs: []gwv1.HTTPBackendRef{{Name: "a", Port: &port}},
	}}}}
	n := node(route)
	b.ReportAllocs()
	for b.Loop() {
		rules := translate.Route(n)
		translate.Host(translate.HostInput{Domain: "a", Port: 80, Entries: []translate.HostEntry{{Rules: rules.Rules}}})
	}
}
