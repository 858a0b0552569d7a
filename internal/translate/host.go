package translate

import (
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// HostInput is what a host is made of.
type HostInput struct {
	Domain string // exact, *.suffix, or * for everything else
	// Port is the port that clients connect to: the listener's plus Offset.
	Port   uint16
	HTTPS  bool // whether clients come by TLS
	Offset int  // by how much all ports of the Gateway are shifted
	// Misdirected marks a host that another listener owns; it has no entries.
	Misdirected bool
	Entries     []HostEntry // in any order
}

// HostEntry is a route on a host.
type HostEntry struct {
	Route    topology.RouteKey
	Hostname string // the route's own, which led to the host; empty for none
	Created  time.Time
	Rules    []*ir.Rule // as Route gives them
}

// Host merges the rules of the routes on a host. Rules are shared with the routes
// but for redirects that the port makes different.
func Host(in HostInput) *ir.Host {
	h := &ir.Host{Domain: in.Domain, Misdirected: in.Misdirected}
	switch {
	case in.Misdirected:
	case len(in.Entries) == 1 && ordered(in.Entries[0].Rules):
		h.Rules = in.finished(in.Entries[0].Rules, shared)
	default:
		h.Rules = in.finished(merge(in.Entries), owned)
	}
	return h
}

// ownership says whether a slice may be written to.
type ownership int

const (
	shared ownership = iota
	owned
)

// finished gives the rules with finished redirects. It copies no more than has to
// differ.
func (in *HostInput) finished(rules []*ir.Rule, may ownership) []*ir.Rule {
	for i, r := range rules {
		if r.Redirect == nil {
			continue
		}
		port := in.redirectPort(r.Redirect)
		if port == r.Redirect.Port {
			continue
		}
		if may == shared {
			rules, may = slices.Clone(rules), owned
		}
		redirect, rule := *r.Redirect, *r
		redirect.Port, rule.Redirect = port, &redirect
		rules[i] = &rule
	}
	return rules
}
