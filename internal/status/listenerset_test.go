package status_test

import (
	compare "cmp"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/status"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// TestListenerSetConditions says what the conditions of a ListenerSet and its
// listeners are while the Gateway's and the proxy's part change.
func TestListenerSetConditions(t *testing.T) {
	say := func(c ...metav1.Condition) string { return short(c) }
	accepted := condition.ListenerSetAccepted()
	fine := func() *topology.Listener { return listener("fine", 80, gwv1.HTTPProtocolType) }
	taken, conflict := condition.ListenerHostnameTaken(80, "x.test", "Gateway infra/gw")
	lost := func() *topology.Listener {
		l := listener("lost", 80, gwv1.HTTPProtocolType)
		l.Serves = false
		l.Conditions = []metav1.Condition{taken, conflict, condition.ListenerResolvedRefs()}
		return l
	}
	lostSays := say(taken, conflict, condition.ListenerResolvedRefs(), condition.ListenerNotProgrammed(taken))
	some := condition.ListenerSetSomeListenersNotValid([]string{"lost"})
	none := condition.ListenerSetNoValidListener([]string{"lost"})
	refused := condition.ListenerSetParentNotAccepted("infra/gw", "no")
	notAllowed := condition.ListenerSetNotAllowed("infra/gw", "None", "team")
	unusable := condition.GatewayAddressNotUsable([]string{"10.9.9.9"})
	fineSays := func(programmed metav1.Condition) string {
		return say(condition.ListenerAccepted(), condition.ListenerNoConflicts(), condition.ListenerResolvedRefs(), programmed)
	}

	for name, c := range map[string]struct {
		accepted  metav1.Condition
		unusable  *metav1.Condition
		listeners []*topology.Listener
		proxy     status.ProxyState
		reader    condition.Reader // the Gateway's owner, if not set
		want      string
		wantEach  []string
	}{
		"programmed": {
			accepted: accepted, listeners: []*topology.Listener{fine()}, proxy: acknowledged("http-80"),
			want: say(accepted, condition.ListenerSetProgrammed()), wantEach: []string{fineSays(condition.ListenerProgrammed())},
		},
		"waiting": {
			accepted: accepted, listeners: []*topology.Listener{fine()},
			want:     say(accepted, condition.ListenerSetPending("Waiting for a proxy to connect")),
			wantEach: []string{fineSays(condition.ListenerPending("Waiting for a proxy to connect"))},
		},
		"one lost a conflict": {
			accepted: some, listeners: []*topology.Listener{fine(), lost()}, proxy: acknowledged("http-80"),
			want:     say(some, condition.ListenerSetProgrammedWithout([]string{"lost"})),
			wantEach: []string{fineSays(condition.ListenerProgrammed()), lostSays},
		},
		"all lost": {
			accepted: none, listeners: []*topology.Listener{lost()}, proxy: acknowledged("http-80"),
			want: say(none, condition.ListenerSetNotProgrammed(none)), wantEach: []string{lostSays},
		},
		"the proxy refuses": {
			accepted: accepted, listeners: []*topology.Listener{fine()},
			proxy: rejected(acknowledged(), status.RefListener, "http-80", "odd"),
			want: say(condition.ListenerSetOldListeners([]string{"fine"}),
				condition.ListenerSetOldProgrammed([]string{"fine"})),
			wantEach: []string{fineSays(condition.ListenerRefused("odd", true))},
		},
		"the Gateway is not accepted": {
			accepted: refused, listeners: []*topology.Listener{fine()},
			want:     say(refused, condition.ListenerSetNotProgrammed(refused)),
			wantEach: []string{fineSays(condition.ListenerInvalid(refused.Message))},
		},
		"the Gateway has no address": {
			accepted: accepted, unusable: &unusable, listeners: []*topology.Listener{fine()}, proxy: acknowledged("http-80"),
			want:     say(accepted, condition.ListenerSetParentNotProgrammed("infra/gw", unusable.Message)),
			wantEach: []string{fineSays(condition.ListenerProgrammed())},
		},
		"the Gateway of others has no address": {
			accepted: accepted, unusable: &unusable, listeners: []*topology.Listener{fine()}, proxy: acknowledged("http-80"),
			reader:   condition.Reader{Namespace: "team"},
			want:     say(accepted, condition.ListenerSetParentNotProgrammed("infra/gw", "its own status says why")),
			wantEach: []string{fineSays(condition.ListenerProgrammed())},
		},
		"the proxy of others refuses": {
			accepted: accepted, listeners: []*topology.Listener{fine()},
			proxy:  rejected(acknowledged(), status.RefListener, "http-80", "other-team/secret is odd"),
			reader: condition.Reader{Namespace: "team"},
			want: say(condition.ListenerSetOldListeners([]string{"fine"}),
				condition.ListenerSetOldProgrammed([]string{"fine"})),
			wantEach: []string{fineSays(condition.ListenerRefused("what it says is in the log of the controller, since it may be about objects of other namespaces", true))},
		},
		"not allowed": {
			accepted: notAllowed, want: say(notAllowed, condition.ListenerSetNotProgrammed(notAllowed)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			node := &topology.ListenerSet{
				Name: object.Name{Namespace: "team", Name: "set"}, Gateway: gatewayName,
				Object:   &gwv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Generation: 5}},
				Accepted: c.accepted, Listeners: c.listeners,
			}
			got := status.ListenerSet(status.ListenerSetInput{
				Node: node, Proxy: c.proxy, Unreachable: c.unusable, AttachedRoutes: func(topology.ListenerKey) int32 { return 3 },
				Reader: compare.Or(c.reader, condition.Reader{Namespace: gatewayName.Namespace}),
			})
			if diff := cmp.Diff(c.want, short(got.Conditions)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			var each []string
			for _, l := range got.Listeners {
				each = append(each, short(l.Conditions))
				if l.AttachedRoutes != 3 {
					t.Errorf("%s has %d routes", l.Name, l.AttachedRoutes)
				}
			}
			if diff := cmp.Diff(c.wantEach, each); diff != "" {
				t.Errorf("listeners, -want +got:\n%s", diff)
			}
			for _, o := range got.Conditions {
				if o.ObservedGeneration != 5 {
					t.Errorf("%s has generation %d", o.Type, o.ObservedGeneration)
				}
			}
		})
	}
}
