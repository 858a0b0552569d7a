package writer_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

const foreignParent = `{"controllerName": "example.com/other", "parentRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "g"},
	"conditions": [{"type": "Accepted", "status": "False", "reason": "NotAllowedByListeners", "message": "no", "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}`

// A cache that is several writes behind is no reason to take them for undone: neither is
// one of them repeated, nor is an entry of ours forgotten before it was taken out.
func testLag(t *testing.T, b *bench) {
	k := b.route(t, "r")
	b.lag(k)
	entries := func(n int) func() bool {
		return func() bool { return len(b.status(t, k).(gwv1.RouteStatus).Parents) == n }
	}
	b.Set(k, routeStatus(1, "g", "h"))
	eventually(t, "the route has two entries", entries(2))
	b.Set(k, routeStatus(1, "h"))
	eventually(t, "one goes", entries(1))
	b.Set(k, nil)
	eventually(t, "the last one goes", entries(0))
	b.catchUp(k)
	b.settled(t)
	if n := b.requests.count("PATCH"); n != 3 {
		t.Errorf("%d writes", n)
	}
}

// What is Set while the writer compares what was there before is not lost.
func testSetMeanwhile(t *testing.T, b *bench) {
	k := b.route(t, "r")
	b.Set(k, routeStatus(1, "g"))
	eventually(t, "the cache has an entry", func() bool { return len(b.live(k).(*gwv1.HTTPRoute).Status.Parents) == 1 })
	b.settled(t)
	b.readers.Store(k, func() { b.Set(k, nil) })
	b.Changed(k)
	eventually(t, "the entry goes", func() bool { return len(b.status(t, k).(gwv1.RouteStatus).Parents) == 0 })
}

// Others' entries and conditions stay, in whatever order they come, byte for byte.
func testForeign(t *testing.T, b *bench) {
	k := b.route(t, "r")
	b.merge(t, k, `{"status": {"parents": [`+foreignParent+`]}}`)
	foreign := b.raw(t, k, "status", "parents")
	b.Set(k, routeStatus(1, "g", "h"))
	eventually(t, "the route has three entries", func() bool { return len(b.raw(t, k, "status", "parents").([]any)) == 3 })
	b.Set(k, routeStatus(1, "h"))
	eventually(t, "one goes", func() bool { return len(b.raw(t, k, "status", "parents").([]any)) == 2 })
	if d := cmp.Diff(foreign.([]any)[0], b.raw(t, k, "status", "parents").([]any)[0]); d != "" {
		t.Error(d)
	}
	b.Set(k, nil)
	eventually(t, "ours go", func() bool { return cmp.Equal(foreign, b.raw(t, k, "status", "parents")) })

	alone := b.route(t, "alone")
	b.Set(alone, routeStatus(1, "g"))
	eventually(t, "it has an entry", func() bool { return len(b.status(t, alone).(gwv1.RouteStatus).Parents) == 1 })
	b.Set(alone, nil)
	eventually(t, "the last entry goes", func() bool { return len(b.status(t, alone).(gwv1.RouteStatus).Parents) == 0 })

	g := b.gateway(t, "g")
	b.Set(g, gatewayStatus(1, 0))
	accepted := func() bool {
		c, _ := condition.Find(b.status(t, g).(gwv1.GatewayStatus).Conditions, "Accepted")
		return c.Status == metav1.ConditionTrue
	}
	eventually(t, "the Gateway is accepted", accepted)
	live := b.stored(t, g).(*gwv1.Gateway)
	theirs := metav1.Condition{Type: "example.com/Policy", Status: "True", Reason: "Is", LastTransitionTime: metav1.Now()}
	live.Status.Conditions = slices.Insert(live.Status.Conditions, 1, theirs)
	live.Status.Listeners[0].Conditions = slices.Insert(live.Status.Listeners[0].Conditions, 0, theirs)
	if err := b.Client.Status().Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	before := b.raw(t, g, "status").(map[string]any)
	b.Set(g, gatewayStatus(1, 7))
	eventually(t, "the count is right", func() bool { return b.status(t, g).(gwv1.GatewayStatus).Listeners[0].AttachedRoutes == 7 })
	before["listeners"].([]any)[0].(map[string]any)["attachedRoutes"] = int64(7)
	if d := cmp.Diff(before, b.raw(t, g, "status")); d != "" {
		t.Errorf("more than the count has changed:\n%s", d)
	}
	// Whoever takes ours away finds them back.
	live = b.stored(t, g).(*gwv1.Gateway)
	live.Status.Conditions = nil
	if err := b.Client.Status().Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the condition comes back", accepted)
}

// An object that goes costs nothing; one of the same name that comes gets its status.
func testDeleted(t *testing.T, b *bench) {
	k := b.route(t, "r")
	b.Set(k, routeStatus(1, "g"))
	written := func() bool { return len(b.status(t, k).(gwv1.RouteStatus).Parents) == 1 }
	eventually(t, "it is written", written)
	if err := b.Delete(t.Context(), b.stored(t, k)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the cache knows", func() bool { return b.live(k) == nil })
	b.Set(k, routeStatus(1, "g", "h"))
	b.Set(k, routeStatus(1, "g"))
	b.settled(t)
	if n := b.requests.count("PATCH"); n != 1 {
		t.Errorf("%d writes", n)
	}
	b.route(t, "r")
	eventually(t, "the new one is written", written)
	if text := b.log.String(); text != "" {
		t.Errorf("something was logged: %s", text)
	}
}

// What a writer that is no more has left where there should be nothing is taken away, once it is known that there
// should be nothing.
func testLeftBehind(t *testing.T, b *bench) {
	left, part, foreign := b.route(t, "left"), b.route(t, "part"), b.route(t, "foreign")
	ours := strings.ReplaceAll(foreignParent, "example.com/other", controllerName)
	b.merge(t, left, `{"status": {"parents": [`+ours+`,`+foreignParent+`]}}`)
	b.merge(t, part, `{"status": {"parents": [`+ours+`,`+strings.ReplaceAll(ours, `"name": "g"`, `"name": "h"`)+`]}}`)
	b.merge(t, foreign, `{"status": {"parents": [`+foreignParent+`]}}`)
	has := func(k object.Key, n int) func() bool {
		return func() bool { return len(b.live(k).(*gwv1.HTTPRoute).Status.Parents) == n }
	}
	eventually(t, "the cache has them", func() bool { return has(left, 2)() && has(part, 2)() && has(foreign, 1)() })
	b.settled(t)
	if n := b.requests.count("PATCH"); n != 0 {
		t.Fatalf("%d writes before it is known what there is", n)
	}
	b.Set(part, routeStatus(1, "g"))
	eventually(t, "what is known is written", func() bool {
		c, _ := condition.Find(b.live(part).(*gwv1.HTTPRoute).Status.Parents[0].Conditions, "Accepted")
		return c.Status == metav1.ConditionTrue
	})
	b.settled(t)
	if !has(part, 2)() {
		t.Error("an entry is gone before it is known whether it should be")
	}
	b.Complete(slices.Values([]object.Key{left, part, foreign}))
	eventually(t, "ours are gone", func() bool { return has(left, 1)() && has(part, 1)() })
	b.settled(t)
	if n := b.requests.count("PATCH"); n != 3 {
		t.Errorf("%d writes", n)
	}

	// A Gateway that goes to another class is taken back.
	g := b.gateway(t, "g")
	b.Set(g, gatewayStatus(1, 0))
	eventually(t, "it is written", func() bool { return len(b.status(t, g).(gwv1.GatewayStatus).Listeners) == 1 })
	b.Set(g, nil)
	eventually(t, "it is nobody's", func() bool {
		s := b.status(t, g).(gwv1.GatewayStatus)
		return len(s.Listeners) == 0 && len(s.Addresses) == 0 && len(s.Conditions) == 2 &&
			s.Conditions[0].Status == metav1.ConditionUnknown && s.Conditions[1].Status == metav1.ConditionUnknown
	})
}
