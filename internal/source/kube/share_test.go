package kube

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// shared is an informer's transformation, and its store.
type shared struct {
	toolscache.Store
	transform toolscache.TransformFunc
}

func newShared() *shared {
	store := toolscache.NewStore(toolscache.DeletionHandlingMetaNamespaceKeyFunc)
	return &shared{store, sharing(store, nil)}
}

// pass lets an object through.
func (s *shared) pass(t interface{ Fatal(...any) }, o *gwv1.HTTPRoute) *gwv1.HTTPRoute {
	if out, err := s.transform(o); err != nil || out != any(o) {
		t.Fatal("the object is not what came through", err)
	}
	return o
}

// take lets an object through, and puts it into the store.
func (s *shared) take(t interface{ Fatal(...any) }, o *gwv1.HTTPRoute) *gwv1.HTTPRoute {
	if err := s.Add(s.pass(t, o)); err != nil {
		t.Fatal(err)
	}
	return o
}

// decoded is a copy that shares nothing, with the managed fields that an API server sends.
func decoded(t interface{ Fatal(...any) }, o *gwv1.HTTPRoute) *gwv1.HTTPRoute {
	o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "someone"}}
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	out := &gwv1.HTTPRoute{}
	if err := json.Unmarshal(text, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// anyRoute is one of few names whose parts are often equal to another one's.
func anyRoute(t *rapid.T) *gwv1.HTTPRoute {
	few := func(label string, most int) int { return rapid.IntRange(0, most).Draw(t, label) }
	o := &gwv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprint("r-", few("name", 4))}}
	o.ResourceVersion = fmt.Sprint(few("version", 1000))
	o.CreationTimestamp = metav1.Unix(int64(few("created", 2)), 0)
	if n := few("labels", 2); n > 0 {
		o.Labels = map[string]string{"app": fmt.Sprint(n)}
	}
	for range few("parents", 2) {
		p := gwv1.ParentReference{Name: gwv1.ObjectName(fmt.Sprint("g-", few("gateway", 1)))}
		if few("elsewhere", 1) == 1 {
			p.Namespace = new(gwv1.Namespace("infra"))
		}
		o.Spec.ParentRefs = append(o.Spec.ParentRefs, p)
		o.Status.Parents = append(o.Status.Parents, gwv1.RouteParentStatus{ParentRef: p, Conditions: []metav1.Condition{
			{Type: "Accepted", ObservedGeneration: int64(few("generation", 2)), LastTransitionTime: metav1.Unix(int64(few("at", 2)), 0)},
		}})
	}
	for range few("rules", 3) {
		var rule gwv1.HTTPRouteRule
		for range few("matches", 2) {
			path := fmt.Sprint("/", few("path", 2))
			rule.Matches = append(rule.Matches, gwv1.HTTPRouteMatch{Path: &gwv1.HTTPPathMatch{Value: &path}})
		}
		for range few("backends", 2) {
			var b gwv1.HTTPBackendRef
			b.Name, b.Port = gwv1.ObjectName(fmt.Sprint("s-", few("service", 2))), new(gwv1.PortNumber(few("port", 1)))
			rule.BackendRefs = append(rule.BackendRefs, b)
		}
		o.Spec.Rules = append(o.Spec.Rules, rule)
	}
	return o
}

// Sharing changes no object: neither what comes, nor any of those that are there.
func TestSharedObjectsStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShared()
		was := map[*gwv1.HTTPRoute]*gwv1.HTTPRoute{}
		for range rapid.IntRange(2, 12).Draw(t, "objects") {
			o := decoded(t, anyRoute(t))
			want := o.DeepCopy()
			want.ManagedFields = transformed
			was[s.take(t, o)] = want
			for o, want := range was {
				if !reflect.DeepEqual(o, want) {
					t.Fatal(cmp.Diff(want, o))
				}
			}
		}
	})
}

func sharedRoute(name, gateway string) *gwv1.HTTPRoute {
	o := route("team", name)
	o.Spec.ParentRefs = []gwv1.ParentReference{
		{Name: gwv1.ObjectName(gateway), Namespace: new(gwv1.Namespace("infra"))},
		{Name: "same", Namespace: new(gwv1.Namespace("infra"))},
	}
	return o
}

// What has come through is not written to when it comes again: an informer's first list does,
// and what is read then may be part of it.
func TestSharedOnce(t *testing.T) {
	s := newShared()
	first := s.take(t, decoded(t, sharedRoute("a", "one")))
	second := s.pass(t, decoded(t, sharedRoute("b", "one")))
	s.pass(t, decoded(t, &gwv1.HTTPRoute{}))
	s.pass(t, decoded(t, sharedRoute("c", "one"))) // it has nothing to share with
	if &first.Spec.ParentRefs[0] != &second.Spec.ParentRefs[0] {
		t.Fatal("the Gateway is in memory twice")
	}
	namespace := first.Spec.ParentRefs[0].Namespace
	var reader sync.WaitGroup
	reader.Go(func() {
		if text, err := json.Marshal(first); err != nil || len(text) == 0 {
			t.Error(err)
		}
	})
	s.pass(t, second)
	reader.Wait()
	if first.Spec.ParentRefs[0].Namespace != namespace {
		t.Error("an object that comes again was written to, and another one with it")
	}
}

// Parts are shared where the whole is not equal, and who appends to a part that is shared
// changes nobody else's.
func TestSharedParts(t *testing.T) {
	s := newShared()
	first := s.take(t, decoded(t, sharedRoute("a", "one")))
	second := s.take(t, decoded(t, sharedRoute("b", "two")))
	if &first.Spec.ParentRefs[0] == &second.Spec.ParentRefs[0] {
		t.Fatal("what differs is shared")
	}
	if first.Spec.ParentRefs[0].Namespace != second.Spec.ParentRefs[0].Namespace {
		t.Error("the same namespace is in memory twice")
	}
	long := decoded(t, sharedRoute("c", "one"))
	long.Spec.Hostnames = append(make([]gwv1.Hostname, 0, 8), "x.example.com")
	long = s.take(t, long)
	next := decoded(t, sharedRoute("d", "one"))
	next.Spec.Hostnames = []gwv1.Hostname{"x.example.com"}
	next = s.take(t, next)
	if &long.Spec.Hostnames[0] != &next.Spec.Hostnames[0] {
		t.Fatal("the same hosts are in memory twice")
	}
	_ = append(next.Spec.Hostnames, "y.example.com")
	if after := long.Spec.Hostnames[:2][1]; after != "" {
		t.Errorf("appending to one object's hosts wrote %q behind another's", after)
	}
}

// What was shared by objects that are gone goes with them: only the last one is remembered.
func TestSharedEnds(t *testing.T) {
	s := newShared()
	var gone []weak.Pointer[gwv1.ParentReference]
	for i := range 8 {
		o := s.take(t, decoded(t, sharedRoute("a", fmt.Sprint("g-", i))))
		gone = append(gone, weak.Make(&o.Spec.ParentRefs[0]))
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		runtime.GC()
		kept := 0
		for _, p := range gone[:len(gone)-1] {
			if p.Value() != nil {
				kept++
			}
		}
		if kept == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of what is gone are kept", kept)
		}
	}
	runtime.KeepAlive(s)
}
