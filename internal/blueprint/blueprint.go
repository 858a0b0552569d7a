package blueprint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// The names that expressions read beside resources.
const (
	nameGateway   = "gateway"
	nameRoute     = "route"
	nameListeners = "listeners"
	nameHostnames = "hostnames"
	nameAttached  = "attachedRoutes"
	nameValues    = "values"
	nameEach      = "each"
)

var names = []string{nameAttached, nameGateway, nameHostnames, nameListeners, nameValues}

// Blueprint is a compiled blueprint. It is immutable.
type Blueprint struct {
	// resources are in an order in which each comes after those that it reads.
	resources []*resource
	schema    *valuesSchema // nil for none
	addresses []address
}

// resource is a compiled resource.
type resource struct {
	v1alpha1.BlueprintResource
	field    string
	kind     schema.GroupVersionKind
	template *template
	forEach  *expression
	include  *expression
	ready    *expression
	reads    []string // ids of resources, sorted; without its own
	readers  []string // ids of those that read it
	wave     int      // see Child
}

// Compile reads a blueprint. One with problems can't be used.
func Compile(spec *v1alpha1.GatewayBlueprintSpec) (*Blueprint, []Problem) {
	c := &compiler{}
	ids := map[string]int{}
	for i, r := range spec.Resources {
		field := fmt.Sprintf("spec.resources[%d].id", i)
		switch first, taken := ids[r.ID]; {
		case taken:
			c.problem(field, "spec.resources[%d] has the id %s too", first, r.ID)
		case slices.Contains(names, r.ID) || r.ID == nameRoute || r.ID == nameEach:
			c.problem(field, "%s is a name that expressions read already; choose another one", r.ID)
		default:
			ids[r.ID] = i
		}
	}
	if c.problems != nil {
		return nil, c.problems
	}
	c.values = c.schema(spec.ValuesSchema)
	if v := spec.Values; v != nil && c.values != nil {
		c.problems = append(c.problems, c.values.checkLayer(field.NewPath("spec", "values"), &Layer{Defaults: Map(v.Defaults), Overrides: Map(v.Overrides)})...)
	}
	var all []*resource
	for i := range spec.Resources {
		all = append(all, c.resource(spec.Resources, i))
	}
	b := &Blueprint{schema: c.values, addresses: c.addresses(spec)}
	if len(c.problems) == 0 {
		b.resources = c.order(all)
	}
	if c.problems != nil {
		return nil, c.problems
	}
	return b, nil
}

// scope are the names that expressions of resources for something read. What there is for each
// route, only others for the same route do.
func scope(resources []v1alpha1.BlueprintResource, of v1alpha1.BlueprintScope) []string {
	out := slices.Clone(names)
	if of == v1alpha1.ForRoute {
		out = append(out, nameRoute)
	}
	for _, r := range resources {
		if r.For != v1alpha1.ForRoute || of == v1alpha1.ForRoute {
			out = append(out, r.ID)
		}
	}
	return out
}

func (c *compiler) environment(names []string) *cel.Env {
	env, err := environment(names)
	if err != nil { // names are checked before
		c.problem("spec.resources", "%s", err)
		return nil
	}
	return env
}

func (c *compiler) resource(all []v1alpha1.BlueprintResource, i int) *resource {
	r := &resource{BlueprintResource: all[i], field: fmt.Sprintf("spec.resources[%d]", i)}
	known := scope(all, r.For)
	others := slices.DeleteFunc(slices.Clone(known), func(name string) bool { return name == r.ID })
	env, own := c.environment(others), c.environment(known)
	each := env
	if r.ForEach != "" {
		each = c.environment(append(slices.Clone(others), nameEach))
	}
	if env == nil || own == nil || each == nil {
		return r
	}
	r.forEach = c.expression(env, r.field+".forEach", r.ForEach)
	r.include = c.expression(env, r.field+".includeWhen", r.IncludeWhen)
	r.ready = c.expression(own, r.field+".readyWhen", r.ReadyWhen)
	var fields any
	if err := json.Unmarshal(r.Template.Raw, &fields); err != nil {
		c.problem(r.field+".template", "%s", err)
		return r
	}
	object, ok := fields.(map[string]any)
	if !ok {
		c.problem(r.field+".template", "is %s; it must be an object", kindOf(fields))
		return r
	}
	c.identity(r, object)
	r.template = c.template(each, r.field+".template", object, 0)
	r.reads = readsOf(func(yield func(*expression)) {
		yield(r.forEach)
		yield(r.include)
		r.template.expressions(yield)
	})
	return r
}

// readsOf are the ids of the resources that some expressions read, sorted.
func readsOf(expressions func(yield func(*expression))) (ids []string) {
	expressions(func(x *expression) {
		if x == nil {
			return
		}
		for _, name := range x.reads {
			if !slices.Contains(names, name) && name != nameRoute && name != nameEach {
				ids = append(ids, name)
			}
		}
	})
	slices.Sort(ids)
	return slices.Compact(ids)
}

// identity checks what must be known of an object before it is rendered.
func (c *compiler) identity(r *resource, object map[string]any) {
	texts := map[string]string{}
	for _, name := range []string{"apiVersion", "kind"} {
		text, _ := object[name].(string)
		if text == "" || strings.Contains(text, "${") {
			c.problem(r.field+".template."+name, "is not written out; which kinds a blueprint makes is known before it is rendered")
			return
		}
		texts[name] = text
	}
	gv, err := schema.ParseGroupVersion(texts["apiVersion"])
	if err != nil {
		c.problem(r.field+".template.apiVersion", "%s is no group and version, such as apps/v1", texts["apiVersion"])
		return
	}
	r.kind = gv.WithKind(texts["kind"])
	if own := gv.Group == v1alpha1.GroupVersion.Group && (strings.HasPrefix(r.kind.Kind, "GatewayBlueprint") || strings.HasSuffix(r.kind.Kind, "Values")); own ||
		gv.Group == gwv1.GroupName && r.kind.Kind == "GatewayClass" {
		c.problem(r.field+".template.kind", "a blueprint can't make a %s, from which blueprints follow", r.kind.Kind)
	}
	metadata, _ := object["metadata"].(map[string]any)
	if name, _ := metadata["name"].(string); name == "" {
		c.problem(r.field+".template.metadata.name", "is missing; the same object needs the same name each time")
	}
	for _, name := range []string{"ownerReferences", "finalizers", "managedFields", "uid", "resourceVersion", "generateName"} {
		if _, there := metadata[name]; there {
			c.problem(r.field+".template.metadata."+name, "is the controller's or the API server's to say; leave it out")
		}
	}
}

// order sorts resources so that each comes after those that it reads, and otherwise as they
// are written.
func (c *compiler) order(all []*resource) []*resource {
	byID := map[string]*resource{}
	for _, r := range all {
		byID[r.ID] = r
	}
	var out []*resource
	const visiting, done = 1, 2
	state := map[*resource]int{}
	var path []string
	var visit func(*resource) bool
	visit = func(r *resource) bool {
		switch state[r] {
		case done:
			return true
		case visiting:
			from := slices.Index(path, r.ID)
			c.problem(r.field, "a cycle: %s; each reads the next one, so none can be first", strings.Join(append(slices.Clone(path[from:]), r.ID), " → "))
			return false
		}
		state[r], path = visiting, append(path, r.ID)
		for _, id := range r.reads {
			if !visit(byID[id]) {
				return false
			}
		}
		state[r], path = done, path[:len(path)-1]
		out = append(out, r)
		return true
	}
	for _, r := range all {
		if !visit(r) {
			return nil
		}
	}
	for _, r := range slices.Backward(out) {
		for _, id := range r.reads {
			byID[id].readers = append(byID[id].readers, r.ID)
			byID[id].wave = max(byID[id].wave, r.wave+1)
		}
	}
	return out
}

// Replaces reports whether any resource has objects stay until what takes their place is in use.
func (b *Blueprint) Replaces() bool {
	return slices.ContainsFunc(b.resources, func(r *resource) bool { return r.Replace != "" })
}

// Kinds are the kinds of objects that a blueprint makes, each once.
func (b *Blueprint) Kinds() []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for _, r := range b.resources {
		if !slices.Contains(out, r.kind) {
			out = append(out, r.kind)
		}
	}
	return out
}

// Guards are the ids of the resources that are of some kinds.
func (b *Blueprint) Guards(guards func(schema.GroupKind) bool) []string {
	var out []string
	for _, r := range b.resources {
		if guards(r.kind.GroupKind()) {
			out = append(out, r.ID)
		}
	}
	return out
}
