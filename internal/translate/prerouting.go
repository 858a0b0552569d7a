package translate

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// Prerouting translates the filters that the requests of a listener meet before a route is chosen.
// Where one of them can't do what it says, no request is served, and where that is for what it says, and not for
// what it refers to, the condition tells why.
func Prerouting(filters *topology.ListenerFilters) (*ir.Prerouting, *metav1.Condition) {
	t := translation{}
	out := &ir.Prerouting{}
	for i, f := range filters.Filters {
		if f.Auth == nil {
			t.invalid = true
			continue
		}
		a := t.authOf(onListener(i), f.Auth, &f.Service)
		out.Auth = append(out.Auth, a)
		t.invalid = t.invalid || a.Backend.IsZero()
	}
	if t.invalid {
		out = &ir.Prerouting{Closed: true}
	}
	if len(t.problems) == 0 {
		return out, nil
	}
	bad := condition.ListenerFilterInvalid(t.problems[0].Condition)
	return out, &bad
}
