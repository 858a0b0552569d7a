package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// TestTwoInstallationsOfOneName protects fleets and statuses from two installations with
// one controllerName: the second one writes nothing and says why, also while the first one
// starts anew, and takes over when the first one has been silent for long enough.
func TestTwoInstallationsOfOneName(t *testing.T) {
	slow.Skip(t)
	in := install(t)
	in.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: second}}`, gatewayOf("gatehouse"))
	first := in.start()
	fleet := func() *appsv1.Deployment {
		t.Helper()
		d := &appsv1.Deployment{}
		if in.client.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: infra.Name(webGateway, "gatehouse")}, d) != nil {
			return nil
		}
		return d
	}
	in.until("the first leads", func() bool { return first.leads.Load() != nil })
	in.until("the fleet is there", func() bool { return fleet() != nil })
	second := in.launch("second", func(c *configuration.Configuration) { c.Infrastructure.Image = "second" })
	in.until("the second stands back, and says so", func() bool {
		ok, why := second.Ready()
		return !ok && strings.Contains(why, "gatehouse-system/gatehouse-leader")
	})
	in.until("there is an Event", func() bool {
		var list eventsv1.EventList
		if err := in.client.List(t.Context(), &list, client.InNamespace("second")); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			if e := &list.Items[i]; e.Reason == "ControllerNameTaken" && e.Regarding.Name == second.opts.Self.Name {
				return true
			}
		}
		return false
	})
	in.until("what the first writes is settled", in.gatewayAccepted)

	// A restart that takes longer than the Lease of the leader.
	generation := fleet().Generation
	first.end()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if second.leads.Load() != nil {
			t.Fatal("the second one leads while the first starts anew")
		}
	}
	first = in.start()
	in.until("the first leads again", func() bool { return first.leads.Load() != nil })
	if now := fleet().Generation; now != generation || second.leads.Load() != nil {
		t.Errorf("the fleet has generation %d, it had %d; the second leads: %v", now, generation, second.leads.Load() != nil)
	}

	first.end()
	in.until("the second leads", func() bool { return second.leads.Load() != nil })
	in.until("it is ready", func() bool { ok, _ := second.Ready(); return ok })
	in.until("it makes the fleet its own", func() bool {
		return strings.HasPrefix(fleet().Spec.Template.Spec.Containers[0].Image, "second")
	})
	back := in.launch("gatehouse-system")
	in.until("the first one stands back now", func() bool { ok, why := back.Ready(); return !ok && strings.Contains(why, "second/gatehouse-leader") })
	if back.leads.Load() != nil {
		t.Error("the first one leads beside the second")
	}
}

// TestDeletedClassIsCreatedAgain protects an installation from ending without a class: one
// that was deleted says so while it serves, and so do its Gateways; when it is gone, that of
// the configuration is created again, with what the former one had, and no other.
func TestDeletedClassIsCreatedAgain(t *testing.T) {
	slow.Skip(t)
	in := install(t)
	const note = "is being deleted"
	in.apply(gatewayOf("gatehouse"), `{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: other}, spec: {controllerName: gatehouse.dev/controller}}`)
	class := in.class("gatehouse")
	class.Annotations = map[string]string{"meta.helm.sh/release-name": "gatehouse"}
	if err := in.client.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	in.start(func(c *configuration.Configuration) {
		c.GatewayClass = &configuration.GatewayClass{Name: "gatehouse", Description: "ours"}
	})
	in.until("the class has the finalizer", func() bool { return in.finalized("gatehouse") })
	in.until("the other one is seen", func() bool { return len(in.class("other").Status.Conditions) > 0 })
	uid := in.class("gatehouse").UID
	for _, name := range []string{"gatehouse", "other"} {
		if err := in.client.Delete(t.Context(), in.class(name)); err != nil {
			t.Fatal(err)
		}
	}
	says := func(list []metav1.Condition) bool {
		for _, c := range list {
			if c.Type == "Accepted" && c.Status == metav1.ConditionTrue && strings.Contains(c.Message, note) {
				return true
			}
		}
		return false
	}
	web := &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}}
	in.until("the class says that it is being deleted", func() bool { return says(in.class("gatehouse").Status.Conditions) })
	in.until("its Gateway does", func() bool {
		if err := in.client.Get(t.Context(), client.ObjectKeyFromObject(web), web); err != nil {
			t.Fatal(err)
		}
		return says(web.Status.Conditions)
	})
	in.until("there is an Event", func() bool {
		var list eventsv1.EventList
		if err := in.client.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Reason == "ClassDeleted" && e.Regarding.Kind == "GatewayClass" && e.Regarding.Name == "gatehouse"
		})
	})
	if err := in.client.Delete(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	in.until("the class is created again", func() bool { c := in.class("gatehouse"); return c != nil && c.UID != uid })
	now := in.class("gatehouse")
	if now.Annotations["meta.helm.sh/release-name"] != "gatehouse" || now.Spec.Description == nil || *now.Spec.Description != "ours" {
		t.Errorf("it is %+v", now)
	}
	if in.class("other") != nil {
		t.Error("a class that isn't the installation's is created again")
	}
	in.until("it is accepted, without the note", func() bool {
		list := in.class("gatehouse").Status.Conditions
		return len(list) > 0 && list[0].Status == metav1.ConditionTrue && !says(list)
	})
}

// TestNoRightToClaim protects an upgrade of the controllers without their roles: they write
// as before.
func TestNoRightToClaim(t *testing.T) {
	in := install(t)
	in.apply(`{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: internal}, spec: {controllerName: example.com/internal}}`)
	in.start(func(c *configuration.Configuration) { c.ControllerName = "example.com/internal" }) // of which the roles know nothing
	in.until("the class is accepted", func() bool {
		class := &gwv1.GatewayClass{}
		if err := in.client.Get(in.Context(), client.ObjectKey{Name: "internal"}, class); err != nil {
			t.Fatal(err)
		}
		return meta.IsStatusConditionTrue(class.Status.Conditions, "Accepted")
	})
}

// mayClaim gives the controllers the right to a controllerName of their own, as the chart
// does for the one that it is told.
func (in *installed) mayClaim(controllerName string) {
	in.Helper()
	in.apply(`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: default, name: claim},
rules: [{apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [`+configuration.ClaimName(controllerName)+`], verbs: [get, update]}]}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: default, name: claim},
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: claim},
subjects: [{kind: ServiceAccount, name: gatehouse, namespace: gatehouse-system}]}`)
}
