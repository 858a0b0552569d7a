package translate

import (
	"slices"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// everything is what a rule without matches takes.
var everything = []gwv1.HTTPRouteMatch{{}}

// matches makes a rule for each match of spec that can be expressed, with nothing
// but its source and match. A match that can't be expressed takes no requests: a
// wider one in its stead would take those of others.
func (t *translation) matches(spec *gwv1.HTTPRouteRule) []ir.Rule {
	list := spec.Matches
	if len(list) == 0 {
		list = everything
	}
	t.prefixes = true
	rules := make([]ir.Rule, 0, len(list))
	for i := range list {
		at := inRule(t.index).inMatch(i)
		path, pathOK := t.path(at, list[i].Path)
		headers, headersOK := t.headers(at, list[i].Headers)
		query, queryOK := t.query(at, list[i].QueryParams)
		t.prefixes = t.prefixes && path.Kind == ir.PathPrefix
		if !pathOK || !headersOK || !queryOK {
			continue
		}
		m := ir.Match{Path: path, Headers: headers, Query: query}
		if list[i].Method != nil {
			m.Method = string(*list[i].Method)
		}
		rules = append(rules, ir.Rule{Source: t.source(i), Match: m})
	}
	return rules
}

// source says where a match of the rule at hand comes from.
func (t *translation) source(match int) ir.Source {
	return ir.Source{Kind: t.key.Kind, Name: t.key.Name, Rule: t.index, Title: t.name, Match: match}
}

func (t *translation) path(at position, m *gwv1.HTTPPathMatch) (ir.PathMatch, bool) {
	kind, value := gwv1.PathMatchPathPrefix, "/"
	if m != nil && m.Type != nil {
		kind = *m.Type
	}
	if m != nil && m.Value != nil {
		value = *m.Value
	}
	switch kind {
	case gwv1.PathMatchPathPrefix:
		ok := t.matchable(at, value)
		return ir.PathMatch{Kind: ir.PathPrefix, Value: prefix(value)}, ok
	case gwv1.PathMatchExact:
		ok := t.matchable(at, value)
		return ir.PathMatch{Kind: ir.PathExact, Value: value}, ok
	case gwv1.PathMatchRegularExpression:
		ok := t.regex(at, "path.value", value)
		return ir.PathMatch{Kind: ir.PathRegex, Value: value}, ok
	default:
		f := at.field("path.type")
		t.refuse(f, condition.UnknownValue(f, string(kind), "Exact", "PathPrefix", "RegularExpression"))
		return ir.PathMatch{}, false
	}
}

// prefix writes a path prefix without its trailing slash, which says nothing in a
// prefix.
func prefix(value string) string {
	if short := strings.TrimRight(value, "/"); short != "" {
		return short
	}
	return "/"
}

// matchable checks a path to compare with. The schema has looked at its
// characters already.
func (t *translation) matchable(at position, path string) bool {
	if why := pathProblem(path, "?#"); why != "" {
		f := at.field("path.value")
		t.refuse(f, condition.InvalidPath(f, path, why))
		return false
	}
	return true
}

func (t *translation) headers(at position, list []gwv1.HTTPHeaderMatch) ([]ir.ValueMatch, bool) {
	return values(len(list), func(i int) (ir.ValueMatch, bool) {
		h, ok := &list[i], true
		name := strings.ToLower(string(h.Name))
		if !isToken(name) {
			f := at.field(item("headers", i) + ".name")
			t.refuse(f, condition.InvalidHeaderName(f, string(h.Name)))
			ok = false
		}
		kind := gwv1.HeaderMatchExact
		if h.Type != nil {
			kind = *h.Type
		}
		m := ir.ValueMatch{Name: name, Value: h.Value}
		ok = t.value(at, "headers", i, string(kind), &m) && ok
		return m, ok
	})
}

func (t *translation) query(at position, list []gwv1.HTTPQueryParamMatch) ([]ir.ValueMatch, bool) {
	return values(len(list), func(i int) (ir.ValueMatch, bool) {
		q := &list[i]
		kind := gwv1.QueryParamMatchExact
		if q.Type != nil {
			kind = *q.Type
		}
		m := ir.ValueMatch{Name: string(q.Name), Value: q.Value}
		ok := t.value(at, "queryParams", i, string(kind), &m)
		return m, ok
	})
}

// value completes m by the way to compare it. Headers and query parameters name
// the ways alike.
func (t *translation) value(at position, list string, i int, kind string, m *ir.ValueMatch) bool {
	switch kind {
	case string(gwv1.HeaderMatchExact):
		return true
	case string(gwv1.HeaderMatchRegularExpression):
		m.Regex = true
		return t.regex(at, item(list, i)+".value", m.Value)
	default:
		f := at.field(item(list, i) + ".type")
		t.refuse(f, condition.UnknownValue(f, kind, "Exact", "RegularExpression"))
		return false
	}
}

// values gathers n matches of values; of those with the same name the first
// counts, as the specification says of headers and query parameters alike.
func values(n int, at func(int) (ir.ValueMatch, bool)) (list []ir.ValueMatch, ok bool) {
	if n == 0 {
		return nil, true
	}
	ok = true
	list = make([]ir.ValueMatch, 0, n)
	for i := range n {
		m, good := at(i)
		ok = ok && good
		if !slices.ContainsFunc(list, func(o ir.ValueMatch) bool { return o.Name == m.Name }) {
			list = append(list, m)
		}
	}
	return list, ok
}
