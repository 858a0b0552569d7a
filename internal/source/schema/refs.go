package schema

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// targetLists are the fields that say what a policy is for.
var targetLists = []string{"targetRefs", "targetSelectors"}

// wrongRefs says which references to what an object is attached to are to a kind that is
// misspelt. By the schema any kind will do, and the object would be attached to nothing.
func (v *Validator) wrongRefs(id Identity, content map[string]any) (errs field.ErrorList) {
	var names []string
	switch id.row.Family {
	case kind.Route:
		names = []string{"parentRefs"}
	case kind.Policy:
		names = targetLists
	default:
		return nil
	}
	spec, _ := content["spec"].(map[string]any)
	for _, name := range names {
		list, _ := spec[name].([]any)
		for i := range list {
			ref, _ := list[i].(map[string]any)
			if wrong := v.wrongRef(ref); wrong != nil {
				path := field.NewPath("spec", name).Index(i).Child(map[string]string{"kind": "kind", "apiVersion": "group"}[wrong.Field])
				errs = append(errs, &field.Error{Type: field.ErrorTypeNotSupported, Field: path.String(), BadValue: said{}, Detail: wrong.Text})
			}
		}
	}
	return errs
}

// said marks errors whose detail is the message.
type said struct{}

// wrongRef says what is wrong with the kind of a reference; nil for nothing, or a kind of others.
func (v *Validator) wrongRef(ref map[string]any) *UnknownKindError {
	group, hasGroup := ref["group"].(string)
	name, hasKind := ref["kind"].(string)
	if !hasGroup && ref["group"] == nil {
		group = kind.Gateway.Group()
	}
	if !hasKind && ref["kind"] == nil {
		name = kind.Gateway.Name()
	}
	if v.kinds[object.KindOf(group, name)] != nil {
		return nil
	}
	apiVersion := group + "/v1"
	if group == kind.Core {
		apiVersion = "v1"
	}
	var wrong *UnknownKindError
	if !errors.As(v.unknownKind(group, apiVersion, name), &wrong) || wrong.meant == nil {
		return nil
	}
	if wrong.Field == "apiVersion" { // a reference has no version
		wrong.Text = fmt.Sprintf("%q has no kind %s that Gatehouse reads; did you mean %s of %q?", group, shown(name), wrong.meant.Kind.Name(), wrong.meant.Kind.Group())
	}
	return wrong
}
