package envoy

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// RouteTable puts a RouteConfiguration together from its hosts, sorted by name.
func RouteTable(name string, parts []*Part) *Resource {
	r, _ := BundledRouteTable(name, nil, []*Bundle{NewBundle(parts)})
	return r
}

// Around is what the filters of a listener are to its route tables, of which there may be many.
type Around struct {
	fields  []byte // of a RouteConfiguration
	headers bool   // they change headers
	guard   Guard
	err     error // they can't be given to Envoy
}

// Equal reports whether tables are the same with the one as with the other.
func (a *Around) Equal(o *Around) bool {
	if a == o {
		return true
	}
	return a.err == nil && o.err == nil && a.headers == o.headers && bytes.Equal(a.fields, o.fields) && slices.Equal(a.guard, o.guard)
}

// AroundTables prepares the filters of a listener, nil for none, for a route table. All clients of
// the listener are verified, or need not be.
func AroundTables(f *ir.Filters, verified bool) *Around {
	return aroundTables(f, verified, func(*routev3.RouteConfiguration) error { return nil })
}

// AroundShards prepares the filters of a listener, nil for none, for the shards of a route table.
// Who may pass stands beside them, see TableAccess.
func AroundShards(table string, f *ir.Filters, verified bool) *Around {
	if !guardsTable(f) {
		return AroundTables(f, verified)
	}
	others := *f
	others.Access = nil
	return aroundTables(&others, verified, func(m *routev3.RouteConfiguration) error { return setShardAccess(m, table, f.Access) })
}

func aroundTables(f *ir.Filters, verified bool, more func(*routev3.RouteConfiguration) error) *Around {
	m := &routev3.RouteConfiguration{}
	a := &Around{headers: changesHeaders(f)}
	if a.err = setTableFilters(m, f); a.err != nil {
		return a
	}
	if a.err = more(m); a.err != nil {
		return a
	}
	a.guard = guardOf(m.TypedPerFilterConfig) // listeners have the guard that certificates are
	if verified {
		if a.err = demandVerified(m); a.err != nil {
			return a
		}
	}
	a.fields, a.err = marshal(m)
	return a
}

// BundledRouteTable puts a RouteConfiguration together from bundles of its hosts, with
// the filters of the listener in front of them; nil for none. It costs nothing that
// grows with the hosts. Where the filters can't be given to Envoy, no request may pass
// without them: every one is answered with 500, and the error says why.
func BundledRouteTable(name string, around *Around, bundles []*Bundle) (*Resource, error) {
	if around == nil {
		around = &Around{}
	}
	m := tableHead(name)
	m.MostSpecificHeaderMutationsWins = around.headers || slices.ContainsFunc(bundles, func(b *Bundle) bool { return b.headers })
	head, err := marshal(m)
	if err = cmp.Or(around.err, err); err != nil {
		return closedTable(name), fmt.Errorf("route table %q: %w", name, err)
	}
	return newBundled(Routes, name, append(head, around.fields...), bundles).Guarded(around.guard), nil
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
		// 4 KiB by default. What is too large is refused before.
		MaxDirectResponseBodySizeBytes: wrapperspb.UInt32(ir.MaxBody),
	}
}
