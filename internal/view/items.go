package view

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// rows are the kinds that a view shows.
func rows(p *pipeline.Pipeline) []showing {
	return []showing{
		show(p.ClassStatus, p.Graph.Classes, classKey, classItem),
		show(p.GatewayStatus, p.Graph.Gateways, keyed(kind.Gateway), func(c *flow.Ctx, gw *topology.Gateway, s *gwv1.GatewayStatus) *Item {
			return gatewayItem(p, c, gw, s)
		}),
		show(p.ListenerSetStatus, p.Graph.ListenerSets, keyed(kind.ListenerSet), func(c *flow.Ctx, set *topology.ListenerSet, s *gwv1.ListenerSetStatus) *Item {
			return setItem(p, c, set, s)
		}),
		show(p.BackendTLSPolicyStatus, p.Graph.BackendTLSPolicies, keyed(kind.BackendTLSPolicy), policyItem),
		show(p.TrafficPolicyStatus, p.Graph.TrafficPolicies, keyed(kind.BackendTrafficPolicy), trafficItem),
		show(p.XBackendStatus, p.Graph.XBackends, keyed(kind.XBackend), xBackendItem),
		show(p.RouteStatus, p.Graph.Routes, func(k object.Key) object.Key { return k }, routeItem),
	}
}

func classKey(name string) object.Key {
	return object.Key{Kind: kind.GatewayClass, Name: object.Name{Name: name}}
}

func keyed(of object.Kind) func(object.Name) object.Key {
	return func(name object.Name) object.Key { return object.Key{Kind: of, Name: name} }
}

// showing yields the objects of a kind, with the statuses that told gives for them in
// place of those of the table; nil for these.
type showing func(c *flow.Ctx, told func(object.Key) any, yield func(Item))

// copied is the pointer to a status, of which a copy can be made.
type copied[S any] interface {
	*S
	DeepCopy() *S
}

// show shows the entries of a table of statuses. nodes have what each is about, keyOf
// names it, and item shows it with a copy of the status, nil where there is no object
// to show.
func show[K comparable, N, S any, P copied[S]](statuses *flow.Derived[K, *S], nodes flow.Table[K, N],
	keyOf func(K) object.Key, item func(*flow.Ctx, N, *S) *Item,
) showing {
	return func(c *flow.Ctx, told func(object.Key) any, yield func(Item)) {
		for k, s := range flow.All(c, statuses) {
			if told != nil {
				var ok bool
				if s, ok = told(keyOf(k)).(*S); !ok {
					continue
				}
			}
			node, ok := flow.Get(c, nodes, k)
			if !ok {
				continue
			}
			if it := item(c, node, P(s).DeepCopy()); it != nil {
				yield(*it)
			}
		}
	}
}

func item(kind, namespace, name string, generation int64, status any) *Item {
	return &Item{
		TypeMeta: metav1.TypeMeta{APIVersion: gwv1.GroupVersion.String(), Kind: kind},
		Metadata: ItemMeta{Namespace: namespace, Name: name, Generation: generation},
		Status:   status,
	}
}

func classItem(_ *flow.Ctx, class *topology.Class, s *gwv1.GatewayClassStatus) *Item {
	if class.Object == nil {
		return nil
	}
	out := item("GatewayClass", "", class.Name, class.Object.Generation, s)
	out.Summary = classSummary(s)
	return out
}

func gatewayItem(p *pipeline.Pipeline, c *flow.Ctx, gw *topology.Gateway, s *gwv1.GatewayStatus) *Item {
	out := item("Gateway", gw.Name.Namespace, gw.Name.Name, gw.Object.Generation, s)
	out.Summary = gatewaySummary(s)
	out.Summary.Class = string(gw.Object.Spec.GatewayClassName)
	out.Summary.Listeners = listenerRows(p, c, out.Summary.Listeners, gw.Listeners)
	return out
}

func setItem(p *pipeline.Pipeline, c *flow.Ctx, set *topology.ListenerSet, s *gwv1.ListenerSetStatus) *Item {
	out := item("ListenerSet", set.Name.Namespace, set.Name.Name, set.Object.Generation, s)
	out.Summary = setSummary(s)
	out.Summary.Parents = []string{set.Gateway.String()}
	out.Summary.Listeners = listenerRows(p, c, out.Summary.Listeners, set.Listeners)
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
		row := told[l.Key.Name]
		row.Name, row.Protocol, row.Hostname = l.Key.Name, string(l.Protocol), l.Hostname
		row.Port = int(l.Port) + p.Options.Topology.ClientOffset()
		if port, ok := flow.Get(c, p.Ports, pipeline.KeyOfPort(l)); ok {
			row.Addrs = port.Listener.Addresses
		}
		out = append(out, row)
	}
	return out
}

func routeItem(_ *flow.Ctx, r *topology.Route, s *gwv1.RouteStatus) *Item {
	out := item(r.Key.Kind.Name(), r.Key.Namespace, r.Key.Name.Name, r.Object.GetGeneration(), s)
	out.Summary = routeSummary(s)
	for _, parent := range s.Parents {
		ns := r.Key.Namespace
		if parent.ParentRef.Namespace != nil {
			ns = string(*parent.ParentRef.Namespace)
		}
		name := object.Name{Namespace: ns, Name: string(parent.ParentRef.Name)}.String()
		if parent.ParentRef.SectionName != nil {
			name += "/" + string(*parent.ParentRef.SectionName)
		}
		if kind := parent.ParentRef.Kind; kind != nil && *kind != "Gateway" {
			name = string(*kind) + " " + name
		}
		out.Summary.Parents = append(out.Summary.Parents, name)
	}
	out.Summary.Path, out.Summary.Redirect = sample(r.Object)
	out.Summary.Call = sampleCall(r.Object)
	for _, h := range topology.Hostnames(r.Object) {
		out.Summary.Hosts = append(out.Summary.Hosts, string(h))
	}
	return out
}

// policyItem shows what a policy targets where routes show their parents.
func policyItem(_ *flow.Ctx, node *topology.BackendTLSPolicy, s *gwv1.PolicyStatus) *Item {
	out := item("BackendTLSPolicy", node.Name.Namespace, node.Name.Name, node.Object.Generation, s)
	out.Summary = policySummary(s)
	out.Summary.Hosts = []string{string(node.Object.Spec.Validation.Hostname)}
	for _, t := range node.Object.Spec.TargetRefs {
		target := node.Name.Namespace + "/" + string(t.Name)
		if t.SectionName != nil {
			target += "/" + string(*t.SectionName)
		}
		out.Summary.Parents = append(out.Summary.Parents, target)
	}
	return out
}

func xBackendItem(_ *flow.Ctx, node *topology.XBackend, s *gwxv1alpha1.BackendStatus) *Item {
	out := item("XBackend", node.Name.Namespace, node.Name.Name, node.Object.Generation, s)
	out.Summary = xBackendSummary(s)
	if node.Hostname != "" {
		out.Summary.Hosts = []string{node.Hostname}
	}
	return out
}

// trafficItem shows what a policy targets where routes show their parents.
func trafficItem(_ *flow.Ctx, node *topology.TrafficPolicy, s *gwv1.PolicyStatus) *Item {
	out := item("XBackendTrafficPolicy", node.Name.Namespace, node.Name.Name, node.Object.Generation, s)
	out.Summary = policySummary(s)
	for _, t := range node.Object.Spec.TargetRefs {
		out.Summary.Parents = append(out.Summary.Parents, node.Name.Namespace+"/"+string(t.Name))
	}
	return out
}
