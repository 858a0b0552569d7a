package envoy

import (
	"fmt"
	"net/http"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// RouteTable puts a RouteConfiguration together from its hosts, sorted by name.
func RouteTable(name string, parts []*Part) *Resource {
	r, _ := BundledRouteTable(name, nil, []*Bundle{NewBundle(parts)})
	return r
}

// BundledRouteTable puts a RouteConfiguration together from bundles of its hosts, with
// the filters of the listener in front of them; nil for none. It costs nothing that
// grows with the hosts. Where the filters can't be given to Envoy, no request may pass
// without them: every one is answered with 500, and the error says why.
func BundledRouteTable(name string, around *ir.Filters, bundles []*Bundle) (*Resource, error) {
	m := tableHead(name)
	if err := setTableFilters(m, around); err != nil {
		return closedTable(name), fmt.Errorf("route table %q: %w", name, err)
	}
	if changesHeaders(around) || slices.ContainsFunc(bundles, func(b *Bundle) bool { return b.headers }) {
		m.MostSpecificHeaderMutationsWins = true
	}
	head, err := marshal(m)
	if err != nil {
		return closedTable(name), fmt.Errorf("route table %q: %w", name, err)
	}
	return newBundled(Routes, name, head, bundles).Guarded(guardOf(m.TypedPerFilterConfig)), nil
}

// EmptyRoutes answers a subscription to a table that does not exist: every
// request gets 404. Saying that it does not exist would leave the listener
// waiting for it for ever.
func EmptyRoutes(name string) *Resource { return plainTable(tableHead(name)) }

// closedTable answers every request with 500.
func closedTable(name string) *Resource {
	m := tableHead(name)
	m.VirtualHosts = []*routev3.VirtualHost{{
		Name: "*", Domains: []string{"*"},
		Routes: []*routev3.Route{{Match: everything(), Action: direct(http.StatusInternalServerError)}},
	}}
	return plainTable(m)
}

// plainTable marshals a table of which only the name varies. Names are ours, so nothing
// can be wrong with it.
func plainTable(m *routev3.RouteConfiguration) *Resource {
	r, err := resource(Routes, m.Name, m)
	if err != nil {
		panic(fmt.Sprintf("envoy: route table %q: %v", m.Name, err))
	}
	return r
}

// tableHead is what all hosts of a table share.
func tableHead(name string) *routev3.RouteConfiguration {
	return &routev3.RouteConfiguration{
		Name: name,
		// The Gateway API compares hostnames without their port. Unlike
		// stripping, this leaves the Host header as the client sent it, from
		// which backends build absolute URLs.
		IgnorePortInHostMatching: true,
	}
}
