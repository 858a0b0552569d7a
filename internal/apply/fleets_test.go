package apply

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/infra"
)

// TestFleets is what Fleets does to a real API server. No controllers run
// beside it, so that whatever changes is its doing or the test's.
func TestFleets(t *testing.T) {
	server, admin := startServer(t)
	permit(t, server.Config, admin)
	for name, run := range map[string]func(*testing.T, *applierTest){
		"writes only what changes":                testWrites,
		"drift is set right":                      testDrift,
		"foreign objects stay":                    testForeign,
		"autoscaling has the replicas":            testAutoscaling,
		"moves to a DaemonSet":                    testDaemonSet,
		"moves with its class":                    testClass,
		"moves to another namespace":              testPlaces,
		"moves and goes back":                     testClassAndBack,
		"moves with its address":                  testClassWithAddress,
		"a Service that can't be changed":         testLoadBalancerClass,
		"types of Services":                       testServiceTypes,
		"a foreign port":                          testForeignPort,
		"orphans":                                 testOrphans,
		"blue and green":                          testBlueGreen,
		"blue and green of any number":            testBlueGreenScale,
		"blue and green beside other Gateways":    testBlueGreenForeign,
		"blue and green without a Service":        testBlueGreenNoService,
		"blue and green of another class":         testBlueGreenClass,
		"blue and green compared":                 testComparison,
		"what is frozen stays":                    testFrozen,
		"authorities":                             testAuthorities,
		"ends with its Gateway":                   testDelete,
		"a Gateway of a file":                     testFile,
		"faults of the API server":                testFaults,
		"a Gateway that comes back":               testComesBack,
		"says why it can't":                       testForbidden,
		"says why nothing works":                  testWaiting,
		"says why a rollout stands still":         testRollout,
		"says why a first rollout stands still":   testFirstRollout,
		"settles for what the API server makes":   testAdmission,
		"parameters that can't be put into force": testBadPatch,
		"pods as the guide has them":              testPodGuide,
		"counts beside the proxies":               testLimits,
	} {
		t.Run(name, func(t *testing.T) {
			namespace := strings.NewReplacer(" ", "-", "'", "").Replace(strings.ToLower(name))
			if err := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
				t.Fatal(err)
			}
			run(t, &applierTest{T: t, Client: admin, rest: server.Config, namespace: namespace})
		})
	}
}

func testWrites(t *testing.T, at *applierTest) {
	g := at.gateway()
	a := at.start()
	a.Set(g)
	deployment, service := &appsv1.Deployment{}, &corev1.Service{}
	at.await("a Deployment", func() bool { return at.get(g, deployment) })
	at.get(g, service)
	if len(service.Spec.Ports) != 3 || service.Spec.Ports[2].Protocol != corev1.ProtocolUDP {
		t.Errorf("the Service has ports %v", service.Spec.Ports)
	}
	if owner := metav1.GetControllerOf(deployment); owner == nil || owner.UID != g.UID {
		t.Errorf("the Deployment's owner is %v", owner)
	}
	if w := a.take(); len(w) != 4 {
		t.Errorf("a new fleet takes %d writes: %v", len(w), w)
	}
	a.Set(at.gateway())
	at.setReady(deployment) // what controllers do
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	at.must(at.Status().Update(t.Context(), service))
	a.finish()
	if w := a.take(); len(w) > 0 {
		t.Errorf("nothing has changed, yet: %v", w)
	}

	b := at.start() // after a restart
	b.Set(at.gateway())
	b.Complete()
	at.await("it has looked", func() bool { return b.state(g.Name) != nil })
	b.finish()
	if w := b.take(); len(w) > 0 {
		t.Errorf("a restart changes nothing, yet: %v", w)
	}

	c := at.start()
	c.Set(at.gateway(func(g *infra.Gateway) { g.Ports = g.Ports[:1] }))
	at.await("fewer ports", func() bool {
		c.queue.Add(g.Name) // also between a write and the moment when the cache has it
		return at.get(g, service) && len(service.Spec.Ports) == 1
	})
	for range 20 {
		c.queue.Add(g.Name)
		at.get(g, service)
	}
	c.finish()
	if w := c.take(); len(w) != 1 {
		t.Errorf("a listener less takes these writes: %v", w)
	}
}

func testAuthorities(t *testing.T, at *applierTest) {
	g := at.gateway()
	a := at.start()
	a.SetAuthorities(nil)
	a.Set(g)
	account := &corev1.ServiceAccount{}
	a.SetAuthorities([]byte("first"))
	at.await("a Deployment", func() bool { return at.get(g, &appsv1.Deployment{}) })
	if !at.get(g, account) {
		t.Error("there is no ServiceAccount")
	}
	a.take()
	a.SetAuthorities([]byte("second"))
	authorities := &corev1.ConfigMap{}
	at.await("the other authorities", func() bool { return at.get(g, authorities) && authorities.Data["ca.crt"] == "second" })
	a.finish()
	if w := a.take(); len(w) != 1 {
		t.Errorf("other authorities take these writes: %v", w)
	}

	b := at.start()
	b.SetAuthorities([]byte("second"))
	b.Set(&infra.Gateway{Name: g.Name, UID: g.UID, Class: g.Class, Frozen: true})
	b.SetAuthorities([]byte("third"))
	at.await("those of a fleet that is frozen", func() bool { return at.get(g, authorities) && authorities.Data["ca.crt"] == "third" })
}

// A Gateway of which the cluster knows nothing, for it is in a file, can't be the owner
// of anything.
func testFile(t *testing.T, at *applierTest) {
	g := at.gateway(func(g *infra.Gateway) { g.UID = "" })
	a := at.start()
	a.Set(g)
	at.await("a Deployment", func() bool { return at.get(g, &appsv1.Deployment{}) })
	a.Delete(g.Name)
	at.await("its end", func() bool { return !at.get(g, &corev1.ServiceAccount{}) })
}
