package translate

import (
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// FitsOnDemand reports whether a proxy can ask for the certificate of a chain when a client names the
// host. It finds the certificate and the routes by the name alone then, and lists it nowhere: so that is an
// exact name, with one certificate, and its TLS settings are those of all others. HTTP/3 is said in
// each answer, which only some hosts may do.
func FitsOnDemand(c *ir.Chain) bool {
	return IsExact(c) && len(c.TLS.Certificates) == 1 && c.TLS.MinVersion == "" && !c.HTTP3
}

// IsExact reports whether a chain terminates TLS for the requests of one host.
func IsExact(c *ir.Chain) bool { return c.TLS != nil && c.Table != "" && !IsWide(c) }

// IsWide reports whether a chain is for more than one host.
func IsWide(c *ir.Chain) bool { return c.Hostname == "" || strings.HasPrefix(c.Hostname, "*") }

// IsWithin reports whether one of some sorted hostnames for more than one host has a hostname inside.
func IsWithin(hostname string, wide []string) bool {
	for h := hostname; len(wide) > 0 && h != ""; {
		h = topology.Wider(h)
		if _, in := slices.BinarySearch(wide, h); in {
			return true
		}
	}
	return false
}

// OnDemand is the chain of all hosts whose certificates a proxy asks for, and whose clients are asked
// for certificates alike.
func OnDemand(clients *ir.Clients) ir.Chain {
	return ir.Chain{OnDemand: true, TLS: &ir.TLS{Clients: clients}}
}
