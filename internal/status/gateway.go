package status

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// GatewayInput is what the status of a Gateway follows from.
type GatewayInput struct {
	Node *topology.Gateway
	// AttachedRoutes counts the routes on a listener.
	AttachedRoutes func(topology.ListenerKey) int32
	// Filters are those of a listener before routing, see topology.Graph.FiltersOf.
	Filters func(*topology.Listener) *topology.ListenerFilters
	Proxy   ProxyState
	// AttachedSets is how many ListenerSets the Gateway has accepted.
	AttachedSets int
	// BindAddresses are where the Gateway can be reached if its spec asks for no
	// addresses: IP addresses, or host names of load balancers.
	BindAddresses []string
	// ClusterAddresses are the ClusterIPs of the Service in front of the proxies, if
	// there is one.
	ClusterAddresses []string
	// NoAddress says, where that is known, why the Gateway has no address.
	NoAddress string
	// NoProxy says, where that is known, why no proxy is connected.
	NoProxy string
	// FleetProblem is why the Gateway's proxies and their Service can't be made what
	// they should be; empty where they can.
	FleetProblem string
	// Rollout says, where not all proxies run what they should, how many do and why;
	// empty otherwise.
	Rollout string
	// RolledOut is the condition of that name; nil where the rollout has no steps.
	RolledOut *metav1.Condition
	// Moving says, where the Gateway is served by the proxies of its former class, until
	// when; empty otherwise.
	Moving string
	// Withheld is what the proxies are not told.
	Withheld Withheld
	// Children are the objects of its class's blueprint; nil where that has none.
	Children *Children
	// Patched says what has become of patches for Envoy; nil for none.
	Patched *metav1.Condition
	// Extended says what has become of the questions to extension servers; nil without any.
	Extended *metav1.Condition
	// Affected are the policies that target the Gateway or its listeners.
	Affected []topology.Affecting
	// Now, where set, is the time by which certificates are judged. It may lag by
	// clockGrain.
	Now time.Time
}

// Children is how the objects are that a blueprint makes of a Gateway.
type Children struct {
	Count int
	// Missing and NotReady say of each that is not there, or not ready, why.
	Missing, NotReady []string
	// Unguarded says that a policy is missing, for which proxies wait.
	Unguarded bool
	// Note is what there is to say of the blueprint; empty for nothing.
	Note string
}

// Gateway is the status of a Gateway. Listeners that ListenerSets define are in
// the statuses of those.
func Gateway(in GatewayInput) gwv1.GatewayStatus {
	each := listenerInput{
		object: in.Node.Object, unusable: in.Node.Unusable,
		attachedRoutes: in.AttachedRoutes, filters: in.Filters, proxy: in.Proxy, noProxy: in.NoProxy, now: in.Now,
		reader: condition.Reader{Namespace: in.Node.Object.Namespace},
	}
	if !in.Node.Served() {
		each.refused = "The Gateway is not accepted: " + in.Node.Accepted.Message
	}
	summary := summary{}
	var listeners []gwv1.ListenerStatus
	var unresolved []string
	for _, l := range in.Node.Listeners {
		conditions := each.conditions(l)
		summary.count(l, conditions, each.oldInForce(l))
		if c, ok := condition.Find(conditions, string(gwv1.ListenerConditionResolvedRefs)); ok && c.Status == metav1.ConditionFalse {
			unresolved = append(unresolved, l.Key.Name())
		}
		conditions = append(conditions, affected(each.reader, in.Affected, exactly(l.Key.Name()))...)
		listeners = append(listeners, each.status(l, conditions))
	}
	assigned := in.assigned()
	addresses := in.addresses(assigned.Addresses)
	programmed := in.programmed(&summary, &each, in.unreachable(&assigned))
	if in.FleetProblem != "" && !strings.Contains(programmed.Message, in.FleetProblem) {
		programmed = condition.Noted(programmed, condition.NoteFleetProblem(in.FleetProblem))
	}
	if in.Rollout != "" {
		programmed = condition.Noted(programmed, in.Rollout)
	}
	if in.Withheld == WithheldNext {
		programmed = condition.Noted(programmed, condition.NoteWithheld())
	}
	if in.Proxy.Behind != "" {
		programmed = condition.Noted(programmed, in.Proxy.Behind)
	}
	if in.Moving != "" {
		programmed = condition.Noted(programmed, in.Moving)
	}
	if ch := in.Children; ch != nil && (len(ch.Missing) > 0 || ch.Unguarded) {
		note := condition.NoteChildren(ch.Missing, ch.Unguarded)
		if programmed.Status == metav1.ConditionTrue {
			programmed = condition.GatewayPending(note)
		} else {
			programmed = condition.Noted(programmed, note)
		}
	}
	if ch := in.Children; ch != nil && ch.Note != "" {
		programmed = condition.Noted(programmed, ch.Note)
	}
	conditions := []metav1.Condition{in.accepted(&summary), programmed}
	if ch := in.Children; ch != nil {
		conditions = append(conditions, ch.ready())
	}
	if in.RolledOut != nil {
		conditions = append(conditions, *in.RolledOut)
	}
	if in.Node.ResolvedRefs.Type != "" {
		conditions = append(conditions, in.resolvedRefs(unresolved))
	}
	if in.Node.AddressesAssigned != nil && in.Node.Served() {
		conditions = append(conditions, assigned.Outcome)
	}
	if scope, ok := topology.DefaultScope(in.Node.Object.Spec.DefaultScope); ok {
		conditions = append(conditions, condition.GatewayIsDefault(string(scope)))
	}
	if in.Node.InsecureFrontend() {
		conditions = append(conditions, condition.GatewayInsecureFrontend())
	}
	if in.Patched != nil {
		conditions = append(conditions, *in.Patched)
	}
	if in.Extended != nil {
		conditions = append(conditions, *in.Extended)
	}
	conditions = append(conditions, affected(each.reader, in.Affected, wholly)...)
	out := gwv1.GatewayStatus{
		Addresses:  addresses,
		Conditions: observed(in.Node.Object, conditions...),
		Listeners:  listeners,
	}
	// A Gateway that knows nothing of ListenerSets says nothing of them.
	if in.AttachedSets > 0 || in.Node.Object.Spec.AllowedListeners != nil {
		out.AttachedListenerSets = new(int32(in.AttachedSets)) //nolint:gosec // a count of objects in memory
	}
	return out
}

// ready is whether all of them are.
func (ch *Children) ready() metav1.Condition {
	why := slices.Concat(ch.Missing, ch.NotReady)
	if len(why) > 0 {
		return condition.GatewayChildrenNotReady(why)
	}
	return condition.GatewayChildrenReady(ch.Count)
}

// summary is what a Gateway's conditions follow from, by listener.
type summary struct {
	programmed, pending int
	silent              []string // neither programmed nor pending
	refused             []string // of the silent ones, those that only the proxy refuses
	old                 int      // of these, those of which an earlier version is in force
}

// count takes in a listener. Old is whether an earlier version than the newest is in force.
func (s *summary) count(l *topology.Listener, conditions []metav1.Condition, old oldVersion) {
	p, _ := condition.Find(conditions, string(gwv1.ListenerConditionProgrammed))
	switch {
	case p.Status == metav1.ConditionTrue:
		s.programmed++
	case p.Reason == string(gwv1.ListenerReasonPending):
		s.pending++
	default:
		s.silent = append(s.silent, l.Key.Name())
		if l.Serves {
			s.refused = append(s.refused, l.Key.Name())
		}
		if old {
			s.old++
		}
	}
}

// onlyOld reports whether of all listeners that are refused an earlier version is in force.
func (s *summary) onlyOld() bool { return s.old > 0 && s.old == len(s.refused) }

// accepted is the node's condition, unless the proxy found something invalid that
// it could not know of.
func (in *GatewayInput) accepted(s *summary) metav1.Condition {
	c := in.Node.Accepted
	if c.Status == metav1.ConditionTrue && c.Reason == string(gwv1.GatewayReasonAccepted) && len(s.refused) > 0 {
		if s.onlyOld() {
			return condition.GatewayOldListeners(s.refused)
		}
		return condition.GatewaySomeListenersNotValid(s.refused)
	}
	return c
}

// resolvedRefs is the node's condition, unless the proxy refuses the client
// certificate, or a service before routing, of which the node knows nothing, can't be asked.
func (in *GatewayInput) resolvedRefs(unresolved []string) metav1.Condition {
	secret := ir.Certificate(in.Node.ClientCertificate)
	if r, ok := in.Proxy.Rejected[SecretRef(secret)]; ok && !secret.IsZero() {
		return condition.GatewayClientCertificateRefused(secret.String(), r.Message)
	}
	if in.Node.ResolvedRefs.Status == metav1.ConditionTrue && len(unresolved) > 0 {
		return condition.GatewayListenersNotResolved(unresolved)
	}
	return in.Node.ResolvedRefs
}

// Unreachable is why a Gateway is not Programmed whatever its proxies do: it lacks
// addresses, or they are not told what is new. It is nil where neither is so.
func Unreachable(in GatewayInput) *metav1.Condition {
	assigned := in.assigned()
	return in.unreachable(&assigned)
}

func (in *GatewayInput) unreachable(a *topology.Assignment) *metav1.Condition {
	switch {
	case in.Withheld == WithheldNewest:
		return new(condition.GatewayWithheld())
	case len(a.Addresses) == 0 && in.NoAddress != "":
		return new(condition.GatewayAddressNotAssigned(in.NoAddress))
	case a.Unusable != nil:
		return a.Unusable
	case len(a.Addresses) == 0:
		return new(condition.GatewayAddressNotAssigned(condition.AddressNoneYet()))
	default:
		return nil
	}
}

func (in *GatewayInput) programmed(s *summary, each *listenerInput, unreachable *metav1.Condition) metav1.Condition {
	switch {
	case !in.Node.Served():
		return condition.GatewayNotProgrammed(in.Node.Accepted)
	case unreachable != nil:
		return *unreachable
	case s.programmed > 0 && len(s.silent) == 0:
		return condition.GatewayProgrammed()
	case s.programmed > 0:
		return condition.GatewayProgrammedWithout(s.silent)
	case s.pending == 0 && s.old > 0 && s.old == len(s.silent):
		return condition.GatewayOldProgrammed(s.silent)
	case s.pending == 0:
		return condition.GatewayNoListenerProgrammed(s.silent)
	case in.Rollout != "": // which says why no proxy is connected
		waits := *each
		waits.noProxy = ""
		return condition.GatewayPending(waits.waitsFor())
	default:
		return condition.GatewayPending(each.waitsFor())
	}
}

// maxAddresses is the API's limit.
const maxAddresses = 16

// assigned are the addresses that the spec asks for and that can be used, else the
// default ones.
func (in *GatewayInput) assigned() topology.Assignment {
	switch node := in.Node; {
	case !node.Served():
		return topology.Assignment{} // it is not to be reached anywhere
	case node.Provisioned:
		return node.Assign(topology.ServiceAddresses{Addresses: in.BindAddresses, Cluster: in.ClusterAddresses})
	default:
		a := topology.Assignment{Addresses: node.Assigned, Unusable: node.Unusable}
		if node.AddressesAssigned != nil {
			a.Outcome = *node.AddressesAssigned
		}
		if node.NoAddress {
			a.Addresses = nil
		} else if node.Assigned == nil {
			a.Addresses = topology.ServiceAddresses{Addresses: in.BindAddresses}.All()
		}
		return a
	}
}

// addresses shows them. In the experimental channel each tells its routability.
func (in *GatewayInput) addresses(list []topology.Address) []gwv1.GatewayStatusAddress {
	var out []gwv1.GatewayStatusAddress
	for _, a := range list[:min(len(list), maxAddresses)] {
		told := gwv1.GatewayStatusAddress{Type: &a.Type, Value: a.Value}
		if in.Node.AddressesAssigned != nil {
			told.Routability = &a.Routability
		}
		out = append(out, told)
	}
	return out
}
