package cluster

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// staticGateway is a Gateway in the namespace ns, made at a second.
func staticGateway(name, class string, second int64) *gwv1.Gateway {
	g := &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, CreationTimestamp: metav1.NewTime(time.Unix(second, 0))}}
	g.Spec.GatewayClassName = gwv1.ObjectName(class)
	return g
}

// oneOf is the selection of a process for one Gateway.
func oneOf(o Static) *oneGateway {
	return newOneGateway(o, &Cluster{config: &configuration.Configuration{}})
}

// told is what a batch comes to: names set, and after a minus names deleted.
func told(b source.Batch) []string {
	out := []string{}
	for _, o := range b.Set {
		out = append(out, o.GetName())
	}
	for _, k := range b.Deleted {
		out = append(out, "-"+k.Name.Name)
	}
	slices.Sort(out)
	return out
}

// A process for one Gateway sees no other, and no other class; all else it does.
func TestStaticNamedGateway(t *testing.T) {
	s := oneOf(Static{Class: "c", Gateway: object.Name{Namespace: "ns", Name: "mine"}})
	got := told(s.take(source.Batch{
		Set: []source.Object{
			&gwv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, &gwv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "d"}},
			staticGateway("mine", "c", 2), staticGateway("other", "c", 1), &gwv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Name: "route"}},
		},
		Deleted: []object.Key{{Kind: kind.HTTPRoute, Name: object.Name{Name: "gone"}}},
	}))
	if diff := cmp.Diff([]string{"-gone", "c", "mine", "route"}, got); diff != "" {
		t.Error(diff)
	}
	statuses := map[object.Key]any{}
	s.statuses(statuses)
	if len(statuses) > 0 {
		t.Errorf("statuses of others: %v", statuses)
	}
}

// Without a name, the oldest Gateway of the class is served, the first by name of
// those of one age; the others are told, and take over when it goes.
func TestStaticOldestGateway(t *testing.T) {
	s := oneOf(Static{Class: "c"})
	for _, step := range []struct {
		what     string
		set      []source.Object
		deleted  []string
		seen     []string
		statuses map[string]bool // by name: a conflict, or none any more
	}{
		{what: "the first to come is not the oldest",
			set:  []source.Object{staticGateway("b", "c", 5), staticGateway("a", "c", 5), staticGateway("z", "other", 1)},
			seen: []string{"a"}, statuses: map[string]bool{"b": true}},
		{what: "an older one", set: []source.Object{staticGateway("old", "c", 3)},
			seen: []string{"-a", "old"}, statuses: map[string]bool{"a": true, "b": true}},
		{what: "a loser changes", set: []source.Object{staticGateway("b", "c", 5)}, seen: []string{}},
		{what: "the winner changes", set: []source.Object{staticGateway("old", "c", 3)}, seen: []string{"old"}},
		{what: "the winner goes", deleted: []string{"old"}, seen: []string{"-old", "a"}, statuses: map[string]bool{"b": true}},
		{what: "the winner leaves the class", set: []source.Object{staticGateway("a", "other", 5)}, seen: []string{"-a", "b"}},
		{what: "one enters, and leaves", set: []source.Object{staticGateway("a", "c", 5)}, seen: []string{"-b", "a"}, statuses: map[string]bool{"b": true}},
		{what: "a loser goes", deleted: []string{"b"}, seen: []string{"-b"}, statuses: map[string]bool{"b": false}},
		{what: "the last goes", deleted: []string{"a"}, seen: []string{"-a"}},
	} {
		b := source.Batch{Set: step.set}
		for _, name := range step.deleted {
			b.Deleted = append(b.Deleted, gatewayKey(object.Name{Namespace: "ns", Name: name}))
		}
		if diff := cmp.Diff(step.seen, told(s.take(b))); diff != "" {
			t.Errorf("%s: %s", step.what, diff)
		}
		statuses := map[object.Key]any{}
		s.statuses(statuses)
		got := map[string]bool{}
		for k, status := range statuses {
			got[k.Name.Name] = status != nil
		}
		if step.statuses == nil {
			step.statuses = map[string]bool{}
		}
		if diff := cmp.Diff(step.statuses, got); diff != "" {
			t.Errorf("%s, statuses: %s", step.what, diff)
		}
	}
}
