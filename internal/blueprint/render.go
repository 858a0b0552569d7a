package blueprint

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// These bound what one Gateway may be rendered to.
const (
	maxEach   = 256
	maxObject = 256 << 10 // bytes of JSON
)

// Input is what is known of a Gateway. All values are as JSON has them, and nobody writes
// into them.
type Input struct {
	Namespace string
	Gateway   map[string]any
	Listeners []any
	Hostnames Hostnames
	Routes    []Route // that are attached, in their order
	Values    map[string]any
	// Namespaced says of a kind whether its objects are in namespaces; known is false while
	// the cluster has no such kind.
	Namespaced func(schema.GroupVersionKind) (namespaced, known bool)
	// Live returns an object as it is in the cluster; nil where there is none.
	Live func(Ref) map[string]any
	// Made are the objects that each place has had and that are not gone, the oldest first.
	Made map[Place][]Ref
}

// Ref names an object of the cluster.
type Ref struct {
	Kind schema.GroupVersionKind
	object.Name
}

// String returns "kind ns/name", or "kind name".
func (r Ref) String() string { return r.Kind.Kind + " " + strings.TrimPrefix(r.Name.String(), "/") }

// Compare orders by kind, then name.
func (r Ref) Compare(o Ref) int {
	return cmp.Or(cmp.Compare(r.Kind.String(), o.Kind.String()), r.Name.Compare(o.Name))
}

// Route is a route that is attached to a Gateway.
type Route struct {
	Key    object.Key
	Object map[string]any
}

// Place says of which resource an object is, and of which route and which element of forEach.
type Place struct {
	ID    string     `json:"id"`
	Route object.Key `json:"route,omitzero"`
	Each  int        `json:"each,omitempty"`
}

func (p Place) String() string {
	text := p.ID
	if p.Route != (object.Key{}) {
		text += " of " + p.Route.String()
	}
	if p.Each > 0 {
		text += fmt.Sprintf("[%d]", p.Each)
	}
	return text
}

// Child is an object that a Gateway should have.
type Child struct {
	Place
	Object *unstructured.Unstructured
	// Wave says when it is deleted: after all of lower waves, which read it. Nobody reads what
	// is of wave 0.
	Wave int
	// Live says that the object is in the cluster, and NotReady why it isn't ready then; empty where it is.
	Live     bool
	NotReady string
	// Replacement is what it is to a resource with CreateBeforeDestroy; nil for others.
	Replacement *Replacement
	// Version is the resourceVersion of the object that NotReady speaks of, in blueprints that
	// replace objects.
	Version string
}

// Replacement is an object that may take the place of others.
type Replacement struct {
	Before []Ref // those others, the oldest first
	// Read says that other resources have read this object, and not one of those.
	Read bool
	// Readers are the ids of these resources.
	Readers []string
}

// Ref names the object.
func (c *Child) Ref() Ref { return RefOf(c.Object) }

// RefOf names an object.
func RefOf(o *unstructured.Unstructured) Ref {
	return Ref{o.GroupVersionKind(), object.Name{Namespace: o.GetNamespace(), Name: o.GetName()}}
}

// Undecided is a resource of which it isn't known what there should be. What there is stays.
type Undecided struct {
	Place
	// Waits says that time may bring what is missing; otherwise something is wrong.
	Waits bool
	Why   string
}

// Outcome is what a blueprint makes of a Gateway.
type Outcome struct {
	Children  []Child // each after those that it reads
	Undecided []Undecided
	// Addresses are the Gateway's, and NoAddress why there is none, in blueprints that say them.
	Addresses []string
	NoAddress string
}

// errNotInstalled says that the cluster has no such kind.
var errNotInstalled = errors.New("is not installed")

// Children is what a Gateway has by its class's blueprint.
type Children struct {
	Gateway object.Name
	UID     types.UID
	// Unknown says why it isn't known what there should be; then all stays as it is.
	Unknown string
	// Note is what there is to say of the blueprint; empty for nothing.
	Note string
	// Kinds are those of all objects that the blueprint may make.
	Kinds []schema.GroupVersionKind
	// Guards are the ids of the resources that are policies which guard the Gateway.
	Guards []string
	// Replaces says that it matters in which place objects are.
	Replaces bool
	Outcome
	Values Values
}

// Render says which objects a Gateway should have.
func (b *Blueprint) Render(in Input) Outcome {
	r := &rendering{in: in, shared: map[string]any{
		nameGateway: in.Gateway, nameListeners: in.Listeners, nameValues: in.Values, nameAttached: routeObjects(in.Routes),
		nameHostnames: map[string]any{"union": texts(in.Hostnames.Union), "intersection": texts(in.Hostnames.Intersection)},
	}, missing: map[string]string{}, taken: map[Ref]string{}, replaces: b.Replaces()}
	for _, resource := range b.resources {
		if resource.For != v1alpha1.ForRoute {
			r.resource(resource, object.Key{}, r.shared, r.missing)
		}
	}
	if len(b.addresses) > 0 {
		r.out.Addresses, r.out.NoAddress = r.addresses(b.addresses)
	}
	for _, route := range in.Routes {
		variables, missing := withRoute(r.shared, route.Object), clone(r.missing)
		for _, resource := range b.resources {
			if resource.For == v1alpha1.ForRoute {
				r.resource(resource, route.Key, variables, missing)
			}
		}
	}
	return r.out
}

// rendering is the rendering of one Gateway.
type rendering struct {
	in     Input
	shared map[string]any
	// missing says of resources that can't be read why.
	missing map[string]string
	taken   map[Ref]string
	// replaces is Blueprint.Replaces.
	replaces bool
	out      Outcome
}

// resource renders a resource, and lets those behind it read what there is of it.
func (r *rendering) resource(of *resource, route object.Key, variables map[string]any, missing map[string]string) {
	place := Place{ID: of.ID, Route: route}
	hold := func(waits bool, why string) {
		r.out.Undecided = append(r.out.Undecided, Undecided{place, waits, why})
		missing[of.ID] = "waits for " + of.ID
	}
	for _, id := range of.reads {
		if why := missing[id]; why != "" {
			hold(true, why)
			return
		}
	}
	wrong := func(err error) {
		// What a sibling hasn't got yet may come, and so may a kind. What a value hasn't got will not.
		hold(errors.Is(err, errNotInstalled) || errors.Is(err, errMissing) && len(of.reads) > 0, err.Error())
	}
	if of.include != nil {
		included, err := evaluateBool(of.include, of.field+".includeWhen", variables)
		if err != nil {
			wrong(err)
			return
		}
		if !included {
			variables[of.ID] = nil
			return
		}
	}
	elements := []any{nil}
	if of.forEach != nil {
		list, err := evaluateList(of.forEach, of.field+".forEach", variables, maxEach)
		if err != nil {
			wrong(err)
			return
		}
		elements = list
	}
	var children []Child
	for i, element := range elements {
		if of.forEach != nil {
			variables[nameEach] = element
		}
		child, err := r.child(of, Place{of.ID, route, i}, variables)
		if err != nil {
			wrong(err)
			return
		}
		children = append(children, child)
	}
	delete(variables, nameEach)
	live := make([]any, 0, len(elements))
	why := "isn't in the cluster yet"
	for i := range children {
		c := &children[i]
		ref := c.Ref()
		if other, taken := r.taken[ref]; taken {
			hold(false, fmt.Sprintf("%s makes the %s too; give one of them another name", other, ref))
			return
		}
		r.taken[ref] = of.ID
		if object := r.look(of, c, variables); object != nil {
			live = append(live, object)
		} else if c.Live {
			why = "isn't ready yet"
		}
	}
	switch {
	case len(live) < len(children):
		missing[of.ID] = fmt.Sprintf("waits for %s, which %s", of.ID, why)
	case of.forEach != nil:
		variables[of.ID] = live
	default:
		variables[of.ID] = live[0]
	}
	r.out.Children = append(r.out.Children, children...)
}

// look notes how an object is, and returns what others read in its place: the object, or, while
// it isn't ready, the newest one that is of those that it replaces; nil where there is none.
func (r *rendering) look(of *resource, c *Child, variables map[string]any) map[string]any {
	ref := c.Ref()
	object := r.in.Live(ref)
	if c.Live = object != nil; c.Live {
		c.NotReady = of.notReady(object, variables)
		if r.replaces {
			c.Version, _, _ = unstructured.NestedString(object, "metadata", "resourceVersion")
		}
	}
	if of.Replace == "" {
		return object
	}
	c.Replacement = &Replacement{Readers: of.readers}
	for _, other := range r.in.Made[c.Place] {
		if other != ref {
			c.Replacement.Before = append(c.Replacement.Before, other)
		}
	}
	if len(c.Replacement.Before) == 0 || c.Live && c.NotReady == "" {
		c.Replacement.Read = true
		return object
	}
	for _, other := range slices.Backward(c.Replacement.Before) {
		if object := r.in.Live(other); object != nil && of.notReady(object, variables) == "" {
			return object
		}
	}
	return nil
}

// notReady says why an object is not ready; empty where it is.
func (of *resource) notReady(object map[string]any, variables map[string]any) string {
	if of.ready == nil {
		o := &unstructured.Unstructured{Object: object}
		why := notReady(o)
		if why == "" && of.Replace != "" {
			why = notSaidReady(o)
		}
		return why
	}
	own := clone(variables)
	own[of.ID] = object
	if ready, err := evaluateBool(of.ready, of.field+".readyWhen", own); err != nil || !ready { // what it has not is not ready
		return "readyWhen is false"
	}
	return ""
}

// child renders one object.
func (r *rendering) child(of *resource, place Place, variables map[string]any) (Child, error) {
	out, _, err := of.template.render(variables)
	if err != nil {
		return Child{}, err
	}
	o := &unstructured.Unstructured{Object: out.(map[string]any)}
	text, err := json.Marshal(o.Object)
	if err != nil {
		return Child{}, fmt.Errorf("%s.template: %w", of.field, err)
	}
	if len(text) > maxObject {
		return Child{}, fmt.Errorf("%s.template: the object has %d kB; it may have %d", of.field, len(text)>>10, maxObject>>10)
	}
	name, ok, err := unstructured.NestedString(o.Object, "metadata", "name")
	if err != nil || !ok || name == "" {
		return Child{}, fmt.Errorf("%s.template.metadata.name: is no text, or an empty one", of.field)
	}
	namespaced, known := r.in.Namespaced(of.kind)
	switch {
	case !known:
		return Child{}, fmt.Errorf("the kind %s of %s %w", of.kind.Kind, of.kind.GroupVersion(), errNotInstalled)
	case !namespaced:
		unstructured.RemoveNestedField(o.Object, "metadata", "namespace")
	case o.GetNamespace() == "":
		o.SetNamespace(r.in.Namespace)
	}
	return Child{Place: place, Object: o, Wave: of.wave}, nil
}

func evaluateBool(x *expression, field string, variables map[string]any) (bool, error) {
	v, _, err := x.evaluate(variables)
	if err != nil {
		return false, fmt.Errorf("%s: %w", field, err)
	}
	b, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("%s: is %s; it must be true or false", field, kindOf(v))
	}
	return b, nil
}

func evaluateList(x *expression, field string, variables map[string]any, most int) ([]any, error) {
	v, _, err := x.evaluate(variables)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("%s: is %s; it must be a list", field, kindOf(v))
	}
	if len(list) > most {
		return nil, fmt.Errorf("%s: has %d elements; it may have %d", field, len(list), most)
	}
	return list, nil
}

// withRoute are the variables for a route.
func withRoute(shared map[string]any, route map[string]any) map[string]any {
	out := clone(shared)
	out[nameRoute] = route
	return out
}

func clone[V any](m map[string]V) map[string]V {
	out := make(map[string]V, len(m)+1)
	maps.Copy(out, m)
	return out
}

func routeObjects(routes []Route) []any {
	out := make([]any, len(routes))
	for i, r := range routes {
		out[i] = r.Object
	}
	return out
}

func texts(in []string) []any {
	out := make([]any, len(in))
	for i, s := range in {
		out[i] = s
	}
	return slices.Clip(out)
}
