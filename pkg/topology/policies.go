package topology

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// Kind describes a kind of policy whose objects are P and whose rules are R. Its functions
// depend on nothing but the object.
type Kind[P Object, R any] struct {
	Group, Kind string
	// Targets are what a policy targets; see [Targets].
	Targets func(P) []Target
	// Selectors select further targets by labels; nil for none. What a selector and a Target
	// name both is one target.
	Selectors func(P) []Selector
	// Spec is what a policy says, or why it can't be used. One that can't be used takes
	// nobody's place, unless it has rules nevertheless: what guards has rules then that
	// block.
	Spec func(P) (Spec[R], error)
	// Direct says that policies are for what they target alone, and not for what is below.
	// Of several on one target, the first one is in force, and the others are Conflicted.
	Direct bool
	// Equal reports whether two rules say the same; nil for reflect.DeepEqual.
	Equal func(a, b R) bool
}

// Target is what a policy names in its own namespace.
type Target struct {
	Group, Kind, Name string
	Section           string // of a listener, rule or port; empty for the whole object
}

// Selector selects what has labels, all of these and at least one, in the namespace of a policy:
// Gateways, ListenerSets and routes. How many objects a policy may select is for its kind to
// bound.
type Selector struct {
	Group, Kind string
	MatchLabels map[string]string
	Section     string // of each of the objects; empty for the whole ones
}

// Targets returns the targets of a spec.targetRefs.
func Targets(refs []gwv1.LocalPolicyTargetReferenceWithSectionName) []Target {
	out := make([]Target, len(refs))
	for i, r := range refs {
		out[i] = Target{Group: string(r.Group), Kind: string(r.Kind), Name: string(r.Name)}
		if r.SectionName != nil {
			out[i].Section = string(*r.SectionName)
		}
	}
	return out
}

// Spec is what a policy says to its targets, and to what is below them.
type Spec[R any] struct {
	Strategy Strategy
	// Rules are the parts of the policy by name: policies are merged rule by rule. A policy
	// that is one whole has one rule. No rules at all say that there shall be none.
	Rules map[string]R
}

// Strategy says what becomes of a policy's rules when they are challenged: by policies of
// more specific targets, and by younger ones of the same target.
type Strategy uint8

// The strategies.
const (
	// AtomicDefaults give way as a whole.
	AtomicDefaults = Strategy(policy.AtomicDefaults)
	// MergeDefaults give way to rules of the same names.
	MergeDefaults = Strategy(policy.MergeDefaults)
	// AtomicOverrides let no challenger say anything.
	AtomicOverrides = Strategy(policy.AtomicOverrides)
	// MergeOverrides let challengers add rules of other names.
	MergeOverrides = Strategy(policy.MergeOverrides)
)

// String returns "atomic defaults", "merged defaults", "atomic overrides" or "merged
// overrides".
func (s Strategy) String() string { return policy.Strategy(s).String() }

// MarshalText writes what String returns.
func (s Strategy) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Policies are the policies of a kind.
type Policies[P Object, R any] struct {
	g         *Graph
	kind      Kind[P, R]
	input     *flow.Input[object.Name, P]
	nodes     flow.Table[object.Name, *node[R]]
	attached  *policy.Attachments[*node[R], rules[R]]
	inherited *topology.Inherited[*value[R]]
	ancestors flow.Table[object.Name, []topology.Ancestor]
}

// node is a policy as the graph knows it.
type node[R any] struct{ policy.Node[rules[R]] }

// Equal reports whether both are of one policy and say the same.
func (n *node[R]) Equal(o *node[R]) bool { return n.Node.Equal(&o.Node) }

type rules[R any] = policy.Rules[*value[R]]

// value is a rule with what tells it from others.
type value[R any] struct {
	of    R
	equal func(a, b R) bool
}

// Equal reports whether both rules say the same.
func (v *value[R]) Equal(o *value[R]) bool { return v == o || v.equal(v.of, o.of) }

// AddPolicies declares a kind of policy. It is called before the first Update.
func AddPolicies[P Object, R any](g *Graph, k Kind[P, R]) *Policies[P, R] {
	if k.Equal == nil {
		k.Equal = func(a, b R) bool { return reflect.DeepEqual(a, b) }
	}
	of := object.KindOf(k.Group, k.Kind)
	name := "policies-" + k.Kind + "." + k.Group
	p := &Policies[P, R]{g: g, kind: k}
	p.input = flow.NewInput[object.Name, P](g.engine, name, flow.Equal(func(a, b P) bool { return any(a) == any(b) }))
	g.declare(of, other{
		takes:  func(o Object) bool { _, ok := o.(P); return ok },
		set:    p.set,
		delete: func(tx *flow.Tx, key object.Key) { p.input.Delete(tx, key.Name) },
		exists: func(c *flow.Ctx, key object.Key) bool { _, ok := flow.Get(c, p.input, key.Name); return ok },
	})
	p.nodes = flow.Map(name+"-nodes", p.input,
		func(c *flow.Ctx, name object.Name, o P, emit func(object.Name, *node[R])) {
			emit(name, p.node(c, name, o))
		})
	conflict := policy.Joined
	if k.Direct {
		conflict = policy.Exclusive
	}
	p.attached = policy.Attach(name, policy.Kind[*node[R], rules[R]]{
		Kind:     of,
		Node:     func(n *node[R]) *policy.Node[rules[R]] { return &n.Node },
		Conflict: conflict,
		Accepted: condition.PolicyAccepted(),
		Conflicted: func(target, winner string) metav1.Condition {
			return condition.KindConflicted(k.Kind, target, winner)
		},
	}, p.nodes)
	p.inherited = topology.Inherit(g.graph, name+"-inherited", p.attached)
	p.ancestors = topology.Ancestors(g.graph, name+"-ancestors", p.nodes, p.attached)
	g.policies = append(g.policies, func(c *flow.Ctx, yield func(policy, target Node)) {
		for name, n := range flow.All(c, p.nodes) {
			for _, t := range n.Targets {
				yield(p.nodeOf(name), nodeOf(t.Key, t.Section))
			}
		}
	})
	flow.Watch(p.nodes)
	flow.Watch(p.ancestors)
	flow.Watch(p.inherited.Listeners)
	flow.Watch(p.inherited.SetListeners)
	flow.Watch(p.inherited.Routes)
	return p
}

func (p *Policies[P, R]) set(tx *flow.Tx, key object.Key, o Object) {
	if typed, ok := o.(P); ok {
		p.input.Set(tx, key.Name, typed)
	}
}

// node says what the mechanism has to know of a policy.
func (p *Policies[P, R]) node(c *flow.Ctx, name object.Name, o P) *node[R] {
	n := &node[R]{policy.Node[rules[R]]{Name: name, Created: o.GetCreationTimestamp().Time}}
	var named []policy.Target
	for _, t := range p.kind.Targets(o) {
		named = append(named, p.target(name.Namespace, t))
	}
	selectors, wrong := p.selectors(name.Namespace, o)
	n.Reach = policy.NewReach(named, selectors, math.MaxInt, p.g.graph.Find(c))
	spec, err := p.kind.Spec(o)
	if err = cmp.Or(err, wrong); err != nil {
		n.Refused = new(condition.PolicyUnusable(err.Error()))
		if len(spec.Rules) == 0 {
			return n
		}
	}
	n.Strategy = policy.Strategy(spec.Strategy)
	list := make([]policy.Rule[*value[R]], 0, len(spec.Rules))
	for name, r := range spec.Rules {
		list = append(list, policy.Rule[*value[R]]{Name: name, Value: &value[R]{r, p.kind.Equal}})
	}
	n.Asks = policy.NewRules(list)
	return n
}

// selectors are those of a policy, and why not all of them can be used.
func (p *Policies[P, R]) selectors(namespace string, o P) (out []policy.Selector, wrong error) {
	if p.kind.Selectors == nil {
		return nil, nil
	}
	for _, s := range p.kind.Selectors(o) {
		of := object.KindOf(s.Group, s.Kind)
		switch {
		case !p.g.graph.Selectable(of):
			wrong = cmp.Or(wrong, fmt.Errorf("a selector can't select objects of kind %s", s.Kind))
		case len(s.MatchLabels) == 0:
			wrong = cmp.Or(wrong, fmt.Errorf("a selector of kind %s has no labels, and selects nothing", s.Kind))
		}
		out = append(out, policy.Selector{Kind: of, Namespace: namespace, Labels: s.MatchLabels, Section: s.Section})
	}
	return out, wrong
}

// target is what a policy of a namespace names: never anything in another one.
func (p *Policies[P, R]) target(namespace string, t Target) policy.Target {
	key := object.Key{Kind: object.KindOf(t.Group, t.Kind), Name: object.Name{Namespace: namespace, Name: t.Name}}
	if d := p.g.inputs.Kinds().Of(key.Kind); d != nil && d.Scope == kind.ClusterScoped {
		key.Namespace = ""
	}
	return policy.Target{Key: key, Section: t.Section}
}

// Effective returns what the policies say together on a path.
func (p *Policies[P, R]) Effective(path Path) (out Effective[R]) {
	p.g.engine.View(func(c *flow.Ctx) { out = p.effective(c, path) })
	return out
}

func (p *Policies[P, R]) effective(c *flow.Ctx, path Path) Effective[R] {
	return Effective[R]{p.inherited.On(c, path.at, path.name), p.nodeOf}
}

// At returns what the policies with a node as their target say. A section without any has
// those of its object. It is what is in force of Direct kinds.
func (p *Policies[P, R]) At(n Node) (out Effective[R]) {
	p.g.engine.View(func(c *flow.Ctx) {
		all, target := p.attached.On(c, n.key()), policy.Target{Key: n.key(), Section: n.Section}
		said := all.At(n.Section)
		if len(said) == 0 && n.Section != "" {
			target.Section = ""
			said = all.At("")
		}
		if p.kind.Direct && len(said) > 0 {
			said = said[:1]
		}
		path := make([]policy.Placed[*value[R]], len(said))
		for i, s := range said {
			path[i] = policy.Placed[*value[R]]{Said: s, Target: target}
		}
		out = Effective[R]{policy.Combine(path), p.nodeOf}
	})
	return out
}

// All returns the policies, sorted by name.
func (p *Policies[P, R]) All() (out []P) {
	p.g.engine.View(func(c *flow.Ctx) {
		for _, o := range flow.All(c, p.input) {
			out = append(out, o)
		}
	})
	slices.SortFunc(out, func(a, b P) int {
		return object.Name{Namespace: a.GetNamespace(), Name: a.GetName()}.Compare(object.Name{Namespace: b.GetNamespace(), Name: b.GetName()})
	})
	return out
}

// Node names a policy.
func (p *Policies[P, R]) Node(namespace, name string) Node {
	return Node{Group: p.kind.Group, Kind: p.kind.Kind, Namespace: namespace, Name: name}
}

func (p *Policies[P, R]) nodeOf(name object.Name) Node { return p.Node(name.Namespace, name.Name) }

// String names the kind.
func (p *Policies[P, R]) String() string { return fmt.Sprintf("%s.%s", p.kind.Kind, p.kind.Group) }
