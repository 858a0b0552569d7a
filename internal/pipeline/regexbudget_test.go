package pipeline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// The instructions of all routes of a Gateway have a limit too. A new route takes nothing
// from older ones, and gets what they leave.
func TestGatewayRegexBudget(t *testing.T) {
	p := New(standalone)
	gw := edgeGateway(gwv1.Listener{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType})
	const hosts = 5
	regular, large := gwv1.PathMatchRegularExpression, "/"+strings.Repeat("[ab]{999}", 9) // nearly 9,000
	route := func(n int) *gwv1.HTTPRoute {
		r := &gwv1.HTTPRoute{}
		r.Namespace, r.Name = "default", fmt.Sprintf("r%02d", n)
		// By name they would come in the opposite order.
		r.CreationTimestamp = metav1.Time{Time: time.Unix(int64(1000-n), 0)}
		r.Spec.ParentRefs = []gwv1.ParentReference{{Name: "edge"}}
		for i := range hosts {
			r.Spec.Hostnames = append(r.Spec.Hostnames, gwv1.Hostname(fmt.Sprintf("h%d.r%d.example", i, n)))
		}
		r.Spec.Rules = []gwv1.HTTPRouteRule{{Matches: []gwv1.HTTPRouteMatch{{Path: &gwv1.HTTPPathMatch{Type: &regular, Value: &large}}}}}
		return r
	}
	key := func(n int) object.Key {
		return object.Key{Kind: kind.HTTPRoute, Name: object.Name{Namespace: "default", Name: fmt.Sprintf("r%02d", n)}}
	}
	accepted := func() (all []string) {
		p.Engine.View(func(c *flow.Ctx) {
			for n := range 20 {
				s, ok := flow.Get(c, p.RouteStatus, key(n))
				if !ok || len(s.Parents) == 0 {
					continue
				}
				if a := s.Parents[0].Conditions[0]; a.Status == metav1.ConditionTrue {
					all = append(all, fmt.Sprint(n))
				} else if !strings.Contains(a.Message, fmt.Sprintf("over the limit of %d for a Gateway", gatewayRegexBudget)) {
					t.Errorf("route %d: %s", n, a.Message)
				}
			}
		})
		return all
	}
	expect := func(when string, first, last int) {
		t.Helper()
		var want []string
		for n := first; n <= last; n++ {
			want = append(want, fmt.Sprint(n))
		}
		if got := accepted(); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: routes %s serve, want %s", when, got, want)
		}
	}
	objects := []source.Object{gw}
	for n := 1; n <= 13; n++ {
		objects = append(objects, route(n))
	}
	p.Apply(source.Batch{Set: objects})
	expect("the oldest eleven fit", 3, 13)
	p.Apply(source.Batch{Set: []source.Object{route(14)}})
	expect("an older one comes", 4, 14)
	p.Apply(source.Batch{Deleted: []object.Key{key(10), key(11), key(14)}})
	if got := strings.Join(accepted(), " "); got != "1 2 3 4 5 6 7 8 9 12 13" {
		t.Errorf("three have gone: routes %s serve", got)
	}
}
