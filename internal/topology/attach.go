package topology

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

func (g *Graph) declareParents() flow.Table[object.Key, []Parent] {
	return flow.Map("topology-parents", g.in.Routes,
		func(c *flow.Ctx, key object.Key, o RouteObject, emit func(object.Key, []Parent)) {
			var parents []Parent
			refs := ParentRefs(o)
			r := candidate{key: key, hostnames: Hostnames(o)}
			for i := range refs {
				ref := &refs[i]
				if p, ok := g.parent(c, &r, ref); ok {
					if parents == nil {
						parents = make([]Parent, 0, len(refs)-i)
					}
					p.Ref = ref
					parents = append(parents, p)
				}
			}
			parents = g.defaultParents(c, &r, o, parents)
			if parents != nil {
				emit(r.key, parents)
			}
		}, flow.Equal(sameParents))
}

// Parents returns the answers to a route's parentRefs that are ours; none for a
// route that is not in Routes.
func (g *Graph) Parents(c *flow.Ctx, route object.Key) []Parent {
	parents, _ := flow.Get(c, g.parents, route)
	return parents
}

func (g *Graph) declareAttachments() flow.Table[AttachmentKey, *Attachment] {
	return flow.Map("topology-attachments", g.parents,
		func(c *flow.Ctx, _ object.Key, parents []Parent, emit func(AttachmentKey, *Attachment)) {
			for i, p := range parents {
				for _, a := range p.attached {
					if !attachedBefore(parents[:i], a.Key) {
						emit(a.Key, a)
					}
				}
			}
		})
}

// attachedBefore reports whether an earlier parentRef selects the listener too.
// What the two say of it is the same.
func attachedBefore(parents []Parent, k AttachmentKey) bool {
	return slices.ContainsFunc(parents, func(p Parent) bool {
		return slices.ContainsFunc(p.attached, func(a *Attachment) bool { return a.Key == k })
	})
}

func (g *Graph) declareAttachedRoutes() flow.Table[ListenerKey, int] {
	return flow.Count("topology-attached-routes", g.Attachments,
		func(k AttachmentKey, _ *Attachment, yield func(ListenerKey)) { yield(k.Listener) })
}

// candidate is a route as far as attachment depends on it.
type candidate struct {
	key       object.Key
	hostnames []gwv1.Hostname
}

// gatewayKind is the kind of Gateways, as references name it.
const gatewayKind = "Gateway"

// ParentOf returns what a parentRef names. Kinds other than Gateway and
// ListenerSet are not ours to answer.
func ParentOf(route object.Name, ref *gwv1.ParentReference) (kind gwv1.Kind, name object.Name) {
	if valueOr(ref.Group, gatewayGroup) != gatewayGroup {
		return "", object.Name{}
	}
	return valueOr(ref.Kind, gatewayKind), object.Name{
		Namespace: string(valueOr(ref.Namespace, gwv1.Namespace(route.Namespace))),
		Name:      string(ref.Name),
	}
}

// missingGateway reports whether a Gateway doesn't exist, and no other controller shares
// the objects: the answer is ours then.
func (g *Graph) missingGateway(c *flow.Ctx, gateway object.Name) bool {
	if g.options.ImplicitClass == "" {
		return false
	}
	_, exists := flow.Get(c, g.in.Gateways, gateway)
	return !exists
}

// parent answers a parentRef. It reports false where the answer is not ours to give.
func (g *Graph) parent(c *flow.Ctx, r *candidate, ref *gwv1.ParentReference) (Parent, bool) {
	switch of, name := ParentOf(r.key.Name, ref); of {
	case gatewayKind:
		return g.gatewayParent(c, r, ref, name)
	case listenerSetKind:
		return g.setParent(c, r, ref, name)
	default:
		return Parent{}, false
	}
}

func (g *Graph) gatewayParent(c *flow.Ctx, r *candidate, ref *gwv1.ParentReference, gateway object.Name) (Parent, bool) {
	all, ours := flow.Get(c, g.sections, gateway)
	switch {
	case ours:
		attached, accepted := g.attach(c, r, ref, "Gateway "+gateway.String(), all)
		parent := newParent(gateway, accepted, attached)
		if len(all) > 0 {
			parent.Fleet = all[0].key.Fleet()
		}
		return parent, true
	case g.missingGateway(c, gateway):
		return newParent(gateway, condition.RouteNoGateway(g.missingParent(c, r, gateway)), nil), true
	default:
		return Parent{}, false
	}
}

func (g *Graph) setParent(c *flow.Ctx, r *candidate, ref *gwv1.ParentReference, name object.Name) (Parent, bool) {
	s, ours := flow.Get(c, g.setSections, name)
	switch {
	case ours && s.refused != "":
		why := g.options.Reader(r.key.Namespace).Why(name.Namespace, s.refused)
		return newParent(s.gateway, condition.RouteSetNotAttached(name.String(), why), nil), true
	case ours:
		attached, accepted := g.attach(c, r, ref, "ListenerSet "+name.String(), s.list)
		return newParent(s.gateway, accepted, attached), true
	case g.missingSet(c, name):
		return newParent(object.Name{}, condition.RouteNoListenerSet(g.missing(c, object.Key{Kind: kind.ListenerSet, Name: name}, nil)), nil), true
	default:
		return Parent{}, false
	}
}

// attach goes through the listeners of a Gateway or a ListenerSet, the parent. A
// listener must be selected by the parentRef, allow the route, and share a hostname
// with it; the last step at which some listener was left gives the reason.
func (g *Graph) attach(c *flow.Ctx, r *candidate, ref *gwv1.ParentReference, parent string, all []section) ([]*Attachment, metav1.Condition) {
	var attached []*Attachment
	var allowed int
	var may hostnamePermission
	var barred []string // hosts
	var selected []*section
	for i := range all {
		s := &all[i]
		if !selects(ref, s) {
			continue
		}
		selected = append(selected, s)
		if !hasKind(s.kinds, gatewayGroup, gwv1.Kind(r.key.Kind.Name())) || !g.admits(c, s, r.key.Namespace) {
			continue
		}
		allowed++
		may = g.hostnamesFor(c, s.names, s.key.Fleet(), r.key.Namespace)
		hosts, without, ok := g.hostsOn(c, s, all, r.hostnames, may)
		for _, h := range without {
			if !slices.Contains(barred, h) {
				barred = append(barred, h)
			}
		}
		if ok {
			attached = append(attached, &Attachment{
				Key:      AttachmentKey{Route: r.key, Listener: s.key},
				Frontend: s.Frontend, Hosts: hosts,
			})
		}
	}
	switch {
	case len(attached) > 0 && len(barred) > 0:
		return attached, condition.Noted(condition.RouteAccepted(), condition.NoteHostnamesBarred(r.key.Namespace, barred, may.hostnames))
	case len(attached) > 0:
		return attached, condition.RouteAccepted()
	case len(barred) > 0:
		return nil, condition.RouteHostnamesNotAllowed(parent, r.key.Namespace, barred, may.hostnames)
	case len(selected) == 0:
		return nil, condition.RouteNoListener(parent, wanted(ref), g.describe(c, r, ref, all))
	case allowed == 0:
		return nil, g.notAllowed(c, r, ref, parent, selected)
	default:
		return nil, condition.RouteNoHostname(parent, hostnameTexts(r.hostnames), g.listenerHosts(c, selected, r))
	}
}

// selects reports whether a parentRef means the section.
func selects(ref *gwv1.ParentReference, s *section) bool {
	return (ref.SectionName == nil || *ref.SectionName == "" || string(*ref.SectionName) == s.key.Name()) &&
		(ref.Port == nil || *ref.Port == 0 || *ref.Port == int32(s.Port))
}

// hostsOn returns the hosts that a route with these hostnames serves on a section, and
// those that it would serve if its namespace were allowed to. It reports false where
// nothing is left that they have in common.
func (g *Graph) hostsOn(c *flow.Ctx, s *section, all []section, hostnames []gwv1.Hostname, may hostnamePermission) (hosts []AttachedHost, barred []string, ok bool) {
	bars := func(pattern string) bool { return s.family.named() && !may.covers(pattern) }
	if len(hostnames) == 0 {
		switch {
		case bars(s.Hostname):
			return nil, []string{domain(s.Hostname)}, false
		case s.conflicted:
			return nil, nil, true
		}
		return []AttachedHost{{Domain: domain(s.Hostname)}}, nil, true
	}
	for _, h := range hostnames {
		host := strings.ToLower(string(h))
		common, meet := intersect(s.Hostname, host)
		if !meet {
			continue
		}
		if bars(common) {
			barred = append(barred, domain(common))
			continue
		}
		ok = true
		if !s.conflicted && g.owns(c, s, all, common) {
			if hosts == nil {
				hosts = make([]AttachedHost, 0, len(hostnames))
			}
			hosts = append(hosts, AttachedHost{Domain: domain(common), Hostname: host})
		}
	}
	if len(hosts) > 1 {
		hosts = sortHosts(hosts)
	}
	return hosts, barred, ok
}

// sortHosts orders hosts and keeps each domain once, with the most specific of the
// hostnames that led to it: that one decides between routes.
func sortHosts(hosts []AttachedHost) []AttachedHost {
	slices.SortFunc(hosts, func(a, b AttachedHost) int {
		if d := strings.Compare(a.Domain, b.Domain); d != 0 {
			return d
		}
		return specificity(b.Hostname) - specificity(a.Hostname)
	})
	return slices.CompactFunc(hosts, func(a, b AttachedHost) bool { return a.Domain == b.Domain })
}

// The rest makes texts for conditions.

func wanted(ref *gwv1.ParentReference) string {
	var parts []string
	if name := valueOr(ref.SectionName, ""); name != "" {
		parts = append(parts, fmt.Sprintf("named %q", name))
	}
	if port := valueOr(ref.Port, 0); port != 0 {
		parts = append(parts, fmt.Sprintf("on port %d", port))
	}
	return strings.Join(parts, " ")
}

// tellable reports whether a route may be told of a listener: it names it, or could attach
// to it, or who reads its conditions sees the listener's owner. A Gateway that many share
// doesn't show each of them the listeners of the others.
func (g *Graph) tellable(c *flow.Ctx, r *candidate, ref *gwv1.ParentReference, s *section) bool {
	return string(valueOr(ref.SectionName, "")) == s.key.Name() ||
		g.options.Reader(r.key.Namespace).Sees(s.key.Owner().Namespace) || g.admits(c, s, r.key.Namespace)
}

func (g *Graph) describe(c *flow.Ctx, r *candidate, ref *gwv1.ParentReference, all []section) []string {
	var out []string
	for i := range all {
		if g.tellable(c, r, ref, &all[i]) {
			out = append(out, all[i].String())
		}
	}
	return out
}

// notAllowed says why none of the listeners that the parentRef selects takes the route.
func (g *Graph) notAllowed(c *flow.Ctx, r *candidate, ref *gwv1.ParentReference, parent string, selected []*section) metav1.Condition {
	var out []string
	namespace, waits := "", true
	for _, s := range selected {
		if !g.tellable(c, r, ref, s) {
			continue
		}
		switch {
		case s.family == unserved:
			out = append(out, fmt.Sprintf("listener %q has a protocol that is not supported", s.key.Name()))
			continue
		case !hasKind(s.kinds, gatewayGroup, gwv1.Kind(r.key.Kind.Name())):
			out = append(out, fmt.Sprintf("listener %q does not allow kind %s", s.key.Name(), r.key.Kind.Name()))
		default:
			namespace = r.key.Namespace
			out = append(out, fmt.Sprintf("listener %q does not allow namespace %s", s.key.Name(), namespace))
		}
		waits = false
	}
	switch {
	case len(out) == len(selected) && waits:
		return condition.RouteListenersNotServed(parent, out)
	case len(out) == 0:
		namespace = r.key.Namespace
		out = append(out, "no listener allows namespace "+namespace)
	case len(out) < len(selected):
		namespace = r.key.Namespace
		out = append(out, "no other listener allows namespace "+namespace)
	}
	return condition.RouteNotAllowed(parent, out, namespace)
}

func (g *Graph) listenerHosts(c *flow.Ctx, selected []*section, r *candidate) []string {
	var out []string
	for _, s := range selected {
		if hasKind(s.kinds, gatewayGroup, gwv1.Kind(r.key.Kind.Name())) && g.admits(c, s, r.key.Namespace) {
			out = append(out, fmt.Sprintf("listener %q has %q", s.key.Name(), s.Hostname))
		}
	}
	return out
}

func hostnameTexts(hostnames []gwv1.Hostname) []string {
	out := make([]string, len(hostnames))
	for i, h := range hostnames {
		out[i] = string(h)
	}
	return out
}
