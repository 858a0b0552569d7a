package cluster

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/configuration"
)

// setOf is a ListenerSet, and a Gateway of a class that takes it.
func setOf(gateway string) string {
	return `{apiVersion: gateway.networking.k8s.io/v1, kind: ListenerSet, metadata: {namespace: team, name: ` + gateway + `},
		spec: {parentRef: {name: ` + gateway + `}, listeners: [{name: more, port: 81, protocol: HTTP}]}}`
}

func parentOf(class, name string) string {
	return strings.Replace(namedGateway(name, class), "spec: {", "spec: {allowedListeners: {namespaces: {from: Same}}, ", 1)
}

// setStatus returns a ListenerSet's Accepted and Programmed.
func (in *installed) setStatus(name string) (set *gwv1.ListenerSet, accepted, programmed metav1.Condition) {
	in.Helper()
	set = &gwv1.ListenerSet{}
	if err := in.client.Get(in.Context(), client.ObjectKey{Namespace: "team", Name: name}, set); err != nil {
		in.Fatal(err)
	}
	accepted, _ = condition.Find(set.Status.Conditions, string(gwv1.ListenerSetConditionAccepted))
	programmed, _ = condition.Find(set.Status.Conditions, string(gwv1.ListenerSetConditionProgrammed))
	return set, accepted, programmed
}

// TestListenerSetWithoutGateway protects from ListenerSets that go on to say Accepted and
// Programmed though their Gateway is gone, and from two controllers that answer one set.
func TestListenerSetWithoutGateway(t *testing.T) {
	in := install(t)
	in.apply(`{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: internal}, spec: {controllerName: example.com/internal}}`)
	other := func(c *configuration.Configuration) { c.ControllerName = "example.com/internal" }
	in.mayClaim("example.com/internal")
	in.apply(parentOf("gatehouse", "ours"), setOf("ours"), parentOf("internal", "theirs"), setOf("theirs"))
	accepted := func(name string) {
		t.Helper()
		in.until("ListenerSet "+name+" is accepted", func() bool {
			_, a, _ := in.setStatus(name)
			return a.Status == metav1.ConditionTrue
		})
	}
	lost := func(name string) {
		t.Helper()
		in.until("ListenerSet "+name+" says that its Gateway is gone", func() bool {
			_, a, p := in.setStatus(name)
			if a.Status == metav1.ConditionUnknown {
				t.Errorf("meanwhile it says %v", a)
			}
			return a.Status == metav1.ConditionFalse && a.Reason == string(gwv1.ListenerSetReasonParentNotAccepted) &&
				strings.Contains(a.Message, "team/"+name) && p.Status == metav1.ConditionFalse
		})
		if set, _, _ := in.setStatus(name); len(set.Status.Listeners) != 0 {
			t.Errorf("its listeners still say %v", set.Status.Listeners)
		}
	}
	remove := func(name string) {
		t.Helper()
		gw := &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		if err := in.client.Delete(t.Context(), gw); err != nil {
			t.Fatal(err)
		}
	}

	theirs := in.start(other)
	accepted("theirs")
	theirs.end()
	remove("theirs") // while nobody looks

	ours := in.start()
	accepted("ours")
	remove("ours")
	lost("ours")
	const alert = `gatehouse_objects_need_attention{kind="ListenerSet",reason="ParentNotAccepted"} 1`
	in.until("an alert can tell of it", func() bool { return slices.Contains(ours.needAttention(), alert) })
	in.apply(parentOf("gatehouse", "ours"))
	accepted("ours")
	in.until("no alert tells of it any more", func() bool { return !slices.Contains(ours.needAttention(), alert) })
	ours.end()
	remove("ours")

	// The other controller answers its own set and no other.
	theirs = in.start(other)
	lost("theirs")
	theirs.end()
	if _, a, _ := in.setStatus("ours"); a.Status != metav1.ConditionTrue {
		t.Errorf("another controller wrote %v", a)
	}

	before, _, _ := in.setStatus("theirs")
	ours = in.start()
	lost("ours")
	if after, _, _ := in.setStatus("theirs"); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("another controller's set was written: %v", after.Status.Conditions)
	}
	written, _, _ := in.setStatus("ours")

	// A restart writes nothing. A change of the set is answered.
	ours.end()
	in.start()
	in.apply(strings.Replace(setOf("ours"), "port: 81", "port: 82", 1))
	in.until("the change is answered", func() bool {
		set, a, _ := in.setStatus("ours")
		return a.ObservedGeneration == set.Generation && set.Generation > written.Generation
	})
}
