package limits

import (
	"maps"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy/inherited"
)

// MaxCounted is how many rates with counters the RateLimitPolicies of a namespace may have, each
// once whatever its policy is for: proxies keep thousands of counts for each of them, and look
// through all of them at each request that is counted. Those by which all proxies count together
// are among them, with counters and without: a request is described by all of them, and a service
// that is told of too many could judge none. Those of the older policies count.
const MaxCounted = 64

// countedLimit is what a limit costs.
type countedLimit struct {
	rates   int
	created time.Time
}

// Over declares which limits of a namespace are too many.
func Over(policies flow.Table[object.Name, *v1alpha1.RateLimitPolicy]) flow.Table[string, map[inherited.RuleKey]bool] {
	counted := flow.Map("counted-limits", policies,
		func(_ *flow.Ctx, k object.Name, o *v1alpha1.RateLimitPolicy, emit func(inherited.RuleKey, countedLimit)) {
			_, _, limits := layerOf(o)
			for name, l := range limits.Limits {
				if l.Scope == v1alpha1.GlobalScope || l.Cost != nil || len(l.Counters) > 0 {
					emit(inherited.RuleKey{Policy: k, Rule: name}, countedLimit{len(l.Rates), o.CreationTimestamp.Time})
				}
			}
		}, flow.Equal(flow.Same[countedLimit]))
	byNamespace := flow.NewIndex(counted, func(k inherited.RuleKey, _ countedLimit, yield func(string)) { yield(k.Policy.Namespace) }, inherited.RuleKey.Compare)
	return flow.Group("limits-over-bound", byNamespace,
		func(_ *flow.Ctx, _ string, members flow.Members[inherited.RuleKey, countedLimit]) (map[inherited.RuleKey]bool, bool) {
			type entry struct {
				inherited.RuleKey
				countedLimit
			}
			var list []entry
			for k, l := range members.All() {
				list = append(list, entry{k, l})
			}
			slices.SortStableFunc(list, func(a, b entry) int { return a.created.Compare(b.created) })
			taken, over := 0, map[inherited.RuleKey]bool{}
			for _, e := range list {
				if taken+e.rates > MaxCounted {
					over[e.RuleKey] = true
				} else {
					taken += e.rates
				}
			}
			return over, len(over) > 0
		}, flow.Equal(maps.Equal[map[inherited.RuleKey]bool, map[inherited.RuleKey]bool]))
}
