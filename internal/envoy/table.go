package envoy

import (
	"fmt"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// RouteTable puts a RouteConfiguration together from its hosts, sorted by name.
func RouteTable(name string, parts []*Part) *Resource {
	return BundledRouteTable(name, []*Bundle{NewBundle(parts)})
}

// BundledRouteTable puts a RouteConfiguration together from bundles of its hosts.
// It costs nothing that grows with the hosts.
func BundledRouteTable(name string, bundles []*Bundle) *Resource {
	return newBundled(Routes, name, tableHead(name), bundles)
}

// EmptyRoutes answers a subscription to a table that does not exist: every
// request gets 404. Saying that it does not exist would leave the listener
// waiting for it for ever.
func EmptyRoutes(name string) *Resource {
	return NewResource(Routes, name, tableHead(name))
}

// tableHead marshals the fields that all hosts of a table share. A name is all
// that varies, and names are ours, so nothing can be wrong with it.
func tableHead(name string) []byte {
	b, err := marshal(&routev3.RouteConfiguration{
		Name: name,
		// The Gateway API compares hostnames without their port. Unlike
		// stripping, this leaves the Host header as the client sent it, from
		// which backends build absolute URLs.
		IgnorePortInHostMatching: true,
	})
	if err != nil {
		panic(fmt.Sprintf("envoy: route table %q: %v", name, err))
	}
	return b
}
