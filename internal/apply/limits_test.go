package apply

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/infra"
)

// What counts requests comes and goes beside the proxies, which don't notice.
func testLimits(t *testing.T, at *applierTest) {
	plain := at.gateway()
	counted := *plain
	counted.Limits = true
	name := client.ObjectKey(infra.Places{}.LimitsName(plain.Name, plain.Class))
	there := func(o client.Object) bool { return at.Get(t.Context(), name, o) == nil }
	a := at.start()
	a.Set(plain)
	proxies := &appsv1.Deployment{}
	at.await("the proxies", func() bool { return at.get(plain, proxies) })
	at.setReady(proxies)

	a.Set(&counted)
	limits := &appsv1.Deployment{}
	at.await("what counts", func() bool { return there(limits) && there(&corev1.Service{}) && there(&corev1.ServiceAccount{}) })
	at.await("that nobody counts yet", func() bool {
		s := a.state(plain.Name)
		return s != nil && !s.Counting && strings.Contains(s.NotCounting, name.Name+" has no pod that is ready")
	})
	at.setReady(limits)
	at.await("that it counts", func() bool {
		s := a.state(plain.Name)
		return s != nil && s.Counting && s.NotCounting == ""
	})

	// While the Gateway is frozen what counts stays, and whoever asks is told of it.
	frozen := &infra.Gateway{Name: plain.Name, UID: plain.UID, Class: plain.Class, Frozen: true}
	b := at.start()
	b.Set(frozen)
	at.await("that it counts for a Gateway that is frozen", func() bool {
		s := b.state(plain.Name)
		return s != nil && s.Counting && s.NotCounting == ""
	})
	at.must(at.Delete(t.Context(), limits))
	at.await("what counts once more", func() bool {
		again := &appsv1.Deployment{}
		return there(again) && again.UID != limits.UID
	})

	a.Set(plain)
	at.await("that nothing of it is left", func() bool {
		return !there(&appsv1.Deployment{}) && !there(&corev1.Service{}) && !there(&corev1.ServiceAccount{})
	})
	same := &appsv1.Deployment{}
	if !at.get(plain, same) || same.UID != proxies.UID || same.Generation != proxies.Generation {
		t.Errorf("the proxies' Deployment is of generation %d, was %d", same.Generation, proxies.Generation)
	}

	a.Set(&counted)
	at.await("what counts", func() bool { return there(&appsv1.Deployment{}) })
	a.Delete(plain.Name)
	at.await("that all goes with the Gateway", func() bool {
		return !there(&appsv1.Deployment{}) && !there(&corev1.ServiceAccount{}) && !at.get(plain, &appsv1.Deployment{})
	})
}
