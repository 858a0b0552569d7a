package topology

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/spelling"
)

// neighbours are the objects of a kind by what they have in common with one that is missing.
type neighbours struct {
	siblings  func(c *flow.Ctx, namespace string) iter.Seq[string] // names, in order
	namesakes func(c *flow.Ctx, name string) []string              // namespaces, in order
}

// declareNeighbours orders the objects that people name wrongly. It does so only where whoever
// reads a message may know of all objects.
func (g *Graph) declareNeighbours() {
	if !g.options.AnyName {
		return
	}
	g.neighbours = map[object.Kind]neighbours{
		kind.Gateway:           neighboursIn(g.in.Gateways),
		kind.ListenerSet:       neighboursIn(g.in.ListenerSets),
		kind.Service:           neighboursIn(g.in.Services),
		kind.ServiceImport:     neighboursIn(g.in.Imports),
		kind.InferencePool:     neighboursIn(g.in.InferencePools),
		kind.Secret:            neighboursIn(g.in.Secrets),
		kind.GatewayParameters: neighboursIn(g.in.Parameters),
	}
	maps.Copy(g.neighbours, g.neighbouringRoutes(kind.HTTPRoute, kind.GRPCRoute))
}

// neighbouringRoutes are those of kinds of routes, which are in one table.
func (g *Graph) neighbouringRoutes(kinds ...object.Kind) map[object.Kind]neighbours {
	all := flow.NewIndex(g.in.Routes, func(k object.Key, _ RouteObject, yield func(object.Key)) {
		yield(object.Key{Kind: k.Kind, Name: name(k.Namespace, "")})
	}, object.Key.Compare)
	type place struct {
		kind  object.Kind
		shelf uint8
	}
	byName := flow.NewIndex(g.in.Routes, func(k object.Key, _ RouteObject, yield func(place)) {
		yield(place{k.Kind, shelf(k.Name.Name)})
	}, object.Key.Compare)
	out := map[object.Kind]neighbours{}
	for _, of := range kinds {
		out[of] = neighbours{
			siblings: func(c *flow.Ctx, namespace string) iter.Seq[string] {
				return memberNames(flow.Select(c, all, object.Key{Kind: of, Name: name(namespace, "")}), func(k object.Key) string { return k.Name.Name })
			},
			namesakes: func(c *flow.Ctx, name string) []string {
				var namespaces []string
				for k := range flow.Select(c, byName, place{of, shelf(name)}).All() {
					if k.Name.Name == name {
						namespaces = append(namespaces, k.Namespace)
					}
				}
				return namespaces
			},
		}
	}
	return out
}

// memberNames yields the names of the members of an index.
func memberNames[K comparable, V any](members flow.Members[K, V], name func(K) string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for k := range members.All() {
			if !yield(name(k)) {
				return
			}
		}
	}
}

func neighboursIn[V any](t flow.Table[object.Name, V]) neighbours {
	byNamespace := flow.NewIndex(t, func(k object.Name, _ V, yield func(string)) { yield(k.Namespace) }, object.Name.Compare)
	// A bucket for each name would take more memory than all else here.
	byName := flow.NewIndex(t, func(k object.Name, _ V, yield func(uint8)) { yield(shelf(k.Name)) }, object.Name.Compare)
	return neighbours{
		siblings: func(c *flow.Ctx, namespace string) iter.Seq[string] {
			return memberNames(flow.Select(c, byNamespace, namespace), func(k object.Name) string { return k.Name })
		},
		namesakes: func(c *flow.Ctx, name string) []string {
			var namespaces []string
			for k := range flow.Select(c, byName, shelf(name)).All() {
				if k.Name == name {
					namespaces = append(namespaces, k.Namespace)
				}
			}
			return namespaces
		},
	}
}

// shelf spreads names over the buckets of an index.
func shelf(name string) uint8 { return uint8(xxhash.Sum64String(name)) }

// missing says what there is to say of an object that doesn't exist. From is who refers to it,
// where references into other namespaces need a ReferenceGrant; else nil.
func (g *Graph) missing(c *flow.Ctx, key object.Key, from *object.Key) condition.Missing {
	m := condition.Missing{Kind: key.Kind.Name(), Namespace: key.Namespace, Name: key.Name.Name}
	if m.NotRead = key.Namespace != "" && !g.reads(c, key.Namespace); m.NotRead {
		return m
	}
	if !g.options.AnyName {
		return m
	}
	if g.in.Broken != nil {
		if at, ok := flow.Get(c, g.in.Broken, key); ok {
			m.At = at
			return m
		}
	}
	n, ok := g.neighbours[key.Kind]
	if !ok {
		return m
	}
	elsewhere := n.namesakes(c, m.Name)
	if len(elsewhere) == 0 || key.Kind == kind.GatewayParameters { // which have no namespace to write
		m.Near = spelling.Nearest(m.Name, n.siblings(c, m.Namespace))
		return m
	}
	m.Elsewhere = elsewhere[0]
	there := object.Key{Kind: key.Kind, Name: name(m.Elsewhere, m.Name)}
	if from != nil && !g.permitted(c, from.Kind, from.Namespace, there) {
		m.Permit = g.grantFor(c, *from, there).YAML()
	}
	return m
}

// missingParent is missing of the Gateway that a route names.
func (g *Graph) missingParent(c *flow.Ctx, r *candidate, gateway object.Name) condition.Missing {
	m := g.missing(c, object.Key{Kind: kind.Gateway, Name: gateway}, nil)
	if m.Elsewhere == "" {
		return m
	}
	sections, _ := flow.Get(c, g.sections, name(m.Elsewhere, m.Name))
	if !slices.ContainsFunc(sections, func(s section) bool { return g.admits(c, &s, r.key.Namespace) }) {
		m.Permit = condition.AllowRoutes(r.key.Namespace) + " at a listener"
	}
	return m
}

// protocolMeant returns the protocol that a misspelt one may be meant for.
func protocolMeant(written gwv1.ProtocolType) string {
	var known []string
	for p := range protocols {
		known = append(known, string(p))
	}
	slices.Sort(known)
	return spelling.Nearest(strings.TrimSpace(string(written)), slices.Values(known))
}

// Waits returns what an object can't be served for although nothing is wrong with the object:
// what it refers to that a file has with a mistake, or that has no listener that can be served.
// It is for views, and for objects whose state is condition.ReasonWaiting.
func (g *Graph) Waits(c *flow.Ctx, key object.Key) []object.Key {
	switch key.Kind {
	case kind.Gateway:
		gw, ok := flow.Get(c, g.in.Gateways, key.Name)
		if !ok {
			return nil
		}
		var refs []object.Key
		if in := gw.Spec.Infrastructure; in != nil && in.ParametersRef != nil {
			refs = append(refs, object.Key{Kind: kind.GatewayParameters, Name: name(key.Namespace, in.ParametersRef.Name)})
		}
		secrets := map[object.Name]bool{}
		for i := range gw.Spec.Listeners {
			wantedSecrets(key.Name, &gw.Spec.Listeners[i], secrets)
		}
		return g.broken(c, refs, secrets)
	case kind.ListenerSet:
		set, ok := flow.Get(c, g.in.ListenerSets, key.Name)
		if !ok {
			return nil
		}
		secrets := map[object.Name]bool{}
		for i := range set.Spec.Listeners {
			l := gwv1.Listener(set.Spec.Listeners[i])
			wantedSecrets(key.Name, &l, secrets)
		}
		return g.broken(c, []object.Key{{Kind: kind.Gateway, Name: ParentOfSet(set)}}, secrets)
	}
	o, ok := flow.Get(c, g.in.Routes, key)
	if !ok {
		return nil
	}
	r := resolver{g: g, c: c, route: key}
	refs := ParentRefs(o)
	for i := range refs {
		p, ok := g.parent(c, &candidate{key: key, hostnames: Hostnames(o)}, &refs[i])
		if ok && p.Accepted().Reason == condition.ReasonWaiting {
			of, name := ParentOf(key.Name, &refs[i])
			r.waits = append(r.waits, object.Key{Kind: object.KindOf(string(gatewayGroup), string(of)), Name: name})
		}
	}
	r.rules(o)
	return r.waits
}

// broken returns those of some objects that files have with a mistake.
func (g *Graph) broken(c *flow.Ctx, objects []object.Key, secrets map[object.Name]bool) []object.Key {
	for _, secret := range slices.SortedFunc(maps.Keys(secrets), object.Name.Compare) {
		objects = append(objects, object.Key{Kind: kind.Secret, Name: secret})
	}
	return slices.DeleteFunc(objects, func(o object.Key) bool {
		if g.in.Broken == nil {
			return true
		}
		_, ok := flow.Get(c, g.in.Broken, o)
		return !ok
	})
}
