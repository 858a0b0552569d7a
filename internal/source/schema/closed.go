package schema

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/spelling"
)

// A policy that says who may pass must not let everybody pass because of a mistake in it. In
// place of one that is refused there is one with the same targets, as far as they can be
// read, that lets nobody pass.

// guardKinds are the kinds that an AuthPolicy may be for.
var guardKinds = []string{kind.Gateway.Name(), kind.ListenerSet.Name(), kind.HTTPRoute.Name(), kind.GRPCRoute.Name()}

// everybody is a condition that nobody meets.
var everybody = map[string]any{"addresses": map[string]any{"deny": []any{"0.0.0.0/0", "::/0"}}}

// closed returns an AuthPolicy that lets nobody pass what a refused one was to guard, and the
// fields of the targets of which nothing can be read; nil if that are all.
func (v *Validator) closed(id Identity, content map[string]any, errs field.ErrorList) (source.Object, []string) {
	spec, _ := content["spec"].(map[string]any)
	mended, unread := targetsOf(spec, errs)
	if len(mended) == 0 {
		return nil, unread
	}
	at, strategy := layerOf(spec, errs)
	mended[at] = map[string]any{"authorization": map[string]any{"closed": everybody}, "strategy": strategy}
	o, errs := v.Decode(id, map[string]any{
		"apiVersion": content["apiVersion"], "kind": id.Key.Kind.Name(), "metadata": map[string]any{"name": id.Key.Name.Name},
		"spec": mended,
	})
	if len(errs) > 0 {
		return nil, unread
	}
	return o, unread
}

// layerOf returns where the rules of a policy stand, and its strategy. Where that can't be read
// it is the one by which others' rules don't take the place of those that are missing.
func layerOf(spec map[string]any, errs field.ErrorList) (at, strategy string) {
	layers := []string{"overrides", "defaults"}
	for _, err := range errs {
		path := stepsOfSpec(err.Field)
		if _, missing := err.BadValue.(unknown); !missing || len(path) != 1 {
			continue
		}
		if meant := spelling.Nearest(path[0], slices.Values(layers)); meant != "" {
			return meant, "merge"
		}
	}
	for _, at := range layers {
		value, ok := spec[at]
		if !ok {
			continue
		}
		if said, ok := value.(map[string]any); ok && (said["strategy"] == nil || said["strategy"] == "atomic") {
			return at, "atomic"
		}
		return at, "merge"
	}
	return "defaults", "atomic"
}

// targetsOf returns a spec with the targets that can be read, the whole object where its section
// can't be, and the fields of the others.
func targetsOf(spec map[string]any, errs field.ErrorList) (mended map[string]any, unread []string) {
	mended = map[string]any{}
	for i, readable := range [...]func(ref, target map[string]any) bool{isNamed, isLabelled} {
		name := targetLists[i]
		list, _ := spec[name].([]any)
		var targets []any
		for i, value := range list {
			at := fmt.Sprintf("spec.%s[%d]", name, i)
			ref, _ := value.(map[string]any)
			of := guardKind(ref["kind"])
			target := map[string]any{"group": kind.GatewayAPI, "kind": of}
			if of == "" || !readable(ref, target) {
				unread = append(unread, at)
				continue
			}
			section, ok := ref["sectionName"].(string)
			if ok && section != "" && !slices.ContainsFunc(errs, func(e *field.Error) bool { return strings.HasPrefix(e.Field, at) }) {
				target["sectionName"] = section
			}
			targets = append(targets, target)
		}
		if targets = targets[:min(len(targets), 16)]; len(targets) > 0 {
			mended[name] = targets
		}
	}
	if len(mended)+len(unread) == 0 {
		unread = []string{"spec.targetRefs"}
	}
	return mended, unread
}

// isNamed gives a target its name; false where there is none.
func isNamed(ref, target map[string]any) bool {
	name, _ := ref["name"].(string)
	target["name"] = strings.ToLower(strings.TrimSpace(name))
	return name != ""
}

// isLabelled gives a target the labels by which it is selected, those that can be read; false
// where none can.
func isLabelled(ref, target map[string]any) bool {
	labels, _ := ref["matchLabels"].(map[string]any)
	read := map[string]any{}
	for _, name := range sortedKeys(labels) {
		if text, ok := labelValue(labels[name]); ok && len(read) < 8 && len(validation.IsQualifiedName(name)) == 0 {
			read[name] = text
		}
	}
	target["matchLabels"] = read
	return len(read) > 0
}

// labelValue returns the value that a label is meant to have, also where quotes are missing.
func labelValue(value any) (string, bool) {
	var text string
	switch v := value.(type) {
	case string:
		text = strings.TrimSpace(v)
	case bool, int64:
		text = fmt.Sprint(v)
	default:
		return "", false
	}
	return text, len(validation.IsValidLabelValue(text)) == 0
}

// guardKind returns the kind that a target names, or is near to; empty for none.
func guardKind(value any) string {
	text, _ := value.(string)
	if slices.Contains(guardKinds, text) {
		return text
	}
	return spelling.Nearest(text, slices.Values(guardKinds))
}
