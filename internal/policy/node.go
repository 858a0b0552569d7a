package policy

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Asks is what policies of a kind ask for. It tells whether two ask for the same.
type Asks[S any] interface{ Equal(o S) bool }

// Node is a policy as far as the mechanism knows it.
type Node[S Asks[S]] struct {
	Name     object.Name
	Created  time.Time
	Strategy Strategy
	Reach
	// Refused, where set, is why the policy can't be used: an Accepted condition.
	Refused *metav1.Condition
	// Asks is what the policy asks for. Of a refused one it is zero, unless what is broken
	// has to block what it guarded.
	Asks S
	// AsksBeyond is what it asks for in place of that of the targets that are more than it may
	// select.
	AsksBeyond S
}

// Equal reports whether two nodes are of one policy and say the same of the same.
func (n *Node[S]) Equal(o *Node[S]) bool {
	return n.Name == o.Name && n.Created.Equal(o.Created) && n.Strategy == o.Strategy && n.Asks.Equal(o.Asks) &&
		n.AsksBeyond.Equal(o.AsksBeyond) && n.Reach.Equal(&o.Reach) &&
		(n.Refused == o.Refused || n.Refused != nil && o.Refused != nil && *n.Refused == *o.Refused)
}

// Strategy is what a policy declares for its challengers: those that target something
// more specific, and younger ones with the same target (GEP-713).
type Strategy uint8

// The strategies. Kinds whose policies say nothing to what is below their targets have
// AtomicDefaults for all, which is without effect.
const (
	AtomicDefaults  Strategy = iota // a challenger takes the place of all
	MergeDefaults                   // a challenger's rules take the places of those of their names
	AtomicOverrides                 // a challenger has no effect
	MergeOverrides                  // a challenger's rules of other names are added
	// Blocks is what no policy declares: nothing of others is in force beside it, whatever they
	// declare. It is of policies that guard, and of which not even that can be told.
	Blocks
)

var strategies = [...]string{"atomic defaults", "merged defaults", "atomic overrides", "merged overrides", "blocks all"}

// String returns the strategy in words.
func (s Strategy) String() string { return strategies[s] }

// Overrides reports whether challengers can't take the place of what is said.
func (s Strategy) Overrides() bool { return s >= AtomicOverrides }

// says is what a policy says to its targets, whichever these are.
type says[S Asks[S]] struct {
	created        time.Time
	within, beyond Said[S]
}

func (n *Node[S]) says() *says[S] {
	said := Said[S]{Policy: n.Name, Strategy: n.Strategy, Asks: n.Asks}
	if n.Refused != nil {
		said.Refused = n.Refused.Message
	}
	out := &says[S]{n.Created, said, said}
	out.beyond.Asks = n.AsksBeyond
	return out
}

// Equal reports whether the same policy says the same.
func (s *says[S]) Equal(o *says[S]) bool {
	return s.created.Equal(o.created) && s.within.Equal(o.within) && s.beyond.Equal(o.beyond)
}

// compare orders the policies of a target by precedence, the established one first.
func (s *says[S]) compare(o *says[S]) int {
	return cmp.Or(s.created.Compare(o.created), s.within.Policy.Compare(o.within.Policy))
}

// Conflict is what several policies of one kind on the same target are.
type Conflict uint8

// The conflicts.
const (
	// Exclusive policies: the first one is in force, and the others are Conflicted.
	Exclusive Conflict = iota
	// Joined policies are all in force, in their order; their kind merges them.
	Joined
)

// Kind describes a kind of policy, whose nodes are P and ask for S.
type Kind[P any, S Asks[S]] struct {
	Kind object.Kind
	// Node is the part of a policy that the mechanism knows. It depends on nothing else.
	Node     func(P) *Node[S]
	Conflict Conflict
	// Accepted is the condition of policies that nothing is wrong with.
	Accepted metav1.Condition
	// Conflicted is the Accepted condition of policies that another one takes precedence
	// over. Only Exclusive kinds need it.
	Conflicted func(target, winner string) metav1.Condition
}
