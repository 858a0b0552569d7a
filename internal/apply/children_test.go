package apply

import (
	"bytes"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/blueprint"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// childrenTest is a test of Children with a real API server.
type childrenTest struct {
	*testing.T
	client.Client
	rest *rest.Config
}

func newChildrenTest(t *testing.T) *childrenTest {
	t.Helper()
	server, admin := startServer(t)
	in := &childrenTest{t, admin, server.Config}
	for _, name := range []string{"gatehouse-system", "team", "other"} {
		in.must(admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	return in
}

// runningChildren are Children at work.
type runningChildren struct {
	*Children
	events *events.FakeRecorder
	stop   func()

	mu       sync.Mutex
	problems map[object.Name]map[blueprint.Ref]string
}

func (t *childrenTest) start(change ...func(*Children)) *runningChildren {
	t.Helper()
	return t.startWith(ChildrenOptions{Log: slog.New(slog.NewTextHandler(t.Output(), nil))}, change...)
}

func (t *childrenTest) startWith(o ChildrenOptions, change ...func(*Children)) *runningChildren {
	t.Helper()
	r := &runningChildren{events: events.NewFakeRecorder(100), problems: map[object.Name]map[blueprint.Ref]string{}}
	direct, err := client.New(t.rest, client.Options{})
	t.must(err)
	o.REST, o.Client, o.Namespace, o.ControllerName, o.Events = t.rest, direct, "gatehouse-system", "gatehouse.dev/controller", r.events
	o.OnLive = func(blueprint.Ref, *unstructured.Unstructured) {}
	o.OnMade = func(object.Name, map[blueprint.Place][]blueprint.Ref) {}
	o.OnScope = func(schema.GroupVersionKind, *bool) {}
	o.OnProblems = func(gateway object.Name, problems map[blueprint.Ref]string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.problems[gateway] = problems
	}
	r.Children, err = NewChildren(o)
	t.must(err)
	for _, c := range change {
		c(r.Children)
	}
	r.stop = startRun(t.T, r.Run)
	return r
}

// said is what is wrong with a Gateway's objects.
func (r *runningChildren) said(gateway object.Name) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all strings.Builder
	for ref, why := range r.problems[gateway] {
		all.WriteString(ref.String() + ": " + why + "\n")
	}
	return all.String()
}

func (t *childrenTest) must(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (t *childrenTest) await(what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not so after 20 s", what)
		}
	}
}

// object parses a manifest.
func (t *childrenTest) object(text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	t.must(yaml.Unmarshal([]byte(text), &o.Object))
	return o
}

// live reads an object as it is; nil if there is none.
func (t *childrenTest) live(text string) *unstructured.Unstructured {
	t.Helper()
	o := t.object(text)
	err := t.Get(t.Context(), client.ObjectKeyFromObject(o), o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	t.must(err)
	return o
}

// setFinalizers is what another controller does.
func (t *childrenTest) setFinalizers(text, finalizers string) {
	t.Helper()
	t.must(t.Patch(t.Context(), t.live(text), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":[`+finalizers+`]}}`))))
}

// children are those of a Gateway, the first of the highest wave.
func (t *childrenTest) children(gateway object.Name, manifests ...string) *blueprint.Children {
	t.Helper()
	out := &blueprint.Children{Gateway: gateway, UID: "11111111-0000-0000-0000-000000000000"}
	for i, text := range manifests {
		o := t.object(text)
		out.Kinds = append(out.Kinds, o.GroupVersionKind())
		out.Children = append(out.Children, blueprint.Child{Place: blueprint.Place{ID: "r" + string(rune('a'+i))}, Object: o, Wave: len(manifests) - 1 - i})
	}
	return out
}

func (t *childrenTest) inventories() int {
	t.Helper()
	all := &corev1.ConfigMapList{}
	t.must(t.List(t.Context(), all, client.InNamespace("gatehouse-system"), client.HasLabels{"applyset.kubernetes.io/id"}))
	return len(all.Items)
}

var edge, web = object.Name{Namespace: "team", Name: "edge"}, object.Name{Namespace: "team", Name: "web"}

const (
	clusterScoped = `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: edge}, value: 7}`
	foreignSpace  = `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: other, name: edge}}`
	ownSpace      = `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: team, name: edge}}`
	ofWeb         = `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: team, name: web}}`
)

// TestWaves protects the order of deletion: what is read goes when those that read it are gone, and one Gateway whose
// objects don't go keeps no other one from anything. It is told, and the objects go by the inventory alone.
func TestWaves(t *testing.T) {
	in := newChildrenTest(t)
	first := in.start()
	first.Set(in.children(edge, clusterScoped, foreignSpace, ownSpace))
	in.await("all are there", func() bool {
		return in.live(clusterScoped) != nil && in.live(foreignSpace) != nil && in.live(ownSpace) != nil
	})
	if owners := in.live(ownSpace).GetOwnerReferences(); len(owners) != 1 || owners[0].Name != "edge" || !*owners[0].Controller {
		t.Errorf("the object that nobody reads has the owners %v", owners)
	}
	in.setFinalizers(ownSpace, `"example.com/busy"`)
	first.stop()

	ch := in.start(func(ch *Children) { ch.deletionPatience = 0 }) // which knows neither blueprint nor Gateway
	ch.Complete()
	in.await("the first wave is being deleted", func() bool { return in.live(ownSpace).GetDeletionTimestamp() != nil })
	in.await("what doesn't go is told", func() bool {
		return strings.Contains(ch.said(edge), "ConfigMap team/edge: is being deleted for more than")
	})
	if said := ch.said(edge); !strings.Contains(said, "example.com/busy") {
		t.Errorf("it isn't told why: %s", said)
	}
	ch.Set(in.children(web, ofWeb))
	in.await("another Gateway has its objects", func() bool { return in.live(ofWeb) != nil })
	for _, text := range []string{foreignSpace, clusterScoped} {
		if o := in.live(text); o == nil || o.GetDeletionTimestamp() != nil {
			t.Errorf("%s goes before what reads it", text)
		}
	}
	in.setFinalizers(ownSpace, "")
	in.await("nothing is left", func() bool {
		return in.live(ownSpace) == nil && in.live(foreignSpace) == nil && in.live(clusterScoped) == nil && in.inventories() == 1
	})
	in.await("nor anything to tell", func() bool { return ch.said(edge) == "" })

	// A resource that is gone: the Gateway is there still, and has an Event.
	ch.Set(in.children(edge, foreignSpace, ownSpace))
	in.await("both are there again", func() bool { return in.live(foreignSpace) != nil && in.live(ownSpace) != nil })
	in.setFinalizers(ownSpace, `"example.com/busy"`)
	ch.Set(in.children(edge))
	in.await("an Event", func() bool {
		select {
		case e := <-ch.events.Events:
			return strings.Contains(e, "BlueprintDeletionStuck")
		default:
			return false
		}
	})
	in.setFinalizers(ownSpace, "")
	in.await("nothing is left", func() bool { return in.live(ownSpace) == nil && in.live(foreignSpace) == nil })
}

// TestPruningIsCertain protects objects of Gateways of which nothing is known for other reasons than that they
// are gone, and objects that another version of their kind names.
func TestPruningIsCertain(t *testing.T) {
	in := newChildrenTest(t)
	first := in.start()
	first.Set(in.children(edge, ownSpace))
	first.Set(in.children(web, ofWeb))
	in.await("both are there", func() bool { return in.live(ownSpace) != nil && in.live(ofWeb) != nil })
	first.stop()
	in.must(in.Create(t.Context(), in.object(`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: team, name: edge},
		spec: {gatewayClassName: gone, listeners: [{name: http, port: 80, protocol: HTTP}]}}`)))
	ch := in.start()
	ch.Delete(edge)
	ch.Complete()
	in.await("objects of a Gateway that is gone go", func() bool { return in.live(ofWeb) == nil })
	ch.queue.ShutDownWithDrain()
	if in.live(ownSpace) == nil {
		t.Error("a class that is missing has cost objects")
	}
	ch.stop()

	ch = in.start()
	const budget = `apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {namespace: team, name: edge}
spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: edge}}`
	ch.Set(in.children(edge, budget))
	in.await("it is there", func() bool { return in.live(budget) != nil })
	uid := in.live(budget).GetUID()
	ch.Set(in.children(edge, strings.Replace(budget, "maxReplicas: 2", "maxReplicas: 3", 1)))
	ch.Set(in.children(edge, strings.Replace(strings.Replace(budget, "maxReplicas: 2", "maxReplicas: 3", 1), "autoscaling/v1", "autoscaling/v2", 1)))
	in.await("it is changed", func() bool {
		n, _, _ := unstructured.NestedInt64(in.live(budget).Object, "spec", "maxReplicas")
		return n == 3
	})
	ch.queue.ShutDownWithDrain()
	if o := in.live(budget); o == nil || o.GetUID() != uid || o.GetDeletionTimestamp() != nil {
		t.Error("another version of its kind has cost an object")
	}
}

// TestRefused protects the controller's own objects, and Secrets, from blueprints, and says what is refused.
func TestRefused(t *testing.T) {
	in := newChildrenTest(t)
	ch := in.start()
	refused := map[string]string{
		`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: gatehouse-system, name: gatehouse-settings}}`:                   "use another namespace",
		`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: gatehouse-system, name: ` + ch.newInventory(web).name + `}}`:    "use another namespace",
		`{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: gatehouse-system, name: gatehouse}}`:                      "use another namespace",
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: gatehouse-system, name: more}}`:     "use another namespace",
		`{apiVersion: v1, kind: Namespace, metadata: {name: gatehouse-system}}`:                                                  "the controller's own namespace",
		`{apiVersion: v1, kind: Secret, metadata: {namespace: team, name: edge}}`:                                                "can't make Secrets",
		`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gatewaybluedots.gatehouse.dev}}`: "definitions",
	}
	ch.Set(in.children(edge, append(slices.Collect(maps.Keys(refused)), ownSpace)...))
	in.await("what may be made is made", func() bool { return in.live(ownSpace) != nil })
	in.await("what is refused is told", func() bool { return len(strings.Split(strings.TrimSpace(ch.said(edge)), "\n")) == len(refused) })
	for text, why := range refused {
		o := in.object(text)
		ref := blueprint.Ref{Kind: o.GroupVersionKind(), Name: object.Name{Namespace: o.GetNamespace(), Name: o.GetName()}}
		ch.mu.Lock()
		said := ch.problems[edge][ref]
		ch.mu.Unlock()
		if !strings.Contains(said, why) {
			t.Errorf("of %s it is said %q", ref, said)
		}
		if live := in.live(text); live != nil && live.GetLabels()["gatehouse.dev/blueprint-resource"] != "" {
			t.Errorf("%s is made", ref)
		}
	}
	ch.Delete(edge)
	in.await("and nothing of it is deleted", func() bool { return in.inventories() == 0 })
	if in.live(`{apiVersion: v1, kind: Namespace, metadata: {name: gatehouse-system}}`).GetDeletionTimestamp() != nil {
		t.Error("what was refused is deleted")
	}
}

// TestNothingIsTold protects what values hold, which may be a secret: no log, status, Event or metric has it.
func TestNothingIsTold(t *testing.T) {
	in := newChildrenTest(t)
	var log bytes.Buffer
	registry := prometheus.NewRegistry()
	ch := in.startWith(ChildrenOptions{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), Registerer: registry})
	const secret = `hunter2 "and" more`
	manifests := []string{
		`{apiVersion: v1, kind: Secret, metadata: {namespace: team, name: refused}, stringData: {password: SECRET}}`,
		`{apiVersion: v1, kind: Service, metadata: {namespace: team, name: invalid}, spec: {type: SECRET}}`,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: team, name: mistyped}, spec: {replicas: SECRET}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: team, name: unknown, labels: {a: SECRET}}, data: {password: SECRET}, nonsense: {password: SECRET}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: team, name: made}, data: {password: SECRET}}`,
	}
	for i := range manifests {
		manifests[i] = strings.ReplaceAll(manifests[i], "SECRET", strconv.Quote(secret))
	}
	ch.Set(in.children(edge, manifests...))
	in.await("one is made, and of the others it is told why not", func() bool {
		return in.live(manifests[4]) != nil && strings.Count(ch.said(edge), "\n") == 4
	})
	ch.queue.ShutDownWithDrain()
	ch.stop()
	told := map[string]string{"log": log.String(), "status": ch.said(edge)}
	for len(ch.events.Events) > 0 {
		told["Events"] += <-ch.events.Events + "\n"
	}
	metrics, err := registry.Gather()
	in.must(err)
	for _, m := range metrics {
		told["metrics"] += m.String() + "\n"
	}
	for where, text := range told {
		if text == "" || strings.Contains(text, "hunter2") {
			t.Errorf("%s: %s", where, text)
		}
	}
	for _, want := range []string{"BlueprintObjectFailed Service team/invalid: ", "BlueprintObjectFailed Secret team/refused: "} {
		if !strings.Contains(told["Events"], want) {
			t.Errorf("no Event has %q: %s", want, told["Events"])
		}
	}
	if !strings.Contains(told["metrics"], `value:"failed"`) {
		t.Errorf("no metric has what failed: %s", told["metrics"])
	}
}
