package status

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// ListenerSetInput is what the status of a ListenerSet follows from. The fields are
// those of GatewayInput.
type ListenerSetInput struct {
	Node           *topology.ListenerSet
	AttachedRoutes func(topology.ListenerKey) int32
	Filters        func(*topology.Listener) *topology.ListenerFilters
	// Reader is whom the conditions are for: the Gateway may be another namespace's.
	Reader condition.Reader
	// Proxy is what the Gateway's proxies say, of the set's listeners at least.
	Proxy   ProxyState
	NoProxy string
	// Unreachable, where set, is why the Gateway lacks addresses.
	Unreachable *metav1.Condition
	Now         time.Time
	// Affected are the policies that target the ListenerSet or its listeners.
	Affected []topology.Affecting
}

// ListenerSet is the status of a ListenerSet. Its conditions tell of its own
// listeners only, unless its Gateway is not accepted or not programmed.
func ListenerSet(in ListenerSetInput) gwv1.ListenerSetStatus {
	listeners := listenerInput{
		object: in.Node.Object, unusable: in.Node.Unusable,
		attachedRoutes: in.AttachedRoutes, filters: in.Filters, proxy: in.Proxy, noProxy: in.NoProxy, now: in.Now,
		reader: in.Reader,
	}
	if !in.Reader.Sees(in.Node.Gateway.Namespace) {
		listeners.noProxy = "" // it tells of the Gateway's pods
	}
	if in.Node.Accepted.Reason == string(gwv1.ListenerSetReasonParentNotAccepted) {
		listeners.refused = in.Node.Accepted.Message
	}
	summary := summary{}
	var entries []gwv1.ListenerEntryStatus
	for _, l := range in.Node.Listeners {
		conditions := listeners.conditions(l)
		summary.count(l, conditions, listeners.oldInForce(l))
		conditions = append(conditions, affected(in.Reader, in.Affected, exactly(l.Key.Name()))...)
		entries = append(entries, gwv1.ListenerEntryStatus(listeners.status(l, conditions)))
	}
	conditions := append([]metav1.Condition{in.accepted(&summary), in.programmed(&summary, &listeners)}, affected(in.Reader, in.Affected, wholly)...)
	return gwv1.ListenerSetStatus{
		Conditions: observed(in.Node.Object, conditions...),
		Listeners:  entries,
	}
}

// accepted is the node's condition, unless the proxy found something invalid that
// it could not know of.
func (in *ListenerSetInput) accepted(s *summary) metav1.Condition {
	c := in.Node.Accepted
	if c.Status == metav1.ConditionTrue && c.Reason == string(gwv1.ListenerSetReasonAccepted) && len(s.refused) > 0 {
		if s.onlyOld() {
			return condition.ListenerSetOldListeners(s.refused)
		}
		return condition.ListenerSetSomeListenersNotValid(s.refused)
	}
	return c
}

func (in *ListenerSetInput) programmed(s *summary, listeners *listenerInput) metav1.Condition {
	switch {
	case in.Node.Accepted.Status != metav1.ConditionTrue:
		return condition.ListenerSetNotProgrammed(in.Node.Accepted)
	case in.Unreachable != nil:
		return condition.ListenerSetParentNotProgrammed(in.Node.Gateway.String(), in.Reader.Why(in.Node.Gateway.Namespace, in.Unreachable.Message))
	case s.programmed > 0 && len(s.silent) == 0:
		return condition.ListenerSetProgrammed()
	case s.programmed > 0:
		return condition.ListenerSetProgrammedWithout(s.silent)
	case s.pending == 0 && s.old > 0 && s.old == len(s.silent):
		return condition.ListenerSetOldProgrammed(s.silent)
	case s.pending == 0:
		return condition.ListenerSetNoListenerProgrammed(s.silent)
	default:
		return condition.ListenerSetPending(listeners.waitsFor())
	}
}
