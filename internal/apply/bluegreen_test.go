package apply

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/figures"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
)

// blueGreen is a Gateway whose proxies run an image, and of which a revision is promoted.
func (t *applierTest) blueGreen(tag, promote string, change ...func(*v1alpha1.Settings)) *infra.Gateway {
	s := v1alpha1.Settings{
		Rollout:    &v1alpha1.Rollout{Strategy: new(v1alpha1.RolloutBlueGreen)},
		Deployment: &v1alpha1.Deployment{Replicas: new(int32(2))},
		Container:  &v1alpha1.Container{Image: &v1alpha1.Image{Tag: new(tag)}},
	}
	for _, c := range change {
		c(&s)
	}
	return t.gateway(with(s), func(g *infra.Gateway) { g.Promote = promote })
}

// revision is that of a Gateway's parameters.
func (t *applierTest) revision(g *infra.Gateway) string {
	t.Helper()
	f, err := infra.New(testOptions, g)
	t.must(err)
	return f.Revision
}

// named reads an object; false if there is none.
func (t *applierTest) named(name string, o client.Object) bool {
	t.Helper()
	err := t.Get(t.Context(), client.ObjectKey{Namespace: t.namespace, Name: name}, o)
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

// leadsTo waits until clients are led to the pods of a workload.
func (t *applierTest) leadsTo(g *infra.Gateway, workload string) {
	t.Helper()
	s := &corev1.Service{}
	t.await("clients are led to "+workload, func() bool { return t.get(g, s) && s.Spec.Selector[infra.InstanceLabel] == workload })
}

// awaitReady has a Deployment be there, and makes it ready.
func (t *applierTest) awaitReady(name string) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	t.await("Deployment "+name, func() bool { return t.named(name, d) })
	t.setReady(d)
	return d
}

func (r *running) awaitStep(want infra.Step) {
	r.t.Helper()
	var got infra.Step
	defer func() {
		if got != want {
			r.t.Logf("want %+v\ngot  %+v", want, got)
		}
	}()
	r.t.await("the step", func() bool {
		if s := r.state(r.t.gateway().Name); s != nil {
			got = s.Step
		}
		return got == want
	})
}

// testBlueGreen protects whoever edits what a fleet runs, with a mistake or without: nothing of the
// proxies that serve changes until the very revision that was looked at is promoted, whether the controller
// restarts or not.
func testBlueGreen(t *testing.T, at *applierTest) {
	const name = "web-gatehouse"
	first := at.blueGreen("v1", "")
	r1 := at.revision(first)
	blue := name + "-" + r1
	a := at.start()
	a.Set(first)
	at.leadsTo(first, blue) // there is nothing that it could wait beside
	a.awaitStep(infra.Step{Stage: infra.Progressing, Revision: r1, Workload: blue, Wanted: 2})
	before := at.awaitReady(blue)
	a.awaitStep(infra.Step{Stage: infra.Promoted, Revision: r1, Workload: blue})

	// An image that can't be had, promoted in advance.
	bad := at.blueGreen("bad", "")
	rBad := at.revision(bad)
	bad.Promote = rBad
	a.Set(bad)
	preview := &corev1.Service{}
	at.await("a preview", func() bool { return at.named(infra.Places{}.PreviewName(bad.Name, bad.Class).Name, preview) })
	if got := preview.Spec.Selector[infra.InstanceLabel]; got != name+"-"+rBad {
		t.Errorf("the preview leads to %s", got)
	}
	at.await("the bad Deployment", func() bool { return at.named(name+"-"+rBad, &appsv1.Deployment{}) })
	pod := at.pod(bad, "bad-0")
	at.patch(pod, `{"metadata": {"labels": {"`+infra.InstanceLabel+`": "`+name+"-"+rBad+`"}}}`)
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Minute)),
	}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "proxy", Image: "bad", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}},
	}}
	at.must(at.Status().Update(t.Context(), pod))
	a.awaitStep(infra.Step{
		Stage: infra.Progressing, Revision: rBad, Workload: name + "-" + rBad, Live: blue, Wanted: 2, Preview: preview.Name,
		Why: "Pod " + at.namespace + "/bad-0 can't get image bad of its container proxy (ImagePullBackOff)",
	})
	at.leadsTo(bad, blue)

	// Back to what serves.
	a.Set(at.blueGreen("v1", ""))
	at.await("no bad Deployment", func() bool { return !at.named(name+"-"+rBad, &appsv1.Deployment{}) })
	at.await("no preview", func() bool { return !at.named(preview.Name, &corev1.Service{}) })
	a.awaitStep(infra.Step{Stage: infra.Promoted, Revision: r1, Workload: blue})

	// A good image. Somebody has promoted another revision.
	second := at.blueGreen("v2", "rother")
	r2 := at.revision(second)
	green := name + "-" + r2
	a.Set(second)
	at.awaitReady(green)
	awaits := infra.Step{
		Stage: infra.Awaiting, Revision: r2, Workload: green, Live: blue, Ready: 2, Wanted: 2, Preview: preview.Name, Promote: "rother",
	}
	a.awaitStep(awaits)
	at.leadsTo(second, blue)
	after := &appsv1.Deployment{}
	if at.named(blue, after); after.Generation != before.Generation {
		t.Error("the Deployment that serves has been changed")
	}
	a.finish()

	b := at.start() // another controller knows as much
	b.Set(second)
	b.Complete()
	b.awaitStep(awaits)

	// An edit in the meantime can't be promoted by what was meant for another revision.
	third := at.blueGreen("v3", r2)
	b.Set(third)
	at.awaitReady(name + "-" + at.revision(third))
	at.await("no second Deployment", func() bool { return !at.named(green, &appsv1.Deployment{}) })
	at.leadsTo(third, blue)

	second.Promote = r2
	b.Set(second)
	at.awaitReady(green)
	at.leadsTo(second, green)
	at.await("no first Deployment", func() bool { return !at.named(blue, &appsv1.Deployment{}) })
	at.await("no preview", func() bool { return !at.named(preview.Name, &corev1.Service{}) })
	b.awaitStep(infra.Step{Stage: infra.Promoted, Revision: r2, Workload: green})

	// The strategy Rolling has its own Deployment, which takes over by itself.
	b.Set(at.blueGreen("v2", "", func(s *v1alpha1.Settings) { s.Rollout = nil }))
	at.await("the Deployment", func() bool { return at.named(name, &appsv1.Deployment{}) })
	at.leadsTo(first, green)
	at.awaitReady(name)
	at.leadsTo(first, name)
	at.await("no second Deployment", func() bool { return !at.named(green, &appsv1.Deployment{}) })

	// And with the strategy BlueGreen it serves on, since it runs the same.
	b.take()
	b.Set(at.blueGreen("v2", ""))
	b.awaitStep(infra.Step{Stage: infra.Promoted, Revision: r2, Workload: name})
	if w := b.take(); len(w) > 0 {
		t.Errorf("nothing changes, and it was written: %v", w)
	}
}

// testBlueGreenScale protects who gets more clients while another revision waits: there are as many
// proxies as there must be, of both.
func testBlueGreenScale(t *testing.T, at *applierTest) {
	a := at.start()
	bootstrap := func(text string) func(*v1alpha1.Settings) {
		return func(s *v1alpha1.Settings) {
			s.Envoy = &v1alpha1.Envoy{Bootstrap: &apiextensionsv1.JSON{Raw: []byte(text)}}
		}
	}
	rolling := func(s *v1alpha1.Settings) { s.Rollout = nil }
	g := at.blueGreen("v1", "", rolling, bootstrap(`{"a": 1}`))
	a.Set(g)
	at.awaitReady("web-gatehouse")
	a.Set(at.blueGreen("v1", "", bootstrap(`{"a": 2}`)))
	config, old := &corev1.ConfigMap{}, &corev1.ConfigMap{}
	next := at.blueGreen("v1", "", bootstrap(`{"a": 2}`))
	green := "web-gatehouse-" + at.revision(next)
	at.await("the other bootstrap configuration", func() bool { return at.named(green, config) })
	a.SetAuthorities([]byte("others"))
	at.await("the other authorities", func() bool { return at.get(g, old) && old.Data["ca.crt"] == "others" })
	if config.Data["bootstrap.json"] != `{"a": 2}` || old.Data["bootstrap.json"] != `{"a": 1}` {
		t.Errorf("Envoys start with %v, those that serve with %v", config.Data, old.Data)
	}

	more := func(s *v1alpha1.Settings) { s.Deployment.Replicas = new(int32(5)) }
	a.Set(at.blueGreen("v1", "", bootstrap(`{"a": 2}`), more))
	has := func(name string, n int32) {
		t.Helper()
		d := &appsv1.Deployment{}
		at.await("replicas of "+name, func() bool { return at.named(name, d) && *d.Spec.Replicas == n })
	}
	has("web-gatehouse", 5)
	has(green, 5)

	scaled := func(s *v1alpha1.Settings) {
		s.Deployment = &v1alpha1.Deployment{Autoscaling: &v1alpha1.Autoscaling{MinReplicas: new(int32(2)), MaxReplicas: new(int32(9))}}
	}
	next = at.blueGreen("v1", "", bootstrap(`{"a": 2}`), scaled) // which asks for more CPU
	green = "web-gatehouse-" + at.revision(next)
	a.Set(next)
	scaler := &autoscalingv2.HorizontalPodAutoscaler{}
	has(green, 5)
	live := &appsv1.Deployment{}
	at.get(g, live)
	at.patch(live, `{"spec": {"replicas": 7}}`)
	has(green, 7)
	if at.get(g, scaler) {
		t.Error("an autoscaler scales pods that don't request what it measures by")
	}
	at.awaitReady(green)
	a.Set(at.blueGreen("v1", strings.TrimPrefix(green, "web-gatehouse-"), bootstrap(`{"a": 2}`), scaled))
	at.leadsTo(g, green)
	at.await("the autoscaler has it", func() bool { return at.get(g, scaler) && scaler.Spec.ScaleTargetRef.Name == green })
	at.awaitReady(green) // after the change that the number is the autoscaler's
	at.await("no first Deployment", func() bool { return !at.get(g, &appsv1.Deployment{}) })
	has(green, 7)
}

// testBlueGreenForeign protects tenants of one namespace: clients are led to no other Gateway's proxies, and these stay as they are, whatever
// a Service says.
func testBlueGreenForeign(t *testing.T, at *applierTest) {
	a := at.start()
	other := at.gateway(func(g *infra.Gateway) { g.Name.Name = "other" })
	a.Set(other)
	theirs := at.awaitReady("other-gatehouse")
	g := at.blueGreen("v1", "", func(s *v1alpha1.Settings) { s.Rollout = nil })
	g.Annotations = map[string]string{infra.LiveAnnotation: theirs.Name}
	a.Set(g)
	at.awaitReady("web-gatehouse")
	at.leadsTo(g, "web-gatehouse")
	s := &corev1.Service{}
	at.get(g, s)
	at.patch(s, `{"metadata": {"annotations": {"`+infra.LiveAnnotation+`": "`+theirs.Name+`"}}}`)
	at.await("its own annotation", func() bool { return at.get(g, s) && infra.LiveOf(s) == "web-gatehouse" })
	at.leadsTo(g, "web-gatehouse")
	if at.named(theirs.Name, theirs); *theirs.Spec.Replicas != 1 {
		t.Error("another Gateway's fleet was scaled")
	}
}

// testBlueGreenNoService protects clients whose Service somebody deletes while a revision waits: they are led to what has served.
func testBlueGreenNoService(t *testing.T, at *applierTest) {
	a := at.start()
	g := at.blueGreen("v1", "", func(s *v1alpha1.Settings) { s.Rollout = nil })
	a.Set(g)
	at.awaitReady("web-gatehouse")
	at.leadsTo(g, "web-gatehouse")
	next := at.blueGreen("v2", "")
	a.Set(next)
	at.await("the next Deployment", func() bool { return at.named("web-gatehouse-"+at.revision(next), &appsv1.Deployment{}) })
	s := &corev1.Service{}
	at.get(g, s)
	at.must(at.Delete(t.Context(), s))
	at.await("another Service", func() bool { again := &corev1.Service{}; return at.get(g, again) && again.UID != s.UID })
	at.leadsTo(g, "web-gatehouse")
	if !at.named("web-gatehouse", &appsv1.Deployment{}) {
		t.Error("what served is gone")
	}
}

// testBlueGreenClass protects whose Gateway gets another class: proxies of one revision serve until
// those of the other class do, and then go.
func testBlueGreenClass(t *testing.T, at *applierTest) {
	live := &gwv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: at.namespace, Name: "web"},
		Spec:       gwv1.GatewaySpec{GatewayClassName: "other", Listeners: []gwv1.Listener{{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType}}},
	}
	at.must(at.Create(t.Context(), live))
	own := func(g *infra.Gateway) *infra.Gateway { g.UID = live.UID; return g }
	g := own(at.blueGreen("v1", ""))
	a := at.start()
	a.Set(g)
	blue := "web-gatehouse-" + at.revision(g)
	at.awaitReady(blue)
	at.balance(g, "192.0.2.1")
	moved := own(at.blueGreen("v1", ""))
	moved.Class = "other"
	a.Set(moved)
	green := "web-other-" + at.revision(moved)
	at.await("the new Deployment", func() bool { return at.named(green, &appsv1.Deployment{}) })
	at.await("the former Service", func() bool { s := a.state(g.Name); return s != nil && s.Serving.Name == "web-gatehouse" })
	if !at.named(blue, &appsv1.Deployment{}) {
		t.Error("the former proxies go too early")
	}
	at.awaitReady(green)
	at.balance(moved, "192.0.2.2")
	at.await("no former Deployment", func() bool { return !at.named(blue, &appsv1.Deployment{}) })
	at.await("no former Service", func() bool { return !at.get(g, &corev1.Service{}) })
}

// testComparison protects clients from a revision that is worse than what serves, and people from having to
// look after one that is not. What each proxy has answered comes from here; nothing answers beside this API server.
func testComparison(t *testing.T, at *applierTest) {
	automatic := func(s *v1alpha1.Settings) {
		s.Rollout.Promotion = &v1alpha1.Promotion{Strategy: new(v1alpha1.PromotionAutomatic), Window: new(gwv1.Duration("1s"))}
	}
	var mu sync.Mutex
	said, read := map[string]figures.Answers{}, map[string]int{}
	answered := func(pod string, requests, errors float64) {
		mu.Lock()
		defer mu.Unlock()
		said[pod] = figures.Answers{Requests: requests, Errors: errors}
	}
	start := func() *running {
		mu.Lock()
		clear(read)
		mu.Unlock()
		a := at.start()
		a.readEvery = 20 * time.Millisecond
		a.answers = func(_ context.Context, pod *corev1.Pod) (figures.Answers, error) {
			mu.Lock()
			defer mu.Unlock()
			read[pod.Name]++
			return said[pod.Name], nil
		}
		return a
	}
	// A proxy is read when it has been so twice by who runs now: the first time is where counting begins.
	counted := func(pod string) {
		t.Helper()
		at.await(pod+" is read", func() bool { mu.Lock(); defer mu.Unlock(); return read[pod] > 1 })
	}
	proxy := func(g *infra.Gateway, name, workload string) {
		at.patch(at.pod(g, name), `{"metadata": {"labels": {"`+infra.InstanceLabel+`": "`+workload+`"}}}`)
	}
	has := func(name string, n int32) {
		t.Helper()
		d := &appsv1.Deployment{}
		at.await("replicas of "+name, func() bool { return at.named(name, d) && *d.Spec.Replicas == n })
	}
	shared := func(want bool) {
		t.Helper()
		s := &corev1.Service{}
		at.await("shared", func() bool {
			_, one := s.Spec.Selector[infra.InstanceLabel]
			return at.get(at.gateway(), s) && one != want
		})
	}

	first := at.blueGreen("v1", "", automatic)
	blue := "web-gatehouse-" + at.revision(first)
	a := start()
	a.Set(first)
	at.awaitReady(blue)
	proxy(first, "blue", blue)

	worse := at.blueGreen("v2", "", automatic)
	bad := "web-gatehouse-" + at.revision(worse)
	a.Set(worse)
	has(bad, 1)
	proxy(worse, "bad", bad)
	at.awaitReady(bad)
	at.await("both get requests", func() bool {
		s := &corev1.Service{}
		return at.get(first, s) && s.Spec.Selector[infra.GatewayLabel] == "web" && s.Spec.Selector[infra.InstanceLabel] == ""
	})
	a.finish()
	a = start() // compares anew
	a.Set(worse)
	counted("bad")
	answered("blue", 1000, 0)
	answered("bad", 200, 10)
	has(bad, 0)
	shared(false)
	at.leadsTo(first, blue)
	why := "it has answered 5.0% of 200 requests with 5xx; those that serve 0.0% of 1000 requests with 5xx"
	a.awaitStep(infra.Step{
		Stage: infra.Worse, Revision: at.revision(worse), Workload: bad, Live: blue, Ready: 1, Preview: infra.Places{}.PreviewName(first.Name, first.Class).Name, Why: why,
	})

	refuses := at.blueGreen("v2a", "", automatic)
	refusing := "web-gatehouse-" + at.revision(refuses)
	refuses.Refusing = map[string]string{at.revision(refuses): "listener/l: no"}
	a.Set(refuses)
	has(refusing, 1)
	at.awaitReady(refusing)
	has(refusing, 0)
	shared(false)
	a.awaitStep(infra.Step{
		Stage: infra.Worse, Revision: at.revision(refuses), Workload: refusing, Live: blue, Ready: 1, Preview: infra.Places{}.PreviewName(first.Name, first.Class).Name,
		Why: "it refuses what those that serve take, listener/l: no",
	})

	better := at.blueGreen("v3", "", automatic)
	green := "web-gatehouse-" + at.revision(better)
	a.Set(better)
	has(green, 1)
	proxy(better, "green", green)
	at.awaitReady(green)
	shared(true)
	counted("green")
	answered("blue", 2000, 0) // while the other gets nothing, which says nothing good of it
	waits := infra.Step{
		Stage: infra.Comparing, Revision: at.revision(better), Workload: green, Live: blue, Ready: 1, Wanted: 1, Preview: infra.Places{}.PreviewName(first.Name, first.Class).Name,
		Why: "it has had no requests, while those that serve have",
	}
	a.awaitStep(waits)
	answered("green", 300, 1)
	has(green, 2) // as many as serve, before clients go over
	shared(false)
	at.leadsTo(first, blue)
	at.awaitReady(green)
	at.leadsTo(first, green)
	at.await("no first Deployment", func() bool { return !at.named(blue, &appsv1.Deployment{}) })
	a.awaitStep(infra.Step{
		Stage: infra.Promoted, Revision: at.revision(better), Workload: green,
		Why: "it has answered 0.3% of 300 requests with 5xx; those that serve 0.0% of 1000 requests with 5xx",
	})
}
