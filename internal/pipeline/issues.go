package pipeline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/status"
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

// shadowedRules are rules of a route that get no requests for a host.
const shadowedRules status.RefKind = "shadowed"

// overRegexBudget is a route whose regular expressions are too much for a Gateway, and
// overNamespaceQuota one that is more than its namespace may have there.
const (
	overRegexBudget    status.RefKind = "over budget"
	overNamespaceQuota status.RefKind = "over quota"
)

// issueKey is something about a route that came to light behind translation.
type issueKey struct {
	Route object.Key
	About refusal
}

func (k issueKey) String() string { return k.Route.String() + ": " + k.About.String() }

func (k issueKey) compare(o issueKey) int {
	return cmp.Or(k.Route.Compare(o.Route), k.About.compare(o.About))
}

// issue is one of these: rules that Envoy's configuration can't express, a refusal
// by proxies, a part of a backend that they can't be given, a backend that the Gateway's
// routes may not lead to, or a route that costs them too much.
type issue struct {
	barred   *metav1.Condition
	problems []translate.Problem
	refused  *status.Rejection
	leftOut  *condition.Omission
	// tooCostly says why proxies are not given the route.
	tooCostly *metav1.Condition
	// shadows are rules that get no requests, by whose sake.
	shadows []ir.Shadow
}

// routeIssues are the issues of all routes. Routes look for theirs only where their
// namespace has some: every look is remembered, and hardly any finds something.
type routeIssues struct {
	byRoute    *flow.Index[object.Key, issueKey, issue]
	namespaces flow.Table[string, struct{}]
}

// declareIssues declares what comes to light about routes behind translation.
func (p *Pipeline) declareIssues() routeIssues {
	// Few hosts have faults: what has none costs no entry.
	faulty := flow.Fold("faulty-hosts", p.hostParts,
		func(k ir.HostKey, h hostPart, yield func(ir.HostKey)) {
			if h.errors != nil {
				yield(k)
			}
		},
		func(_ hostPart, _ ir.HostKey, h hostPart) hostPart { return h },
		func(_ hostPart, _ ir.HostKey, _ hostPart) hostPart { return hostPart{} })
	inexpressible := flow.Map("inexpressible-rules", faulty,
		func(_ *flow.Ctx, k ir.HostKey, h hostPart, emit func(issueKey, issue)) {
			byRoute := map[object.Key][]translate.Problem{}
			for _, e := range *h.errors {
				route := object.Key{Kind: e.Source.Kind, Name: e.Source.Name}
				byRoute[route] = append(byRoute[route], translate.Inexpressible(e.Source, e.Err))
			}
			host := refusal{k.Gateway(), status.Ref{Kind: inexpressibleHost, Name: k.Domain}, k.Table()}
			for route, problems := range byRoute {
				emit(issueKey{route, host}, issue{problems: problems})
			}
		})
	refused := flow.Map("refused-routes", p.rejected,
		func(c *flow.Ctx, k refusal, r status.Rejection, emit func(issueKey, issue)) {
			routes := p.concerned(c, k)
			namespaces := namespacesOf(routes)
			for route := range routes {
				told := r
				told.Message = p.Options.Topology.Reader(route.Namespace).Words(r.Message, namespaces...)
				emit(issueKey{route, k}, issue{refused: &told})
			}
		})
	left := p.backendProblems()
	byRoute := flow.NewIndex(inexpressible,
		func(k issueKey, _ issue, yield func(object.Key)) { yield(k.Route) }, issueKey.compare)
	byRoute.Also(refused)
	byRoute.Also(left)
	costly, tooMuch := overruns("regex-issues", p.overBudget, overRegexBudget), overruns("quota-issues", p.overQuota, overNamespaceQuota)
	byRoute.Also(costly)
	byRoute.Also(tooMuch)
	shadowed := p.shadowedRules()
	byRoute.Also(shadowed)
	namespaces := flow.Keys("namespaces-with-issues",
		func(k issueKey, _ issue, yield func(string)) { yield(k.Route.Namespace) }, inexpressible, refused, left, costly, tooMuch, shadowed)
	return routeIssues{byRoute, namespaces}
}

// shadowedRules declares the issues of routes with rules that get no requests. As with faults, hosts
// without such rules cost no entry.
func (p *Pipeline) shadowedRules() *flow.Derived[issueKey, issue] {
	some := flow.Fold("hosts-with-shadowed-rules", p.Hosts,
		func(k ir.HostKey, h *ir.Host, yield func(ir.HostKey)) {
			if len(h.Shadows) > 0 {
				yield(k)
			}
		},
		func(_ *ir.Host, _ ir.HostKey, h *ir.Host) *ir.Host { return h },
		func(*ir.Host, ir.HostKey, *ir.Host) *ir.Host { return nil })
	return flow.Map("shadowed-rules", some,
		func(_ *flow.Ctx, k ir.HostKey, h *ir.Host, emit func(issueKey, issue)) {
			byRoute := map[object.Key][]ir.Shadow{}
			for _, s := range h.Shadows {
				byRoute[s.Rule.Route()] = append(byRoute[s.Rule.Route()], s)
			}
			host := refusal{k.Gateway(), status.Ref{Kind: shadowedRules, Name: k.Domain}, k.Table()}
			for route, list := range byRoute {
				emit(issueKey{route, host}, issue{shadows: list})
			}
		})
}

func namespacesOf(routes map[object.Key]bool) []string {
	seen := map[string]bool{}
	for route := range routes {
		seen[route.Namespace] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// backendProblems declares the issues of routes with backends of which a part has
// to be left out. The first of the two tables holds only those backends, so that
// all others cost nothing.
func (p *Pipeline) backendProblems() *flow.Derived[issueKey, issue] {
	incomplete := flow.Count("incomplete-backends", p.Members,
		func(k BackendKey, m Member, yield func(BackendKey)) {
			if odd := m.oddities(); odd.leftOut != nil || odd.barred != nil {
				yield(k)
			}
		})
	return flow.Map("endpoint-problems", incomplete,
		func(c *flow.Ctx, k BackendKey, _ int, emit func(issueKey, issue)) {
			m, ok := flow.Get(c, p.Members, k)
			if !ok {
				return
			}
			about := refusal{Gateway: k.Gateway, Ref: status.Ref{Kind: backendLeftOut, Name: envoy.ClusterName(k.Backend)}}
			odd := m.oddities()
			for route := range p.sentTo(c, k) {
				emit(issueKey{route, about}, issue{leftOut: odd.leftOut, barred: odd.barred})
			}
		})
}

// overruns declares the issues of routes that a Gateway does not serve as they are written.
func overruns(name string, of flow.Table[routeAt, overrun], as status.RefKind) *flow.Derived[issueKey, issue] {
	return flow.Map(name, of,
		func(_ *flow.Ctx, k routeAt, o overrun, emit func(issueKey, issue)) {
			emit(issueKey{k.Route, refusal{Gateway: k.Gateway, Ref: status.Ref{Kind: as}}}, issue{tooCostly: &o.why})
		})
}
