package pipeline

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwfeatures "sigs.k8s.io/gateway-api/pkg/features"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/features"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/status"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// declareStatus declares what people are told.
func (p *Pipeline) declareStatus() {
	issues := p.declareIssues()
	p.declareUncounted()
	p.declareClassStatus()
	p.declareGatewayStatus()
	p.declareListenerSetStatus()
	p.declareRouteStatus(issues)
}

// declareUncounted counts, by listener, the routes without a valid rule. They attach, as
// far as the topology knows, but must not be counted as attached.
func (p *Pipeline) declareUncounted() {
	invalid := flow.Count("invalid-routes", p.rules,
		func(k object.Key, r *routeRules, yield func(object.Key)) {
			if r.invalid {
				yield(k)
			}
		})
	closed := flow.Map("closed-attachments",
		flow.Keys("closed-routes", func(k routeAt, _ overrun, yield func(routeAt)) { yield(k) }, p.overBudget, p.overQuota),
		func(c *flow.Ctx, k routeAt, _ struct{}, emit func(topology.AttachmentKey, struct{})) {
			if rules, ok := flow.Get(c, p.rules, k.Route); !ok || rules.invalid {
				return // not counted already
			}
			for l := range p.attachedTo(c, k.Route) {
				if l.Fleet() == k.Gateway {
					emit(topology.AttachmentKey{Route: k.Route, Listener: l}, struct{}{})
				}
			}
		}, flow.Equal(flow.Same[struct{}]))
	p.uncounted = flow.CountAll("uncounted-routes",
		func(k topology.AttachmentKey, _ struct{}, yield func(topology.ListenerKey)) { yield(k.Listener) },
		closed,
		flow.Map("invalid-attachments", invalid,
			func(c *flow.Ctx, k object.Key, _ int, emit func(topology.AttachmentKey, struct{})) {
				for l := range p.attachedTo(c, k) {
					emit(topology.AttachmentKey{Route: k, Listener: l}, struct{}{})
				}
			}, flow.Equal(flow.Same[struct{}])))
}

// attachedTo returns the listeners that a route is attached to.
func (p *Pipeline) attachedTo(c *flow.Ctx, route object.Key) map[topology.ListenerKey]struct{} {
	all := map[topology.ListenerKey]struct{}{}
	for _, parent := range p.Graph.Parents(c, route) {
		for l := range parent.Attached {
			all[l] = struct{}{}
		}
	}
	return all
}

func (p *Pipeline) declareClassStatus() {
	channel := features.Standard
	if p.Options.Topology.Experimental {
		channel = features.Experimental
	}
	supported := features.Status(channel, p.Options.Mode)
	withoutBundles := slices.DeleteFunc(slices.Clone(supported), func(f gwv1.SupportedFeature) bool {
		return f.Name == gwv1.FeatureName(gwfeatures.SupportClusterTrustBundle)
	})
	p.ClassStatus = flow.Map("class-status", p.Graph.Classes,
		func(c *flow.Ctx, name string, class *topology.Class, emit func(string, *gwv1.GatewayClassStatus)) {
			s := status.Class(class, supported...)
			if _, unread := flow.Get(c, p.Inputs.Unread, kind.ClusterTrustBundle.Name()); unread {
				s = status.Class(class, withoutBundles...)
			}
			emit(name, &s)
		})
}

func (p *Pipeline) declareGatewayStatus() {
	p.GatewayStatus = flow.Map("gateway-status", p.Graph.Gateways,
		func(c *flow.Ctx, name object.Name, gw *topology.Gateway, emit func(object.Name, *gwv1.GatewayStatus)) {
			in := status.GatewayInput{
				Node: gw, AttachedRoutes: p.attachedRoutes(c), Filters: p.filtersOf(c),
			}
			p.locate(c, gw, &in)
			in.Affected = p.Graph.Affected(c, object.Key{Kind: kind.Gateway, Name: name})
			in.AttachedSets, _ = flow.Get(c, p.Graph.AttachedSets, name)
			if hasCertificates(gw.Listeners) {
				in.Now, _ = flow.Get(c, p.clock, struct{}{})
			}
			if state, ok := flow.Get(c, p.proxyStates, gw.Fleet); ok {
				in.Proxy = *state
			}
			if state, ok := p.datapathState(c, name, gw.Listeners); ok {
				in.Proxy = state
			}
			in.Withheld, _ = flow.Get(c, p.withheld, gw.Fleet)
			if of, ok := flow.Get(c, p.patched, gw.Fleet); ok {
				in.Patched = &of
			}
			if wrong, ok := flow.Get(c, p.unextended, gw.Fleet); ok {
				in.Extended = new(condition.GatewayExtended(wrong))
			}
			if p.Children != nil {
				in.Children = p.children(c, gw)
			}
			s := status.Gateway(in)
			emit(name, &s)
		})
}

func (p *Pipeline) declareListenerSetStatus() {
	// What ListenerSets need to know of their Gateways changes far less often than those.
	unreachable := flow.Map("unreachable-gateways", p.Graph.Gateways,
		func(c *flow.Ctx, name object.Name, gw *topology.Gateway, emit func(object.Name, metav1.Condition)) {
			in := status.GatewayInput{Node: gw}
			p.locate(c, gw, &in)
			in.Withheld, _ = flow.Get(c, p.withheld, gw.Fleet)
			if why := status.Unreachable(in); why != nil {
				emit(name, *why)
			}
		}, flow.Equal(flow.Same[metav1.Condition]))
	p.ListenerSetStatus = flow.Map("listener-set-status", p.Graph.ListenerSets,
		func(c *flow.Ctx, name object.Name, set *topology.ListenerSet, emit func(object.Name, *gwv1.ListenerSetStatus)) {
			in := status.ListenerSetInput{Node: set, AttachedRoutes: p.attachedRoutes(c), Filters: p.filtersOf(c), Reader: p.Options.Topology.Reader(name.Namespace)}
			in.Affected = p.Graph.Affected(c, object.Key{Kind: kind.ListenerSet, Name: name})
			if hasCertificates(set.Listeners) {
				in.Now, _ = flow.Get(c, p.clock, struct{}{})
			}
			if state, ok := flow.Get(c, p.proxyStates, set.Gateway); ok {
				in.Proxy = *state
			}
			if p.Options.Topology.Provisioned {
				state, _ := flow.Get(c, p.fleetStates, set.Gateway)
				in.NoProxy = state.Waiting
			}
			if state, ok := p.datapathState(c, set.Gateway, set.Listeners); ok {
				in.Proxy = state
			}
			if why, ok := flow.Get(c, unreachable, set.Gateway); ok {
				in.Unreachable = &why
			}
			s := status.ListenerSet(in)
			emit(name, &s)
		})
}

func (p *Pipeline) declareRouteStatus(issues routeIssues) {
	p.RouteStatus = flow.Map("route-status", p.Graph.Routes,
		func(c *flow.Ctx, k object.Key, r *topology.Route, emit func(object.Key, *gwv1.RouteStatus)) {
			in := status.RouteInput{ControllerName: p.Options.Topology.ControllerName, Node: r}
			in.Parents = p.Graph.Parents(c, k)
			in.Affected = p.Graph.Affected(c, k)
			if rules, ok := flow.Get(c, p.rules, k); ok {
				in.Problems, in.Notes = rules.Problems, rules.Notes
			}
			reader := p.Options.Topology.Reader(k.Namespace)
			if _, ok := flow.Get(c, issues.namespaces, k.Namespace); ok {
				for by, i := range flow.Select(c, issues.byRoute, k).All() {
					in.Problems = append(slices.Clip(in.Problems), i.problems...)
					if i.leftOut != nil {
						in.LeftOut = append(in.LeftOut, status.RouteOmission{Gateway: by.About.Gateway, Omission: *i.leftOut})
					}
					if i.barred != nil {
						in.Barred = append(in.Barred, status.RouteBar{Gateway: by.About.Gateway, Condition: *i.barred})
					}
					for _, s := range i.shadows {
						note := condition.NoteShadowed(s.Rule.Rule, by.About.Name, reader.Object(s.By.Kind.Name(), s.By.Namespace, s.By.Name.Name))
						if s.Path != "" {
							policy := reader.Object(kind.AuthPolicy.Name(), s.Policy.Namespace, s.Policy.Name)
							note = condition.NoteLoginPath(s.Rule.Rule, by.About.Name, s.Path, policy)
						}
						in.Shadowed = append(in.Shadowed, status.RouteShadow{Gateway: by.About.Gateway, Note: note})
					}
					if i.tooCostly != nil {
						in.Closed = append(in.Closed, status.RouteClosed{Gateway: by.About.Gateway, Why: *i.tooCostly})
					}
					if i.refused != nil {
						in.Rejected = append(in.Rejected, status.RouteRejection{
							Gateway: by.About.Gateway, Ref: by.About.Ref, Rejection: *i.refused,
						})
					}
				}
			}
			s := status.Route(in)
			emit(k, &s)
		})
}

// attachedRoutes counts the valid routes on a listener.
func (p *Pipeline) attachedRoutes(c *flow.Ctx) func(topology.ListenerKey) int32 {
	return func(k topology.ListenerKey) int32 {
		n, _ := flow.Get(c, p.Graph.AttachedRoutes, k)
		invalid, _ := flow.Get(c, p.uncounted, k)
		return int32(n - invalid) //nolint:gosec // a count of objects in memory
	}
}

// hasCertificates reports whether a status depends on the time.
func hasCertificates(listeners []*topology.Listener) bool {
	return slices.ContainsFunc(listeners, func(l *topology.Listener) bool { return len(l.Certificates) > 0 })
}

// declareNotices declares what is told of objects that have no status of ours.
func (p *Pipeline) declareNotices() {
	p.notices = flow.Map("classless-gateways", p.Inputs.Gateways,
		func(c *flow.Ctx, k object.Name, gw *gwv1.Gateway, emit func(object.Name, source.Problem)) {
			class := string(gw.Spec.GatewayClassName)
			implicit := p.Options.Topology.ImplicitClass
			if implicit == "" || class == implicit {
				return
			}
			if _, ok := flow.Get(c, p.Inputs.Classes, class); !ok {
				if at, broken := p.brokenClass(c, class); broken {
					emit(k, source.Problem{
						Key: object.Key{Kind: kind.Gateway, Name: k}, Field: "spec.gatewayClassName", Reason: source.Unknown,
						Message: fmt.Sprintf("GatewayClass %s can't be used until the mistake at %s is corrected, so nobody serves this Gateway", class, at),
					})
					return
				}
				emit(k, source.Problem{
					Key:   object.Key{Kind: kind.Gateway, Name: k},
					Field: "spec.gatewayClassName", Reason: source.Unknown,
					Message: fmt.Sprintf("there is no GatewayClass %q, so nobody serves this Gateway; use %q, which needs no object, or define the class with controllerName %s",
						class, implicit, p.Options.Topology.ControllerName),
				})
			}
		})
}
