package topology

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/parameters"
)

const parametersKind = "GatewayParameters"

// isParameters reports whether a reference is to the kind of parameters that we
// read.
func isParameters(group gwv1.Group, kind gwv1.Kind) bool {
	return string(group) == v1alpha1.GroupVersion.Group && kind == parametersKind
}

// resolveParameters follows a class's parametersRef.
func (g *Graph) resolveParameters(c *flow.Ctx, class *Class) {
	ref := class.Object.Spec.ParametersRef
	if ref == nil {
		return
	}
	class.InvalidParameters = true
	if !isParameters(ref.Group, ref.Kind) {
		class.Accepted = condition.ClassInvalidParameters(kindText(ref.Group, ref.Kind), ref.Name)
		return
	}
	if ref.Namespace == nil {
		class.Accepted = condition.ClassParametersWithoutNamespace(ref.Name)
		return
	}
	name := object.Name{Namespace: string(*ref.Namespace), Name: ref.Name}
	object, ok := flow.Get(c, g.in.Parameters, name)
	if !ok {
		class.Accepted = condition.ClassParametersMissing(name.String())
		if !g.reads(c, name.Namespace) {
			class.Accepted = condition.ClassParametersNotRead(name.String(), name.Namespace)
		}
		return
	}
	errs := parameters.Check(object)
	if len(errs) == 0 {
		merged := parameters.Merge(g.options.Settings, &object.Spec.Settings, object.Spec.Overrides)
		errs = parameters.CheckWhole(merged, g.options.place())
		if valueOr(object.Spec.MergeGateways, false) {
			errs = append(errs, g.checkShared(&object.Spec, merged)...)
		}
	}
	if len(errs) > 0 {
		class.Accepted = condition.ClassParametersInvalid(name.String(), errorTexts(errs))
		return
	}
	if ref := object.Spec.BlueprintRef; ref != nil {
		if _, ok := flow.Get(c, g.in.Blueprints, ref.Name); !ok {
			class.Accepted = condition.ClassBlueprintMissing(name.String(), ref.Name)
			return
		}
		class.Blueprint = ref.Name
	}
	class.InvalidParameters = false
	class.parameters = object
}

// checkShared checks the parameters of a class whose Gateways share a fleet.
func (g *Graph) checkShared(spec *v1alpha1.GatewayParametersSpec, merged *v1alpha1.Settings) (errs field.ErrorList) {
	at := field.NewPath("spec", "mergeGateways")
	if !g.options.SharedHost && !g.options.Provisioned {
		errs = append(errs, field.Forbidden(at, "a process that serves one Gateway has no fleet for others; remove it"))
	}
	if spec.BlueprintRef != nil {
		errs = append(errs, field.Forbidden(at, "a blueprint renders a datapath for each Gateway; remove this or blueprintRef"))
	}
	if r := merged.Rollout; r != nil && valueOr(r.Strategy, "") == v1alpha1.RolloutBlueGreen {
		errs = append(errs, field.Forbidden(at, "proxies of several Gateways can't wait for a promotion, which is said on a Gateway; remove this or rollout.strategy"))
	}
	return errs
}

// reads reports whether objects of a namespace are read, or would be if there were such
// a namespace.
func (g *Graph) reads(c *flow.Ctx, namespace string) bool {
	if g.options.Reads == nil {
		return true
	}
	object, ok := flow.Get(c, g.in.Namespaces, namespace)
	return !ok || g.options.Reads(object)
}

// gatewayParameters is what the parameters of a Gateway and its class come to.
type gatewayParameters struct {
	settings *v1alpha1.Settings
	// allow is the class's, or what it was while the class's parameters could be used; nil
	// for the default of everything.
	allow *v1alpha1.Allow
	class string // its name
	// refused is the Accepted condition of a Gateway whose parameters can't be used or
	// whose class doesn't exist, and frozen says that it goes on as it is nevertheless.
	refused *metav1.Condition
	frozen  bool
	fleet   object.Name // that the class's Gateways share; zero where each has its own
	notes   []string    // on what has no effect
}

func (p *gatewayParameters) equal(o *gatewayParameters) bool { return reflect.DeepEqual(p, o) }

// declareParameters keeps the settings of the Gateways for which anything is set.
func (g *Graph) declareParameters() flow.Table[object.Name, *gatewayParameters] {
	return flow.Map("topology-parameters", g.owned,
		func(c *flow.Ctx, name object.Name, gw *gwv1.Gateway, emit func(object.Name, *gatewayParameters)) {
			class, ok := g.class(c, gw)
			if !ok {
				return
			}
			own, refused := g.ownParameters(c, gw)
			if own == nil && refused == nil && class.parameters == nil && !class.InvalidParameters && class.missing == "" {
				return
			}
			p := &gatewayParameters{settings: g.levels(class, own), allow: class.allows(), class: class.Name, refused: refused, fleet: class.sharedFleet()}
			if fields := g.unallowed(p, own); len(fields) > 0 {
				p.refused = new(condition.GatewayParametersNotAllowed(own.Namespace+"/"+own.Name, class.Name, g.allowedText(p, own), fields))
				p.settings = g.levels(class, nil)
			} else if own != nil {
				if errs := parameters.CheckWhole(p.settings, g.options.place()); len(errs) > 0 {
					p.refused = new(condition.GatewayParametersInvalid(own.Namespace+"/"+own.Name, errorTexts(errs)))
					p.settings = g.levels(class, nil)
				}
			}
			if name, fields := g.untrusted(class, own); p.refused == nil && len(fields) > 0 {
				p.refused = new(condition.GatewayParametersNotTrusted(name, fields))
				p.settings = g.defaultParameters.settings
			}
			if class.InvalidParameters {
				p.refused = new(condition.GatewayClassNotAccepted(class.Name, g.whyNot(gw.Namespace, class)))
			}
			if class.missing != "" {
				p.refused = new(condition.GatewayClassNotFound(class.missing, class.Name, g.options.ControllerName))
			}
			switch {
			case p.refused != nil:
				g.hold(c, gw, class, p)
			case !g.options.Provisioned:
				p.notes = ineffective(p.settings)
			case class.bars(own):
				p.notes = []string{condition.NotePatchesBarred(own.Namespace+"/"+own.Name, class.Name)}
			}
			emit(name, p)
		}, flow.Equal((*gatewayParameters).equal))
}

// whyNot says to an object of a namespace why a class is not accepted. That may be about
// the class's parameters, which are in a namespace of the platform's.
func (g *Graph) whyNot(namespace string, class *Class) string {
	parameters := ""
	if class.Object != nil && class.Object.Spec.ParametersRef != nil {
		parameters = string(valueOr(class.Object.Spec.ParametersRef.Namespace, ""))
	}
	return g.options.Reader(namespace).Why(parameters, class.Accepted.Message)
}

// untrusted returns what the parameters of a Gateway or of its class set that could write
// any file of whoever runs this process, and which of the two it is. In a cluster that is
// the class's to allow.
func (g *Graph) untrusted(class *Class, own *v1alpha1.GatewayParameters) (name string, fields []string) {
	if g.options.Provisioned || !g.options.AnyName || g.options.UnsafeParameters {
		return "", nil
	}
	for _, o := range []*v1alpha1.GatewayParameters{own, class.parameters} {
		if o == nil {
			continue
		}
		fields := parameters.Trusted("spec", &o.Spec.Settings)
		if o.Spec.Overrides != nil {
			fields = append(fields, parameters.Trusted("spec.overrides", o.Spec.Overrides)...)
		}
		if len(fields) > 0 {
			return o.Namespace + "/" + o.Name, fields
		}
	}
	return "", nil
}

// unallowed returns what a Gateway's own parameters, which are nil for none, set although
// its class doesn't allow it. Outside of a cluster there are no tenants.
func (g *Graph) unallowed(p *gatewayParameters, own *v1alpha1.GatewayParameters) []string {
	if own == nil || g.options.AnyName && !g.options.Provisioned {
		return nil
	}
	return parameters.Unallowed(&own.Spec.Settings, g.allowed(p, own))
}

// allowed is what a Gateway may set by parameters of its own. Pods reach Secrets and ServiceAccounts of their namespace,
// so that nobody may say what is in those of another namespace than his.
func (g *Graph) allowed(p *gatewayParameters, own *v1alpha1.GatewayParameters) v1alpha1.AllowedParameters {
	allowed, elsewhere := parameters.Allowed(p.allow), g.options.FleetNamespace
	if allowed == v1alpha1.AllowAll && elsewhere != "" && elsewhere != own.Namespace {
		return v1alpha1.AllowSafe
	}
	return allowed
}

// allowedText says that in a message.
func (g *Graph) allowedText(p *gatewayParameters, own *v1alpha1.GatewayParameters) string {
	allowed, counts := parameters.Allowed(p.allow), g.allowed(p, own)
	if allowed == counts {
		return string(allowed)
	}
	return fmt.Sprintf("%s, which counts as %s while all proxies are in namespace %s", allowed, counts, g.options.FleetNamespace)
}

// levels merges the settings of the options, of a class, and of a Gateway's own
// parameters, which are nil for none.
func (g *Graph) levels(class *Class, own *v1alpha1.GatewayParameters) *v1alpha1.Settings {
	levels := make([]*v1alpha1.Settings, 4)
	levels[0] = g.options.Settings
	if class.parameters != nil {
		levels[1], levels[3] = &class.parameters.Spec.Settings, class.parameters.Spec.Overrides
	}
	if own != nil {
		levels[2] = &own.Spec.Settings
		if class.bars(own) {
			levels[2] = new(own.Spec.Settings)
			levels[2].Patches = nil
		}
	}
	return parameters.Merge(levels...)
}

// allows returns what the class says that its Gateways may ask for; nil for the default
// of everything.
func (c *Class) allows() *v1alpha1.Allow {
	if c.parameters == nil {
		return nil
	}
	return c.parameters.Spec.Allow
}

// sharedFleet names the fleet that the class's Gateways share; zero where each has its own.
func (c *Class) sharedFleet() object.Name {
	if c.parameters == nil || !valueOr(c.parameters.Spec.MergeGateways, false) {
		return object.Name{}
	}
	return object.SharedFleet(c.parameters.Namespace, c.Name)
}

// bars reports whether the patches of a Gateway's parameters, which are nil for none,
// count for nothing: patches have the last word over a Gateway's objects, and could
// undo whatever its class overrides.
func (c *Class) bars(own *v1alpha1.GatewayParameters) bool {
	return own != nil && len(own.Spec.Patches) > 0 && c.parameters != nil &&
		c.parameters.Spec.Overrides != nil && !reflect.ValueOf(*c.parameters.Spec.Overrides).IsZero()
}

// ownParameters follows a Gateway's infrastructure.parametersRef.
func (g *Graph) ownParameters(c *flow.Ctx, gw *gwv1.Gateway) (*v1alpha1.GatewayParameters, *metav1.Condition) {
	if gw.Spec.Infrastructure == nil || gw.Spec.Infrastructure.ParametersRef == nil {
		return nil, nil
	}
	ref := gw.Spec.Infrastructure.ParametersRef
	if !isParameters(ref.Group, ref.Kind) {
		return nil, new(condition.GatewayInvalidParameters(kindText(ref.Group, ref.Kind), ref.Name))
	}
	name := object.Name{Namespace: gw.Namespace, Name: ref.Name}
	key := object.Key{Kind: kind.GatewayParameters, Name: name}
	object, ok := flow.Get(c, g.in.Parameters, name)
	if !ok {
		return nil, new(condition.GatewayParametersMissing(g.missing(c, key, nil)))
	}
	errs := parameters.Check(object)
	if object.Spec.Allow != nil {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "allow"),
			"what Gateways may ask for is said in the parameters of their GatewayClass; remove it"))
	}
	if object.Spec.Backends != nil {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "backends"),
			"where routes may lead is for the parameters of a GatewayClass to say; remove it here"))
	}
	if object.Spec.BlueprintRef != nil {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "blueprintRef"),
			"the blueprint is for the parameters of a GatewayClass to name; remove it here"))
	}
	if object.Spec.MergeGateways != nil {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "mergeGateways"),
			"whether Gateways share proxies is for the parameters of a GatewayClass to say; remove it here"))
	}
	if object.Spec.Overrides != nil {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "overrides"),
			"overrides are for the parameters of a GatewayClass; put the fields directly under spec"))
	}
	if len(errs) > 0 {
		return nil, new(condition.GatewayParametersInvalid(name.String(), errorTexts(errs)))
	}
	return object, nil
}

// hold lets a Gateway whose parameters can't be used or whose class doesn't exist go on
// with the settings that it had: a mistake must not cost what runs. In a cluster it goes on in any case,
// since its proxies may be there although this process has never seen it well.
func (g *Graph) hold(c *flow.Ctx, gw *gwv1.Gateway, class *Class, p *gatewayParameters) {
	p.frozen = g.options.Provisioned
	switch last, ok := g.KeptOf(c, gw); {
	case ok:
		p.frozen, p.settings = true, last.Settings
		if last.Class == class.Name { // the rules of another class are not for that fleet
			p.fleet = last.Fleet
		}
		if class.parameters == nil {
			p.allow = last.Allow
		}
	case class.missing != "" && class.Object == nil:
		// What the Gateway says counts only under a class that says what it may.
		p.settings = g.levels(class, nil)
	}
}

// KeptOf returns what a Gateway goes on with while its parameters can't be used.
func (g *Graph) KeptOf(c *flow.Ctx, gw *gwv1.Gateway) (parameters.Kept, bool) {
	last, ok := flow.Get(c, g.in.Kept, name(gw.Namespace, gw.Name))
	return last, ok && last.UID == gw.UID
}

// HasParameters reports whether a Gateway has parameters that can be used, its own or
// its class's.
func (g *Graph) HasParameters(gw *Gateway) bool { return gw.Parameters != g.defaultParameters.settings }

// parametersOf returns what the parameters of a Gateway come to.
func (g *Graph) parametersOf(c *flow.Ctx, name object.Name) *gatewayParameters {
	if p, ok := flow.Get(c, g.parameters, name); ok {
		return p
	}
	return &g.defaultParameters
}

// edge is what of a Gateway's settings its listeners depend on.
type edge struct{ http3, proxyProtocol bool }

func (p *gatewayParameters) edge() edge {
	client := p.settings.Client
	if client == nil {
		return edge{}
	}
	return edge{http3: valueOr(client.HTTP3, false), proxyProtocol: valueOr(client.ProxyProtocol, false)}
}

// errorTexts says what is wrong, each with its field.
func errorTexts(errs field.ErrorList) []string {
	texts := make([]string, len(errs))
	for i, e := range errs {
		texts[i] = e.Error()
	}
	return texts
}

// ineffective says which settings have no effect where no pods are provisioned.
func ineffective(s *v1alpha1.Settings) []string {
	var fields []string
	note := func(name string, isSet bool) {
		if isSet {
			fields = append(fields, name)
		}
	}
	note("deployment", s.Deployment != nil)
	note("daemonSet", s.DaemonSet != nil)
	note("pod", s.Pod != nil)
	note("container", s.Container != nil)
	note("service", s.Service != nil)
	note("limits", s.Limits != nil)
	note("patches", len(s.Patches) > 0)
	note("metrics.scrape", s.Metrics != nil && s.Metrics.Scrape != nil)
	if len(fields) == 0 {
		return nil
	}
	return []string{condition.NoteParametersWithoutEffect(fields)}
}
