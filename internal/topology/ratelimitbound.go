package topology

import (
	"maps"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// maxCounted is how many rates with counters the RateLimitPolicies of a namespace may have, each
// as often as its policy has targets: proxies keep thousands of counts for each of them, and look
// through all of them at each request that is counted. Those of the older policies count.
const maxCounted = 64

// limitName names a limit of a policy.
type limitName struct {
	Policy object.Name
	Limit  string
}

func (k limitName) String() string { return k.Policy.String() + " " + k.Limit }

func (k limitName) compare(o limitName) int {
	return wish{k.Policy, k.Limit}.compare(wish{o.Policy, o.Limit})
}

// countedLimit is what a limit costs.
type countedLimit struct {
	rates   int
	created time.Time
}

// declareCounted declares which limits of a namespace are too many.
func (g *Graph) declareCounted() {
	counted := flow.Map("counted-limits", g.in.RateLimitPolicies,
		func(_ *flow.Ctx, k object.Name, o *v1alpha1.RateLimitPolicy, emit func(limitName, countedLimit)) {
			_, _, limits := rateLimits(o)
			for name, l := range limits.Limits {
				if len(l.Counters) > 0 {
					emit(limitName{k, name}, countedLimit{len(l.Rates) * len(o.Spec.TargetRefs), o.CreationTimestamp.Time})
				}
			}
		}, flow.Equal(flow.Same[countedLimit]))
	byNamespace := flow.NewIndex(counted, func(k limitName, _ countedLimit, yield func(string)) { yield(k.Policy.Namespace) }, limitName.compare)
	g.limitsOver = flow.Group("limits-over-bound", byNamespace,
		func(_ *flow.Ctx, _ string, members flow.Members[limitName, countedLimit]) (map[limitName]bool, bool) {
			type entry struct {
				limitName
				countedLimit
			}
			var list []entry
			for k, l := range members.All() {
				list = append(list, entry{k, l})
			}
			slices.SortStableFunc(list, func(a, b entry) int { return a.created.Compare(b.created) })
			taken, over := 0, map[limitName]bool{}
			for _, e := range list {
				if taken+e.rates > maxCounted {
					over[e.limitName] = true
				} else {
					taken += e.rates
				}
			}
			return over, len(over) > 0
		}, flow.Equal(maps.Equal[map[limitName]bool, map[limitName]bool]))
}
