package view

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// Live returns the objects of a pipeline with the statuses that a controller has
// written into them, those of a namespace and of none; all if it is empty. objects are
// those of the pipeline, as they are in the cluster. Of those that no controller serves,
// for a mistake in a name, it says so.
func Live(p *pipeline.Pipeline, objects map[object.Key]source.Object, controller, namespace string) View {
	v := of(p, func(k object.Key) any { return ownStatus(p.Kinds, objects[k], controller) })
	addresses := map[object.Name][]string{} // of Gateways
	for i := range v.Items {
		if status, ok := v.Items[i].Status.(*gwv1.GatewayStatus); ok {
			list := []string{}
			for _, a := range status.Addresses {
				list = append(list, a.Value)
			}
			addresses[v.Items[i].gateway] = list
		}
	}
	for i := range v.Items {
		it := &v.Items[i]
		for j := range it.Summary.Listeners {
			l := &it.Summary.Listeners[j]
			l.Addrs = addresses[it.gateway]
			if l.State == "" {
				l.State = pending // the status doesn't have it yet
			}
		}
		if s, ok := it.Status.(*gwv1.PolicyStatus); !ok || len(s.Ancestors) > 0 || !concernsNobody(p, it.object()) {
			it.waits()
		}
	}
	shown, unread := map[object.Key]bool{}, map[object.Kind]bool{}
	for _, it := range v.Items {
		shown[it.object()] = true
	}
	for _, problem := range v.Problems {
		if problem.Reason == source.Unread {
			unread[problem.Key.Kind] = true
		}
	}
	others := unserved{kinds: p.Kinds, objects: objects, controller: controller, unread: unread, held: map[object.Name]bool{}}
	others.prepare()
	others.overrule(v.Items)
	others.items(shown, func(it Item) { v.Items = append(v.Items, it) })
	sortItems(p.Kinds, v.Items)
	v.behindSets()
	v.Items = slices.DeleteFunc(v.Items, func(it Item) bool { return Elsewhere(it.Metadata.Namespace, namespace) })
	v.Problems = slices.DeleteFunc(v.Problems, func(p source.Problem) bool { return Elsewhere(p.Key.Namespace, namespace) })
	return v
}

// Elsewhere reports whether something in a namespace is left out where another one is
// chosen. Nothing is if the choice is empty, and neither is what has no namespace.
func Elsewhere(namespace, chosen string) bool {
	return chosen != "" && namespace != "" && namespace != chosen
}

// concernsNobody reports whether a controller has nothing to say in the status of a policy: no
// Gateway is concerned with it, and it names nothing that doesn't exist.
func concernsNobody(p *pipeline.Pipeline, policy object.Key) (yes bool) {
	p.Engine.View(func(c *flow.Ctx) {
		for _, table := range p.Statuses {
			if s, ok := table.Of(c, policy).(*gwv1.PolicyStatus); ok {
				yes = len(s.Ancestors) == 0
			}
		}
	})
	return yes
}

// waits says that a status is older than its object, or not there at all: that is
// nothing that the controller has said.
func (it *Item) waits() {
	said, newest := false, int64(0)
	for _, list := range conditionsOf(it.kind.Status, it.Status) {
		for _, c := range list {
			said = said || c.Status != metav1.ConditionUnknown
			newest = max(newest, c.ObservedGeneration)
		}
	}
	switch {
	case !said:
		it.Summary.State, it.Summary.OK = pending, false
		it.Summary.Message = "the controller has not answered: see that it runs"
	case newest < it.Metadata.Generation:
		it.Summary.State, it.Summary.OK = pending, false
		it.Summary.Message = fmt.Sprintf("the controller has not seen generation %d yet; the status is of %d", it.Metadata.Generation, newest)
	}
}

// ownStatus returns a copy of what a controller says in an object's status, as a
// pointer to the kind's status; nil for kinds without one, and where there is no object.
func ownStatus(kinds *kind.Table, o source.Object, controller string) any {
	d := kinds.OfObject(o)
	if d == nil || d.Status == nil {
		return nil
	}
	return d.Status.Own(d.Status.Of(o), gwv1.GatewayController(controller))
}
