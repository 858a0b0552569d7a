package xds

import "time"

// Fallback is something that proxies have in place of what they are to have, since one of them has refused
// that.
type Fallback struct {
	Gateway string    `json:"gateway"` // namespace/name
	Type    string    `json:"type"`
	Name    string    `json:"name"`
	Part    string    `json:"part,omitempty"` // the domain of a virtual host; empty for a whole resource
	Instead string    `json:"instead"`        // "last good" or "nothing"
	Since   time.Time `json:"since,omitzero"` // when a proxy of this process refused it first
	Objects []string  `json:"objects"`        // that the refused version is made of
	Message string    `json:"message"`        // what the proxy said
}

// Fallbacks lists what proxies have in place of something refused. named says what a refused resource of a
// Gateway is made of.
func (s *Server) Fallbacks(named func(gateway string, r Rejected) []string) []Fallback {
	out := []Fallback{}
	for _, name := range s.Gateways() {
		for _, g := range s.recordsOf(name) {
			for _, f := range g.fallbacks() {
				f.Objects = named(f.Gateway, f.of)
				out = append(out, f.Fallback)
			}
		}
	}
	return out
}

type refusedFallback struct {
	Fallback
	of Rejected
}

func (g *gateway) fallbacks() (out []refusedFallback) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range bound(g.rejected()) {
		f := Fallback{
			Gateway: g.name.String(), Type: g.server.nameOf(r.Type), Name: r.Name, Part: r.Part, Instead: "nothing",
			Since: g.quarantined[r.Ref].quarantine.since, Message: r.Message,
		}
		if r.ServingOld {
			f.Instead = "last good"
		}
		out = append(out, refusedFallback{f, r})
	}
	return out
}
