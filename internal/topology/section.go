package topology

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// section is what attachment depends on of a listener. It follows from the Gateway's spec
// and its class's rules for hostnames. A certificate that is rotated, or a status that is written, doesn't change it,
// and so nothing that thousands of routes read.
type section struct {
	Frontend
	key        ListenerKey
	family     family
	kinds      []gwv1.RouteGroupKind
	namespaces NamespaceRule
	conflicted bool
	// shared says that other objects have listeners on the port too: this
	// Gateway's ListenerSets, for a ListenerSet the Gateway and its siblings, or other Gateways
	// of the fleet.
	shared bool
	// names are the rules for hostnames of routes; nil for none.
	names *hostnameRules
}

func sectionOf(d *draft) section {
	return section{
		Frontend: d.Frontend(), key: d.Key, family: d.family,
		kinds: d.Kinds, namespaces: d.Namespaces, conflicted: d.conflicted() || d.Barred,
	}
}

func (s section) equal(o section) bool {
	return s.Frontend == o.Frontend && s.key == o.key && s.family == o.family && s.shared == o.shared &&
		s.conflicted == o.conflicted && s.names.equal(o.names) && s.namespaces.Equal(o.namespaces) &&
		slices.EqualFunc(s.kinds, o.kinds, sameKind)
}

// String describes the section in messages to people.
func (s section) String() string { return fmt.Sprintf("%q (port %d)", s.key.Name(), s.Port) }

func (g *Graph) declareSections() flow.Table[object.Name, []section] {
	return flow.Map("topology-sections", g.owned,
		func(c *flow.Ctx, name object.Name, gw *gwv1.Gateway, emit func(object.Name, []section)) {
			fleet := g.FleetOf(c, name)
			drafts := g.drafts(c, gw, fleet, edge{})
			refused := g.refusesMember(c, fleet, gw) != nil
			g.resolveFleetConflicts(c, fleet, drafts)
			list := make([]section, len(drafts))
			rules, _ := flow.Get(c, g.hostnameRules, name)
			for i, d := range drafts {
				list[i] = sectionOf(d)
				list[i].names, list[i].shared = rules, fleet != name
				// The tables of the fleet are there without this Gateway: its routes have no hosts in them.
				list[i].conflicted = list[i].conflicted || refused
				if gw.Spec.AllowedListeners != nil {
					_, list[i].shared = flow.Get(c, g.setPorts, portOf(name, d.Port, d.Protocol))
				}
			}
			emit(name, list)
		}, flow.Equal(func(a, b []section) bool { return slices.EqualFunc(a, b, section.equal) }))
}

// owns reports whether hosts of a pattern that the section covers are its own, and
// not those of a more specific listener of the same port. A listener owns its
// hosts even while it can't serve them: that its certificate is broken must not
// hand its hosts to another's routes.
func (g *Graph) owns(c *flow.Ctx, s *section, all []section, pattern string) bool {
	if s.shared {
		return !g.ownedElsewhere(c, s, pattern)
	}
	mine := specificity(s.Hostname)
	for i := range all {
		o := &all[i]
		if o.Port == s.Port && o.family == s.family && specificity(o.Hostname) > mine && covers(o.Hostname, pattern) {
			return false
		}
	}
	return true
}

// namespaceLabels are a namespace's labels.
type namespaceLabels labels.Set

// Equal reports whether two sets are the same.
func (n namespaceLabels) Equal(o namespaceLabels) bool {
	return labels.Equals(labels.Set(n), labels.Set(o))
}

// declareNamespaceLabels keeps what selectors look at, apart from all else that
// happens to a Namespace.
func declareNamespaceLabels(in *Inputs) flow.Table[string, namespaceLabels] {
	return flow.Map("topology-namespaces", in.Namespaces,
		func(_ *flow.Ctx, name string, o *corev1.Namespace, emit func(string, namespaceLabels)) {
			if _, ok := o.Labels[corev1.LabelMetadataName]; ok {
				emit(name, namespaceLabels(o.Labels))
				return
			}
			with := impliedLabels(name)
			maps.Copy(with, o.Labels)
			emit(name, with)
		})
}

// impliedLabels are the labels of a namespace that nothing is known of. An API
// server gives this one to every namespace.
func impliedLabels(name string) namespaceLabels {
	return namespaceLabels{corev1.LabelMetadataName: name}
}

// labelsOf returns the labels of a namespace.
func (g *Graph) labelsOf(c *flow.Ctx, namespace string) labels.Set {
	if set, ok := flow.Get(c, g.labels, namespace); ok {
		return labels.Set(set)
	}
	return labels.Set(impliedLabels(namespace))
}

// admits reports whether routes of a namespace may attach to the section.
func (g *Graph) admits(c *flow.Ctx, s *section, namespace string) bool {
	owner := s.key.Owner()
	return g.allows(c, s.namespaces, owner.Namespace, namespace)
}

// allows reports whether a rule of an object in the namespace home lets a
// namespace in.
func (g *Graph) allows(c *flow.Ctx, rule NamespaceRule, home, namespace string) bool {
	switch rule.From {
	case gwv1.NamespacesFromAll:
		return true
	case gwv1.NamespacesFromSame:
		return namespace == home
	case gwv1.NamespacesFromSelector:
		return rule.Selector.Matches(g.labelsOf(c, namespace))
	case gwv1.NamespacesFromNone:
		return false
	default:
		return false
	}
}
