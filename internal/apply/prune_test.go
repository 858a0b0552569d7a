package apply

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/infra"
)

func testOrphans(t *testing.T, at *applierTest) {
	names := []string{"gone", "here", "moved", "misspelt", "known"}
	at.must(at.Create(t.Context(), &gwv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}, Spec: gwv1.GatewayClassSpec{ControllerName: "other.example/controller"},
	}))
	a := at.start()
	other := at.start()
	other.options.ControllerName = "other.example/controller"
	fleets := map[string]*infra.Gateway{}
	for _, name := range names {
		fleets[name] = at.gateway(func(g *infra.Gateway) { g.Name.Name = name })
		a.Set(fleets[name])
		at.await(name, func() bool { return at.get(fleets[name], &appsv1.Deployment{}) })
	}
	fleets["foreign"] = at.gateway(func(g *infra.Gateway) { g.Name.Name = "foreign" })
	other.Set(fleets["foreign"])
	at.await("the other controller's", func() bool { return at.get(fleets["foreign"], &appsv1.Deployment{}) })
	a.stop()
	other.stop()
	for name, class := range map[string]string{"here": "gatehouse", "moved": "elsewhere", "misspelt": "gatehose"} {
		at.must(at.Create(t.Context(), &gwv1.Gateway{
			ObjectMeta: metav1.ObjectMeta{Namespace: at.namespace, Name: name},
			Spec: gwv1.GatewaySpec{
				GatewayClassName: gwv1.ObjectName(class),
				Listeners:        []gwv1.Listener{{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType}},
			},
		}))
	}
	b := at.start()
	b.Set(fleets["known"])
	at.await("it has looked", func() bool { return b.state(fleets["known"].Name) != nil })
	if w := b.take(); len(w) > 0 {
		t.Errorf("before all Gateways are known: %v", w)
	}
	b.Complete()
	for _, name := range []string{"gone", "moved"} {
		at.await(name+" is removed", func() bool { return !at.get(fleets[name], &corev1.ServiceAccount{}) })
	}
	b.finish()
	for _, name := range []string{"here", "misspelt", "known", "foreign"} {
		if !at.get(fleets[name], &appsv1.Deployment{}) || !at.get(fleets[name], &corev1.Service{}) {
			t.Errorf("%s is removed", name)
		}
	}
	w := b.take()
	slices.Sort(w)
	if w = slices.Compact(w); len(w) != 8 { // what is gone may be asked for twice
		t.Errorf("two fleets of four objects take these writes: %v", w)
	}
}

func testFrozen(t *testing.T, at *applierTest) {
	g := at.gateway()
	a := at.start()
	a.Set(g)
	at.await("a Deployment", func() bool { return at.get(g, &appsv1.Deployment{}) })
	a.Complete()
	a.take()
	a.Set(&infra.Gateway{Name: g.Name, UID: g.UID, Class: g.Class, Frozen: true})
	none := at.gateway(func(g *infra.Gateway) { g.Name.Name, g.Frozen = "none", true })
	a.Set(none)
	at.await("it has looked", func() bool { return a.state(none.Name) != nil })
	a.finish()
	if w := a.take(); len(w) > 0 {
		t.Errorf("fleets are frozen, yet: %v", w)
	}
}

func testDelete(t *testing.T, at *applierTest) {
	a := at.start()
	beside := at.gateway(func(g *infra.Gateway) { g.Name.Name = "beside" })
	a.Set(beside)
	for _, end := range []func(*infra.Gateway){
		func(g *infra.Gateway) { a.Delete(g.Name) },
		func(g *infra.Gateway) { a.Set(&infra.Gateway{Name: g.Name, UID: g.UID, Class: g.Class}) }, // without ports
	} {
		g := at.gateway()
		a.Set(g)
		at.await("a fleet", func() bool { return at.get(g, &appsv1.Deployment{}) && a.state(g.Name) != nil })
		end(g)
		at.await("its end", func() bool { return !at.get(g, &corev1.ServiceAccount{}) && a.state(g.Name) == nil })
		if at.get(g, &appsv1.Deployment{}) || at.get(g, &corev1.Service{}) || at.get(g, &corev1.ConfigMap{}) {
			t.Error("something is left")
		}
	}
	if !at.get(beside, &appsv1.Deployment{}) {
		t.Error("another Gateway's fleet is gone too")
	}
}

// A Gateway that is deleted and made again finds the objects of its predecessor,
// before they are collected, and takes them over as they are.
func testComesBack(t *testing.T, at *applierTest) {
	g := at.gateway()
	a := at.start()
	a.Set(g)
	deployment := &appsv1.Deployment{}
	at.await("a Deployment", func() bool { return at.get(g, deployment) })
	before := deployment.UID
	again := at.gateway(func(g *infra.Gateway) { g.UID = "22222222-0000-0000-0000-000000000000" })
	a.Set(again)
	at.await("the new owner", func() bool {
		owner := metav1.GetControllerOf(deployment)
		return at.get(g, deployment) && owner != nil && owner.UID == again.UID
	})
	if len(deployment.OwnerReferences) != 1 || deployment.UID != before {
		t.Errorf("the owners are %v", deployment.OwnerReferences)
	}

	// It comes back a third time, while what it had is being collected.
	third := at.gateway(func(g *infra.Gateway) { g.UID = "33333333-0000-0000-0000-000000000000" })
	service := &corev1.Service{}
	former := map[client.Object]types.UID{deployment: "", service: "", &corev1.ConfigMap{}: "", &corev1.ServiceAccount{}: ""}
	at.get(g, service)
	at.patch(service, `{"metadata": {"finalizers": ["lb.example/cleanup"]}}`) // as load balancers do
	for o := range former {
		at.get(g, o)
		former[o] = o.GetUID()
		at.must(at.Client.Delete(t.Context(), o))
	}
	a.Delete(g.Name)
	a.Set(third)
	at.await("another Deployment", func() bool { return at.get(g, deployment) && deployment.UID != former[deployment] })
	if at.get(g, service); service.UID != former[service] {
		t.Error("the Service is gone before its finalizer")
	}
	at.patch(service, `{"metadata": {"finalizers": null}}`)
	for o, uid := range former {
		at.await(fmt.Sprintf("another %T", o), func() bool {
			there := at.get(g, o)
			owner := metav1.GetControllerOf(o)
			return there && o.GetUID() != uid && owner != nil && owner.UID == third.UID
		})
	}
}
