package loop

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// office lets addresses pass on a Gateway.
func office(gateway, addresses string) *v1alpha1.AuthPolicy {
	o := &v1alpha1.AuthPolicy{}
	o.Name = "office"
	o.Spec.TargetRefs = onGateway(gateway)
	o.Spec.Authorization = map[string]v1alpha1.Authorization{"office": {Addresses: &v1alpha1.AuthAddresses{Allow: []string{addresses}}}}
	return o
}

// programmed is the Programmed condition of a Gateway.
func (r *running) programmed(gateway string) (c metav1.Condition) {
	r.t.Helper()
	r.Pipeline.Engine.View(func(ctx *flow.Ctx) {
		s, ok := flow.Get(ctx, r.Pipeline.GatewayStatus, object.Name{Namespace: "a", Name: gateway})
		if !ok {
			r.t.Fatalf("Gateway %s has no status", gateway)
		}
		c = *meta.FindStatusCondition(s.Conditions, string(gwv1.GatewayConditionProgrammed))
	})
	return c
}

// trip lets functions of tables panic, those of some keys only; without tables it ends that.
func (r *running) trip(tables []string, about string) {
	r.t.Helper()
	r.Pipeline.Engine.Trip(func(table string, key any) {
		if slices.Contains(tables, table) && strings.Contains(fmt.Sprint(key), about) {
			panic("told to")
		}
	})
}

// take hands objects to the loop, and waits until it has taken them in.
func (r *running) take(objects ...source.Object) {
	r.t.Helper()
	r.set(objects...)
	r.Call(r.t.Context(), func() {})
}

func (r *running) forget(k object.Key) {
	r.Emit(r.t.Context(), 0, source.Batch{Deleted: []object.Key{k}})
	r.Call(r.t.Context(), func() {})
}

// guardTables are on the way from an AuthPolicy to what proxies are sent, and the keys of what is the
// Gateway's, or the policy's, in them.
var guardTables = []struct{ table, about string }{
	{"topology-auth-policies", "a/office"},
	{"topology-auth-policy-says", "a/office"},
	{"topology-auth-policy-targetings", "a/office"},
	{"topology-auth-policy-attachments", "web"},
	{"auth-of-gateways", "a/web"},
	{"auth-of-listeners", "a/web"},
	{"port-filters", "a/web"},
	{"route-tables", "a/web"},
	{"hosts", "a/web"},
	{"virtual-hosts", "a/web"},
	{"filters-around-tables", "a/web"},
}

// Whatever fails on the way of a guard, at the first time that it is computed or at an edit, a
// Gateway is served with the guard that it is to have, or as it was before.
func TestNoGuardIsLostWhereATableFails(t *testing.T) {
	for _, at := range guardTables {
		t.Run(at.table, func(t *testing.T) {
			r := run(t)
			known := slices.ContainsFunc(r.Pipeline.Engine.Stats(), func(s flow.Stats) bool { return s.Table == at.table })
			if !known {
				t.Fatal("there is no such table")
			}
			web, first := gateway("web", 8080, ""), route("web", "first.test")
			if at.table == "hosts" || at.table == "virtual-hosts" {
				first.Spec.Hostnames = []gwv1.Hostname{"h.test"}
			}
			// First run: nothing is sent.
			r.trip([]string{at.table}, at.about)
			r.take(gateway("web", 8080, ""), first.DeepCopy(), office("web", "10.0.0.0/24"))
			if got := r.versions("web", "routes") + r.versions("web", "listener"); got != "" {
				t.Errorf("proxies are sent what may have no guard: %s", got)
			}
			r = run(t) // a process that has the mistake not yet
			r.take(web, first.DeepCopy(), office("web", "10.0.1.0/24"))
			guarded := r.versions("web", "routes")
			if guarded == "" || r.versions("web", "listener") == "" {
				t.Fatal("it is not served where nothing fails")
			}
			// An edit that fails, with one that doesn't: both wait.
			r.trip([]string{at.table}, at.about)
			second := first.DeepCopy()
			second.Spec.Rules = append(second.Spec.Rules, gwv1.HTTPRouteRule{})
			r.take(office("web", "10.0.2.0/24"), second)
			if !slices.ContainsFunc(r.Pipeline.Engine.Stats(), func(s flow.Stats) bool { return s.Failing > 0 }) {
				t.Fatal("nothing fails")
			}
			if r.versions("web", "routes") != guarded {
				t.Error("an edit is sent that may lack its guard")
			}
			r.trip(nil, "")
			third := second.DeepCopy()
			third.Spec.Rules = append(third.Spec.Rules, gwv1.HTTPRouteRule{})
			r.take(third, office("web", "10.0.3.0/24"))
			if r.versions("web", "routes") == guarded || r.waits() {
				t.Error("the edit isn't sent once nothing fails")
			}
		})
	}
}

// What fails of one Gateway, or of a route, keeps only those waiting that may depend on it, and what
// goes on changing are endpoints and other Gateways. What waited ends with what failed.
func TestOthersDontWaitForWhatFails(t *testing.T) {
	r := run(t)
	r.take(gateway("web", 8080, ""), gateway("other", 8090, ""), route("web", "first.test"), route("other", "first.test"))
	web, other := r.versions("web", "routes"), r.versions("other", "routes")
	// held is that the Gateway is told nothing until an object that failed is gone.
	held := func(k object.Key) {
		t.Helper()
		if r.versions("web", "routes") != web {
			t.Errorf("%s failed and didn't hold its Gateway", k)
		}
		r.trip(nil, "")
		r.forget(k)
		if r.versions("web", "routes") == web {
			t.Errorf("the Gateway waits still although %s is gone", k)
		}
	}
	r.trip([]string{"rules"}, "a/web")
	r.take(route("web", "second.test"), route("other", "second.test"))
	if r.versions("other", "routes") == other {
		t.Error("a route of one Gateway has held another")
	}
	held(object.Key{Kind: kind.HTTPRoute, Name: object.Name{Namespace: "a", Name: "web"}})
	r.trip([]string{"topology-auth-policies"}, "a/office")
	r.take(office("web", "10.0.0.0/24"))
	if of := r.Pipeline.Withheld(); of == nil || !of(object.Name{Namespace: "a", Name: "web"}) || of(object.Name{Namespace: "b", Name: "web"}) {
		t.Error("a policy that failed has not held the Gateways of its namespace, or others")
	}
	web = r.versions("web", "routes")
	r.take(route("web", "third.test"))
	held(object.Key{Kind: kind.AuthPolicy, Name: object.Name{Namespace: "a", Name: "office"}})
	r.trip([]string{"port-filters"}, "a/other")
	r.take(office("other", "10.0.0.0/24"))
	r.forget(object.Key{Kind: kind.Gateway, Name: object.Name{Namespace: "a", Name: "other"}})
	if got := r.versions("other", "listener"); got != "" {
		t.Errorf("a Gateway that is gone is served: %s", got)
	}
}

// A Gateway says that nothing new is sent to its proxies, for as long as that is so: it is not programmed where
// something waits. Others say nothing of it, nor does anybody name what failed.
func TestGatewaysSayWhatIsWithheld(t *testing.T) {
	r := run(t)
	r.take(gateway("web", 8080, ""), gateway("other", 8090, ""), route("web", "first.test"), route("other", "first.test"))
	before, other := r.programmed("web"), r.programmed("other")
	says := func(reason string) {
		t.Helper()
		web := r.programmed("web")
		if web.Reason != reason || !strings.Contains(web.Message, condition.NoteWithheld()) || strings.Contains(web.Message, "second") {
			t.Errorf("%s, and not %s: %s", web.Reason, reason, web.Message)
		}
		if got := condition.EventReason(web); got != "Withheld" {
			t.Errorf("an Event %q", got)
		}
		if diff := cmp.Diff(other, r.programmed("other")); diff != "" {
			t.Errorf("the other Gateway (-before +now):\n%s", diff)
		}
	}
	r.trip([]string{"rules"}, "a/web")
	r.take(route("web", "second.test"))
	says(before.Reason) // nothing waits
	if !strings.Contains(r.logged.String(), condition.Unprocessed) {
		t.Error("the log hasn't the lines that the message names")
	}
	web := gateway("web", 8080, "")
	web.Generation = 2
	web.Spec.Listeners = append(web.Spec.Listeners, gwv1.Listener{Name: "more", Port: 8081, Protocol: gwv1.HTTPProtocolType})
	r.take(web.DeepCopy())
	says("Withheld")
	r.trip(nil, "")
	r.take(route("web", "third.test"))
	before.ObservedGeneration = 2
	if diff := cmp.Diff(before, r.programmed("web")); diff != "" {
		t.Errorf("once nothing fails (-before +now):\n%s", diff)
	}
	// So does one that proxies have been told nothing of.
	r.trip([]string{"port-filters"}, "a/new")
	r.take(gateway("new", 8070, ""), office("new", "10.0.0.0/24"))
	if got := r.programmed("new"); got.Reason != "Withheld" || got.Status != metav1.ConditionFalse {
		t.Errorf("a new Gateway: %s: %s", got.Reason, got.Message)
	}
	r.forget(object.Key{Kind: kind.Gateway, Name: object.Name{Namespace: "a", Name: "new"}})
	r.trip(nil, "")
	r.take(gateway("new", 8070, ""))
	if got := r.programmed("new"); got.Reason != before.Reason {
		t.Errorf("another Gateway of the name: %s: %s", got.Reason, got.Message)
	}
}

// A Gateway that goes while it is withheld takes along what waits of it: its successor gets nothing of that.
func TestWhatWaitsEndsWithItsGateway(t *testing.T) {
	r := run(t)
	web := gateway("web", 8080, "")
	r.take(web.DeepCopy(), route("web", "first.test"))
	want := r.versions("web", "listener")
	r.trip([]string{"rules"}, "a/web")
	wide := gateway("web", 8080, "")
	wide.Spec.Listeners = append(wide.Spec.Listeners, gwv1.Listener{Name: "more", Port: 8081, Protocol: gwv1.HTTPProtocolType})
	r.take(route("web", "second.test"), wide)
	if got := r.versions("web", "listener"); got != want {
		t.Fatalf("it is not withheld: %s", got)
	}
	r.forget(object.Key{Kind: kind.Gateway, Name: object.Name{Namespace: "a", Name: "web"}})
	if _, is := r.Server.Gateway(object.Name{Namespace: "a", Name: "web"}); is {
		t.Error("a Gateway that is gone is there")
	}
	r.trip(nil, "")
	r.take(route("web", "third.test"))
	if _, is := r.Server.Gateway(object.Name{Namespace: "a", Name: "web"}); is {
		t.Errorf("a Gateway that is gone is served once nothing fails: %s", r.versions("web", "listener"))
	}
	r.take(web)
	if got := r.versions("web", "listener"); got != want {
		t.Errorf("its successor has listeners %s, and not %s", got, want)
	}
}

// On a shared host a port is that of the older Gateway: where it can't be computed what that asks for, no other one
// gets it.
func TestNoPortIsTakenWhereATableFails(t *testing.T) {
	for _, table := range []string{"topology-owned", "topology-parameters", "topology-port-requests"} {
		r := run(t)
		web, other := gateway("web", 8080, ""), gateway("other", 8080, "")
		web.CreationTimestamp.Time, other.CreationTimestamp.Time = time.Unix(1, 0), time.Unix(2, 0)
		r.trip([]string{table}, "a/web")
		r.take(web, other, route("other", "other.test"))
		if got := r.versions("other", "listener"); got != "" {
			t.Errorf("%s fails: another Gateway is served at the port: %s", table, got)
		}
	}
}
