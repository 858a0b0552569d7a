package schema

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/re2"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// What a route guards must not fall to a wider one because of a mistake in it. So in place
// of a route that is refused there may be one that takes the same requests, as far as they
// can be read, and leads nowhere: by the specification such rules answer 500. What can't be
// read of a match makes the match wider (widen.go).

// standIns are the kinds of which there are stand-ins.
var standIns = map[object.Kind]standIn{
	kind.HTTPRoute: {all: map[string]any{"path": map[string]any{
		"type": "RegularExpression", "value": re2.BeginningWith("", longest),
	}}},
	kind.GRPCRoute: {calls: true, all: map[string]any{"method": map[string]any{
		"type": "RegularExpression", "service": re2.BeginningWith("", longest),
	}}},
	kind.TLSRoute: {},
	kind.TCPRoute: {},
	kind.UDPRoute: {},
}

type standIn struct {
	// all is a match for everything, which goes before all but exact ones; nil for rules
	// without matches. These need a backend, and nothing is sent to one of weight 0.
	all   map[string]any
	calls bool // matches are of gRPC
}

// Guards reports whether there are stand-ins of a kind.
func Guards(of object.Kind) bool {
	_, ok := standIns[of]
	return ok
}

// maxRounds bounds how often a draft is validated. Each round takes away all that the one
// before found wrong.
const maxRounds = 16

// StandIn returns a route that takes the requests of one which Decode has refused, as far as
// they can be read, and answers them with an error; nil where the kind takes no requests, or
// the route names no parent that can be read. For an AuthPolicy it is one that lets nobody
// pass. Content is what Decode has left of it, and errs
// what it has found. Unread are the fields of parents and hosts of which nothing can be read,
// so that nothing is held there.
func (v *Validator) StandIn(id Identity, content map[string]any, errs field.ErrorList) (o source.Object, unread []string) {
	if id.row.Kind == kind.AuthPolicy {
		return v.closed(id, content, errs)
	}
	of, ok := standIns[id.row.Kind]
	if !ok {
		return nil, nil
	}
	spec, _ := content["spec"].(map[string]any)
	parents, unread := parentsOf(spec)
	unread = append(unread, wholly(errs, "spec", "spec.parentRefs")...)
	if len(parents) == 0 {
		return nil, unread
	}
	hosts, nameless := hostnamesOf(spec)
	nameless = append(nameless, wholly(errs, "spec.hostnames")...)
	first := of.draft(spec)
	for _, err := range errs {
		_, missing := err.BadValue.(unknown)
		if err.Type == field.ErrorTypeDuplicate && missing && len(stepsOfSpec(err.Field)) < 5 {
			continue // lists have both values
		}
		if missing && of.mayTakeLess(first, err.Field) {
			first["rules"] = []any{of.rule(nil)}
		}
		of.widen(first, stepsOfSpec(err.Field), missing)
	}
	for _, rules := range []any{first["rules"], first["rules"], []any{of.rule(nil)}} {
		draft := map[string]any{"parentRefs": runtime.DeepCopyJSONValue(parents), "rules": rules}
		if len(hosts) > 0 {
			draft["hostnames"] = runtime.DeepCopyJSONValue(hosts)
		}
		if o := v.mend(id, of, content["apiVersion"], draft); o != nil {
			o.SetLabels(labelsOf(content)) // by which policies select the route
			return o, append(unread, nameless...)
		}
		parents = widest(parents)
	}
	return nil, append(unread, nameless...)
}

// labelsOf returns the labels of an object that can be read; nil for none.
func labelsOf(content map[string]any) (labels map[string]string) {
	meta, _ := content["metadata"].(map[string]any)
	all, _ := meta["labels"].(map[string]any)
	for name, value := range all {
		if text, ok := labelValue(value); ok && len(validation.IsQualifiedName(name)) == 0 {
			if labels == nil {
				labels = map[string]string{}
			}
			labels[name] = text
		}
	}
	return labels
}

// wholly returns those of some fields of which nothing at all can be read.
func wholly(errs field.ErrorList, fields ...string) (unread []string) {
	for _, err := range errs {
		if err.Type == field.ErrorTypeTypeInvalid && slices.Contains(fields, err.Field) && !slices.Contains(unread, err.Field) {
			unread = append(unread, err.Field)
		}
	}
	return unread
}

// draft has what the rules of a spec say of the requests that they take.
func (of standIn) draft(spec map[string]any) map[string]any {
	list, ok := spec["rules"].([]any)
	switch {
	case ok:
	case spec["rules"] != nil:
		list = []any{nil}
	default:
		list = []any{map[string]any{}}
	}
	rules := make([]any, len(list))
	for i := range list {
		rules[i] = of.rule(list[i])
	}
	return map[string]any{"rules": rules}
}

// rule has what a rule says of the requests that it takes; one that can't be read takes all.
func (of standIn) rule(value any) map[string]any {
	spec, ok := value.(map[string]any)
	if of.all != nil {
		switch matches, said := spec["matches"]; {
		case !ok:
			return map[string]any{"matches": []any{runtime.DeepCopyJSON(of.all)}}
		case said:
			return map[string]any{"matches": runtime.DeepCopyJSONValue(matches)}
		}
		return map[string]any{}
	}
	backend := map[string]any{"name": "none", "port": int64(1)}
	if list, ok := spec["backendRefs"].([]any); ok && len(list) > 0 {
		if first, ok := list[0].(map[string]any); ok {
			backend = runtime.DeepCopyJSON(first)
		}
	}
	backend["weight"] = int64(0)
	return map[string]any{"backendRefs": []any{backend}}
}

// parentsOf returns the parents that can be told from others, and the fields of those that
// can't. Without its namespace, a reference would mean a Gateway of the route's own, which may
// be somebody else's.
func parentsOf(spec map[string]any) (parents []any, unread []string) {
	list, _ := spec["parentRefs"].([]any)
	for i, value := range list {
		ref, _ := value.(map[string]any)
		name, _ := ref["name"].(string)
		namespace, ok := namespaceOf(ref["namespace"])
		if name == "" || !ok {
			unread = append(unread, fmt.Sprintf("spec.parentRefs[%d]", i))
			continue
		}
		ref = maps.Clone(ref)
		delete(ref, "namespace")
		if namespace != "" {
			ref["namespace"] = namespace
		}
		parents = append(parents, ref)
	}
	return parents, unread
}

// namespaceOf returns the namespace that a reference means, empty for the route's own; false if
// that can't be read.
func namespaceOf(value any) (string, bool) {
	text, ok := value.(string)
	if n, number := value.(int64); number {
		text, ok = strconv.FormatInt(n, 10), true // without quotes
	}
	text = strings.ToLower(strings.TrimSpace(text))
	return text, value == nil || ok && (text == "" || len(validNamespace(text)) == 0)
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

// hostnamesOf returns the hostnames that can be read, and the fields of those that can't.
func hostnamesOf(spec map[string]any) (hosts []any, unread []string) {
	list, _ := spec["hostnames"].([]any)
	for i, value := range list {
		if inner, ok := value.([]any); ok && len(inner) == 1 {
			value = inner[0] // there is a - too many
		}
		text, _ := value.(string)
		switch host := widerHost(hostOf(text)); {
		case host == "":
			unread = append(unread, fmt.Sprintf("spec.hostnames[%d]", i))
		case !slices.Contains(hosts, any(host)):
			hosts = append(hosts, host)
		}
	}
	return hosts, unread
}

// widerHost returns the hosts below what can be read of a hostname from its end, if that is
// not all of it; empty for nothing.
func widerHost(text string) string {
	if len(validation.IsDNS1123Subdomain(text)) == 0 {
		return text
	}
	for rest, ok := text, true; ok; _, rest, ok = strings.Cut(rest, ".") {
		if wildcard := "*." + strings.TrimPrefix(rest, "*."); len(validation.IsWildcardDNS1123Subdomain(wildcard)) == 0 {
			return wildcard
		}
	}
	return ""
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
func (v *Validator) mend(id Identity, of standIn, apiVersion any, spec map[string]any) source.Object {
	for range maxRounds {
		sweep(spec)
		if spec["parentRefs"] == nil {
			return nil
		}
		content := map[string]any{
			"apiVersion": apiVersion, "kind": id.Key.Kind.Name(),
			"metadata": map[string]any{"name": id.Key.Name.Name}, "spec": runtime.DeepCopyJSON(spec),
		}
		if Unnamed(id.Key.Name.Name) {
			content["metadata"] = map[string]any{"name": placeholder}
		}
		o, errs := v.Decode(id, content)
		if len(errs) == 0 {
			o.SetName(id.Key.Name.Name)
			return o
		}
		better := false
		for _, err := range errs {
			path := stepsOfSpec(err.Field)
			better = of.widen(spec, path, false) || take(spec, path) || better
		}
		if !better {
			return nil
		}
	}
	return nil
}

// stepsOfSpec are the steps of a path, without the first, which is spec.
func stepsOfSpec(path string) []string {
	all := steps(path)
	if len(all) == 0 || all[0] != "spec" {
		return nil
	}
	return all[1:]
}
