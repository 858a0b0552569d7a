package newkind

import (
	_ "embed"
	"encoding/json"
	"slices"
	"testing"
	"testing/fstest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

//go:embed widget.yaml
var definition []byte

// Definition is the kind's CustomResourceDefinition.
func Definition(t testing.TB) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(definition, crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

// Descriptor is the kind's row.
func Descriptor(t testing.TB) *kind.Descriptor {
	t.Helper()
	schemas, err := json.Marshal(Definition(t).Spec.Versions)
	if err != nil {
		t.Fatal(err)
	}
	return &kind.Descriptor{
		Kind: object.KindOf("example.test", "Widget"), Plural: "widgets", Custom: true,
		Versions: []kind.Version{kind.Typed[Widget, WidgetList]("v1")},
		Status: kind.Whole(func(o *Widget) *WidgetStatus { return &o.Status },
			func(s *WidgetStatus, yield func(string, *[]metav1.Condition)) { yield("", &s.Conditions) }),
		Schemas: fstest.MapFS{"crds/own/widget.json": {Data: schemas}},
	}
}

// Widget is an object of the kind.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              WidgetSpec   `json:"spec"`
	Status            WidgetStatus `json:"status,omitzero"`
}

// WidgetSpec is what a user says.
type WidgetSpec struct {
	Size int32 `json:"size,omitempty"`
}

// WidgetStatus is what a controller says.
type WidgetStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// WidgetList is a list of them.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Widget `json:"items"`
}

// DeepCopy returns a copy.
func (s *WidgetStatus) DeepCopy() *WidgetStatus {
	return &WidgetStatus{Conditions: slices.Clone(s.Conditions)}
}

// DeepCopyObject returns a copy.
func (o *Widget) DeepCopyObject() runtime.Object {
	return &Widget{o.TypeMeta, *o.ObjectMeta.DeepCopy(), o.Spec, *o.Status.DeepCopy()}
}

// DeepCopyObject returns a copy.
func (l *WidgetList) DeepCopyObject() runtime.Object {
	out := &WidgetList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Widget))
	}
	return out
}
