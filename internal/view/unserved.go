package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/policy/inherited"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// unserved finds the objects of a cluster that no controller serves, because of a name:
// Gateways whose class does not exist, and routes, ListenerSets and inherited policies whose Gateway
// does not exist or is one of those. Nobody writes a status for them, so nothing else tells a
// person of them.
type unserved struct {
	kinds      *kind.Table
	objects    map[object.Key]source.Object
	controller string
	// unread are kinds of which some objects may be unknown: of them, nothing is missing.
	unread map[object.Kind]bool
	// held are Gateways whose controller says itself that their class doesn't exist: it goes on
	// to serve them.
	held map[object.Name]bool
	ours []string // the names of this controller's classes, in quotes
}

// prepare finds the classes of the controller.
func (u *unserved) prepare() {
	for _, o := range u.objects {
		if class, ok := o.(*gwv1.GatewayClass); ok && string(class.Spec.ControllerName) == u.controller {
			u.ours = append(u.ours, fmt.Sprintf("%q", class.Name))
		}
	}
	slices.Sort(u.ours)
}

// overrule corrects the rows of objects whose status a controller has written that serves
// them no longer: a status stays when its writer is gone.
func (u *unserved) overrule(items []Item) {
	for i := range items {
		if it := &items[i]; it.kind.Kind == kind.Gateway && it.Summary.State == condition.ReasonClassNotFound {
			u.held[it.object().Name] = true
		}
	}
	for i := range items {
		it := &items[i]
		state, why := u.why(it.object(), u.objects[it.object()])
		if why == "" || it.Summary.State == state {
			continue
		}
		it.Summary.State, it.Summary.OK, it.Summary.Message = state, false, why
		for j := range it.Summary.Listeners {
			l := &it.Summary.Listeners[j]
			l.State, l.OK, l.Message, l.Notes = state, false, "", ""
		}
	}
}

// why says why nobody serves an object, and its state; the reason is empty if somebody may.
func (u *unserved) why(key object.Key, o source.Object) (state, why string) {
	switch o := o.(type) {
	case *gwv1.Gateway:
		return condition.ReasonClassNotFound, u.noClass(o)
	case *gwv1.ListenerSet:
		return string(gwv1.ListenerSetReasonParentNotAccepted),
			u.noGateway(topology.ParentOfSet(o), condition.ListenerSetNoGateway, condition.ListenerSetParentNotAccepted)
	}
	if reach := inheritedReach(o, u.find); len(reach.Targets)+len(reach.Selections) > 0 {
		return string(gwv1.PolicyReasonTargetNotFound), u.noTarget(key.Kind, &reach)
	}
	if d := u.kinds.Of(key.Kind); o == nil || d.Family != kind.Route {
		return "", ""
	}
	return string(gwv1.RouteReasonNoMatchingParent), u.noParent(key.Name, o)
}

// items yields those objects that are not shown already.
func (u *unserved) items(shown map[object.Key]bool, yield func(Item)) {
	for key, o := range u.objects {
		if shown[key] {
			continue
		}
		d := u.kinds.Of(key.Kind)
		var sum Summary
		sum.State, sum.Message = u.why(key, o)
		if sum.Message == "" {
			continue
		}
		sum.label(key, o)
		it := item(o, d.Status.Own(d.Status.Of(o), gwv1.GatewayController(u.controller)))
		it.TypeMeta, it.kind, it.Summary = d.TypeMeta(d.Versions[0].Name), d, sum
		yield(*it)
	}
}

// label adds what an object's row says besides its state.
func (s *Summary) label(key object.Key, o source.Object) {
	switch o := o.(type) {
	case *gwv1.Gateway:
		s.Class = string(o.Spec.GatewayClassName)
	case *gwv1.ListenerSet:
		s.Parents = []string{topology.ParentOfSet(o).String()}
	default:
		for _, ref := range topology.ParentRefs(o) {
			s.Parents = append(s.Parents, parentLabel(key.Namespace, ref))
		}
		for _, h := range topology.Hostnames(o) {
			s.Hosts = append(s.Hosts, string(h))
		}
	}
}

// noClass says why a Gateway has no class; it is empty if it has one, anybody's.
func (u *unserved) noClass(gw *gwv1.Gateway) string {
	named := string(gw.Spec.GatewayClassName)
	if u.held[object.Name{Namespace: gw.Namespace, Name: gw.Name}] || u.unread[kind.GatewayClass] || u.objects[object.Key{Kind: kind.GatewayClass, Name: object.Name{Name: named}}] != nil {
		return ""
	}
	other := ""
	if len(u.ours) > 0 {
		other = "name another one (of this controller there is " + strings.Join(u.ours, ", ") + "), or "
	}
	return fmt.Sprintf("spec.gatewayClassName names GatewayClass %q, which doesn't exist, so no controller serves the Gateway; %screate it with controllerName %s",
		named, other, u.controller)
}

// noGateway says why a Gateway serves nothing, in the words of who refers to it; it is
// empty if somebody may serve it.
func (u *unserved) noGateway(name object.Name, missing func(condition.Missing) metav1.Condition, refused func(string, string) metav1.Condition) string {
	gw, ok := u.objects[object.Key{Kind: kind.Gateway, Name: name}].(*gwv1.Gateway)
	if !ok {
		if u.unread[kind.Gateway] {
			return ""
		}
		return missing(condition.Missing{Kind: kind.Gateway.Name(), Namespace: name.Namespace, Name: name.Name}).Message
	}
	if why := u.noClass(gw); why != "" {
		return refused(name.String(), why).Message
	}
	return ""
}

// noTarget says why a policy of a kind is for nothing that could be served; it is empty if one of its
// targets may be.
func (u *unserved) noTarget(by object.Kind, reach *topology.PolicyReach) string {
	missing := func(why metav1.Condition) string {
		if d := u.kinds.Of(by); d != nil && d.Guards {
			why = condition.Unguarded(why)
		}
		return why.Message
	}
	first := ""
	for _, t := range reach.Targets {
		why := ""
		if o := u.objects[t.Key]; o != nil {
			_, why = u.why(t.Key, o)
			if why != "" {
				why = t.Key.String() + " is not served: " + why
			}
		} else if !u.unread[t.Kind] {
			why = missing(condition.PolicyTargetMissing(condition.Missing{Kind: t.Kind.Name(), Namespace: t.Namespace, Name: t.Name.Name}))
		}
		if why == "" {
			return ""
		}
		first = cmp.Or(first, why)
	}
	for _, s := range reach.Selections {
		switch {
		case s.Count > 0:
		case u.unread[s.Kind]:
			return ""
		default:
			first = cmp.Or(first, missing(condition.PolicySelectsNothing([]string{condition.NothingSelected(s.Kind.Name(), s.Namespace, s.String())})))
		}
	}
	return first
}

// find yields what a selector selects.
func (u *unserved) find(s topology.PolicySelector, yield func(object.Key, time.Time)) {
	for key, o := range u.objects {
		if key.Kind == s.Kind && key.Namespace == s.Namespace && s.Matches(o.GetLabels()) {
			yield(key, o.GetCreationTimestamp().Time)
		}
	}
}

// noSet says why a ListenerSet serves nothing, in the words of a route; it is empty if
// somebody may serve it.
func (u *unserved) noSet(name object.Name) string {
	set, ok := u.objects[object.Key{Kind: kind.ListenerSet, Name: name}].(*gwv1.ListenerSet)
	if !ok {
		if u.unread[kind.ListenerSet] {
			return ""
		}
		return condition.RouteNoListenerSet(condition.Missing{Kind: kind.ListenerSet.Name(), Namespace: name.Namespace, Name: name.Name}).Message
	}
	why := u.noGateway(topology.ParentOfSet(set), condition.ListenerSetNoGateway, condition.ListenerSetParentNotAccepted)
	if why == "" {
		return ""
	}
	return condition.RouteSetNotAttached(name.String(), why).Message
}

// noParent says why none of a route's parents serves it; it is empty if one may.
func (u *unserved) noParent(route object.Name, o topology.RouteObject) string {
	first := ""
	for _, ref := range topology.ParentRefs(o) {
		why := ""
		switch of, name := topology.ParentOf(route, &ref); string(of) {
		case kind.Gateway.Name():
			why = u.noGateway(name, condition.RouteNoGateway, condition.RouteGatewayNotServed)
		case kind.ListenerSet.Name():
			why = u.noSet(name)
		}
		if why == "" {
			return ""
		}
		first = cmp.Or(first, why)
	}
	return first
}

// inheritedReach is what an object targets that is a policy which is inherited, as far as something
// can be, and what selects it; nothing of other objects.
func inheritedReach(o source.Object, find policy.Finder) (reach policy.Reach) {
	switch p := o.(type) {
	case *v1alpha1.AuthPolicy:
		reach, _ = inherited.Reach(kind.AuthPolicy, p.Namespace, p.Spec.TargetRefs, p.Spec.TargetSelectors, find)
	case *v1alpha1.RateLimitPolicy:
		reach, _ = inherited.Reach(kind.RateLimitPolicy, p.Namespace, p.Spec.TargetRefs, p.Spec.TargetSelectors, find)
	case *v1alpha1.TrafficPolicy:
		reach, _ = inherited.Reach(kind.TrafficPolicy, p.Namespace, p.Spec.TargetRefs, p.Spec.TargetSelectors, find)
	}
	return reach
}
