package writer_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// A thousand routes that come within seconds cost a Gateway few writes, and the count
// is right soon after the last of them.
func testBurst(t *testing.T, b *bench) {
	const routes = 1000
	k := b.gateway(t, "g")
	attached := func() int32 {
		s := b.status(t, k).(gwv1.GatewayStatus)
		if len(s.Listeners) == 0 {
			return 0
		}
		return s.Listeners[0].AttachedRoutes
	}
	began := time.Now()
	for i := range int32(routes) {
		b.Set(k, gatewayStatus(1, i+1))
		time.Sleep(10 * time.Millisecond)
	}
	most := 30 + 2*int(time.Since(began).Seconds())
	last, before := time.Now(), b.requests.count("PATCH")
	eventually(t, "the count is right", func() bool { return attached() == routes })
	right := time.Since(last)
	b.settled(t)
	if n := b.requests.count("PATCH") - before; n > 2 { // one of them was under way
		t.Errorf("the count is right after %d more writes", n)
	}
	if n := b.requests.count("PATCH"); n > most {
		t.Errorf("%d writes", n)
	} else {
		t.Logf("%d writes, right after %v", n, right)
	}
}

// Many objects don't wait for each other, and a Gateway doesn't wait for routes.
func testMany(t *testing.T, b *bench) {
	const routes = 200
	g := b.gateway(t, "g")
	keys := make([]object.Key, routes)
	for i := range keys {
		keys[i] = b.route(t, fmt.Sprintf("r-%d", i))
	}
	for _, k := range keys {
		b.Set(k, routeStatus(1, "g"))
	}
	b.Set(g, gatewayStatus(1, routes))
	eventually(t, "the Gateway is written", func() bool { return len(b.status(t, g).(gwv1.GatewayStatus).Listeners) == 1 })
	for _, k := range keys {
		eventually(t, k.String()+" is written", func() bool { return len(b.status(t, k).(gwv1.RouteStatus).Parents) == 1 })
	}
	b.settled(t)
	if n := b.requests.count("PATCH"); n != routes+1 {
		t.Errorf("%d writes of %d objects", n, routes+1)
	}
}

// However often others write, both get what they want, and nobody's write is lost.
func testStorm(t *testing.T, b *bench) {
	k := b.route(t, "r")
	const rounds = 100
	var group sync.WaitGroup
	for n := range 3 {
		name := fmt.Sprintf("example.com/other-%d", n)
		group.Go(func() {
			for i := range rounds {
				for {
					live := b.stored(t, k).(*gwv1.HTTPRoute)
					live.Status.Parents = slices.DeleteFunc(live.Status.Parents, func(p gwv1.RouteParentStatus) bool { return string(p.ControllerName) == name })
					live.Status.Parents = append(live.Status.Parents, gwv1.RouteParentStatus{
						ParentRef: gwv1.ParentReference{Name: "g"}, ControllerName: gwv1.GatewayController(name),
						Conditions: []metav1.Condition{{Type: "Accepted", Status: "True", Reason: "Round", Message: fmt.Sprint(i), LastTransitionTime: metav1.Now()}},
					})
					if err := b.Client.Status().Update(t.Context(), live); err == nil {
						break
					}
				}
			}
		})
	}
	group.Go(func() {
		for i := range rounds {
			b.Set(k, routeStatus(1, fmt.Sprintf("g-%d", i)))
			time.Sleep(5 * time.Millisecond)
		}
	})
	group.Wait()
	eventually(t, "all have their say", func() bool {
		said := map[string]string{}
		for _, p := range b.status(t, k).(gwv1.RouteStatus).Parents {
			said[string(p.ControllerName)] = string(p.ParentRef.Name) + " " + p.Conditions[0].Message
		}
		last := fmt.Sprintf("g %d", rounds-1)
		return len(said) == 4 && said["example.com/other-0"] == last && said["example.com/other-1"] == last && said["example.com/other-2"] == last &&
			strings.HasPrefix(said[controllerName], fmt.Sprintf("g-%d ", rounds-1))
	})
	t.Logf("%d attempts", b.requests.count("PATCH"))
}
