package main

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/pkg/topology"
)

// group is the API group of ColorPolicies.
var group = schema.GroupVersion{Group: "example.com", Version: "v1"}

// ColorPolicy paints what it targets, and what is below it.
type ColorPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              ColorSpec         `json:"spec"`
	Status            gwv1.PolicyStatus `json:"status,omitzero"`
}

// ColorSpec is what its author says: colors as such, which are defaults, or one of the two.
type ColorSpec struct {
	TargetRefs []gwv1.LocalPolicyTargetReferenceWithSectionName `json:"targetRefs"`
	Colors     map[string]string                                `json:"colors,omitempty"`
	Defaults   *Colors                                          `json:"defaults,omitempty"`
	Overrides  *Colors                                          `json:"overrides,omitempty"`
}

// Colors are named, so that they can be merged by name.
type Colors struct {
	Strategy string            `json:"strategy,omitempty"` // atomic, which is the default, or merge
	Colors   map[string]string `json:"colors"`
}

// colorPolicies describes the kind: this is all that the graph has to know.
var colorPolicies = topology.Kind[*ColorPolicy, string]{
	Group: group.Group, Kind: "ColorPolicy",
	Targets: func(o *ColorPolicy) []topology.Target { return topology.Targets(o.Spec.TargetRefs) },
	Spec: func(o *ColorPolicy) (topology.Spec[string], error) {
		switch d, v := o.Spec.Defaults, o.Spec.Overrides; {
		case v != nil && (d != nil || o.Spec.Colors != nil), d != nil && o.Spec.Colors != nil:
			return topology.Spec[string]{}, errors.New("spec has more than one of colors, defaults and overrides; leave one")
		case v != nil && v.Strategy == "merge":
			return topology.Spec[string]{Strategy: topology.MergeOverrides, Rules: v.Colors}, nil
		case v != nil:
			return topology.Spec[string]{Strategy: topology.AtomicOverrides, Rules: v.Colors}, nil
		case d != nil && d.Strategy == "merge":
			return topology.Spec[string]{Strategy: topology.MergeDefaults, Rules: d.Colors}, nil
		case d != nil:
			return topology.Spec[string]{Strategy: topology.AtomicDefaults, Rules: d.Colors}, nil
		default:
			return topology.Spec[string]{Rules: o.Spec.Colors}, nil
		}
	},
}

// ColorPolicyList is a list of them.
type ColorPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []ColorPolicy `json:"items"`
}

// addToScheme makes the kind known to clients.
func addToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(group, &ColorPolicy{}, &ColorPolicyList{})
	metav1.AddToGroupVersion(s, group)
	return nil
}

// DeepCopyObject returns a copy. Specs are read only, and shared.
func (o *ColorPolicy) DeepCopyObject() runtime.Object {
	return &ColorPolicy{o.TypeMeta, *o.ObjectMeta.DeepCopy(), o.Spec, *o.Status.DeepCopy()}
}

// DeepCopyObject returns a copy.
func (l *ColorPolicyList) DeepCopyObject() runtime.Object {
	out := &ColorPolicyList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*ColorPolicy))
	}
	return out
}
