package pipeline

import (
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// partition decides in which route configurations the hosts of a route table live. It is
// the only thing that does: configurations are put together by it, and a proxy's refusal
// of a host leads back by it, so that nothing else may assume that all hosts of a table
// share a configuration.
type partition struct {
	// names yields the names of all configurations of a table, whether or not they have
	// hosts. No two tables of a Gateway share one.
	names func(t ir.TableKey, yield func(string))
	// of yields the names of those that a host lives in.
	of func(h ir.HostKey, yield func(string))
}

// wholeTables keeps each table in one configuration, which has the table's name.
var wholeTables = partition{
	names: func(t ir.TableKey, yield func(string)) { yield(t.Table()) },
	of:    func(h ir.HostKey, yield func(string)) { yield(h.Table()) },
}

// bundleKey names a bundle of a route configuration's hosts.
type bundleKey struct {
	ResourceKey // the configuration
	number      uint8
}

func (k bundleKey) String() string { return fmt.Sprintf("%s#%d", k.ResourceKey, k.number) }

// bundlesPerConfiguration is into how many bundles the hosts of a route configuration
// fall: about the square root of the number of hosts in the largest tables, so
// that neither the bundles of a table nor the hosts of a bundle are many.
const bundlesPerConfiguration = 128

// bundleOf returns the bundle of a route configuration that a domain is in.
func bundleOf(configuration ResourceKey, domain string) bundleKey {
	return bundleKey{configuration, uint8(xxhash.Sum64String(domain) % bundlesPerConfiguration)}
}

// bundles yields the bundles that a host is in, one in each of its configurations.
func (p partition) bundles(h ir.HostKey, yield func(bundleKey)) {
	p.of(h, func(name string) { yield(bundleOf(ResourceKey{h.Gateway(), name}, h.Domain)) })
}
