package translate

import (
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// OnDemand returns the chains of a listener that could have their certificate on demand, by index. A proxy
// finds the certificate and the routes of such a host by its name alone, and lists it nowhere: so it is an
// exact name, with one certificate, none of the port's wildcards has it inside, and its TLS settings are those
// of all others. HTTP/3 is said in each answer, which only some hosts may do.
func OnDemand(l *ir.Listener) []int {
	if l.UDP || !l.TLS {
		return nil
	}
	wildcards := map[string]bool{}
	for i := range l.Chains {
		if h := l.Chains[i].Hostname; h == "" {
			return nil
		} else if strings.HasPrefix(h, "*") {
			wildcards[h] = true
		}
	}
	covered := func(hostname string) bool {
		for h := hostname; len(wildcards) > 0 && h != ""; {
			if h = topology.Wider(h); wildcards[h] {
				return true
			}
		}
		return false
	}
	var out []int
	for i := range l.Chains {
		c := &l.Chains[i]
		if IsExact(c) && len(c.TLS.Certificates) == 1 && c.TLS.MinVersion == "" && !c.HTTP3 && !covered(c.Hostname) &&
			(len(out) == 0 || sameClients(c.TLS.Clients, l.Chains[out[0]].TLS.Clients)) {
			out = append(out, i)
		}
	}
	return out
}

// IsExact reports whether a chain terminates TLS for the requests of one host.
func IsExact(c *ir.Chain) bool {
	return c.TLS != nil && c.Table != "" && c.Hostname != "" && !strings.HasPrefix(c.Hostname, "*")
}

// sameClients reports whether certificates of clients are checked alike.
func sameClients(a, b *ir.Clients) bool { return a == b || a != nil && b != nil && *a == *b }
