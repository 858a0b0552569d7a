package policy

import (
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Placed is a policy on a path, with what it targets there.
type Placed[R Asks[R]] struct {
	Said[Rules[R]]
	Target Target
}

// Equal reports whether the same policy says the same of the same.
func (p Placed[R]) Equal(o Placed[R]) bool { return p.Target == o.Target && p.Said.Equal(o.Said) }

// Effective is what the policies on a path say together. Nil is nothing.
type Effective[R Asks[R]] struct {
	// Rules are those in force, sorted by name, each name once.
	Rules []InForce[R]
	// Policies are those on the path, the most established one first.
	Policies []Outcome
}

// InForce is a rule that is in force.
type InForce[R Asks[R]] struct {
	Rule[R]
	From int // the place of its policy in Policies
}

// Outcome is what became of a policy on a path.
type Outcome struct {
	Policy   object.Name
	Target   Target
	Strategy Strategy
	Rules    int // that the policy has
	InForce  int // of those
	// Refused is why the policy can't be used, in words; empty where it can be.
	Refused string
	// By are the policies that took the place of rules that are not in force, sorted.
	By []object.Name
}

// Overridden reports whether nothing that the policy says is in force. A policy that asks
// for no rules at all is overridden where there are some.
func (o *Outcome) Overridden() bool { return o.InForce == 0 && len(o.By) > 0 }

// Outcomes returns Policies; none of nil.
func (e *Effective[R]) Outcomes() []Outcome {
	if e == nil {
		return nil
	}
	return e.Policies
}

// Equal reports whether the same is in force for the same reasons.
func (e *Effective[R]) Equal(o *Effective[R]) bool {
	return slices.EqualFunc(e.Rules, o.Rules, func(a, b InForce[R]) bool { return a.From == b.From && a.Rule.Equal(b.Rule) }) &&
		slices.EqualFunc(e.Policies, o.Policies, Outcome.Equal)
}

// Equal reports whether the same became of the same policy.
func (o Outcome) Equal(p Outcome) bool {
	return o.Policy == p.Policy && o.Target == p.Target && o.Strategy == p.Strategy &&
		o.Rules == p.Rules && o.InForce == p.InForce && o.Refused == p.Refused && slices.Equal(o.By, p.By)
}

// Combine returns what the policies on a path say together; nil for no policies. They come
// in the order of GEP-713, the most established one first: by the level of their targets
// from the top, then by age, then by name.
//
// Each is challenged by all that come behind it, as they are combined among themselves,
// and its own strategy says who gives way. Those that block take the place of all others.
func Combine[R Asks[R]](path []Placed[R]) *Effective[R] {
	if len(path) == 0 {
		return nil
	}
	c := &combination[R]{path: path, lostTo: make([][]int, len(path)), shutBy: make([][]int, len(path))}
	for i, p := range slices.Backward(path) {
		if p.Asks != nil && p.Strategy != Blocks {
			c.challenge(i)
		}
	}
	for i, p := range slices.Backward(path) {
		if p.Strategy == Blocks {
			c.challenge(i)
		}
	}
	return c.effective()
}

// combination is what the policies from a place of a path to its end say together.
type combination[R Asks[R]] struct {
	path  []Placed[R]
	rules []InForce[R]
	// alive are the policies that have had the last word so far, whether they have rules
	// or say that there shall be none.
	alive []int
	// lostTo says of a policy which ones took the place of all that it says.
	lostTo [][]int
	// shutBy says of a policy which overrides kept rules of it out that would have opened
	// what they close.
	shutBy [][]int
}

// challenge puts the policy at a place before those behind it.
func (c *combination[R]) challenge(i int) {
	own := make([]InForce[R], 0, len(c.path[i].Asks)+len(c.rules))
	for _, r := range c.path[i].Asks {
		own = append(own, InForce[R]{r, i})
	}
	switch strategy := c.path[i].Strategy; {
	case len(c.alive) == 0:
		c.rules, c.alive = own, []int{i}
	case strategy == AtomicDefaults:
		c.lostTo[i] = slices.Clone(c.alive)
	case strategy == AtomicOverrides, strategy == Blocks:
		for _, j := range c.alive {
			c.lostTo[j] = append(c.lostTo[j], i)
		}
		c.rules, c.alive = own, []int{i}
	case strategy == MergeDefaults:
		c.rules, c.alive = merge(c.rules, own), append(c.alive, i)
	default:
		c.rules, c.alive = merge(own, c.addedTo(i)), append(c.alive, i)
	}
}

// addedTo returns the rules of challengers that a policy which overrides lets be added to its
// own, whether by their target or by their age they come behind it.
func (c *combination[R]) addedTo(i int) []InForce[R] {
	if !slices.ContainsFunc(c.path[i].Asks, func(r Rule[R]) bool { return r.Sufficient }) {
		return c.rules
	}
	out := make([]InForce[R], 0, len(c.rules))
	for _, r := range c.rules {
		if r.Sufficient {
			c.shutBy[r.From] = append(c.shutBy[r.From], i)
		} else {
			out = append(out, r)
		}
	}
	return out
}

// merge returns all of the strong rules, and those of the weak ones with other names.
func merge[R Asks[R]](strong, weak []InForce[R]) []InForce[R] {
	out := slices.Clone(strong)
	for _, r := range weak {
		if _, taken := ruleNamed(strong, r.Name); !taken {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b InForce[R]) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func ruleNamed[R Asks[R]](rules []InForce[R], name string) (int, bool) {
	return slices.BinarySearchFunc(rules, name, func(r InForce[R], name string) int { return strings.Compare(r.Name, name) })
}

// effective says what became of every policy.
func (c *combination[R]) effective() *Effective[R] {
	out := &Effective[R]{Rules: c.rules, Policies: make([]Outcome, len(c.path))}
	for i, p := range c.path {
		out.Policies[i] = Outcome{Policy: p.Policy, Target: p.Target, Strategy: p.Strategy, Rules: len(p.Asks), Refused: p.Refused}
	}
	for _, r := range c.rules {
		out.Policies[r.From].InForce++
	}
	for i := range out.Policies {
		o := &out.Policies[i]
		c.lost(out, i, func(j int) { o.By = append(o.By, c.path[j].Policy) })
		slices.SortFunc(o.By, object.Name.Compare)
		o.By = slices.Compact(o.By)
	}
	return out
}

// lost yields the policies in force that took the place of what a policy says: of all, or
// of single rules.
func (c *combination[R]) lost(e *Effective[R], i int, yield func(int)) {
	for _, j := range slices.Concat(c.lostTo[i], c.shutBy[i]) {
		if slices.Contains(c.alive, j) && (e.Policies[j].InForce > 0 || e.Policies[j].Rules == 0) {
			yield(j)
		} else {
			c.lost(e, j, yield)
		}
	}
	if c.lostTo[i] != nil {
		return
	}
	if asks := c.path[i].Asks; asks != nil && len(asks) == 0 { // it says that there shall be none
		for _, r := range c.rules {
			yield(r.From)
		}
	}
	for _, r := range c.path[i].Asks {
		if at, ok := ruleNamed(c.rules, r.Name); ok && c.rules[at].From != i {
			yield(c.rules[at].From)
		}
	}
}
