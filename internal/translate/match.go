package translate

import (
	"slices"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/re2"
)

// everything is what a rule without matches takes.
var everything = []gwv1.HTTPRouteMatch{{}}

// matches makes a rule for each match of spec, with nothing but its source and match.
// In place of what can't be expressed there is something wider (re2.Wider).
func (t *translation) matches(spec *gwv1.HTTPRouteRule) []ir.Rule {
	list := spec.Matches
	if len(list) == 0 {
		list = everything
	}
	t.prefixes = true
	rules := make([]ir.Rule, 0, len(list))
	for i := range list {
		at := inRule(t.index).inMatch(i)
		m := ir.Match{
			Path:    t.path(at, list[i].Path),
			Headers: t.headers(at, list[i].Headers),
			Query:   t.query(at, list[i].QueryParams),
		}
		t.prefixes = t.prefixes && m.Path.Kind == ir.PathPrefix
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

func (t *translation) path(at position, m *gwv1.HTTPPathMatch) ir.PathMatch {
	kind, value := gwv1.PathMatchPathPrefix, "/"
	if m != nil && m.Type != nil {
		kind = *m.Type
	}
	if m != nil && m.Value != nil {
		value = *m.Value
	}
	switch kind {
	case gwv1.PathMatchPathPrefix:
		if t.matchable(at, value) {
			return ir.PathMatch{Kind: ir.PathPrefix, Value: prefix(value)}
		}
		return widerPath(value)
	case gwv1.PathMatchExact:
		if t.matchable(at, value) {
			return ir.PathMatch{Kind: ir.PathExact, Value: value}
		}
		return widerPath(value)
	case gwv1.PathMatchRegularExpression:
		if !t.regex(at, "path.value", value, func() string { return refusedBy("paths", value) }) {
			value = re2.Wider(value)
		}
		return ir.PathMatch{Kind: ir.PathRegex, Value: value}
	default:
		f := at.field("path.type")
		t.refuse(f, condition.UnknownValue(f, string(kind), "Exact", "PathPrefix", "RegularExpression"))
		return ir.PathMatch{Kind: ir.PathRegex, Value: re2.Wider(value)}
	}
}

// widerPath is the match in place of a path that has a problem.
func widerPath(path string) ir.PathMatch {
	return ir.PathMatch{Kind: ir.PathRegex, Value: re2.BeginningWith(pathBeginning(path), len(path))}
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
	if why := pathProblem(path, unmatchable); why != "" {
		f := at.field("path.value")
		t.refuse(f, condition.InvalidPath(f, path, why))
		return false
	}
	return true
}

// unmatchable are the characters that no path has.
const unmatchable = "?#"

// pathBeginning returns what of a path that has a problem can be compared with.
func pathBeginning(path string) string {
	i := 0
	for i < len(path) && pathProblem(path[:i+1], unmatchable) == "" {
		i++
	}
	return path[:i]
}

func (t *translation) headers(at position, list []gwv1.HTTPHeaderMatch) []ir.ValueMatch {
	return values(len(list), func(i int) (ir.ValueMatch, bool) {
		h := &list[i]
		name := strings.ToLower(string(h.Name))
		kind := gwv1.HeaderMatchExact
		if h.Type != nil {
			kind = *h.Type
		}
		m := ir.ValueMatch{Name: name, Value: h.Value}
		t.value(at, "headers", i, string(kind), "header", &m)
		if !ir.IsToken(name) {
			f := at.field(item("headers", i) + ".name")
			t.refuse(f, condition.InvalidHeaderName(f, string(h.Name)))
			return m, false
		}
		return m, true
	})
}

func (t *translation) query(at position, list []gwv1.HTTPQueryParamMatch) []ir.ValueMatch {
	return values(len(list), func(i int) (ir.ValueMatch, bool) {
		q := &list[i]
		kind := gwv1.QueryParamMatchExact
		if q.Type != nil {
			kind = *q.Type
		}
		m := ir.ValueMatch{Name: string(q.Name), Value: q.Value}
		t.value(at, "queryParams", i, string(kind), "query parameter", &m)
		return m, true
	})
}

// value completes m by the way to compare it. Headers and query parameters, which what
// says it is of, name the ways alike. One that can't be compared is compared with anything.
func (t *translation) value(at position, list string, i int, kind, what string, m *ir.ValueMatch) {
	switch kind {
	case string(gwv1.HeaderMatchExact):
	case string(gwv1.HeaderMatchRegularExpression):
		m.Regex = true
		if !t.regex(at, item(list, i)+".value", m.Value, func() string { return condition.RefusedWith(what, m.Name) }) {
			m.Value = re2.Anything
		}
	default:
		f := at.field(item(list, i) + ".type")
		t.refuse(f, condition.UnknownValue(f, kind, "Exact", "RegularExpression"))
		m.Regex, m.Value = true, re2.Anything
	}
}

// values gathers n matches of values; of those with the same name the first
// counts, as the specification says of headers and query parameters alike.
func values(n int, at func(int) (ir.ValueMatch, bool)) []ir.ValueMatch {
	if n == 0 {
		return nil
	}
	list := make([]ir.ValueMatch, 0, n)
	for i := range n {
		m, ok := at(i)
		if ok && !slices.ContainsFunc(list, func(o ir.ValueMatch) bool { return o.Name == m.Name }) {
			list = append(list, m)
		}
	}
	return list
}
