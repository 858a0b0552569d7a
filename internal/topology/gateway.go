package topology

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

func (g *Graph) declareGateways() flow.Table[object.Name, *Gateway] {
	return flow.Map("topology-gateways", g.owned,
		func(c *flow.Ctx, name object.Name, gw *gwv1.Gateway, emit func(object.Name, *Gateway)) {
			if class, ok := g.class(c, gw); ok {
				emit(name, g.gateway(c, name, gw, class))
			}
		})
}

func (g *Graph) declareListeners() flow.Table[ListenerKey, *Listener] {
	return flow.Map("topology-listeners", g.Gateways,
		func(_ *flow.Ctx, _ object.Name, gw *Gateway, emit func(ListenerKey, *Listener)) {
			for _, l := range gw.Listeners {
				emit(l.Key, l)
			}
		})
}

// gateway makes the node of a Gateway, with its listeners.
func (g *Graph) gateway(c *flow.Ctx, name object.Name, gw *gwv1.Gateway, class *Class) *Gateway {
	a := g.requestedAddresses(gw)
	parameters := g.parametersOf(c, name)
	node := &Gateway{
		Name: name, Object: gw, Class: class.Name, Parameters: parameters.settings, Allow: parameters.allow,
		Fleet:    g.FleetOf(c, name),
		Unusable: a.unusable, Addresses: a.usable, Assigned: a.assigned, NoAddress: a.none,
		Provisioned: g.options.Provisioned,
		Listeners:   make([]*Listener, 0, len(gw.Spec.Listeners)),
	}
	if g.options.Experimental {
		node.AddressesAssigned = &a.outcome
	}
	var names, invalid, idle, unresolved []string
	drafts := g.drafts(c, gw, node.Fleet, parameters.edge())
	onFleet := g.refusesMember(c, node.Fleet, gw)
	g.resolveFleetConflicts(c, node.Fleet, drafts)
	for _, d := range drafts {
		g.dropHTTP3AtOwner(c, d)
		g.refuseSharedPort(c, name, d)
		if gw.Spec.AllowedListeners != nil {
			g.overlapSets(c, d)
		}
		l := g.listener(c, d)
		node.Listeners = append(node.Listeners, l)
		names = append(names, l.Key.Name())
		if !d.valid() {
			invalid = append(invalid, l.Key.Name())
		}
		if !l.Serves {
			idle = append(idle, l.Key.Name())
		}
		if r, ok := condition.Find(l.Conditions, string(gwv1.ListenerConditionResolvedRefs)); ok && r.Status == metav1.ConditionFalse {
			unresolved = append(unresolved, l.Key.Name())
		}
	}
	switch {
	case class.refuses():
		node.Accepted = condition.GatewayClassNotAccepted(class.Name, g.whyNot(gw.Namespace, class))
	case class.missing != "" && parameters.refused != nil:
		// First, since what the Gateway asks for is judged when its class exists.
		node.Accepted, node.Frozen, node.MissingClass = *parameters.refused, parameters.frozen, class.missing
	case onFleet != nil:
		node.Accepted = *onFleet
	case a.refused != nil:
		node.Accepted = *a.refused
	case parameters.refused != nil:
		node.Accepted, node.Frozen = *parameters.refused, parameters.frozen
	case len(invalid) == len(names):
		node.Accepted = condition.GatewayNoValidListener(names)
	case len(idle) > 0:
		node.Accepted = condition.GatewaySomeListenersNotValid(idle)
	default:
		node.Accepted = condition.Noted(condition.GatewayAccepted(), parameters.notes...)
	}
	if class.deleted() && class.missing == "" && condition.Good(node.Accepted) {
		node.Accepted = condition.Noted(node.Accepted, condition.NoteClassDeleted(class.Name))
	}
	node.ResolvedRefs = condition.GatewayResolvedRefs()
	if len(unresolved) > 0 {
		node.ResolvedRefs = condition.GatewayListenersNotResolved(unresolved)
	}
	var problem *metav1.Condition
	if node.ClientCertificate, problem = g.clientCertificate(c, gw); problem != nil {
		if len(unresolved) > 0 {
			*problem = condition.GatewayNotResolved(*problem, node.ResolvedRefs)
		}
		node.ResolvedRefs = *problem
	}
	if !node.Served() || a.none || onFleet != nil {
		for _, l := range node.Listeners {
			l.Serves = false
		}
	}
	return node
}

// refuseSharedPort refuses a listener whose port another Gateway on a shared host has.
func (g *Graph) refuseSharedPort(c *flow.Ctx, gateway object.Name, d *draft) {
	if g.portConflicts == nil || !d.valid() {
		return
	}
	if conflicts, ok := flow.Get(c, g.portConflicts, d.hostPort()); ok {
		if winner, lost := conflicts[gateway]; lost {
			d.refuse(condition.ListenerPortTaken(int(d.Port), winner.String()))
		}
	}
	if !d.HTTP3 {
		return
	}
	if conflicts, ok := flow.Get(c, g.portConflicts, hostPort{d.Port, true}); ok {
		if winner, lost := conflicts[gateway]; lost {
			d.dropHTTP3("Gateway " + winner.String())
		}
	}
}

// listener finishes a draft with what other objects decide.
func (g *Graph) listener(c *flow.Ctx, d *draft) *Listener {
	l := &d.Listener
	problems := d.problems
	terminates := d.terminatesTLS()
	if terminates {
		problems = slices.Concat(g.resolveCertificates(c, d), g.resolveClients(c, d), problems)
	}
	d.readFilters()
	l.Serves = d.valid() && (!terminates || len(l.Certificates) > 0)
	resolved := condition.Noted(condition.ListenerResolvedRefs(), d.notes...)
	if len(problems) > 0 {
		resolved = condition.ListenerNotResolved(problems)
	}
	l.Conditions = []metav1.Condition{d.accepted, d.conflict, resolved}
	if d.overlaps.Some() {
		overlapping := condition.ListenerOverlappingTLS
		if d.Protocol == gwv1.TLSProtocolType {
			overlapping = condition.ListenerOverlappingBytes
		}
		l.Conditions = append(l.Conditions, overlapping(d.overlaps))
	}
	return l
}

// resolveCertificates follows the listener's certificateRefs. A reference that is
// not permitted is not followed: its answer says nothing of the Secret.
func (g *Graph) resolveCertificates(c *flow.Ctx, d *draft) (problems []metav1.Condition) {
	var names []string
	refs := certificateRefs(d.spec)
	if len(refs) == 0 {
		return []metav1.Condition{condition.ListenerNoCertificate()}
	}
	owner := d.Key.Owner()
	for _, ref := range refs {
		secret := secretName(owner.Namespace, ref)
		if !isSecret(ref) {
			problems = append(problems, condition.ListenerCertificateKind(kindText(valueOr(ref.Group, ""), valueOr(ref.Kind, "Secret")), string(ref.Name)))
			continue
		}
		if !g.permitted(c, owner.Kind, owner.Namespace, object.Key{Kind: kind.Secret, Name: secret}) {
			problems = append(problems, condition.ListenerRefNotPermitted(secret.String(), g.grantFor(c, owner, object.Key{Kind: kind.Secret, Name: secret})))
			continue
		}
		cert, ok := flow.Get(c, g.Certificates, secret)
		switch {
		case !ok:
			problems = append(problems, condition.ListenerCertificateMissing(g.missing(c, object.Key{Kind: kind.Secret, Name: secret}, &owner)))
			continue
		case cert.Problem == secretMissing:
			problems = append(problems, cert.kept(condition.ListenerCertificateMissing(g.missing(c, object.Key{Kind: kind.Secret, Name: secret}, &owner))))
		case cert.Problem != "":
			problems = append(problems, cert.kept(condition.ListenerCertificateInvalid(secret.String(), cert.Problem)))
		}
		if cert.Usable() {
			d.Certificates = append(d.Certificates, secret)
			d.Validity = append(d.Validity, cert.Validity)
			names = append(names, cert.Names...)
		}
	}
	if d.Hostname != "" && !serveable(d.Hostname, names) {
		d.notes = append(d.notes, condition.NoteCertificateNames(d.Hostname, names))
	}
	return problems
}
