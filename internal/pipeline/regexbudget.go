package pipeline

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// Envoy compiles each regular expression once for each host that it is on, on its main
// thread, and keeps what it has compiled. The worst instruction costs about 1 KiB and 1 µs
// (test/e2e, TestRegexBudget), so that these limits are about 50 MiB and 50 ms for a route, and
// ten times that for a Gateway.
const (
	// routeRegexBudget is how many instructions a route may have on all hosts of a Gateway.
	routeRegexBudget = 50_000
	// gatewayRegexBudget is how many all routes of a Gateway may have.
	gatewayRegexBudget = 500_000
)

// routeAt is a route on a Gateway.
type routeAt struct {
	Gateway object.Name
	Route   object.Key
}

func (k routeAt) String() string { return k.Route.String() + " at " + k.Gateway.String() }

func (k routeAt) compare(o routeAt) int {
	return cmp.Or(k.Gateway.Compare(o.Gateway), k.Route.Compare(o.Route))
}

// regexShare is what a route has of it.
type regexShare struct {
	program int // instructions on each host
	hosts   int
	created time.Time
}

func (s regexShare) sum() int { return s.program * s.hosts }

// declareRegexBudgets declares which routes have too many instructions. Routes without
// regular expressions cost nothing here.
func (p *Pipeline) declareRegexBudgets() {
	expressive := flow.Count("routes-with-regexes", p.rules,
		func(k object.Key, r *routeRules, yield func(object.Key)) {
			if r.program > 0 {
				yield(k)
			}
		})
	shares := flow.Map("regex-shares", expressive,
		func(c *flow.Ctx, k object.Key, _ int, emit func(routeAt, regexShare)) {
			rules, ok := flow.Get(c, p.rules, k)
			if !ok {
				return
			}
			hosts := map[object.Name]int{}
			for l := range p.attachedTo(c, k) {
				if a, ok := flow.Get(c, p.Graph.Attachments, topology.AttachmentKey{Route: k, Listener: l}); ok {
					n := len(a.Hosts)
					if at, ok := p.Graph.Listener(c, l); ok && len(at.Filters) > 0 {
						n *= envoy.PreroutingCopies
					}
					hosts[l.Fleet()] += n
				}
			}
			for gateway, n := range hosts {
				if n > 0 {
					emit(routeAt{gateway, k}, regexShare{rules.program, n, rules.created})
				}
			}
		}, flow.Equal(flow.Same[regexShare]))
	byGateway := flow.NewIndex(shares,
		func(k routeAt, _ regexShare, yield func(object.Name)) { yield(k.Gateway) }, routeAt.compare)
	budgets := flow.Group("regex-budgets", byGateway,
		func(_ *flow.Ctx, gateway object.Name, members flow.Members[routeAt, regexShare]) (map[routeAt]metav1.Condition, bool) {
			over := overBudget(gateway, members)
			return over, len(over) > 0
		})
	p.overBudget = flow.Map("routes-over-budget", budgets,
		func(_ *flow.Ctx, _ object.Name, over map[routeAt]metav1.Condition, emit func(routeAt, overrun)) {
			for k, why := range over {
				emit(k, overrun{why: why})
			}
		}, flow.Equal(flow.Same[overrun]))
}

// overBudget returns the routes that a Gateway's proxies are not given, and why. The older
// of two routes goes first, so that a new one takes nothing from those that serve.
func overBudget(gateway object.Name, members flow.Members[routeAt, regexShare]) map[routeAt]metav1.Condition {
	type user struct {
		routeAt
		regexShare
	}
	users := make([]user, 0, members.Len())
	for k, s := range members.All() {
		users = append(users, user{k, s})
	}
	slices.SortFunc(users, func(a, b user) int {
		return cmp.Or(a.created.Compare(b.created), a.Route.Name.Compare(b.Route.Name), a.routeAt.compare(b.routeAt))
	})
	over, spent := map[routeAt]metav1.Condition{}, 0
	for _, u := range users {
		switch sum := u.sum(); {
		case sum > routeRegexBudget:
			over[u.routeAt] = condition.RouteOverRegexBudget(gateway.String(), u.program, u.hosts, routeRegexBudget)
		case spent+sum > gatewayRegexBudget:
			over[u.routeAt] = condition.GatewayOverRegexBudget(gateway.String(), sum, spent, gatewayRegexBudget)
		default:
			spent += sum
		}
	}
	return over
}

// within returns the rules of a route at a Gateway: those that refuse all requests where the
// route is over budget or over quota, and false where it isn't there at all.
func (p *Pipeline) within(c *flow.Ctx, gateway object.Name, route object.Key, r *routeRules) ([]*ir.Rule, bool) {
	if r.program > 0 {
		if _, over := flow.Get(c, p.overBudget, routeAt{gateway, route}); over {
			return r.closed, true
		}
	}
	return p.withinQuota(c, gateway, route, r.Rules.Rules)
}

// budgeted completes the rules of a route with what they cost.
func budgeted(r *routeRules) *routeRules {
	for _, rule := range r.Rules.Rules {
		r.program += envoy.Program(rule)
	}
	if r.program == 0 {
		return r
	}
	// What the expressions would match isn't known without them. All that they may match must
	// not pass to a rule behind them.
	for _, rule := range r.Rules.Rules {
		closed := envoy.Closed(rule)
		closed.Match.Wide = true
		r.closed = append(r.closed, closed)
	}
	return r
}
