package schema

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Mended returns what an object that Decode refuses seems to say, for its stand-in: what is
// misspelt in what it guards, or not where it belongs, is put right, as far as that makes it
// hold what it was meant to. It changes content. Moved are the paths where something is now
// that wasn't there.
func (v *Validator) Mended(id Identity, content map[string]any) (mended map[string]any, moved map[string]bool) {
	moved = map[string]bool{}
	if id.row.Family != kind.Route && !id.row.Guards {
		return content, moved
	}
	s, err := id.row.schemaOf(v.channel, id.version)
	if err != nil {
		return content, moved
	}
	m := mender{v: v, fields: s.structural.Properties["spec"].Properties, moved: moved}
	m.respell("", content, topFields)
	meta, _ := content["metadata"].(map[string]any)
	if inner, ok := meta["spec"]; ok && content["spec"] == nil {
		content["spec"] = inner
		m.moved["spec"] = true
		delete(meta, "spec")
	}
	spec := merged(content["spec"])
	if spec == nil {
		spec = map[string]any{}
	}
	m.respell("spec", spec, m.names())
	m.lift(spec, content)
	m.lift(spec, meta)
	if text, ok := spec["hostnames"].(string); ok {
		spec["hostnames"] = []any{text}
	}
	for _, name := range targetLists {
		if target, ok := spec[name].(map[string]any); ok && id.row.Guards {
			spec[name] = []any{target}
		}
	}
	m.selectors(spec)
	m.parents(spec)
	if _, ok := content["spec"]; ok || len(spec) > 0 {
		content["spec"] = spec
	}
	return content, moved
}

// mender puts right what is not where the schema has it.
type mender struct {
	v      *Validator
	fields map[string]schema.Structural // of spec
	moved  map[string]bool
}

func (m *mender) names() []string { return slices.Sorted(maps.Keys(m.fields)) }

func (m *mender) respell(path string, of map[string]any, fields []string) {
	for _, written := range sortedKeys(of) {
		if slices.Contains(fields, written) {
			continue
		}
		if near := nearField(written, of, fields); near != "" {
			of[near] = of[written]
			delete(of, written)
			if path != "" {
				near = path + "." + near
			}
			m.moved[near] = true
		}
	}
}

// lift moves fields of the spec that are elsewhere, as where an indent is too short or the line
// above is missing.
func (m *mender) lift(spec, from map[string]any) {
	for _, name := range m.names() {
		value, ok := from[name]
		if spec[name] == nil && ok {
			spec[name] = value
			delete(from, name)
			m.moved["spec"], m.moved["spec."+name] = true, true
		}
	}
}

// parents makes a list of what stands for one, and of each item a reference to what was meant.
func (m *mender) parents(spec map[string]any) {
	refs := m.fields["parentRefs"]
	if refs.Items == nil {
		return
	}
	fields := slices.Sorted(maps.Keys(refs.Items.Properties))
	list, ok := spec["parentRefs"].([]any)
	switch _, named := spec["name"].(string); {
	case ok:
	case spec["parentRefs"] != nil:
		list = []any{spec["parentRefs"]}
	case named: // what is in the list stands where the list should
		ref := map[string]any{}
		for _, name := range fields {
			if value, ok := spec[name]; ok {
				ref[name] = value
				delete(spec, name)
			}
		}
		list = []any{ref}
		m.moved["spec.parentRefs"] = true
	}
	if len(list) == 0 {
		return
	}
	list = slices.Clone(list)
	var hosts []any
	for i := range list {
		ref := merged(list[i])
		if text, ok := list[i].(string); ok && spec["hostnames"] == nil && strings.Contains(text, ".") {
			hosts = append(hosts, text) // the list of hostnames has lost its own name, or the indent of it
			continue
		} else if ok {
			ref = map[string]any{"name": text}
		}
		if ref == nil {
			continue
		}
		m.lift(spec, ref)
		m.respell(fmt.Sprintf("spec.parentRefs[%d]", i), ref, fields)
		if _, meant := m.v.wrongRef(ref); meant != nil {
			ref["group"], ref["kind"] = meant.Kind.Group(), meant.Kind.Name()
		}
		list[i] = ref
	}
	spec["parentRefs"] = list
	if len(hosts) > 0 {
		spec["hostnames"] = hosts
		spec["parentRefs"] = slices.DeleteFunc(list, func(item any) bool { _, ok := item.(string); return ok })
	}
}

// selectors puts right how the selectors of a policy name their labels.
func (m *mender) selectors(spec map[string]any) {
	of := m.fields["targetSelectors"]
	list, ok := spec["targetSelectors"].([]any)
	if !ok || of.Items == nil {
		return
	}
	fields := slices.Sorted(maps.Keys(of.Items.Properties))
	list = slices.Clone(list)
	for i := range list {
		s := merged(list[i])
		if s == nil {
			continue
		}
		at := fmt.Sprintf("spec.targetSelectors[%d]", i)
		m.respell(at, s, fields)
		for _, name := range [...]string{"selector", "labels"} { // as elsewhere in Kubernetes
			labels, ok := s[name].(map[string]any)
			if !ok || s["matchLabels"] != nil {
				continue
			}
			if inner, ok := labels["matchLabels"].(map[string]any); ok {
				labels = inner
			}
			s["matchLabels"] = labels
			m.moved[at+".matchLabels"] = true
			delete(s, name)
		}
		list[i] = s
	}
	spec["targetSelectors"] = list
}

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
			if wrong, _ := v.wrongRef(ref); wrong != nil {
				fault := asFault(wrong)
				fault.Field = field.NewPath("spec", name).Index(i).Child(map[string]string{"kind": "kind", "apiVersion": "group"}[wrong.Field]).String()
				errs = append(errs, fault)
			}
		}
	}
	return errs
}

// wrongRef says what is wrong with the kind of a reference, and which may be meant.
func (v *Validator) wrongRef(ref map[string]any) (wrong *UnknownKindError, meant *row) {
	group, hasGroup := ref["group"].(string)
	name, hasKind := ref["kind"].(string)
	if !hasGroup && ref["group"] == nil {
		group = kind.Gateway.Group()
	}
	if !hasKind && ref["kind"] == nil {
		name = kind.Gateway.Name()
	}
	if v.kinds[object.KindOf(group, name)] != nil {
		return nil, nil
	}
	apiVersion := group + "/v1"
	if group == kind.Core {
		apiVersion = "v1"
	}
	if !errors.As(v.unknownKind(group, apiVersion, name), &wrong) || wrong.meant == nil {
		return nil, nil
	}
	if wrong.Field == "apiVersion" { // a reference has no version
		wrong.Text = fmt.Sprintf("%q has no kind %s that Gatehouse reads; did you mean %s of %q?", group, shown(name), wrong.meant.Kind.Name(), wrong.meant.Kind.Group())
	}
	return wrong, wrong.meant
}
