package view

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	poolsv1 "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/policy/auth"
	"github.com/gatehouse-dev/gatehouse/internal/policy/limits"
	"github.com/gatehouse-dev/gatehouse/internal/policy/traffic"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// rows are the kinds that a view shows.
func rows(p *pipeline.Pipeline) []showing {
	list := []showing{
		show(p, p.ClassStatus, p.Graph.Classes, pipeline.ClusterScoped(kind.GatewayClass), classItem),
		show(p, p.GatewayStatus, p.Graph.Gateways, pipeline.Namespaced(kind.Gateway), func(c *flow.Ctx, gw *topology.Gateway, s *gwv1.GatewayStatus) *Item {
			return gatewayItem(p, c, gw, s)
		}),
		show(p, p.ListenerSetStatus, p.Graph.ListenerSets, pipeline.Namespaced(kind.ListenerSet), func(c *flow.Ctx, set *topology.ListenerSet, s *gwv1.ListenerSetStatus) *Item {
			return setItem(p, c, set, s)
		}),
		show(p, p.BackendTLSPolicyStatus, p.Graph.BackendTLSPolicies, pipeline.Namespaced(kind.BackendTLSPolicy), policyItem),
		show(p, p.BackendTrafficPolicyStatus, p.Graph.BackendTrafficPolicies, pipeline.Namespaced(kind.BackendTrafficPolicy), backendTrafficItem),
		show(p, p.AuthPolicyStatus, p.Graph.AuthPolicies, pipeline.Namespaced(kind.AuthPolicy), func(_ *flow.Ctx, node *auth.Policy, s *gwv1.PolicyStatus) *Item {
			return inheritedItem(node.Object, &node.Reach, s)
		}),
		show(p, p.RateLimitPolicyStatus, p.Graph.RateLimitPolicies, pipeline.Namespaced(kind.RateLimitPolicy), func(_ *flow.Ctx, node *limits.Policy, s *gwv1.PolicyStatus) *Item {
			return inheritedItem(node.Object, &node.Reach, s)
		}),
		show(p, p.TrafficPolicyStatus, p.Graph.TrafficPolicies, pipeline.Namespaced(kind.TrafficPolicy), func(_ *flow.Ctx, node *traffic.Policy, s *gwv1.PolicyStatus) *Item {
			return inheritedItem(node.Object, &node.Reach, s)
		}),
		show(p, p.XBackendStatus, p.Graph.XBackends, pipeline.Namespaced(kind.XBackend), xBackendItem),
		show(p, p.InferencePoolStatus, p.Graph.InferencePools, pipeline.Namespaced(kind.InferencePool), func(_ *flow.Ctx, node *topology.InferencePool, s *poolsv1.InferencePoolStatus) *Item {
			out := item(node.Object, s)
			out.Summary = poolSummary(s)
			return out
		}),
		show(p, p.RouteFilterStatus, p.Graph.RouteFilters, pipeline.Namespaced(kind.RouteFilter), func(_ *flow.Ctx, f *topology.RouteFilter, s *v1alpha1.RouteFilterStatus) *Item {
			return acceptedItem(f.Object, s, s.Conditions)
		}),
		show(p, p.RouteStatus, p.Graph.Routes, pipeline.ByKey(), func(c *flow.Ctx, r *topology.Route, s *gwv1.RouteStatus) *Item {
			return routeItem(p, c, r, s)
		}),
		show(p, p.OtherStatus, p.Inputs.Others, pipeline.ByKey(), func(_ *flow.Ctx, o source.Object, s any) *Item {
			out := item(o, s)
			out.Summary = summaryOf(p.Kinds.OfObject(o).Status, s)
			return out
		}),
	}
	if p.Children == nil {
		return list
	}
	return append(list,
		show(p, p.BlueprintStatus, p.Inputs.Blueprints, pipeline.ClusterScoped(kind.GatewayBlueprint), func(_ *flow.Ctx, o *v1alpha1.GatewayBlueprint, s *v1alpha1.GatewayBlueprintStatus) *Item {
			return acceptedItem(o, s, s.Conditions)
		}),
		show(p, p.ClassValuesStatus, p.Inputs.ClassValues, pipeline.Namespaced(kind.GatewayClassValues), func(_ *flow.Ctx, o *v1alpha1.GatewayClassValues, s *v1alpha1.ValuesStatus) *Item {
			return acceptedItem(o, s, s.Conditions)
		}),
		show(p, p.TeamValuesStatus, p.Inputs.GatewayValues, pipeline.Namespaced(kind.GatewayValues), func(_ *flow.Ctx, o *v1alpha1.GatewayValues, s *v1alpha1.ValuesStatus) *Item {
			return acceptedItem(o, s, s.Conditions)
		}))
}

// acceptedItem shows an object of whose conditions Accepted says all.
func acceptedItem(o metav1.Object, status any, conditions []metav1.Condition) *Item {
	out := item(o, status)
	out.Summary = summarize("Accepted", conditions)
	return out
}

// showing yields those objects of a kind that are wanted, with the statuses that told gives for them in
// place of those of the table; nil for these.
type showing func(c *flow.Ctx, wanted func(object.Key) bool, told func(object.Key) any, yield func(Item))

// show shows the entries of a table of statuses. nodes have what each is about, and item
// shows it with a copy of the status, nil where there is no object to show.
func show[K comparable, N, S any](p *pipeline.Pipeline, statuses *flow.Derived[K, S], nodes flow.Table[K, N],
	by pipeline.Keys[K], item func(*flow.Ctx, N, S) *Item,
) showing {
	return func(c *flow.Ctx, wanted func(object.Key) bool, told func(object.Key) any, yield func(Item)) {
		for k, s := range flow.All(c, statuses) {
			key := by.Name(k)
			if !wanted(key) {
				continue
			}
			if told != nil {
				var ok bool
				if s, ok = told(key).(S); !ok {
					continue
				}
			}
			node, ok := flow.Get(c, nodes, k)
			if !ok {
				continue
			}
			d := p.Kinds.Of(key.Kind)
			if it := item(c, node, d.Status.Copy(s).(S)); it != nil {
				it.TypeMeta, it.kind = d.TypeMeta(d.Versions[0].Name), d
				yield(*it)
			}
		}
	}
}

// item shows an object, of whose kind show says what it is.
func item(o metav1.Object, status any) *Item {
	return &Item{
		Metadata: ItemMeta{
			Namespace: o.GetNamespace(), Name: o.GetName(), Generation: o.GetGeneration(), CreationTimestamp: o.GetCreationTimestamp(),
		},
		Status: status,
	}
}

func classItem(_ *flow.Ctx, class *topology.Class, s *gwv1.GatewayClassStatus) *Item {
	if class.Object == nil {
		return nil
	}
	out := item(class.Object, s)
	out.Summary = classSummary(s)
	if ref := class.Object.Spec.ParametersRef; ref != nil {
		out.Summary.Parameters = ref.Name
		if ref.Namespace != nil {
			out.Summary.Parameters = string(*ref.Namespace) + "/" + ref.Name
		}
	}
	return out
}

func gatewayItem(p *pipeline.Pipeline, c *flow.Ctx, gw *topology.Gateway, s *gwv1.GatewayStatus) *Item {
	out := item(gw.Object, s)
	out.Summary = gatewaySummary(s)
	out.Summary.Class = string(gw.Object.Spec.GatewayClassName)
	if infra := gw.Object.Spec.Infrastructure; infra != nil && infra.ParametersRef != nil {
		out.Summary.Parameters = infra.ParametersRef.Name
	}
	out.Summary.AttachedSets, _ = flow.Get(c, p.Graph.AttachedSets, gw.Name)
	out.Summary.Listeners = listenerRows(p, c, out.Summary.Listeners, gw.Listeners)
	out.gateway = gw.Name
	return out
}

func setItem(p *pipeline.Pipeline, c *flow.Ctx, set *topology.ListenerSet, s *gwv1.ListenerSetStatus) *Item {
	out := item(set.Object, s)
	out.Summary = setSummary(s)
	out.Summary.Parents = []string{set.Gateway.String()}
	out.Summary.Listeners = listenerRows(p, c, out.Summary.Listeners, set.Listeners)
	out.gateway = set.Gateway
	return out
}

// listenerRows adds to what a status tells of listeners where they are.
func listenerRows(p *pipeline.Pipeline, c *flow.Ctx, rows []ListenerRow, listeners []*topology.Listener) []ListenerRow {
	told := map[string]ListenerRow{}
	for _, row := range rows {
		told[row.Name] = row
	}
	out := make([]ListenerRow, 0, len(listeners))
	for _, l := range listeners {
		row := told[l.Key.Name()]
		row.Name, row.Protocol, row.Hostname = l.Key.Name(), string(l.Protocol), l.Hostname
		row.Port = int(l.Port) + p.Options.Topology.ClientOffset()
		if port, ok := flow.Get(c, p.Ports, pipeline.KeyOfPort(l)); ok {
			row.Addrs = port.Addresses
		}
		out = append(out, row)
	}
	return out
}

func routeItem(p *pipeline.Pipeline, c *flow.Ctx, r *topology.Route, s *gwv1.RouteStatus) *Item {
	out := item(r.Object, s)
	out.Summary = routeSummary(s)
	for _, parent := range s.Parents {
		out.Summary.Parents = append(out.Summary.Parents, parentLabel(r.Key.Namespace, parent.ParentRef))
	}
	if len(s.Parents) == 0 { // nobody has answered: what the route names is known all the same
		for _, ref := range topology.ParentRefs(r.Object) {
			out.Summary.Parents = append(out.Summary.Parents, parentLabel(r.Key.Namespace, ref))
		}
	}
	open := func(rule *gwv1.SectionName) bool { return p.Graph.Open(c, r.Key, rule) }
	out.Summary.Path, out.Summary.Redirect = sample(r.Object, open)
	out.Summary.Call = sampleCall(r.Object, open)
	out.Summary.Endpoints = endpointsOf(p, c, r)
	for _, of := range p.Graph.InForce(c, r) {
		out.Summary.Policies = append(out.Summary.Policies, of.Name())
	}
	for _, h := range topology.Hostnames(r.Object) {
		out.Summary.Hosts = append(out.Summary.Hosts, string(h))
	}
	return out
}

// parentLabel names a parent of a route as tables show it.
func parentLabel(namespace string, ref gwv1.ParentReference) string {
	if ref.Namespace != nil {
		namespace = string(*ref.Namespace)
	}
	name := object.Name{Namespace: namespace, Name: string(ref.Name)}.String()
	if ref.SectionName != nil {
		name += "/" + string(*ref.SectionName)
	}
	if of := ref.Kind; of != nil && string(*of) != kind.Gateway.Name() {
		name = string(*of) + " " + name
	}
	return name
}

// behindSets says of the routes on ListenerSets which Gateways these belong to.
func (v *View) behindSets() {
	gateways := map[string]string{} // by ListenerSet
	for _, it := range v.Items {
		if it.kind.Kind == kind.ListenerSet {
			gateways[it.Key()] = it.Summary.Parents[0]
		}
	}
	if len(gateways) == 0 {
		return
	}
	for i := range v.Items {
		it := &v.Items[i]
		if it.kind.Family != kind.Route {
			continue
		}
		for _, parent := range it.Summary.Parents {
			set := parent
			if strings.Count(parent, "/") > 1 { // a section
				set = parent[:strings.LastIndexByte(parent, '/')]
			}
			gateway, ok := gateways[set]
			if !ok {
				continue
			}
			if it.Summary.SetGateways == nil {
				it.Summary.SetGateways = map[string]string{}
			}
			it.Summary.SetGateways[parent] = gateway
		}
	}
}

// policyItem shows what a policy targets where routes show their parents.
func policyItem(_ *flow.Ctx, node *topology.BackendTLSPolicy, s *gwv1.PolicyStatus) *Item {
	out := item(node.Object, s)
	out.Summary = policySummary(s)
	out.Summary.Hosts = []string{string(node.Object.Spec.Validation.Hostname)}
	out.Summary.Parents = targetLabels(node.Targets, kind.Service)
	return out
}

// targetLabels name what a policy targets as tables show it: its kind too, unless that is the
// usual one of the policy's kind.
func targetLabels(targets []topology.PolicyTarget, usual object.Kind) (out []string) {
	for _, t := range targets {
		label := t.Name.String()
		if t.Section != "" {
			label += "/" + t.Section
		}
		if t.Kind != usual {
			label = t.Kind.Name() + " " + label
		}
		out = append(out, label)
	}
	return out
}

func xBackendItem(_ *flow.Ctx, node *topology.XBackend, s *gwxv1alpha1.BackendStatus) *Item {
	out := item(node.Object, s)
	out.Summary = xBackendSummary(s)
	if node.Hostname != "" {
		out.Summary.Hosts = []string{node.Hostname}
	}
	return out
}

// backendTrafficItem shows what a policy targets where routes show their parents.
func backendTrafficItem(_ *flow.Ctx, node *topology.BackendTrafficPolicy, s *gwv1.PolicyStatus) *Item {
	out := item(node.Object, s)
	out.Summary = policySummary(s)
	out.Summary.Parents = targetLabels(node.Targets, kind.Service)
	return out
}

// inheritedItem shows what a policy targets where routes show their parents.
func inheritedItem(o metav1.Object, reach *topology.PolicyReach, s *gwv1.PolicyStatus) *Item {
	out := item(o, s)
	out.Summary = inheritedSummary(s)
	out.Summary.Parents = targetLabels(reach.Named(), object.Kind{})
	for _, s := range reach.Selections {
		label := s.Kind.Name() + " with " + s.String()
		if s.Section != "" {
			label += "/" + s.Section
		}
		out.Summary.Parents = append(out.Summary.Parents, label)
	}
	return out
}
