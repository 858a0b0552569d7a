package topology

import (
	"cmp"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// Node is an object, or a section of one: a listener of a Gateway or of a ListenerSet, a
// rule of a route, a port of a Service. It need not exist.
type Node struct {
	Group     string `json:"group"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"` // empty for kinds without namespaces
	Name      string `json:"name"`
	// Section is the name of a listener, of a rule or of a port; empty for the whole
	// object. A rule without a name is called by its place, from rule-1 on.
	Section string `json:"section,omitempty"`
}

// GatewayGroup is the group of the Gateway API's kinds.
const GatewayGroup = gwv1.GroupName

// GatewayClass names a GatewayClass.
func GatewayClass(name string) Node {
	return Node{Group: GatewayGroup, Kind: "GatewayClass", Name: name}
}

// Gateway names a Gateway.
func Gateway(namespace, name string) Node { return gatewayAPI("Gateway", namespace, name) }

// ListenerSet names a ListenerSet.
func ListenerSet(namespace, name string) Node { return gatewayAPI("ListenerSet", namespace, name) }

// HTTPRoute names an HTTPRoute.
func HTTPRoute(namespace, name string) Node { return gatewayAPI("HTTPRoute", namespace, name) }

// GRPCRoute names a GRPCRoute.
func GRPCRoute(namespace, name string) Node { return gatewayAPI("GRPCRoute", namespace, name) }

// Service names a Service.
func Service(namespace, name string) Node {
	return Node{Kind: "Service", Namespace: namespace, Name: name}
}

func gatewayAPI(kind, namespace, name string) Node {
	return Node{Group: GatewayGroup, Kind: kind, Namespace: namespace, Name: name}
}

// At returns the node of a section of the object.
func (n Node) At(section string) Node {
	n.Section = section
	return n
}

// Object returns the node of the whole object.
func (n Node) Object() Node { return n.At("") }

// String returns "HTTPRoute ns/name", or "rule a of HTTPRoute ns/name".
func (n Node) String() string {
	name := n.Name
	if n.Namespace != "" {
		name = n.Namespace + "/" + name
	}
	if n.Section == "" {
		return n.Kind + " " + name
	}
	return n.sectionWord() + " " + n.Section + " of " + n.Kind + " " + name
}

// sectionWord is what the object's sections are called.
func (n Node) sectionWord() string { return policy.SectionWord(n.key().Kind) }

// Compare orders nodes by kind, namespace, name and section.
func (n Node) Compare(o Node) int {
	return cmp.Or(
		strings.Compare(n.Kind, o.Kind), strings.Compare(n.Group, o.Group), strings.Compare(n.Namespace, o.Namespace),
		strings.Compare(n.Name, o.Name), strings.Compare(n.Section, o.Section),
	)
}

// Path is a way from a GatewayClass to a rule of a route that is attached to a listener.
// Paths compare.
type Path struct {
	class string
	at    topology.AttachmentKey
	rule  int    // from 0
	name  string // of the rule; empty for none
}

// GatewayClass returns the first node of the path.
func (p Path) GatewayClass() Node { return GatewayClass(p.class) }

// Gateway returns the Gateway of the path.
func (p Path) Gateway() Node { return nodeOf(gatewayKey(p.at.Listener.Gateway()), "") }

// ListenerSet returns the ListenerSet that has the listener; false where the Gateway does.
func (p Path) ListenerSet() (Node, bool) {
	if p.at.Listener.Set().IsZero() {
		return Node{}, false
	}
	return nodeOf(p.at.Listener.Owner(), ""), true
}

// Listener returns the listener of the path.
func (p Path) Listener() Node { return nodeOf(p.at.Listener.Owner(), p.at.Listener.Name()) }

// Route returns the route of the path.
func (p Path) Route() Node { return nodeOf(p.at.Route, "") }

// Rule returns the last node of the path.
func (p Path) Rule() Node { return nodeOf(p.at.Route, ruleSection(p.rule, p.name)) }

// RuleIndex is the place of the rule in its route, from 0.
func (p Path) RuleIndex() int { return p.rule }

// Nodes returns all nodes of the path, from the GatewayClass to the rule.
func (p Path) Nodes() []Node {
	out := []Node{p.GatewayClass(), p.Gateway()}
	if set, ok := p.ListenerSet(); ok {
		out = append(out, set)
	}
	return append(out, p.Listener(), p.Route(), p.Rule())
}

// String returns the path as people read it: the listener, the route and its rule.
func (p Path) String() string { return p.Rule().String() + " on " + p.Listener().String() }

// Compare orders paths by Gateway, listener, route and rule.
func (p Path) Compare(o Path) int { return cmp.Or(p.at.Compare(o.at), cmp.Compare(p.rule, o.rule)) }

// key names the object.
func (n Node) key() object.Key {
	return object.Key{Kind: object.KindOf(n.Group, n.Kind), Name: object.Name{Namespace: n.Namespace, Name: n.Name}}
}

func nodeOf(k object.Key, section string) Node {
	return Node{Group: k.Kind.Group(), Kind: k.Kind.Name(), Namespace: k.Namespace, Name: k.Name.Name, Section: section}
}

func gatewayKey(name object.Name) object.Key { return object.Key{Kind: kind.Gateway, Name: name} }
