package view

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// A route with a stand-in is in order by its status, and so is a last valid version. Their
// rows say what is wrong with what was written.
func TestRefusedIsNotAccepted(t *testing.T) {
	row := func(name string) Item {
		return Item{
			TypeMeta: metav1.TypeMeta{Kind: "HTTPRoute"}, Metadata: ItemMeta{Namespace: "ns", Name: name},
			Summary: Summary{State: "Accepted", OK: true},
		}
	}
	key := func(name string) object.Key {
		return object.Key{Kind: kind.HTTPRoute, Name: object.Name{Namespace: "ns", Name: name}}
	}
	v := View{
		Items: []Item{row("refused"), row("old"), row("good")},
		Problems: []source.Problem{
			{Key: key("refused"), Field: "spec.rules", Message: "first", Reason: source.Invalid},
			{Key: key("refused"), Message: "second", Reason: source.Invalid},
			{Key: key("old"), Line: 12, Message: "third", Reason: source.Invalid, Stale: true},
			{Key: key("good"), Message: "fourth", Reason: source.Duplicate},
		},
	}
	v.Items[0].kind = kind.All.Of(kind.HTTPRoute)
	v.Items[0].Status = &gwv1.RouteStatus{Parents: []gwv1.RouteParentStatus{{Conditions: []metav1.Condition{
		{Type: "Accepted", Status: metav1.ConditionTrue, Reason: "Accepted"},
		{Type: "ResolvedRefs", Status: metav1.ConditionTrue, Reason: "ResolvedRefs"},
	}}}}
	v.blame()
	list := v.Items[0].Status.(*gwv1.RouteStatus).Parents[0].Conditions
	if a := list[0]; a.Status != metav1.ConditionFalse || a.Reason != "UnsupportedValue" || !strings.Contains(a.Message, "first") || list[1].Status != metav1.ConditionTrue {
		t.Errorf("the conditions of a stand-in are %+v", list)
	}
	for i, want := range []Summary{
		{State: "Invalid", Message: "spec.rules: first"},
		{State: "RefusedEdit", Message: "old version in force: line 12: third", RefusedEdit: "line 12: third"},
		{State: "Accepted", OK: true},
	} {
		if got := v.Items[i].Summary; got.State != want.State || got.OK != want.OK || got.Message != want.Message || got.RefusedEdit != want.RefusedEdit {
			t.Errorf("row %d is %+v, want %+v", i, got, want)
		}
	}
}
