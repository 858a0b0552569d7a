package infra

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// patched applies the parameters' patches of an object's kind, in order. They can't
// change the fields by which we find our objects.
func (f *fleet) patched(object apiObject) (apiObject, error) {
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
		labels, annotations := kept(object.GetLabels(), out.GetLabels()), kept(object.GetAnnotations(), out.GetAnnotations())
		maps.Copy(labels, f.ownLabels())
		out.SetLabels(labels)
		out.SetAnnotations(f.annotations(annotations))
		out.SetOwnerReferences(object.GetOwnerReferences())
		object = out
	}
	return object, nil
}

// patch returns an object of the same type. A field that the type doesn't have is
// an error: most such fields are misspelt.
func patch(object apiObject, p v1alpha1.Patch) (apiObject, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	out := reflect.New(reflect.TypeOf(object).Elem()).Interface().(apiObject)
	if text, err = patchText(text, p, out); err != nil {
		return nil, shortError(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(out); err != nil {
		return nil, shortError(err)
	}
	return out, nil
}

// patchText applies a patch to the JSON of an object of that type. The patch is within
// what checkPatches allows.
func patchText(text []byte, p v1alpha1.Patch, of apiObject) (out []byte, err error) {
	// Both libraries have panicked on what others have written, and what they panic
	// about is never more than this patch.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it can't be applied: %v", r)
		}
	}()
	if err := checkSize(text); err != nil {
		return nil, err
	}
	if p.Type != v1alpha1.JSONPatch {
		if err := checkLists(text); err != nil {
			return nil, err
		}
		if text, err = strategicpatch.StrategicMergePatch(text, p.Value.Raw, of); err != nil {
			return nil, err
		}
		return text, checkSize(text)
	}
	operations, err := jsonpatch.DecodePatch(p.Value.Raw)
	if err != nil {
		return nil, err
	}
	options := jsonpatch.NewApplyOptions()
	options.AccumulatedCopySizeLimit = maxPatched
	for i := range operations {
		// One after the other, since only what has been applied can be measured.
		if text, err = operations[i:i+1].ApplyWithOptions(text, options); err != nil {
			return nil, err
		}
		if err := checkSize(text); err != nil {
			return nil, fmt.Errorf("operation %d: %w", i, err)
		}
	}
	return text, nil
}
