package xds

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// SessionInfo describes a connected proxy.
type SessionInfo struct {
	ID        uint64     `json:"id"`
	Gateway   string     `json:"gateway"`       // namespace/name
	Node      string     `json:"node"`          // what the proxy calls itself, without proof
	Pod       string     `json:"pod,omitempty"` // by its certificate
	Connected time.Time  `json:"connected"`
	Types     []TypeInfo `json:"types"` // those that the proxy has asked for

	// Pending is the number of resources that are to be looked at, sent or
	// removed, Unanswered that of responses without an answer.
	Pending    int `json:"pending"`
	Unanswered int `json:"unanswered"`
	// Lag is the age of the oldest change that the proxy has not answered.
	Lag time.Duration `json:"lagNs"`

	// Wanted and Acknowledged are short hashes of what the proxy is to have and of what it has.
	Wanted       string `json:"wanted"`
	Acknowledged string `json:"acknowledged"`
	// Refuses is what the proxy has refused and is still to have.
	Refuses *Refusal `json:"-"`
	// Refusals says that a proxy of the Gateway has refused something that is still wanted.
	Refusals bool `json:"refusals,omitempty"`
	// Behind says what the proxy has lacked for long, as State.BehindWhy; empty where nothing.
	Behind string `json:"behind,omitempty"`

	CertificateEnds time.Time `json:"certificateEnds,omitzero"` // of the certificate that it has connected with
	Envoy           string    `json:"envoy,omitempty"`          // its version, as it says
}

// TypeInfo describes what a proxy has of one type.
type TypeInfo struct {
	Type      string `json:"type"`
	Wildcard  bool   `json:"wildcard,omitempty"`
	Resources int    `json:"resources"` // that the proxy has or is being sent
	Sent      uint64 `json:"sent"`      // versions sent since it connected
	Acked     uint64 `json:"acked"`     // versions acknowledged since
	Nacks     uint64 `json:"nacks"`     // responses refused since
	LastNack  *Nack  `json:"lastNack,omitempty"`
}

// Nack is a refusal.
type Nack struct {
	At      time.Time         `json:"at"`
	Names   []string          `json:"names,omitempty"` // of those at fault, if the refusal tells
	Message string            `json:"message"`         // bounded, without keys
	parts   map[string]string // of the message, by those at fault
}

// GatewayInfo describes what is served to a Gateway's proxies. It has no bodies,
// hence no secrets.
type GatewayInfo struct {
	Name       string         `json:"name"`   // namespace/name
	Loaded     bool           `json:"loaded"` // its first Update has come
	State      State          `json:"state"`
	Resources  []ResourceInfo `json:"resources"`
	Quarantine []Rejected     `json:"-"` // State's
}

// ResourceInfo describes one resource.
type ResourceInfo struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"` // wanted; empty for one that is being removed
	// Served is the version that proxies are sent, where it is another one: the
	// wanted one is in quarantine, or something may still use what is being removed.
	Served string `json:"served,omitempty"`
}

// Sessions lists the connected proxies by Gateway and age.
func (s *Server) Sessions() []SessionInfo {
	now := time.Now()
	var out []SessionInfo
	for _, g := range s.all() {
		g.mu.Lock()
		rejected := bound(g.rejected())
		refusals := len(g.quarantined) > 0
		sessions := slices.Collect(maps.Keys(g.sessions))
		g.mu.Unlock()
		for _, session := range sessions { // one by one: proxies are not to wait for all of them
			g.mu.Lock()
			if _, there := g.sessions[session]; there {
				info := session.info(now)
				info.Refuses, info.Refusals = session.refuses(rejected), refusals
				out = append(out, info)
			}
			g.mu.Unlock()
		}
	}
	slices.SortFunc(out, func(a, b SessionInfo) int {
		return cmp.Or(strings.Compare(a.Gateway, b.Gateway), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// Gateways lists the known Gateways.
func (s *Server) Gateways() []object.Name {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Keys(s.gateways), object.Name.Compare)
}

// Gateway describes a Gateway; false if it is not known.
func (s *Server) Gateway(name object.Name) (GatewayInfo, bool) {
	all := s.recordsOf(name)
	if len(all) == 0 {
		return GatewayInfo{}, false
	}
	info := GatewayInfo{Name: name.String(), State: s.state(name)}
	info.Quarantine = info.State.Rejected
	g := all[0] // what is wanted is the same for all
	for _, other := range all[1:] {
		if other.connected() > g.connected() {
			g = other
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	info.Loaded = g.loaded
	for t, entries := range g.entries {
		for name, e := range entries {
			r := ResourceInfo{Type: s.types[t].name, Name: name, Version: e.want.Version}
			if served := e.serve(); served == nil {
				r.Served = "none"
			} else if !served.Equal(e.want) {
				r.Served = served.Version
			}
			info.Resources = append(info.Resources, r)
		}
	}
	for ref, l := range g.removals {
		info.Resources = append(info.Resources, ResourceInfo{
			Type: s.nameOf(ref.Type), Name: ref.Name, Served: l.last.Version,
		})
	}
	slices.SortFunc(info.Resources, func(a, b ResourceInfo) int {
		return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name))
	})
	return info, true
}

func (s *Server) all() []*gateway {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*gateway, 0, len(s.gateways))
	for name := range s.gateways {
		out = append(out, s.records(name)...)
	}
	return out
}

// info describes the session; the gateway's mutex is held.
func (s *session) info(now time.Time) SessionInfo {
	i := SessionInfo{
		ID:         s.id,
		Gateway:    s.gateway.name.String(),
		Node:       s.node,
		Pod:        s.pod,
		Connected:  s.connected,
		Pending:    len(s.removing),
		Unanswered: len(s.inflight),

		Behind: s.behind, CertificateEnds: s.certificateEnds, Envoy: s.envoy,
	}
	i.Wanted, i.Acknowledged = s.versions()
	oldest := s.dirty
	for _, f := range s.inflight {
		if oldest.IsZero() || f.since.Before(oldest) {
			oldest = f.since
		}
	}
	if !oldest.IsZero() {
		i.Lag = now.Sub(oldest)
	}
	for t := range s.types {
		y := &s.types[t]
		i.Pending += len(y.dirty)
		if !y.started {
			continue
		}
		info := TypeInfo{
			Type:      y.name,
			Wildcard:  y.wildcard,
			Resources: y.size(),
			Sent:      y.pushed,
			Acked:     y.acked,
			Nacks:     y.nacks,
		}
		if y.lastNack != nil {
			n := *y.lastNack
			n.Names = slices.Clone(n.Names)
			info.LastNack = &n
		}
		i.Types = append(i.Types, info)
	}
	return i
}
