package policy

import (
	"cmp"
	"slices"
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
	Targets  []Target // in the order of the spec
	// Refused, where set, is why the policy can't be used: an Accepted condition.
	Refused *metav1.Condition
	// Asks is what the policy asks for. Of a refused one it is zero, unless what is broken
	// has to block what it guarded.
	Asks S
}

// Equal reports whether two nodes are of one policy and say the same of the same.
func (n *Node[S]) Equal(o *Node[S]) bool {
	return n.Name == o.Name && n.Created.Equal(o.Created) && n.Strategy == o.Strategy && n.Asks.Equal(o.Asks) &&
		slices.Equal(n.Targets, o.Targets) &&
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
)

var strategies = [...]string{"atomic defaults", "merged defaults", "atomic overrides", "merged overrides"}

// String returns the strategy in words.
func (s Strategy) String() string { return strategies[s] }

// Overrides reports whether challengers can't take the place of what is said.
func (s Strategy) Overrides() bool { return s == AtomicOverrides || s == MergeOverrides }

// compare orders the policies of a target by precedence, the established one first.
func (n *Node[S]) compare(o *Node[S]) int {
	return cmp.Or(n.Created.Compare(o.Created), n.Name.Compare(o.Name))
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
