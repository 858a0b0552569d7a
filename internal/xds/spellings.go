package xds

import (
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// A proxy asks for a certificate by the server name that a client has sent, as the client spells it. The names
// of hosts are in lower case: other spellings of one get its certificate under the name asked for. There are
// more of them than anybody has memory for, and it is clients who choose. So a proxy keeps the newest, and
// is told to remove the oldest when there is one more, which it asks for again when a client comes with it:
// however many a client makes up, nobody else is refused.

// maxSpellings is how many a proxy keeps, of all hosts together. Each takes about 30 kB there.
const maxSpellings = 256

// spellings are the names that a proxy has asked for in another spelling than that of a host.
type spellings struct {
	order []string            // oldest first
	of    map[string][]string // by the host
}

// hostOf returns a name in the spelling of hosts.
func hostOf(name string) string {
	lower := []byte(name)
	for i, c := range lower {
		if 'A' <= c && c <= 'Z' {
			lower[i] = c + 'a' - 'A'
		}
	}
	return string(lower)
}

// add notes a name, and returns the one that it is in place of; empty for none.
func (n *spellings) add(name string) (oldest string) {
	host := hostOf(name)
	if name == host || slices.Contains(n.of[host], name) {
		return ""
	}
	if len(n.order) >= maxSpellings {
		oldest = n.order[0]
		n.remove(oldest)
	}
	if n.of == nil {
		n.of = map[string][]string{}
	}
	n.of[host] = append(n.of[host], name)
	n.order = append(n.order, name)
	return oldest
}

func (n *spellings) remove(name string) {
	host := hostOf(name)
	i := slices.Index(n.of[host], name)
	if i < 0 {
		return
	}
	if n.of[host] = slices.Delete(n.of[host], i, i+1); len(n.of[host]) == 0 {
		delete(n.of, host)
	}
	i = slices.Index(n.order, name)
	n.order = slices.Delete(n.order, i, i+1)
}

// noteSpelling notes the name by which a proxy asks for something of a type.
func (s *session) noteSpelling(ref Ref) {
	y := &s.types[ref.Type]
	if y.clientNames == nil || !y.clientNames(ref.Name) || s.gateway.entries[ref.Type][ref.Name] != nil {
		return
	}
	if oldest := y.spelled.add(ref.Name); oldest != "" {
		s.unsubscribeFrom(Ref{ref.Type, oldest})
		y.deny(oldest)
	}
}

// markSpellings marks what a proxy has under other spellings of a name.
func (s *session) markSpellings(ref Ref, now time.Time) {
	for _, name := range s.types[ref.Type].spelled.of[ref.Name] {
		other := Ref{ref.Type, name}
		delete(s.refused, other)
		s.mark(other, changed, now)
	}
}

// spelled returns what a name stands for in another spelling than it has, if proxies may ask for it so.
func (g *gateway) spelled(ref Ref) (r *envoy.Resource, exists bool) {
	host, clientNames := hostOf(ref.Name), g.server.types[ref.Type].clientNames
	if clientNames == nil || !clientNames(ref.Name) || host == ref.Name {
		return nil, false
	}
	if r, exists = g.target(Ref{ref.Type, host}); r != nil {
		r = r.Spelled(ref.Name)
	}
	return r, exists
}

// unspelled returns the host's resource for one that a proxy was sent by another spelling of its name: who
// takes or refuses the one takes or refuses the other.
func (g *gateway) unspelled(r *envoy.Resource) *envoy.Resource {
	ref := Ref{r.Type, r.Name}
	if g.entries[r.Type][r.Name] != nil {
		return r
	}
	if now, _ := g.spelled(ref); now == nil || !now.EqualBytes(r) {
		return r // the host has gone or has another one since
	}
	of, _ := g.target(Ref{r.Type, hostOf(r.Name)})
	return of
}
