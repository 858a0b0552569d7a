package infra

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// applicable is an object as it is applied: it has the fields that we want to own
// and no others, and says by a hash what they are.
func (f *fleet) applicable(object apiObject) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	// The types encode these fields even if nobody has set them.
	delete(fields, "status")
	unset(fields, "metadata", "creationTimestamp")
	unset(fields, "spec", "template", "metadata", "creationTimestamp")
	unsetEmpty(fields, "spec", "strategy")
	unsetEmpty(fields, "spec", "updateStrategy")
	hash, err := Hash(fields)
	if err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{Object: fields}
	annotations := out.GetAnnotations()
	annotations[AppliedAnnotation] = hash
	out.SetAnnotations(annotations)
	return out, nil
}

// Hash tells one content from another, for AppliedAnnotation.
func Hash(fields map[string]any) (string, error) {
	text, err := json.Marshal(fields)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), err
}

func unset(fields map[string]any, path ...string) {
	unstructured.RemoveNestedField(fields, path...)
}

func unsetEmpty(fields map[string]any, path ...string) {
	if m, ok, _ := unstructured.NestedMap(fields, path...); ok && len(m) == 0 {
		unset(fields, path...)
	}
}
