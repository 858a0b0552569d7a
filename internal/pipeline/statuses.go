package pipeline

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwfeatures "sigs.k8s.io/gateway-api/pkg/features"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/features"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/status"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// refusal is something that the proxies of a Gateway refused.
type refusal struct {
	Gateway object.Name
	status.Ref
	Within string // the route configuration of a host, or the route table of an inexpressible one
}

func (k refusal) String() string {
	return fmt.Sprintf("%s: %s %s%s", k.Gateway, k.Kind, k.Within, k.Name)
}

func (k refusal) compare(o refusal) int {
	return cmp.Or(k.Gateway.Compare(o.Gateway), cmp.Compare(k.Kind, o.Kind), cmp.Compare(k.Within, o.Within), cmp.Compare(k.Name, o.Name))
}

// inexpressibleHost keeps what Envoy could not be told apart from what it
// refused, for the same host.
const inexpressibleHost status.RefKind = "inexpressible"

// backendLeftOut keeps what of a backend no proxy can be given apart from its
// refusal.
const backendLeftOut status.RefKind = "left out"

// issueKey is something about a route that came to light behind translation.
type issueKey struct {
	Route object.Key
	About refusal
}

func (k issueKey) String() string { return k.Route.String() + ": " + k.About.String() }

func (k issueKey) compare(o issueKey) int {
	return cmp.Or(k.Route.Compare(o.Route), k.About.compare(o.About))
}

// issue is one of three: rules that Envoy's configuration can't express, a refusal
// by proxies, or a part of a backend that they can't be given.
type issue struct {
	problems []translate.Problem
	refused  *status.Rejection
	leftOut  *condition.Omission
}

// declareStatus declares what people are told.
func (p *Pipeline) declareStatus() {
	// Few hosts have faults: what has none costs no entry.
	faulty := flow.Fold("faulty-hosts", p.hostParts,
		func(k ir.HostKey, h *hostPart, yield func(ir.HostKey)) {
			if len(h.errors) > 0 {
				yield(k)
			}
		},
		func(_ *hostPart, _ ir.HostKey, h *hostPart) *hostPart { return h },
		func(_ *hostPart, _ ir.HostKey, _ *hostPart) *hostPart { return nil })
	inexpressible := flow.Map("inexpressible-rules", faulty,
		func(_ *flow.Ctx, k ir.HostKey, h *hostPart, emit func(issueKey, issue)) {
			byRoute := map[object.Key][]translate.Problem{}
			for _, e := range h.errors {
				route := object.Key{Kind: e.Source.Kind, Name: e.Source.Name}
				byRoute[route] = append(byRoute[route], translate.Inexpressible(e.Source, e.Err))
			}
			host := refusal{k.Gateway, status.Ref{Kind: inexpressibleHost, Name: k.Domain}, k.Table}
			for route, problems := range byRoute {
				emit(issueKey{route, host}, issue{problems: problems})
			}
		})
	refused := flow.Map("refused-routes", p.rejected,
		func(c *flow.Ctx, k refusal, r status.Rejection, emit func(issueKey, issue)) {
			for route := range p.concerned(c, k) {
				emit(issueKey{route, k}, issue{refused: &r})
			}
		})
	left := p.backendProblems()
	issues := flow.NewIndex(inexpressible,
		func(k issueKey, _ issue, yield func(object.Key)) { yield(k.Route) }, issueKey.compare)
	issues.Also(refused)
	issues.Also(left)
	// Routes look for issues only where their namespace has some: every look is
	// remembered, and hardly any finds something.
	troubled := flow.Keys("namespaces-with-issues",
		func(k issueKey, _ issue, yield func(string)) { yield(k.Route.Namespace) }, inexpressible, refused, left)

	// Routes without a valid rule attach, as far as the topology knows, but must
	// not be counted as attached.
	invalid := flow.Count("invalid-routes", p.rules,
		func(k object.Key, r *routeRules, yield func(object.Key)) {
			if r.invalid {
				yield(k)
			}
		})
	p.uncounted = flow.Count("uncounted-routes",
		flow.Map("invalid-attachments", invalid,
			func(c *flow.Ctx, k object.Key, _ int, emit func(topology.AttachmentKey, struct{})) {
				parents := p.Graph.Parents(c, k)
				seen := map[topology.ListenerKey]bool{}
				for _, parent := range parents {
					for l := range parent.Attached {
						if !seen[l] {
							seen[l] = true
							emit(topology.AttachmentKey{Route: k, Listener: l}, struct{}{})
						}
					}
				}
			}, flow.Equal(flow.Same[struct{}])),
		func(k topology.AttachmentKey, _ struct{}, yield func(topology.ListenerKey)) { yield(k.Listener) })

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
			if _, unread := flow.Get(c, p.Inputs.Unread, "ClusterTrustBundle"); unread {
				s = status.Class(class, withoutBundles...)
			}
			emit(name, &s)
		})

	p.GatewayStatus = flow.Map("gateway-status", p.Graph.Gateways,
		func(c *flow.Ctx, name object.Name, gw *topology.Gateway, emit func(object.Name, *gwv1.GatewayStatus)) {
			in := status.GatewayInput{
				Node: gw, AttachedRoutes: p.attachedRoutes(c),
			}
			p.locate(c, gw, &in)
			in.AttachedSets, _ = flow.Get(c, p.Graph.AttachedSets, name)
			if hasCertificates(gw.Listeners) {
				in.Now, _ = flow.Get(c, p.clock, struct{}{})
			}
			if state, ok := flow.Get(c, p.proxies, name); ok {
				in.Proxy = *state
			}
			s := status.Gateway(in)
			emit(name, &s)
		})

	// What ListenerSets need to know of their Gateways changes far less often than those.
	unreachable := flow.Map("unreachable-gateways", p.Graph.Gateways,
		func(c *flow.Ctx, name object.Name, gw *topology.Gateway, emit func(object.Name, metav1.Condition)) {
			in := status.GatewayInput{Node: gw}
			p.locate(c, gw, &in)
			if why := status.Unreachable(in); why != nil {
				emit(name, *why)
			}
		}, flow.Equal(flow.Same[metav1.Condition]))
	p.ListenerSetStatus = flow.Map("listener-set-status", p.Graph.ListenerSets,
		func(c *flow.Ctx, name object.Name, set *topology.ListenerSet, emit func(object.Name, *gwv1.ListenerSetStatus)) {
			in := status.ListenerSetInput{Node: set, AttachedRoutes: p.attachedRoutes(c)}
			if hasCertificates(set.Listeners) {
				in.Now, _ = flow.Get(c, p.clock, struct{}{})
			}
			if state, ok := flow.Get(c, p.proxies, set.Gateway); ok {
				in.Proxy = *state
			}
			if p.Options.Topology.Provisioned {
				state, _ := flow.Get(c, p.fleetStates, set.Gateway)
				in.NoProxy = state.Waiting
			}
			if why, ok := flow.Get(c, unreachable, set.Gateway); ok {
				in.Unreachable = &why
			}
			s := status.ListenerSet(in)
			emit(name, &s)
		})

	p.RouteStatus = flow.Map("route-status", p.Graph.Routes,
		func(c *flow.Ctx, k object.Key, r *topology.Route, emit func(object.Key, *gwv1.RouteStatus)) {
			in := status.RouteInput{ControllerName: p.Options.Topology.ControllerName, Node: r}
			in.Parents = p.Graph.Parents(c, k)
			if rules, ok := flow.Get(c, p.rules, k); ok {
				in.Problems = rules.Problems
			}
			if _, ok := flow.Get(c, troubled, k.Namespace); ok {
				for by, i := range flow.Select(c, issues, k).All() {
					in.Problems = append(slices.Clip(in.Problems), i.problems...)
					if i.leftOut != nil {
						in.LeftOut = append(in.LeftOut, status.RouteOmission{Gateway: by.About.Gateway, Omission: *i.leftOut})
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

// backendProblems declares the issues of routes with backends of which a part has
// to be left out. The first of the two tables holds only those backends, so that
// all others cost nothing.
func (p *Pipeline) backendProblems() *flow.Derived[issueKey, issue] {
	incomplete := flow.Count("incomplete-backends", p.Members,
		func(k BackendKey, m Member, yield func(BackendKey)) {
			if m.leftOut != nil {
				yield(k)
			}
		})
	return flow.Map("endpoint-problems", incomplete,
		func(c *flow.Ctx, k BackendKey, _ int, emit func(issueKey, issue)) {
			m, ok := flow.Get(c, p.Members, k)
			if !ok {
				return
			}
			about := refusal{Gateway: k.Gateway, Ref: status.Ref{Kind: backendLeftOut, Name: m.Cluster.Name}}
			for route := range p.sentTo(c, k) {
				emit(issueKey{route, about}, issue{leftOut: m.leftOut})
			}
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
				emit(k, source.Problem{
					Key:   object.Key{Kind: kind.Gateway, Name: object.Name{Namespace: k.Namespace, Name: k.Name}},
					Field: "spec.gatewayClassName", Reason: source.Unknown,
					Message: fmt.Sprintf("there is no GatewayClass %q, so nobody serves this Gateway; use %q, which needs no object, or define the class with controllerName %s",
						class, implicit, p.Options.Topology.ControllerName),
				})
			}
		})
}
