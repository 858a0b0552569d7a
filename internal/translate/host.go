package translate

import (
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// HostInput is what a host is made of.
type HostInput struct {
	Domain string // exact, *.suffix, or * for everything else
	// Port is the port that clients connect to.
	Port   uint16
	HTTPS  bool // whether clients come by TLS
	Offset int  // by how much all ports of the Gateway are shifted for clients
	// Filters are the host's own, and Around those of the listener in front; nil for
	// none.
	Filters, Around *ir.Filters
	// Prerouting comes before a rule is chosen; nil for nothing.
	Prerouting *ir.Prerouting
	// Misdirected marks a host that another listener owns; it has no entries.
	Misdirected bool
	Entries     []HostEntry // in any order
}

// HostEntry is a route on a host.
type HostEntry struct {
	Route    object.Key
	Hostname string // the route's own, which led to the host; empty for none
	Created  time.Time
	Rules    []*ir.Rule // as Route gives them
}

// Host merges the rules of the routes on a host. Rules are shared with the routes
// but for redirects that the port makes different.
func Host(in HostInput) *ir.Host {
	h := &ir.Host{Domain: in.Domain, Misdirected: in.Misdirected, Filters: in.Filters, Around: in.Around, Prerouting: in.Prerouting}
	switch {
	case in.Misdirected:
	case len(in.Entries) == 1 && ordered(in.Entries[0].Rules):
		h.Rules = in.finished(in.Entries[0].Rules, shared)
	default:
		h.Rules = in.finished(merge(in.Entries), owned)
	}
	h.Shadows = shadows(h.Rules)
	return h
}

// ownership says whether a slice may be written to.
type ownership int

const (
	shared ownership = iota
	owned
)

// finished gives the rules as they are for the host. It copies no more than has to
// differ.
func (in *HostInput) finished(rules []*ir.Rule, may ownership) []*ir.Rule {
	for i, r := range rules {
		done := in.finish(r)
		if done == r {
			continue
		}
		if may == shared {
			rules, may = slices.Clone(rules), owned
		}
		rules[i] = done
	}
	return rules
}

// finish returns the rule with a finished redirect, and with cookies that stay
// with HTTPS where clients come by it; the rule itself where that is what it has.
func (in *HostInput) finish(r *ir.Rule) *ir.Rule {
	switch {
	case r.Redirect != nil:
		if port := in.redirectPort(r.Redirect); port != r.Redirect.Port {
			redirect, rule := *r.Redirect, *r
			redirect.Port, rule.Redirect = port, &redirect
			return &rule
		}
	case in.HTTPS && slices.ContainsFunc(r.Backends, hasCookie):
		rule := *r
		rule.Backends = slices.Clone(r.Backends)
		for i := range rule.Backends {
			if b := &rule.Backends[i]; hasCookie(*b) {
				session := *b.Session
				session.Secure, b.Session = true, &session
			}
		}
		return &rule
	}
	return r
}
