package topology

import (
	"fmt"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
)

// checkFilters refuses a listener that asks for filters before routing: to serve it
// without them would let requests pass that a filter was to stop (GEP-5224). An
// empty list asks for none.
func (d *draft) checkFilters() {
	if d.spec.Filters == nil || len(d.spec.Filters.Requests) == 0 {
		return
	}
	kind, instead := d.spec.Filters.Requests[0].Type, "remove it"
	if kind == gwv1.ListenerFilterExternalAuth {
		instead = "put it into the rules of routes"
	}
	d.refuse(condition.ListenerUnsupportedValue("filters.requests[0]",
		fmt.Sprintf("filters of type %s are not supported on listeners; %s", kind, instead)))
}
