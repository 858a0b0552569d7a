package envoy

import (
	"slices"
	"strings"

	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/re2"
)

// matchProgram returns how many instructions RE2 makes of the regular expressions that a
// match becomes, on each host. Some stand for values that are compared exactly.
func matchProgram(m *ir.Match) (n int) {
	if m.Wide || !hasRegex(m) {
		return 0
	}
	match, err := routeMatch(m)
	if err != nil {
		return 0 // Envoy gets nothing of it
	}
	n = instructions(match.GetSafeRegex())
	for _, h := range match.Headers {
		n += instructions(h.GetStringMatch().GetSafeRegex())
	}
	for _, q := range match.QueryParameters {
		n += instructions(q.GetStringMatch().GetSafeRegex())
	}
	return n
}

// Program returns the same of a whole rule: of its match and of its filters.
func Program(r *ir.Rule) int {
	n := matchProgram(&r.Match)
	if c := r.Filters.CORS; c != nil {
		for _, origin := range c.AllowOrigins {
			if len(origin) == 1 || !strings.Contains(origin, "*") {
				continue
			}
			if m, err := originMatch(origin); err == nil {
				n += instructions(m.GetSafeRegex())
			}
		}
	}
	n += rewriteProgram(r, r.Filters.Rewrite)
	for i := range r.Backends {
		n += rewriteProgram(r, r.Backends[i].Filters.Rewrite)
	}
	return n
}

func rewriteProgram(r *ir.Rule, w *ir.Rewrite) int {
	if w == nil {
		return 0
	}
	n := 0
	for _, p := range []*ir.PathRewrite{w.Path, w.HostPath} {
		if p != nil && p.Pattern != "" {
			n += instructions(regexRewrite(p).Pattern)
		}
	}
	if w.Path == nil || w.Path.Full || w.Path.Pattern != "" {
		return n
	}
	if _, regex, err := replacePrefix(r.Match.Path, w.Path.Value); err == nil && regex != nil {
		n += instructions(regex.Pattern)
	}
	return n
}

func hasRegex(m *ir.Match) bool {
	switch m.Path.Kind {
	case ir.PathRegex, ir.ServiceRegex:
		return true
	case ir.Service:
		if m.Method != "" && (m.MethodRegex || m.Path.Value == "") {
			return true
		}
	case ir.PathPrefix, ir.PathExact:
	}
	return slices.ContainsFunc(m.Headers, func(h ir.ValueMatch) bool { return h.Regex }) ||
		slices.ContainsFunc(m.Query, expressive)
}

func instructions(m *matcherv3.RegexMatcher) int {
	if m == nil {
		return 0
	}
	n, err := re2.Size(m.Regex)
	if err != nil {
		return 0 // it is not sent
	}
	return n
}
