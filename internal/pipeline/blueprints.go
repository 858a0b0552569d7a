package pipeline

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/blueprint"
	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/status"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// blueprints is what Gateways have by the blueprints of their classes.
type blueprints struct {
	// live are the objects that blueprints have made, as they are, and scopes says of their
	// kinds whether they are in namespaces. The leader has them.
	live   *flow.Input[blueprint.Ref, *unstructured.Unstructured]
	scopes *flow.Input[schema.GroupVersionKind, scope]
	// made are the objects that Gateways have, by their places.
	made *flow.Input[object.Name, map[blueprint.Place][]blueprint.Ref]
	// childProblems say why objects aren't as they should be.
	childProblems *flow.Input[object.Name, map[blueprint.Ref]string]

	compiled     *flow.Derived[string, *compiledBlueprint]
	classValues  *flow.Index[valuesOf, object.Name, *v1alpha1.GatewayClassValues]
	teamValues   *flow.Index[valuesOf, object.Name, *v1alpha1.GatewayValues]
	routesBehind *flow.Index[object.Name, topology.AttachmentKey, *topology.Attachment]
	// Children are the objects that Gateways have.
	Children *flow.Derived[object.Name, *blueprint.Children]
	// unguardedGateways are those of which a policy that their blueprint makes is not there.
	unguardedGateways *flow.Derived[object.Name, struct{}]
	// renderedDatapaths are the Gateways that what blueprints make serves, with what their listeners
	// wait for; empty where they wait for nothing.
	renderedDatapaths *flow.Derived[object.Name, string]

	BlueprintStatus   *flow.Derived[string, *v1alpha1.GatewayBlueprintStatus]
	ClassValuesStatus *flow.Derived[object.Name, *v1alpha1.ValuesStatus]
	TeamValuesStatus  *flow.Derived[object.Name, *v1alpha1.ValuesStatus]
}

// compiledBlueprint is a blueprint as it is in force, and what is wrong with a newer one.
type compiledBlueprint struct {
	of *v1alpha1.GatewayBlueprint
	// spec is what compiled is of; both are nil where no revision is known that can be used.
	spec       *v1alpha1.GatewayBlueprintSpec
	compiled   *blueprint.Blueprint
	generation int64 // of them
	problems   []blueprint.Problem
}

// compileBlueprint compiles a blueprint, or else the revision that its status says was the last good one.
// Statuses are the memory of this: they outlive the controller.
func compileBlueprint(o *v1alpha1.GatewayBlueprint) *compiledBlueprint {
	b := &compiledBlueprint{of: o}
	compiled, problems := blueprint.Compile(&o.Spec)
	if problems == nil {
		b.spec, b.compiled, b.generation = &o.Spec, compiled, o.Generation
		return b
	}
	b.problems = problems
	last, spec := o.Status.InForce, &v1alpha1.GatewayBlueprintSpec{}
	if last == nil || json.Unmarshal(last.Spec.Raw, spec) != nil {
		return b
	}
	if compiled, problems = blueprint.Compile(spec); problems == nil { // else a former version of the controller took it
		b.spec, b.compiled, b.generation = spec, compiled, last.Generation
	}
	return b
}

// maxRevision is how many bytes a revision may have to be kept: the object has it twice, and the API
// server stores objects of 1.5 MB at most.
const maxRevision = 512 << 10

// status says what became of a blueprint, and remembers what is in force.
func (b *compiledBlueprint) status() *v1alpha1.GatewayBlueprintStatus {
	out := &v1alpha1.GatewayBlueprintStatus{InForce: b.of.Status.InForce}
	accepted := condition.BlueprintAccepted()
	switch {
	case b.problems == nil:
		out.InForce = nil
		if spec := canonical(b.spec); spec != nil && len(spec) <= maxRevision {
			out.InForce = &v1alpha1.BlueprintRevision{Generation: b.generation, Spec: apiextensionsv1.JSON{Raw: spec}}
		}
	case b.compiled == nil:
		accepted = condition.BlueprintInvalid(problemTexts(b.problems))
	default:
		accepted = condition.BlueprintOld(b.generation, problemTexts(b.problems))
	}
	accepted.ObservedGeneration = b.of.Generation
	out.Conditions = []metav1.Condition{accepted}
	return out
}

// canonical is a spec in the form in which the API server returns it: else it would be written anew at each restart. It is nil
// for one that has no such form.
func canonical(spec *v1alpha1.GatewayBlueprintSpec) []byte {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return nil
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return nil
	}
	return text
}

// valuesOf is what values are for.
type valuesOf struct {
	kind      gwv1.Kind
	namespace string // of the values
	name      string
}

func targetOf(namespace string, t v1alpha1.ValuesTarget) valuesOf {
	return valuesOf{t.Kind, namespace, string(t.Name)}
}

// declareCompiled declares blueprints as they are in force.
func (p *Pipeline) declareCompiled() {
	p.compiled = flow.Map("blueprints", p.Inputs.Blueprints,
		func(_ *flow.Ctx, name string, o *v1alpha1.GatewayBlueprint, emit func(string, *compiledBlueprint)) {
			emit(name, compileBlueprint(o))
		}, flow.Equal(flow.Same[*compiledBlueprint]))
}

// rendersDatapath reports whether what a blueprint makes serves the Gateways of a class, and not
// proxies of ours.
func (p *Pipeline) rendersDatapath(c *flow.Ctx, class string) bool {
	if p.compiled == nil {
		return false
	}
	of, _ := flow.Get(c, p.Graph.Classes, class)
	if of == nil || of.Blueprint == "" {
		return false
	}
	b, ok := flow.Get(c, p.compiled, of.Blueprint)
	if ok && b.spec != nil {
		return b.spec.Datapath == v1alpha1.DatapathRendered
	}
	return ok && b.of.Spec.Datapath == v1alpha1.DatapathRendered
}

// datapathState is what the status of listeners has in place of what proxies say, where what a blueprint
// makes serves them: ok is false for others.
func (p *Pipeline) datapathState(c *flow.Ctx, gateway object.Name, listeners []*topology.Listener) (out status.ProxyState, ok bool) {
	if p.Children == nil {
		return out, false
	}
	out.Waits, ok = flow.Get(c, p.renderedDatapaths, gateway)
	if !ok || out.Waits != "" {
		return out, ok
	}
	out.Connected, out.Listeners = true, map[string]bool{}
	for _, l := range listeners {
		out.Listeners[translate.ListenerName(l)] = true
	}
	return out, true
}

// locateByBlueprint fills in the addresses of a Gateway whose blueprint says them.
func (p *Pipeline) locateByBlueprint(c *flow.Ctx, gw *topology.Gateway, in *status.GatewayInput) {
	if p.Children == nil {
		return
	}
	ch, ok := flow.Get(c, p.Children, gw.Name)
	switch {
	case !ok:
	case ch.Unknown != "" && len(in.BindAddresses) == 0:
		// Names in the DNS follow addresses: those that it had are better than none.
		for _, a := range gw.Object.Status.Addresses {
			in.BindAddresses = append(in.BindAddresses, a.Value)
		}
	case ch.NoAddress != "" || len(ch.Addresses) > 0:
		in.BindAddresses, in.ClusterAddresses, in.NoAddress = ch.Addresses, nil, ""
		if ch.NoAddress != "" {
			in.NoAddress = condition.AddressNotRendered(ch.NoAddress)
		}
	}
}

// declareBlueprints declares what they make, where there is a cluster for their objects.
func (p *Pipeline) declareBlueprints() {
	p.BlueprintStatus = flow.Map("blueprint-status", p.compiled,
		func(_ *flow.Ctx, name string, b *compiledBlueprint, emit func(string, *v1alpha1.GatewayBlueprintStatus)) {
			emit(name, b.status())
		})
	p.live = flow.NewInput[blueprint.Ref, *unstructured.Unstructured](p.Engine, "children-live", flow.Equal(flow.Same[*unstructured.Unstructured]))
	p.scopes = flow.NewInput[schema.GroupVersionKind, scope](p.Engine, "children-scopes", flow.Equal(flow.Same[scope]))
	p.made = flow.NewInput[object.Name, map[blueprint.Place][]blueprint.Ref](p.Engine, "children-made",
		flow.Equal(func(a, b map[blueprint.Place][]blueprint.Ref) bool { return maps.EqualFunc(a, b, slices.Equal) }))
	p.childProblems = flow.NewInput[object.Name, map[blueprint.Ref]string](p.Engine, "children-problems",
		flow.Equal(func(a, b map[blueprint.Ref]string) bool { return maps.Equal(a, b) }))
	p.classValues = flow.NewIndex(p.Inputs.ClassValues,
		func(k object.Name, v *v1alpha1.GatewayClassValues, yield func(valuesOf)) {
			yield(targetOf(k.Namespace, v.Spec.TargetRef))
		}, object.Name.Compare)
	p.teamValues = flow.NewIndex(p.Inputs.GatewayValues,
		func(k object.Name, v *v1alpha1.GatewayValues, yield func(valuesOf)) {
			yield(targetOf(k.Namespace, v.Spec.TargetRef))
		}, object.Name.Compare)
	p.routesBehind = flow.NewIndex(p.Graph.Attachments,
		func(k topology.AttachmentKey, _ *topology.Attachment, yield func(object.Name)) {
			yield(k.Listener.Gateway())
		}, topology.AttachmentKey.Compare)
	p.Children = flow.Map("children", p.Graph.Gateways,
		func(c *flow.Ctx, name object.Name, gw *topology.Gateway, emit func(object.Name, *blueprint.Children)) {
			class, ok := flow.Get(c, p.Graph.Classes, gw.Class)
			if ok && class.Blueprint == "" && !class.InvalidParameters {
				return
			}
			out := &blueprint.Children{Gateway: name, UID: gw.Object.UID}
			if !ok {
				out.Unknown = "GatewayClass " + gw.Class + " does not exist"
				emit(name, out)
				return
			}
			b, _ := flow.Get(c, p.compiled, class.Blueprint)
			if b != nil && b.compiled != nil && b.spec.Datapath != v1alpha1.DatapathRendered {
				out.Guards = b.compiled.Guards(guards)
			} else if !class.InvalidParameters && (b == nil || b.compiled == nil) { // else no new proxies are started anyway
				out.Guards = unknownGuards
			}
			switch {
			case class.InvalidParameters:
				out.Unknown = "the parameters of GatewayClass " + class.Name + " can't be used"
			case b == nil || b.compiled == nil:
				out.Unknown = "GatewayBlueprint " + class.Blueprint + " can't be used; its conditions say why"
			case infra.OfBlueprint(gw.Object):
				out.Unknown = "the Gateway is made by a blueprint, and blueprints don't make Gateways that have one"
			case !gw.Served():
				out.Unknown = "the Gateway is not accepted"
			default:
				if b.problems != nil {
					out.Note = condition.NoteBlueprintOld(class.Blueprint, b.generation)
				}
				out.Kinds, out.Replaces = b.compiled.Kinds(), b.compiled.Replaces()
				out.Values = b.compiled.Values(object.Key{Kind: kind.GatewayBlueprint, Name: object.Name{Name: class.Blueprint}}, p.layers(c, name, class.Name, b))
				if wrong := out.Values.Problems; wrong != nil {
					out.Unknown = strings.Join(problemTexts(wrong), "; ")
					break
				}
				in := p.rendered(c, gw, out.Values.Values)
				if out.Replaces {
					in.Made, _ = flow.Get(c, p.made, name)
				}
				out.Outcome = b.compiled.Render(in)
			}
			emit(name, out)
		}, flow.Equal(func(a, b *blueprint.Children) bool { return reflect.DeepEqual(a, b) }))
	flow.Watch(p.Children)
	p.declareUnguardedGateways()
	p.renderedDatapaths = flow.Map("rendered-datapaths", p.Graph.Gateways,
		func(c *flow.Ctx, name object.Name, gw *topology.Gateway, emit func(object.Name, string)) {
			if !p.rendersDatapath(c, gw.Class) {
				return
			}
			waits := ""
			if ch := p.children(c, gw); ch == nil || len(ch.Missing) > 0 {
				waits = condition.ListenerWaitsForObjects()
			}
			emit(name, waits)
		}, flow.Equal(flow.Same[string]))
	p.declareValuesStatus()
}

// layers are what is said of a Gateway's values, with the most authority first.
func (p *Pipeline) layers(c *flow.Ctx, gateway object.Name, class string, b *compiledBlueprint) []blueprint.Layer {
	var out []blueprint.Layer
	add := func(of object.Kind, o metav1.Object, v *v1alpha1.Values) {
		origin := object.Key{Kind: of, Name: object.Name{Namespace: o.GetNamespace(), Name: o.GetName()}}
		out = append(out, blueprint.Layer{Origin: origin, Defaults: blueprint.Map(v.Defaults), Overrides: blueprint.Map(v.Overrides)})
	}
	if b.spec.Values != nil {
		add(kind.GatewayBlueprint, b.of, b.spec.Values)
	}
	platform := func(of valuesOf) {
		for _, v := range byAge(maps.Collect(flow.Select(c, p.classValues, of).All()), func(v *v1alpha1.GatewayClassValues) metav1.Object { return v }) {
			add(kind.GatewayClassValues, v, &v.Spec.Values)
		}
	}
	team := func(of valuesOf) {
		for _, v := range byAge(maps.Collect(flow.Select(c, p.teamValues, of).All()), func(v *v1alpha1.GatewayValues) metav1.Object { return v }) {
			add(kind.GatewayValues, v, &v.Spec.Values)
		}
	}
	const classKind, namespaceKind, gatewayKind = "GatewayClass", "Namespace", "Gateway"
	if own := p.Options.ControllerNamespace; own != gateway.Namespace && own != "" {
		platform(valuesOf{classKind, own, class})
	}
	platform(valuesOf{namespaceKind, gateway.Namespace, gateway.Namespace})
	platform(valuesOf{classKind, gateway.Namespace, class})
	team(valuesOf{namespaceKind, gateway.Namespace, gateway.Namespace})
	team(valuesOf{gatewayKind, gateway.Namespace, gateway.Name})
	return out
}

// byAge sorts objects of the same rank: the oldest has the most authority (GEP-713).
func byAge[V any](all map[object.Name]V, meta func(V) metav1.Object) []V {
	out := slices.Collect(maps.Values(all))
	slices.SortFunc(out, func(a, b V) int {
		x, y := meta(a), meta(b)
		return cmp.Or(x.GetCreationTimestamp().Compare(y.GetCreationTimestamp().Time), cmp.Compare(x.GetName(), y.GetName()))
	})
	return out
}

// rendered is what a blueprint's templates read of a Gateway.
func (p *Pipeline) rendered(c *flow.Ctx, gw *topology.Gateway, values map[string]any) blueprint.Input {
	in := blueprint.Input{
		Namespace: gw.Name.Namespace, Gateway: plainObject(gw.Object, kind.Gateway.Name()), Values: values,
		Namespaced: func(of schema.GroupVersionKind) (namespaced, known bool) {
			s, _ := flow.Get(c, p.scopes, of)
			ours := guards(of.GroupKind()) // each controller has to know which there should be, not only the one that makes them
			return s.namespaced || ours, s.installed || ours
		},
		Live: func(ref blueprint.Ref) map[string]any {
			if o, ok := flow.Get(c, p.live, ref); ok {
				return o.Object
			}
			return nil
		},
	}
	var hostnames []string
	for _, l := range gw.Listeners {
		hostnames = append(hostnames, l.Hostname)
		in.Listeners = append(in.Listeners, map[string]any{
			"name": l.Key.Name(), "port": int64(l.Port), "protocol": string(l.Protocol), "hostname": l.Hostname,
		})
	}
	seen := map[object.Key]bool{} // a route may be on several listeners
	for k := range flow.Select(c, p.routesBehind, gw.Name).All() {
		if seen[k.Route] {
			continue
		}
		seen[k.Route] = true
		if o, ok := flow.Get(c, p.Inputs.Routes, k.Route); ok {
			in.Routes = append(in.Routes, blueprint.Route{Key: k.Route, Object: plainObject(o, k.Route.Kind.Name())})
			for _, h := range topology.Hostnames(o) {
				hostnames = append(hostnames, string(h))
			}
		}
	}
	in.Hostnames = blueprint.HostnamesOf(hostnames)
	return in
}

// plainObject is an object as JSON has it, without what changes by itself.
func plainObject(o any, of string) map[string]any {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil { // the types of the Gateway API can all be converted
		return map[string]any{}
	}
	delete(out, "status")
	out["apiVersion"], out["kind"] = gwv1.GroupVersion.String(), of
	if m, ok := out["metadata"].(map[string]any); ok {
		for _, name := range []string{"managedFields", "resourceVersion", "creationTimestamp", "generation"} {
			delete(m, name)
		}
	}
	return out
}

func problemTexts(problems []blueprint.Problem) []string {
	out := make([]string, len(problems))
	for i, p := range problems {
		out[i] = p.Field + ": " + p.Message
	}
	return out
}

// declareValuesStatus declares what is said of values: those of another form than others with more
// authority, for any Gateway, say so.
func (p *Pipeline) declareValuesStatus() {
	type key struct {
		by      object.Key
		gateway object.Name
	}
	conflicts := flow.Map("values-conflicts", p.Children,
		func(_ *flow.Ctx, gateway object.Name, ch *blueprint.Children, emit func(key, string)) {
			for _, conflict := range ch.Values.Conflicts {
				emit(key{conflict.Origin, gateway}, conflict.Message)
			}
		}, flow.Equal(flow.Same[string]))
	byOrigin := flow.NewIndex(conflicts, func(k key, _ string, yield func(object.Key)) { yield(k.by) },
		func(a, b key) int { return a.gateway.Compare(b.gateway) })
	say := func(c *flow.Ctx, of object.Kind, name object.Name, generation int64) *v1alpha1.ValuesStatus {
		accepted := condition.ValuesAccepted()
		for k, message := range flow.Select(c, byOrigin, object.Key{Kind: of, Name: name}).All() {
			accepted = condition.ValuesInvalid(k.gateway.String(), message)
			break
		}
		accepted.ObservedGeneration = generation
		return &v1alpha1.ValuesStatus{Conditions: []metav1.Condition{accepted}}
	}
	p.ClassValuesStatus = flow.Map("class-values-status", p.Inputs.ClassValues,
		func(c *flow.Ctx, name object.Name, v *v1alpha1.GatewayClassValues, emit func(object.Name, *v1alpha1.ValuesStatus)) {
			emit(name, say(c, kind.GatewayClassValues, name, v.Generation))
		})
	p.TeamValuesStatus = flow.Map("gateway-values-status", p.Inputs.GatewayValues,
		func(c *flow.Ctx, name object.Name, v *v1alpha1.GatewayValues, emit func(object.Name, *v1alpha1.ValuesStatus)) {
			emit(name, say(c, kind.GatewayValues, name, v.Generation))
		})
}

// ChildKinds are the kinds of objects that the blueprints of Gateways make.
func (p *Pipeline) ChildKinds() map[schema.GroupVersionKind]bool {
	out := map[schema.GroupVersionKind]bool{}
	p.Engine.View(func(c *flow.Ctx) {
		for _, ch := range flow.All(c, p.Children) {
			for _, of := range ch.Kinds {
				out[of] = true
			}
		}
	})
	return out
}

// SetChild takes in an object that a blueprint has made as it is; nil where it is gone.
func (p *Pipeline) SetChild(tx *flow.Tx, ref blueprint.Ref, o *unstructured.Unstructured) {
	if o == nil {
		p.live.Delete(tx, ref)
	} else {
		p.live.Set(tx, ref, o)
	}
}

// scope is what is known of a kind.
type scope struct{ installed, namespaced bool }

// SetScope takes in whether the objects of a kind are in namespaces; nil where there is no such kind.
func (p *Pipeline) SetScope(tx *flow.Tx, of schema.GroupVersionKind, namespaced *bool) {
	p.scopes.Set(tx, of, scope{namespaced != nil, namespaced != nil && *namespaced})
}

// ChildrenUnseen reports whether a Gateway has objects by its blueprint that nobody has looked at yet.
func (p *Pipeline) ChildrenUnseen(gateway object.Name) (unseen bool) {
	if p.Children == nil {
		return false
	}
	p.Engine.View(func(c *flow.Ctx) {
		ch, ok := flow.Get(c, p.Children, gateway)
		if !ok {
			return
		}
		for _, of := range ch.Kinds {
			if _, seen := flow.Get(c, p.scopes, of); !seen {
				unseen = true
			}
		}
	})
	return unseen
}

// ForgetChildren returns what forgets all that has been said of the objects of blueprints.
func (p *Pipeline) ForgetChildren() (forget func(*flow.Tx)) {
	var all []func(*flow.Tx)
	p.Engine.View(func(c *flow.Ctx) {
		all = append(all, clearing(c, p.live), clearing(c, p.scopes), clearing(c, p.made), clearing(c, p.childProblems))
	})
	return func(tx *flow.Tx) {
		for _, clear := range all {
			clear(tx)
		}
	}
}

// clearing returns what takes all entries from an input.
func clearing[K comparable, V any](c *flow.Ctx, in *flow.Input[K, V]) func(*flow.Tx) {
	var keys []K
	for k := range flow.All(c, in) {
		keys = append(keys, k)
	}
	return func(tx *flow.Tx) {
		for _, k := range keys {
			in.Delete(tx, k)
		}
	}
}

// SetMade takes in which objects a Gateway has, by their places.
func (p *Pipeline) SetMade(tx *flow.Tx, gateway object.Name, made map[blueprint.Place][]blueprint.Ref) {
	if len(made) == 0 {
		p.made.Delete(tx, gateway)
	} else {
		p.made.Set(tx, gateway, made)
	}
}

// SetChildProblems takes in why objects of a Gateway aren't as they should be.
func (p *Pipeline) SetChildProblems(tx *flow.Tx, gateway object.Name, problems map[blueprint.Ref]string) {
	if len(problems) == 0 {
		p.childProblems.Delete(tx, gateway)
	} else {
		p.childProblems.Set(tx, gateway, problems)
	}
}

// children says how the objects of a Gateway's blueprint are; nil for a Gateway without one, and
// for one that goes on as it is: its other conditions say why.
func (p *Pipeline) children(c *flow.Ctx, gw *topology.Gateway) *status.Children {
	ch, ok := flow.Get(c, p.Children, gw.Name)
	// Where objects are only evaluated nothing is known of what there is in the cluster.
	if !ok || gw.Frozen || !gw.Served() || p.Options.NoProxies {
		return nil
	}
	out := &status.Children{Count: len(ch.Children), Note: ch.Note}
	_, out.Unguarded = flow.Get(c, p.unguardedGateways, gw.Name)
	if ch.Unknown != "" {
		out.Missing = []string{ch.Unknown}
		return out
	}
	for _, h := range ch.Undecided {
		out.Missing = append(out.Missing, h.Place.String()+": "+h.Why)
	}
	if ch.NoAddress != "" {
		out.NotReady = append(out.NotReady, ch.NoAddress)
	}
	problems, _ := flow.Get(c, p.childProblems, gw.Name)
	others := maps.Clone(problems)
	for i := range ch.Children {
		child := &ch.Children[i]
		ref := child.Ref()
		problem := problems[ref]
		delete(others, ref)
		switch {
		case problem != "":
			out.Missing = append(out.Missing, child.Place.String()+", "+ref.String()+": "+problem)
		case !child.Live && (child.Replacement == nil || child.Replacement.Read):
			out.Missing = append(out.Missing, child.Place.String()+", "+ref.String()+", is not in the cluster yet")
		case !child.Live:
			out.NotReady = append(out.NotReady, child.Place.String()+", "+ref.String()+", is not in the cluster yet")
		case child.NotReady != "":
			out.NotReady = append(out.NotReady, child.Place.String()+", "+ref.String()+": "+child.NotReady)
		}
	}
	// What is not wanted any more and still there.
	for _, ref := range slices.SortedFunc(maps.Keys(others), blueprint.Ref.Compare) {
		out.NotReady = append(out.NotReady, ref.String()+": "+others[ref])
	}
	return out
}
