package topology

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// family is a group of protocols that can share a port. Listeners of one family
// and port are distinct by their hostnames, if the family has any.
type family uint8

const (
	unserved  family = iota // protocols that are not supported
	cleartext               // HTTP
	encrypted               // HTTPS and TLS
	raw                     // TCP
	datagrams               // UDP
)

// named reports whether connections of the family can be told apart by hostname.
func (f family) named() bool { return f == cleartext || f == encrypted }

// protocol is what follows from a listener's protocol.
type protocol struct {
	family family
	kinds  []gwv1.RouteGroupKind // that may attach
}

var (
	gatewayGroup = gwv1.Group(gwv1.GroupVersion.Group)
	httpKinds    = routeKinds(kind.HTTPRoute, kind.GRPCRoute)
	protocols    = map[gwv1.ProtocolType]protocol{
		gwv1.HTTPProtocolType:  {cleartext, httpKinds},
		gwv1.HTTPSProtocolType: {encrypted, httpKinds},
		gwv1.TLSProtocolType:   {encrypted, routeKinds(kind.TLSRoute)},
		gwv1.TCPProtocolType:   {raw, routeKinds(kind.TCPRoute)},
		gwv1.UDPProtocolType:   {datagrams, routeKinds(kind.UDPRoute)},
	}
)

// routeKinds names kinds of routes as listeners do.
func routeKinds(kinds ...object.Kind) []gwv1.RouteGroupKind {
	out := make([]gwv1.RouteGroupKind, len(kinds))
	for i, k := range kinds {
		out[i] = gwv1.RouteGroupKind{Group: &gatewayGroup, Kind: gwv1.Kind(k.Name())}
	}
	return out
}

// supportedProtocols is for messages.
const supportedProtocols = "HTTP, HTTPS, TLS, TCP or UDP"

// draft is a listener as far as its Gateway's spec and the options decide it.
type draft struct {
	Listener
	spec     *gwv1.Listener
	family   family
	accepted metav1.Condition
	conflict metav1.Condition
	overlaps condition.Overlaps // TLS listeners whose hostnames overlap with this one's
	problems []metav1.Condition // with references, as far as no other object is needed to see them
	notes    []string           // added to the message of a ResolvedRefs that is true
	clients  *gwv1.FrontendTLSValidation
}

// valid reports whether the listener is accepted.
func (d *draft) valid() bool { return d.accepted.Status == metav1.ConditionTrue }

func (d *draft) conflicted() bool { return d.conflict.Status == metav1.ConditionTrue }

// refuse sets why the listener is not accepted; what was found first stays.
func (d *draft) refuse(why metav1.Condition) {
	if d.valid() {
		d.accepted = why
	}
}

// draftListeners drafts a Gateway's listeners, and finds conflicts and overlaps among them.
func draftListeners(gw *gwv1.Gateway, o Options, e edge) []*draft {
	drafts := make([]*draft, len(gw.Spec.Listeners))
	for i := range gw.Spec.Listeners {
		drafts[i] = draftListener(gw, &gw.Spec.Listeners[i], o, e)
	}
	findConflicts(drafts)
	findBindConflicts(drafts)
	findOverlaps(drafts)
	dropHTTP3AtUDP(drafts)
	return drafts
}

func draftListener(gw *gwv1.Gateway, l *gwv1.Listener, o Options, e edge) *draft {
	p := protocols[l.Protocol]
	d := &draft{
		spec: l, family: p.family,
		accepted: condition.ListenerAccepted(), conflict: condition.ListenerNoConflicts(),
		Listener: Listener{
			Key:      ListenerOf(object.Name{Namespace: gw.Namespace, Name: gw.Name}, object.Name{}, string(l.Name)),
			Port:     uint16(l.Port),
			Protocol: l.Protocol,
			Kinds:    p.kinds,
		},
	}
	if p.family.named() || p.family == unserved {
		d.Hostname = strings.ToLower(string(valueOr(l.Hostname, "")))
	}
	if p.family == unserved {
		d.refuse(condition.ListenerUnsupportedProtocol(string(l.Protocol), supportedProtocols, protocolMeant(l.Protocol)))
	}
	d.bind(o)
	d.checkTLS(gw)
	d.defaultHTTP3(e)
	d.readTLSOptions(e)
	d.checkFilters()
	d.allowRoutes(l.AllowedRoutes)
	return d
}

// tlsMode returns what a listener does with TLS; empty where it has none.
func tlsMode(l *gwv1.Listener) gwv1.TLSModeType {
	switch {
	case protocols[l.Protocol].family != encrypted:
		return ""
	case l.TLS == nil:
		return gwv1.TLSModeTerminate
	default:
		return valueOr(l.TLS.Mode, gwv1.TLSModeTerminate)
	}
}

// passesThrough reports whether TLS goes through the listener as it is.
func passesThrough(l *gwv1.Listener) bool {
	return l.Protocol == gwv1.TLSProtocolType && tlsMode(l) == gwv1.TLSModePassthrough
}

// checkTLS checks the settings of TLS, except references.
func (d *draft) checkTLS(gw *gwv1.Gateway) {
	d.Passthrough = passesThrough(d.spec)
	switch mode := tlsMode(d.spec); {
	case d.Passthrough:
	case mode == gwv1.TLSModePassthrough:
		d.refuse(condition.ListenerUnsupportedValue("tls.mode",
			fmt.Sprintf("%s is not possible with protocol %s; use Terminate", mode, d.Protocol)))
	case mode != "" && mode != gwv1.TLSModeTerminate:
		d.refuse(condition.ListenerUnsupportedValue("tls.mode",
			fmt.Sprintf("%s is not known; use Terminate or Passthrough", mode)))
	}
	if d.terminatesTLS() {
		d.clients = clientValidation(gw, d.spec.Port)
	}
}

// allowRoutes reads allowedRoutes.
func (d *draft) allowRoutes(a *gwv1.AllowedRoutes) {
	d.Namespaces = NamespaceRule{From: gwv1.NamespacesFromSame}
	if a == nil {
		return
	}
	if n := a.Namespaces; n != nil {
		d.Namespaces.From = valueOr(n.From, gwv1.NamespacesFromSame)
		if d.Namespaces.From == gwv1.NamespacesFromSelector {
			d.Namespaces.Selector = d.selector(n.Selector)
		}
	}
	if len(a.Kinds) == 0 {
		return
	}
	fitting := d.Kinds
	d.Kinds = make([]gwv1.RouteGroupKind, 0, len(a.Kinds))
	var unfit []string
	for _, k := range a.Kinds {
		switch {
		case !hasKind(fitting, valueOr(k.Group, gatewayGroup), k.Kind):
			unfit = append(unfit, routeKindText(valueOr(k.Group, gatewayGroup), k.Kind))
		case !hasKind(d.Kinds, gatewayGroup, k.Kind):
			d.Kinds = append(d.Kinds, gwv1.RouteGroupKind{Group: &gatewayGroup, Kind: k.Kind})
		}
	}
	if len(unfit) > 0 {
		d.problems = append(d.problems, condition.ListenerInvalidRouteKinds(string(d.Protocol), unfit, kindNames(fitting)))
	}
}

// selector reads a selector of namespaces. One that can't be read selects none.
func (d *draft) selector(s *metav1.LabelSelector) labels.Selector {
	const field = "allowedRoutes.namespaces.selector"
	if s == nil {
		d.refuse(condition.ListenerUnsupportedValue(field, "missing; give one, or set from to All or Same"))
		return labels.Nothing()
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		d.refuse(condition.ListenerUnsupportedValue(field, err.Error()))
		return labels.Nothing()
	}
	return selector
}

func hasKind(list []gwv1.RouteGroupKind, group gwv1.Group, kind gwv1.Kind) bool {
	for _, k := range list {
		if k.Kind == kind && valueOr(k.Group, gatewayGroup) == group {
			return true
		}
	}
	return false
}

func kindNames(list []gwv1.RouteGroupKind) string {
	names := make([]string, len(list))
	for i, k := range list {
		names[i] = string(k.Kind)
	}
	return strings.Join(names, " and ")
}

// kindText names a kind as kubectl does: Kind.group, and Kind alone in the core
// group.
func kindText(group gwv1.Group, kind gwv1.Kind) string {
	if group == "" {
		return string(kind)
	}
	return string(kind) + "." + string(group)
}

// routeKindText is kindText where the Gateway API's group goes without saying.
func routeKindText(group gwv1.Group, kind gwv1.Kind) string {
	if group == gatewayGroup {
		return string(kind)
	}
	return kindText(group, kind)
}
