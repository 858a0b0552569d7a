package schema

import (
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// StandIn returns what is in force of a policy that says who may pass and never was valid: a
// policy of the same name and age for the targets that can be read, and without rules. To all
// that follows it is Invalid, and lets nobody pass. It is nil for kinds that guard nothing, and
// where no target can be read. Content is what Decode has left of it.
func (v *Validator) StandIn(id Identity, content map[string]any) source.Object {
	if !id.row.Guards {
		return nil
	}
	said, _ := content["spec"].(map[string]any)
	spec := map[string]any{}
	for _, name := range targetLists {
		list, _ := said[name].([]any)
		var targets []any
		for _, value := range list {
			if target := targetOf(value); target != nil {
				targets = append(targets, target)
			}
		}
		if targets != nil {
			spec[name] = targets
		}
	}
	if len(spec) == 0 {
		return nil
	}
	meta := map[string]any{"name": id.Key.Name.Name, "namespace": id.Key.Namespace}
	of, _ := content["metadata"].(map[string]any)
	if at, _ := of["creationTimestamp"].(string); at != "" {
		if _, err := time.Parse(time.RFC3339, at); err == nil {
			meta["creationTimestamp"] = at
		}
	}
	o, errs := convert(id, map[string]any{
		"apiVersion": id.row.APIVersion(), "kind": id.Key.Kind.Name(), "metadata": meta, "spec": spec,
	})
	if len(errs) > 0 {
		return nil
	}
	return o
}

// targetOf returns what can be read of a target: what it names, or the labels that select it. A
// section that can't be read is the whole object. It is nil where that is nothing.
func targetOf(value any) map[string]any {
	ref, _ := value.(map[string]any)
	target := map[string]any{"group": kind.GatewayAPI}
	for _, name := range [...]string{"group", "kind", "name", "sectionName"} {
		if text, ok := ref[name].(string); ok && text != "" {
			target[name] = text
		}
	}
	labels, _ := ref["matchLabels"].(map[string]any)
	for _, value := range labels {
		if _, ok := value.(string); !ok {
			return nil
		}
	}
	if len(labels) > 0 {
		target["matchLabels"] = labels
	}
	if target["kind"] == nil || target["name"] == nil && len(labels) == 0 {
		return nil
	}
	return target
}
