package kind_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
)

// Each row is whole, and no word stands for two kinds.
func TestRows(t *testing.T) {
	words := map[string]*kind.Descriptor{}
	for d := range kind.All.Rows() {
		for _, word := range append(slices.Clone(d.Words), d.Word()) {
			if words[word] != nil {
				t.Errorf("%q is %s and %s", word, words[word], d)
			}
			words[word] = d
		}
		if kind.All.OfObject(d.New()) != d || kind.All.Of(d.Kind) != d {
			t.Errorf("%s is not found", d)
		}
		if len(d.Watched()) == 0 {
			t.Errorf("%s can't be watched", d)
		}
	}
}

// A table doesn't take two rows for one kind.
func TestTwice(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it does")
		}
	}()
	kind.All.With(&kind.Descriptor{
		Kind: kind.Gateway, Plural: "gates", Versions: []kind.Version{kind.Typed[gwv1.Gateway, gwv1.GatewayList]("v2")},
	})
}

// A scheme knows every version that a cluster is asked for.
func TestScheme(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := kind.All.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for d := range kind.All.Rows() {
		for _, v := range d.Versions {
			if known := scheme.Recognizes(d.GroupVersionKind(v.Name)); known != (v.List != nil && d.Reading != kind.MetadataOnly) {
				t.Errorf("%s %s is known: %t", d, v.Name, known)
			}
		}
	}
}

// What is written into a status of any kind is read from it again.
func TestStatuses(t *testing.T) {
	conditions := []metav1.Condition{{Type: "Accepted", Status: metav1.ConditionTrue, Reason: "Accepted", ObservedGeneration: 2}}
	mine := kind.Entry{Controller: "example.com/mine", Ref: gwv1.ParentReference{Name: "g", Namespace: new(gwv1.Namespace("a"))}, Conditions: conditions}
	other := mine
	other.Controller, other.Ref.Namespace = "example.com/other", nil
	for d := range kind.All.Rows() {
		s := d.Status
		if s == nil {
			continue
		}
		var status any
		var places []string
		if s.IsShared() {
			status = s.Join([]kind.Entry{other, mine})
			if diff := cmp.Diff([]kind.Entry{other, mine}, s.Entries(status)); diff != "" {
				t.Errorf("%s: %s", d, diff)
			}
			if diff := cmp.Diff([]kind.Entry{mine}, s.Entries(s.Own(status, mine.Controller))); diff != "" {
				t.Errorf("%s: %s", d, diff)
			}
			places = []string{"g", "a/g"}
		} else {
			status = s.Saying(conditions)
			places = []string{""}
		}
		var got []string
		for place, list := range s.Conditions(s.Copy(status)) {
			got = append(got, place)
			if diff := cmp.Diff(conditions, list); diff != "" {
				t.Errorf("%s: %s", d, diff)
			}
		}
		if diff := cmp.Diff(places, got); diff != "" {
			t.Errorf("%s: %s", d, diff)
		}
		for range s.Conditions(s.Of(d.New())) {
			if s.IsShared() {
				t.Errorf("%s: an empty status has conditions", d)
			}
		}
		for range s.Conditions(nil) {
			t.Errorf("%s: no status has conditions", d)
		}
	}
}
