package apply

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/internal/infra"
)

// A Gateway that gets another class is served by its former fleet, as it is, until the
// new one is ready and has an address, and the Gateway's status says so.
func testClass(t *testing.T, at *applierTest) {
	live, tell := at.live()
	g := at.gateway(func(g *infra.Gateway) { g.UID = live.UID }, with(v1alpha1.Settings{Deployment: &v1alpha1.Deployment{Autoscaling: &v1alpha1.Autoscaling{MaxReplicas: new(int32(3))}}}))
	moved := at.gateway(func(g *infra.Gateway) { g.UID, g.Class = live.UID, "other" })
	a := at.start()
	serving := func(service string) {
		t.Helper()
		at.await("serving "+service, func() bool { s := a.state(g.Name); return s != nil && s.Serving.Name == service })
	}
	stays := func(why string) {
		t.Helper()
		for _, ports := range []int{1, 3} { // what it does about the first is done when it has done the second
			again := *moved
			again.Ports = moved.Ports[:ports]
			a.Set(&again)
			service := &corev1.Service{}
			at.await("the ports", func() bool { return at.get(moved, service) && len(service.Spec.Ports) == ports })
		}
		if s := a.state(g.Name).Serving.Name; s != "web-gatehouse" && !strings.Contains(why, "status") {
			t.Errorf("clients are to use %s %s", s, why)
		}
		for _, o := range []client.Object{
			&corev1.Service{}, &appsv1.Deployment{}, &autoscalingv2.HorizontalPodAutoscaler{}, &corev1.ConfigMap{}, &corev1.ServiceAccount{},
		} {
			if !at.get(g, o) {
				t.Errorf("the former %T goes %s", o, why)
			}
		}
	}
	a.Set(g)
	former, deployment := &appsv1.Deployment{}, &appsv1.Deployment{}
	at.await("an autoscaler", func() bool { return at.get(g, &autoscalingv2.HorizontalPodAutoscaler{}) })
	at.get(g, former)
	at.setReady(former)
	at.balance(g, "192.0.2.1")
	tell("192.0.2.1")
	pod := at.pod(g, "web-gatehouse-1")

	a.Set(moved)
	at.await("another Deployment", func() bool { return at.get(moved, deployment) })
	stays("before anything works")
	at.balance(moved, "192.0.2.2")
	stays("before the new proxies are ready")
	at.balance(moved)
	at.setReady(deployment)
	stays("before the new Service has an address")
	at.balance(moved, "192.0.2.2")
	serving("web-other")
	stays("before the Gateway's status tells")
	tell("192.0.2.2")
	at.await("no Deployment of the former fleet", func() bool {
		return !at.get(g, former) && !at.get(g, &autoscalingv2.HorizontalPodAutoscaler{})
	})
	if !at.get(g, &corev1.Service{}) || !at.get(g, &corev1.ServiceAccount{}) || !at.get(g, &corev1.ConfigMap{}) {
		t.Error("the former Service goes before its last proxy")
	}
	at.must(at.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	at.await("no ServiceAccount of the former fleet", func() bool { return !at.get(g, &corev1.ServiceAccount{}) })
	serving("")
	if at.get(g, &corev1.Service{}) || at.get(g, &corev1.ConfigMap{}) || !at.get(moved, &corev1.Service{}) {
		t.Error("the fleet has not moved")
	}
}

// A Gateway that goes back to its former class has never left.
func testClassAndBack(t *testing.T, at *applierTest) {
	g := at.gateway()
	moved := at.gateway(func(g *infra.Gateway) { g.Class = "other" })
	a := at.start()
	a.Set(g)
	deployment, service := &appsv1.Deployment{}, &corev1.Service{}
	at.await("a Deployment", func() bool { return at.get(g, deployment) })
	at.setReady(deployment)
	at.balance(g, "192.0.2.1")
	at.get(g, service)
	a.Set(moved)
	at.await("another Deployment", func() bool { return at.get(moved, &appsv1.Deployment{}) })
	a.Set(g)
	at.await("its end", func() bool { return !at.get(moved, &corev1.ServiceAccount{}) })
	before := service.UID
	if !at.get(g, service) || service.UID != before || !at.get(g, deployment) {
		t.Error("the fleet is another")
	}
}

// An address that a Gateway asks for can't be that of two Services: the new one gets it
// when it is all that is missing.
func testClassWithAddress(t *testing.T, at *applierTest) {
	asks := func(g *infra.Gateway) { g.Addresses = []string{"192.0.2.1"} }
	g, moved := at.gateway(asks), at.gateway(asks, func(g *infra.Gateway) { g.Class = "other" })
	a := at.start()
	a.handoverPatience = time.Second
	a.Set(g)
	deployment := &appsv1.Deployment{}
	at.await("a Deployment", func() bool { return at.get(g, deployment) })
	at.setReady(deployment)
	at.balance(g, "192.0.2.1")
	pod := at.pod(g, "web-gatehouse-1")
	a.Set(moved)
	at.await("another Deployment", func() bool { return at.get(moved, deployment) })
	if !at.get(g, &corev1.Service{}) {
		t.Error("the address goes before the new proxies are ready")
	}
	at.setReady(deployment)
	at.await("the address", func() bool { return !at.get(g, &corev1.Service{}) })
	at.balance(moved, "192.0.2.1")
	at.must(at.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	at.await("the former fleet's end", func() bool { return !at.get(g, &corev1.ServiceAccount{}) })
	if !at.get(moved, &corev1.Service{}) {
		t.Error("the new Service is gone")
	}
}
