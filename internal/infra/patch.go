package infra

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// patched applies the parameters' patches of an object's kind, in order. They can't
// change the fields by which we find our objects.
func (f *fleet) patched(object client.Object) (client.Object, error) {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	for i, p := range f.settings.Patches {
		if p.Target.Kind != kind {
			continue
		}
		out, err := patch(object, p)
		if err == nil && (out.GetName() != object.GetName() || out.GetNamespace() != object.GetNamespace() ||
			out.GetObjectKind().GroupVersionKind() != object.GetObjectKind().GroupVersionKind()) {
			err = errors.New("a patch can't change the object's kind, name or namespace")
		}
		if err != nil {
			return nil, fmt.Errorf("patches[%d] of the %s: %w", i, kind, err)
		}
		labels, annotations := out.GetLabels(), out.GetAnnotations()
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, Labels(f.Name, f.Class))
		out.SetLabels(labels)
		out.SetAnnotations(f.annotations(annotations))
		out.SetOwnerReferences(object.GetOwnerReferences())
		object = out
	}
	return object, nil
}

// patch returns an object of the same type. A field that the type doesn't have is
// an error: most such fields are misspelt.
func patch(object client.Object, p v1alpha1.Patch) (client.Object, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	out := reflect.New(reflect.TypeOf(object).Elem()).Interface().(client.Object)
	switch p.Type {
	case v1alpha1.JSONPatch:
		operations, err := jsonpatch.DecodePatch(p.Value.Raw)
		if err != nil {
			return nil, err
		}
		if text, err = operations.Apply(text); err != nil {
			return nil, err
		}
	default:
		if text, err = strategicpatch.StrategicMergePatch(text, p.Value.Raw, out); err != nil {
			return nil, err
		}
	}
	if err := yaml.UnmarshalStrict(text, out); err != nil {
		return nil, err
	}
	return out, nil
}
