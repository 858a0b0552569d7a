package policy

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Node is a policy as far as the mechanism knows it. What it asks for is of a type that
// compares.
type Node[S comparable] struct {
	Name     object.Name
	Created  time.Time
	Strategy Strategy
	Targets  []Target // in the order of the spec
	// Refused, where set, is why the policy can't be used: an Accepted condition.
	Refused *metav1.Condition
	// Asks is what the policy asks for; zero where it is refused.
	Asks S
}

// Equal reports whether two nodes are of one policy and say the same of the same.
func (n *Node[S]) Equal(o *Node[S]) bool {
	return n.Name == o.Name && n.Created.Equal(o.Created) && n.Strategy == o.Strategy && n.Asks == o.Asks &&
		slices.Equal(n.Targets, o.Targets) &&
		(n.Refused == o.Refused || n.Refused != nil && o.Refused != nil && *n.Refused == *o.Refused)
}

// Strategy is what a policy declares for those that target something more specific
// (GEP-713).
type Strategy uint8

// The strategies. On one target, overrides precede all others.
const (
	None Strategy = iota // the policy is for what it targets, and for nothing else
	Defaults
	Overrides
)

// compare orders the policies of a target by precedence.
func (n *Node[S]) compare(o *Node[S]) int {
	return cmp.Or(
		cmp.Compare(n.Strategy.rank(), o.Strategy.rank()),
		n.Created.Compare(o.Created),
		n.Name.Compare(o.Name),
	)
}

func (s Strategy) rank() int {
	if s == Overrides {
		return 0
	}
	return 1
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
type Kind[P any, S comparable] struct {
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
