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

// LoadedState says how a proxy has a resource.
type LoadedState string

// The states of a resource in a proxy.
const (
	LoadedCurrent  LoadedState = "Current"  // it has what it is to have
	LoadedSent     LoadedState = "Sent"     // it has not answered yet
	LoadedRefused  LoadedState = "Refused"  // it is without what it is to have, since a proxy has refused that
	LoadedWaits    LoadedState = "Waits"    // it has not been sent yet what it is to have
	LoadedLeftover LoadedState = "Leftover" // it is still to be removed
)

// Loaded is one resource as a proxy has it, by what it has acknowledged.
type Loaded struct {
	Type    string      `json:"type"`
	Name    string      `json:"name"`
	State   LoadedState `json:"state"`
	Has     string      `json:"has,omitempty"`    // version; empty for none
	Wanted  string      `json:"wanted,omitempty"` // likewise
	Message string      `json:"message,omitempty"`
	// Resource is what it has, and WantedResource what it is to have if that is another one. A version of
	// before that no proxy is sent any longer is not known. Keys of secrets are left out.
	Resource       json.RawMessage `json:"resource,omitempty"`
	WantedResource json.RawMessage `json:"wantedResource,omitempty"`

	has, wanted *envoy.Resource
}

// LoadedBy lists what a pod's proxy has of the types that it has asked for, sorted; false if it has no session.
func (s *Server) LoadedBy(gateway object.Name, pod string) ([]Loaded, bool) {
	for _, g := range s.recordsOf(gateway) {
		if out, ok := g.loadedBy(pod); ok {
			slices.SortFunc(out, func(a, b Loaded) int { return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name)) })
			return out, true
		}
	}
	return nil, false
}

func (g *gateway) loadedBy(pod string) ([]Loaded, bool) {
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
	return of.loaded(g.rejected()), true
}

// loaded lists the resources of the types that the proxy has asked for. The gateway's mutex is held.
func (s *session) loaded(rejected []Rejected) []Loaded {
	refusals := map[Ref]string{}
	for _, r := range rejected {
		refusals[r.Ref] = r.Message
	}
	var out []Loaded
	for t := range s.types {
		y := &s.types[t]
		if !y.started {
			continue
		}
		add := func(name string, e *entry, r *record) {
			ref := Ref{envoy.Type(t), name} //nolint:gosec // an index of the types' array
			h := Loaded{Type: y.name, Name: name, Has: r.has()}
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
				h.State = LoadedLeftover
			case h.Has == h.Wanted:
				h.State = LoadedCurrent
			case r != nil && r.nonce != 0:
				h.State = LoadedSent
			case e != nil && e.quarantine != nil || y.lastNack != nil && slices.Contains(y.lastNack.Names, name):
				h.State = LoadedRefused
				if h.Message = refusals[ref]; h.Message == "" && y.lastNack != nil {
					h.Message = y.lastNack.Message
				}
			default:
				h.State = LoadedWaits
			}
			out = append(out, h)
		}
		for name, r := range s.each(envoy.Type(t)) { //nolint:gosec // an index of the types' array
			if e := s.gateway.entries[t][name]; e == nil || y.wildcard || r.subscribed {
				add(name, e, r)
			}
		}
		if !y.wildcard {
			continue
		}
		for name, e := range s.gateway.entries[t] {
			if s.seen(Ref{envoy.Type(t), name}) == nil { //nolint:gosec // an index of the types' array
				add(name, e, nil)
			}
		}
	}
	return out
}

// Print fills in the resources themselves.
func (h *Loaded) Print() (err error) {
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

// LoadedConfig is what one proxy has.
type LoadedConfig struct {
	Gateway   string    `json:"gateway"`
	Pod       string    `json:"pod,omitempty"`
	At        time.Time `json:"at"`
	Resources []Loaded  `json:"resources"`
}
