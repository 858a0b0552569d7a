package policy

import (
	"slices"
	"strings"
)

// Rule is a named part of what a policy says. Policies are merged by the names of their
// rules.
type Rule[R Asks[R]] struct {
	Name  string
	Value R
	// Sufficient says that the rule opens: of all in force that are, one is enough. Where an
	// override has some, no challenger adds any.
	Sufficient bool
}

// Equal reports whether two rules have one name and say the same.
func (r Rule[R]) Equal(o Rule[R]) bool {
	return r.Name == o.Name && r.Sufficient == o.Sufficient && r.Value.Equal(o.Value)
}

// Rules are what a policy says to its targets and to what is below them, sorted by name,
// each name once. They may not be written to. Nil Rules say nothing and take the place of
// none: those of a policy that can't be used. Empty ones say that there shall be none.
type Rules[R Asks[R]] []Rule[R]

// NewRules sorts rules, of which no two have one name. It keeps the list.
func NewRules[R Asks[R]](rules []Rule[R]) Rules[R] {
	if rules == nil {
		return Rules[R]{}
	}
	slices.SortFunc(rules, func(a, b Rule[R]) int { return strings.Compare(a.Name, b.Name) })
	return rules
}

// Equal reports whether both say the same.
func (r Rules[R]) Equal(o Rules[R]) bool {
	return (r == nil) == (o == nil) && slices.EqualFunc(r, o, Rule[R].Equal)
}
