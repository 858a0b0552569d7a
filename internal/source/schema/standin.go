package schema

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// What a route guards must not fall to a wider one because of a mistake in it. So in place
// of a route that is refused there may be one that takes the same requests, as far as they
// can be read, and leads nowhere: by the specification such rules answer 500. What can't be
// read of a match is left out, which makes the match wider.

// standIns are the kinds of which there are stand-ins, with the fields of their rules that
// say what they take.
var standIns = map[object.Kind]standIn{
	kind.HTTPRoute: {fields: []string{"matches"}},
	kind.GRPCRoute: {fields: []string{"matches"}},
	// These need a backend. Nothing is sent to one of weight 0.
	kind.TLSRoute: {backends: true},
	kind.TCPRoute: {backends: true},
	kind.UDPRoute: {backends: true},
}

type standIn struct {
	fields   []string
	backends bool
}

// maxRounds bounds how often a draft is validated. Each round takes away all that the one
// before found wrong.
const maxRounds = 16

// StandIn returns a route that takes the requests of one which Decode has refused, as far as
// they can be read, and answers them with an error; nil where the kind takes no requests, or
// the route names no parent that can be read. Content is what Decode has left of it.
func (v *Validator) StandIn(id Identity, content map[string]any) source.Object {
	of, ok := standIns[id.row.Kind]
	if !ok {
		return nil
	}
	spec, _ := content["spec"].(map[string]any)
	parents := parentsOf(spec)
	if len(parents) == 0 {
		return nil
	}
	for _, draft := range []map[string]any{
		of.draft(spec, parents),
		{"parentRefs": widest(parents), "hostnames": hostnamesOf(spec), "rules": []any{of.rule(nil)}},
		{"parentRefs": widest(parents), "rules": []any{of.rule(nil)}},
	} {
		if o := v.mend(id, content["apiVersion"], draft); o != nil {
			return o
		}
	}
	return nil
}

// draft has what a spec says of the requests that it takes.
func (of standIn) draft(spec map[string]any, parents []any) map[string]any {
	draft := map[string]any{"parentRefs": runtime.DeepCopyJSONValue(parents), "hostnames": hostnamesOf(spec)}
	list, ok := spec["rules"].([]any)
	if !ok {
		list = []any{nil}
	}
	rules := make([]any, len(list))
	for i := range list {
		rule, _ := list[i].(map[string]any)
		rules[i] = of.rule(rule)
	}
	draft["rules"] = rules
	return draft
}

// rule has what a rule says of the requests that it takes. One that says nothing takes all.
func (of standIn) rule(spec map[string]any) map[string]any {
	rule := map[string]any{}
	for _, name := range of.fields {
		if value, ok := spec[name]; ok {
			rule[name] = runtime.DeepCopyJSONValue(value)
		}
	}
	if !of.backends {
		return rule
	}
	backend := map[string]any{"name": "none", "port": int64(1)}
	if list, ok := spec["backendRefs"].([]any); ok && len(list) > 0 {
		if first, ok := list[0].(map[string]any); ok {
			backend = runtime.DeepCopyJSON(first)
		}
	}
	backend["weight"] = int64(0)
	rule["backendRefs"] = []any{backend}
	return rule
}

// parentsOf returns the parents that have a name.
func parentsOf(spec map[string]any) []any {
	list, _ := spec["parentRefs"].([]any)
	return slices.DeleteFunc(slices.Clone(list), func(value any) bool {
		ref, _ := value.(map[string]any)
		name, _ := ref["name"].(string)
		return name == ""
	})
}

// widest are parents without what selects a part of them.
func widest(parents []any) []any {
	var out []any
	seen := map[[4]any]bool{}
	for _, value := range parents {
		ref := value.(map[string]any)
		wide := map[string]any{}
		var id [4]any
		for i, name := range [...]string{"group", "kind", "namespace", "name"} {
			if text, ok := ref[name].(string); ok {
				wide[name], id[i] = text, text
			}
		}
		if !seen[id] {
			seen[id] = true
			out = append(out, wide)
		}
	}
	return out
}

// hostnamesOf returns the hostnames that can be read.
func hostnamesOf(spec map[string]any) []any {
	list, _ := spec["hostnames"].([]any)
	var out []any
	for _, value := range list {
		if text, ok := value.(string); ok {
			out = append(out, hostOf(text))
		}
	}
	return out
}

// hostOf returns the host in what people write in its place: an URL, a host with a port,
// with a path, or with the dot at its end.
func hostOf(text string) string {
	text = strings.ToLower(strings.TrimSpace(text))
	if _, rest, ok := strings.Cut(text, "://"); ok {
		text = rest
	}
	if i := strings.IndexAny(text, "/?#:"); i >= 0 {
		text = text[:i]
	}
	return strings.TrimSuffix(text, ".")
}

// mend takes away what is wrong with a draft, and returns what is left; nil where that takes
// too long, or more than may be taken.
func (v *Validator) mend(id Identity, apiVersion any, spec map[string]any) source.Object {
	for range maxRounds {
		sweep(spec)
		if spec["parentRefs"] == nil {
			return nil
		}
		content := map[string]any{
			"apiVersion": apiVersion, "kind": id.Key.Kind.Name(),
			"metadata": map[string]any{"name": id.Key.Name.Name}, "spec": runtime.DeepCopyJSON(spec),
		}
		o, errs := v.Decode(id, content)
		if len(errs) == 0 {
			return o
		}
		better := false
		for _, err := range errs {
			better = take(spec, steps(err.Field)) || better
		}
		if !better {
			return nil
		}
	}
	return nil
}

// steps are the names and indices of a path, without the first, which is spec.
func steps(path string) []string {
	all := strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
	if len(all) == 0 || all[0] != "spec" {
		return nil
	}
	return all[1:]
}
