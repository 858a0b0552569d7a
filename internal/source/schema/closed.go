package schema

import (
	"fmt"
	"slices"
	"strings"

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
	targets, unread := targetsOf(spec, errs)
	if len(targets) == 0 {
		return nil, unread
	}
	at, strategy := layerOf(spec, errs)
	layer := map[string]any{"authorization": map[string]any{"closed": everybody}, "strategy": strategy}
	o, errs := v.Decode(id, map[string]any{
		"apiVersion": content["apiVersion"], "kind": id.Key.Kind.Name(), "metadata": map[string]any{"name": id.Key.Name.Name},
		"spec": map[string]any{"targetRefs": targets, at: layer},
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

// targetsOf returns the targets that can be read, the whole object where its section can't be,
// and the fields of the others.
func targetsOf(spec map[string]any, errs field.ErrorList) (targets []any, unread []string) {
	list, _ := spec["targetRefs"].([]any)
	if len(list) == 0 {
		return nil, []string{"spec.targetRefs"}
	}
	for i, value := range list {
		at := fmt.Sprintf("spec.targetRefs[%d]", i)
		ref, _ := value.(map[string]any)
		name, _ := ref["name"].(string)
		of := guardKind(ref["kind"])
		if name == "" || of == "" {
			unread = append(unread, at)
			continue
		}
		target := map[string]any{"group": kind.GatewayAPI, "kind": of, "name": strings.ToLower(strings.TrimSpace(name))}
		section, ok := ref["sectionName"].(string)
		if ok && section != "" && !slices.ContainsFunc(errs, func(e *field.Error) bool { return strings.HasPrefix(e.Field, at) }) {
			target["sectionName"] = section
		}
		targets = append(targets, target)
	}
	return targets[:min(len(targets), 16)], unread
}

// guardKind returns the kind that a target names, or is near to; empty for none.
func guardKind(value any) string {
	text, _ := value.(string)
	if slices.Contains(guardKinds, text) {
		return text
	}
	return spelling.Nearest(text, slices.Values(guardKinds))
}
