package topology

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// Ancestor is what there is to say of a policy on a Gateway: what belongs into an entry of
// its status.ancestors.
type Ancestor struct {
	// Of is the Gateway. Of a policy that concerns none, it is what the policy targets.
	Of Node
	// Accepted is the condition of that type: whether the policy can be used there.
	Accepted metav1.Condition
	// Paths are how many paths through the Gateway the policy is on. On Whole ones all of its
	// rules are in force, on Partly ones some.
	Paths, Whole, Partly int
	// By are the policies that took the place of rules that are not in force.
	By []Node
}

// Ancestors returns the Gateways that a policy concerns, sorted. A policy that is for what
// does not exist, or for what is attached to no Gateway, has its targets instead, and its namespace
// for a selector that selects nothing there.
func (p *Policies[P, R]) Ancestors(namespace, name string) (out []Ancestor) {
	key := object.Name{Namespace: namespace, Name: name}
	p.g.engine.View(func(c *flow.Ctx) {
		n, ok := flow.Get(c, p.nodes, key)
		if !ok {
			return
		}
		list, _ := flow.Get(c, p.ancestors, key)
		for _, a := range list {
			out = append(out, Ancestor{Of: nodeOf(gatewayKey(a.Gateway), ""), Accepted: a.Accepted})
		}
		if len(list) == 0 {
			out = p.lonely(c, n)
		}
		if p.kind.Direct {
			return
		}
		seen := map[Path]bool{}
		for _, t := range n.Targets {
			p.g.paths(c, nodeOf(t.Key, t.Section), func(path Path) {
				i := slices.IndexFunc(list, func(a topology.Ancestor) bool { return a.Gateway == path.at.Listener.Gateway() })
				if i >= 0 && !seen[path] {
					seen[path] = true
					out[i].count(p.effective(c, path).of, key, p.nodeOf)
				}
			})
		}
		for i := range out {
			slices.SortFunc(out[i].By, Node.Compare)
			out[i].By = slices.Compact(out[i].By)
		}
	})
	return out
}

// lonely says of a policy that no Gateway is concerned with what is wrong with its targets.
func (p *Policies[P, R]) lonely(c *flow.Ctx, n *node[R]) (out []Ancestor) {
	for _, t := range n.Targets {
		a := Ancestor{Of: nodeOf(t.Key, ""), Accepted: condition.PolicyAccepted()}
		switch {
		case slices.ContainsFunc(out, func(b Ancestor) bool { return a.Of == b.Of }):
			continue
		case n.Refused != nil:
			a.Accepted = *n.Refused
		case !p.g.exists(c, a.Of):
			a.Accepted = condition.PolicyTargetMissing(condition.Missing{Kind: a.Of.Kind, Namespace: a.Of.Namespace, Name: a.Of.Name})
		}
		out = append(out, a)
	}
	for _, s := range n.Selections {
		a := Ancestor{Of: nodeOf(object.Key{Kind: kind.Namespace, Name: object.Name{Name: s.Namespace}}, "")}
		switch {
		case s.Count > 0 || slices.ContainsFunc(out, func(b Ancestor) bool { return a.Of == b.Of }):
			continue
		case n.Refused != nil:
			a.Accepted = *n.Refused
		default:
			a.Accepted = condition.PolicySelectsNothing([]string{condition.NothingSelected(s.Kind.Name(), s.Namespace, s.String())})
		}
		out = append(out, a)
	}
	return out
}

// count adds what became of a policy on a path.
func (a *Ancestor) count(e interface{ Outcomes() []policy.Outcome }, of object.Name, nodeOf func(object.Name) Node) {
	rules, inForce := 0, 0
	var by []Node
	for _, o := range e.Outcomes() {
		if o.Policy == of && o.Refused == "" {
			rules, inForce = rules+o.Rules, inForce+o.InForce
			for _, name := range o.By {
				by = append(by, nodeOf(name))
			}
		}
	}
	a.Paths++
	switch {
	case len(by) == 0:
		a.Whole++
	case inForce > 0:
		a.Partly++
	}
	a.By = append(a.By, by...)
}

// Programmed returns GEP-713's condition of that type, as far as it follows from the other
// policies: whether the data plane has taken the policy up is for its controller to say.
func (a Ancestor) Programmed() metav1.Condition {
	c := metav1.Condition{Type: "Programmed", Status: metav1.ConditionTrue}
	names := make([]string, len(a.By))
	for i, n := range a.By {
		names[i] = n.Namespace + "/" + n.Name
	}
	others := strings.Join(names, ", ")
	switch {
	case a.Accepted.Status != metav1.ConditionTrue:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, a.Accepted.Reason, a.Accepted.Message
	case a.Paths == 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "NoRoutes", "No route is attached that the policy could be for"
	case a.Whole == 0 && a.Partly == 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "Overridden", "Overridden by "+others
	case a.Whole < a.Paths:
		c.Reason, c.Message = "PartiallyProgrammed",
			fmt.Sprintf("In force as a whole on %d of %d paths; elsewhere overridden by %s", a.Whole, a.Paths, others)
	default:
		c.Reason, c.Message = string(gwv1.GatewayReasonProgrammed), "In force"
	}
	return c
}

// Entry returns the policy's entry in status.ancestors, written by
// a controller at a generation of the policy: the conditions Accepted and Programmed.
func (a Ancestor) Entry(controllerName string, generation int64) gwv1.PolicyAncestorStatus {
	group, kind, namespace := gwv1.Group(a.Of.Group), gwv1.Kind(a.Of.Kind), gwv1.Namespace(a.Of.Namespace)
	entry := gwv1.PolicyAncestorStatus{
		AncestorRef:    gwv1.ParentReference{Group: &group, Kind: &kind, Namespace: &namespace, Name: gwv1.ObjectName(a.Of.Name)},
		ControllerName: gwv1.GatewayController(controllerName),
	}
	if a.Of.Namespace == "" {
		entry.AncestorRef.Namespace = nil
	}
	for _, c := range [...]metav1.Condition{a.Accepted, a.Programmed()} {
		c.ObservedGeneration = generation
		entry.Conditions = append(entry.Conditions, c)
	}
	return entry
}

// MergeAncestors puts a controller's entries into a policy's status.ancestors, in the place
// of those that it had. Others' entries stay, and so do the times of conditions that are as
// they were. It reports whether anything is different. The API allows 16 entries.
func MergeAncestors(had []gwv1.PolicyAncestorStatus, controllerName string, entries []gwv1.PolicyAncestorStatus) ([]gwv1.PolicyAncestorStatus, bool) {
	const most = 16
	var out []gwv1.PolicyAncestorStatus
	old := map[Node][]metav1.Condition{}
	for _, e := range had {
		if string(e.ControllerName) == controllerName {
			old[ancestorOf(e)] = e.Conditions
		} else {
			out = append(out, e)
		}
	}
	for _, e := range entries {
		conditions := slices.Clone(old[ancestorOf(e)])
		for _, c := range e.Conditions {
			meta.SetStatusCondition(&conditions, c)
		}
		e.Conditions = conditions
		out = append(out, e)
	}
	out = out[:min(len(out), most)]
	return out, !equality.Semantic.DeepEqual(had, out)
}

// ancestorOf names what an entry is for.
func ancestorOf(e gwv1.PolicyAncestorStatus) Node {
	n := Node{Name: string(e.AncestorRef.Name)}
	if kind := e.AncestorRef.Kind; kind != nil {
		n.Kind = string(*kind)
	}
	if ns := e.AncestorRef.Namespace; ns != nil {
		n.Namespace = string(*ns)
	}
	return n
}

// Affecting returns the policies of which some rule is in force on a path through a node,
// sorted: those for GEP-713's condition on what policies target.
func (p *Policies[P, R]) Affecting(n Node) (out []Node) {
	seen := map[*policy.Effective[*value[R]]]bool{}
	p.g.engine.View(func(c *flow.Ctx) {
		if p.kind.Direct {
			if said := p.attached.On(c, n.key()).At(n.Section); len(said) > 0 {
				out = append(out, p.nodeOf(said[0].Policy))
			}
			return
		}
		p.g.paths(c, n, func(path Path) {
			e := p.effective(c, path).of
			if e == nil || seen[e] {
				return
			}
			seen[e] = true
			for _, o := range e.Policies {
				if o.InForce > 0 {
					out = append(out, p.nodeOf(o.Policy))
				}
			}
		})
	})
	slices.SortFunc(out, Node.Compare)
	return slices.Compact(out)
}
