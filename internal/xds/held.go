package xds

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// HeldState says how a proxy has a resource.
type HeldState string

// The states of a resource in a proxy.
const (
	HeldCurrent  HeldState = "Current"  // it has what it is to have
	HeldSent     HeldState = "Sent"     // it has not answered yet
	HeldRefused  HeldState = "Refused"  // it is without what it is to have, since a proxy has refused that
	HeldWaits    HeldState = "Waits"    // it has not been sent yet what it is to have
	HeldLeftover HeldState = "Leftover" // it is still to be removed
)

// Held is one resource as a proxy has it, by what it has acknowledged.
type Held struct {
	Type    string    `json:"type"`
	Name    string    `json:"name"`
	State   HeldState `json:"state"`
	Has     string    `json:"has,omitempty"`    // version; empty for none
	Wanted  string    `json:"wanted,omitempty"` // likewise
	Message string    `json:"message,omitempty"`
	// Resource is what it has, and WantedResource what it is to have if that is another one. A version of
	// before that no proxy is sent any longer is not known. Keys of secrets are left out.
	Resource       json.RawMessage `json:"resource,omitempty"`
	WantedResource json.RawMessage `json:"wantedResource,omitempty"`

	has, wanted *envoy.Resource
}

// HeldBy lists what a pod's proxy has of the types that it has asked for, sorted; false if it has no session.
func (s *Server) HeldBy(gateway object.Name, pod string) ([]Held, bool) {
	s.mu.Lock()
	g := s.gateways[gateway]
	s.mu.Unlock()
	if g == nil {
		return nil, false
	}
	out, ok := g.heldBy(pod)
	slices.SortFunc(out, func(a, b Held) int { return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name)) })
	return out, ok
}

func (g *gateway) heldBy(pod string) ([]Held, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var of *session
	for session := range g.sessions {
		if session.pod == pod && (of == nil || of.connected.Before(session.connected)) {
			of = session
		}
	}
	if of == nil {
		return nil, false
	}
	return of.held(g.rejected()), true
}

// held lists the resources of the types that the proxy has asked for. The gateway's mutex is held.
func (s *session) held(rejected []Rejected) []Held {
	refusals := map[Ref]string{}
	for _, r := range rejected {
		refusals[r.Ref] = r.Message
	}
	var out []Held
	for t := range s.types {
		y := &s.types[t]
		if !y.started {
			continue
		}
		add := func(name string, e *entry, r *record) {
			ref := Ref{envoy.Type(t), name} //nolint:gosec // an index of the types' array
			h := Held{Type: y.name, Name: name, Has: r.has()}
			var versions []*envoy.Resource
			switch leaving := s.gateway.removals[ref]; {
			case e != nil:
				h.Wanted, h.wanted = e.want.Version, e.want
				versions = []*envoy.Resource{e.want, e.serve(), e.good}
			case leaving != nil:
				versions = []*envoy.Resource{leaving.last}
			case y.empty != nil && r.subscribed: // what it asks for, and is told to be nothing
				h.wanted = y.empty(name)
				h.Wanted, versions = h.wanted.Version, []*envoy.Resource{h.wanted}
			}
			if i := slices.IndexFunc(versions, func(v *envoy.Resource) bool { return v != nil && v.Version == h.Has }); i >= 0 {
				h.has = versions[i]
			}
			switch {
			case h.Has == "" && h.Wanted == "":
				return
			case h.Wanted == "":
				h.State = HeldLeftover
			case h.Has == h.Wanted:
				h.State = HeldCurrent
			case r != nil && r.nonce != 0:
				h.State = HeldSent
			case e != nil && e.quarantine != nil || y.lastNack != nil && slices.Contains(y.lastNack.Names, name):
				h.State = HeldRefused
				if h.Message = refusals[ref]; h.Message == "" && y.lastNack != nil {
					h.Message = y.lastNack.Message
				}
			default:
				h.State = HeldWaits
			}
			out = append(out, h)
		}
		for name, r := range y.records {
			if e := s.gateway.entries[t][name]; e == nil || y.wildcard || r.subscribed {
				add(name, e, r)
			}
		}
		if !y.wildcard {
			continue
		}
		for name, e := range s.gateway.entries[t] {
			if y.records[name] == nil {
				add(name, e, nil)
			}
		}
	}
	return out
}

// Print fills in the resources themselves.
func (h *Held) Print() (err error) {
	if h.has != nil {
		if h.Resource, err = h.has.JSON(); err != nil {
			return err
		}
	}
	if h.wanted != nil && h.Has != h.Wanted {
		h.WantedResource, err = h.wanted.JSON()
	}
	return err
}

// HeldConfig is what one proxy has.
type HeldConfig struct {
	Gateway   string    `json:"gateway"`
	Pod       string    `json:"pod,omitempty"`
	At        time.Time `json:"at"`
	Resources []Held    `json:"resources"`
}
