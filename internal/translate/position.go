package translate

import "strconv"

// position is where in a route something stands. It is a value, so that walking a
// good route costs nothing; text is made only for a problem.
type position struct {
	rule                   int
	match, backend, filter int  // positions plus one; 0 where not inside of one
	alone                  bool // in a RouteFilter
	listener               bool // on a listener, whose filters have a list of their own
}

// onListener is where a filter of a listener stands, in the way in which conditions of listeners name fields.
func onListener(i int) position { return position{listener: true}.inFilter(i) }

// inRouteFilter is where a RouteFilter begins.
var inRouteFilter = position{alone: true}

func inRule(i int) position { return position{rule: i} }

func (p position) inMatch(i int) position   { p.match = i + 1; return p }
func (p position) inBackend(i int) position { p.backend = i + 1; return p }
func (p position) inFilter(i int) position  { p.filter = i + 1; return p }

// field is the path of a field at the position, such as
// spec.rules[0].filters[1].urlRewrite.hostname.
func (p position) field(name string) string {
	b := make([]byte, 0, 64)
	step := func(list string, i int) {
		b = append(b, list...)
		b = append(b, '[')
		b = strconv.AppendInt(b, int64(i), 10)
		b = append(b, ']')
	}
	switch {
	case p.listener:
		step("filters.requests", p.filter-1)
		p.filter = 0
	case p.alone:
		b = append(b, "spec"...)
	default:
		step("spec.rules", p.rule)
	}
	if p.match > 0 {
		step(".matches", p.match-1)
	}
	if p.backend > 0 {
		step(".backendRefs", p.backend-1)
	}
	if p.filter > 0 {
		step(".filters", p.filter-1)
	}
	if name != "" {
		b = append(b, '.')
		b = append(b, name...)
	}
	return string(b)
}

// item is the path of an element of a list.
func item(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }
