package xds

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// State is what the proxies of a Gateway have answered to its configuration.
type State struct {
	Connected int `json:"connected"` // sessions

	// Synced is set once a proxy has answered its first whole configuration, and stays set.
	// A resource that was refused does not prevent it.
	Synced bool `json:"synced"`

	// Listeners has the version of each listener that a connected proxy has
	// acknowledged; the wanted one, where proxies differ.
	Listeners map[string]string `json:"listeners"`

	Rejected []Rejected `json:"rejected,omitempty"` // by type, name and part

	// Behind is how many of the sessions have been without the newest configuration for
	// longer than behindAfter, and BehindWhy names one of them and what it lacks.
	Behind    int    `json:"behind,omitempty"`
	BehindWhy string `json:"behindWhy,omitempty"`

	// Refusing says for each revision of a fleet, where there are several, what its proxies refuse; empty is
	// the one of proxies without a revision.
	Refusing map[string]string `json:"refusing,omitempty"`

	// Carried is nil where nothing carries marks, or no proxy serves yet.
	Carried *Carried `json:"carried,omitempty"`

	// OtherForms are the route tables that a proxy had in another form than the one in force when
	// it connected: whole or, with true if that was all that it had of one, in shards. Tables of hosts that it found
	// by their server names are here as well, with true if it had certificates by server names. The proxy waits
	// until an Update.TookForms says the same; they are no longer here then.
	OtherForms map[string]bool `json:"otherForms,omitempty"`
}

// Rejected is a resource, or a part of one, that a proxy has refused.
type Rejected struct {
	Ref
	Part       string // the domain of a virtual host; empty for a whole resource
	Version    string // of what was refused: the resource's, or the part's hash
	Message    string // what the proxy said, bounded and without keys
	ServingOld bool   // the last good version is in force; otherwise there is none
}

// MarshalJSON writes the type by name.
func (r Rejected) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Type       string `json:"type"`
		Name       string `json:"name"`
		Part       string `json:"part,omitempty"`
		Version    string `json:"version"`
		Message    string `json:"message"`
		ServingOld bool   `json:"servingOld"`
	}{r.Type.String(), r.Name, r.Part, r.Version, r.Message, r.ServingOld})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Rejected) UnmarshalJSON(text []byte) error {
	var in struct {
		Type, Name, Part, Version, Message string
		ServingOld                         bool
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	for t := range envoy.NumTypes {
		if t.String() == in.Type {
			*r = Rejected{Ref{t, in.Name}, in.Part, in.Version, in.Message, in.ServingOld}
			return nil
		}
	}
	return fmt.Errorf("a resource of type %q", in.Type)
}

// Silent reports whether no proxy has answered anything.
func (s *State) Silent() bool { return s.Connected == 0 && !s.Synced && len(s.Rejected) == 0 }

func (s *State) equal(o *State) bool {
	return s.Connected == o.Connected && s.Synced == o.Synced && s.Behind == o.Behind && s.BehindWhy == o.BehindWhy &&
		s.Carried.equal(o.Carried) &&
		maps.Equal(s.Refusing, o.Refusing) && maps.Equal(s.Listeners, o.Listeners) && slices.Equal(s.Rejected, o.Rejected) && maps.Equal(s.OtherForms, o.OtherForms)
}

// state computes the Gateway's state; g.mu is held.
func (g *gateway) state() State {
	st := State{
		Connected:  len(g.sessions),
		Synced:     g.synced,
		Listeners:  map[string]string{},
		Rejected:   bound(g.rejected()),
		OtherForms: g.otherForms(),
	}
	g.countBehind(&st)
	g.carried(&st)
	for s := range g.sessions {
		for name, r := range s.each(envoy.Listeners) {
			e := g.entries[envoy.Listeners][name]
			if r.acked != "" && (st.Listeners[name] == "" || e != nil && e.want.Version == r.acked) {
				st.Listeners[name] = r.acked
			}
		}
	}
	return st
}

// rejected lists the quarantine, without hosts that may not be at fault and without
// listeners whose address may become free at once.
func (g *gateway) rejected() []Rejected {
	var out []Rejected
	for ref, e := range g.quarantined {
		q := e.quarantine
		if q.mayPass() {
			continue
		}
		if b := q.bisect; b == nil || b.whole {
			out = append(out, Rejected{
				Ref: ref, Version: e.want.Version, Message: q.message, ServingOld: e.good != nil && !e.closed() && (b == nil || !b.closed),
			})
			continue
		}
		for name, w := range q.bisect.withheld {
			if w.culprit {
				out = append(out, Rejected{
					Ref: ref, Part: name, Version: w.hash.String(), Message: w.message, ServingOld: w.old,
				})
			}
		}
	}
	slices.SortFunc(out, func(a, b Rejected) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name), strings.Compare(a.Part, b.Part))
	})
	return out
}

// A state goes to the leader in one piece, see package replicas. What proxies refuse must
// not make it larger than the leader takes: nothing that any Gateway's proxies say would
// arrive there then.
const (
	maxRejected = 8 << 20 // in bytes, as JSON
	escaped     = 6       // bytes in JSON of the worst character of a message
	fields      = 128     // bytes of an entry beside its texts
)

// bound shortens messages until all entries fit. Those for which there is no room at all
// are left out, the last ones.
func bound(list []Rejected) []Rejected {
	size := func(r *Rejected) int { return fields + len(r.Name) + len(r.Part) + len(r.Version) }
	room := maxRejected
	for i := range list {
		if room -= size(&list[i]); room < 0 {
			return bound(list[:i])
		}
	}
	if len(list) == 0 {
		return list
	}
	each := min(maxMessage, room/len(list)/escaped)
	for i := range list {
		list[i].Message = shortened(list[i].Message, each)
	}
	return list
}

// syncGrace is how long a proxy that has answered everything may take to ask for
// a route table before the table counts as one that it doesn't use.
const syncGrace = time.Second

// checkSynced records that the proxy has answered its whole configuration, if so.
func (s *session) checkSynced(now time.Time) {
	g := s.gateway
	if g.synced || !g.loaded || g.gone || len(s.unanswered) > 0 || g.isBinding() {
		return
	}
	for t := range s.types {
		y := &s.types[t]
		if y.startup && (!y.started || y.owed) || len(y.dirty) > 0 {
			return
		}
	}
	if s.answeredAt.IsZero() {
		s.answeredAt = now
		s.notifyAfter(syncGrace)
	}
	if s.hasUnasked() && now.Sub(s.answeredAt) < syncGrace {
		return
	}
	g.synced = true
	g.server.reports.add(g)
}

// hasUnasked reports whether there are route tables, or others like them, that the proxy has
// not asked for: it asks only when it has what uses them.
func (s *session) hasUnasked() bool {
	for t := range s.types {
		y := &s.types[t]
		if y.usedBy == nil {
			continue
		}
		for name, e := range s.gateway.entries[t] {
			r := s.seen(Ref{envoy.Type(t), name}) //nolint:gosec // an index of the types' array
			if e.quarantine == nil && !e.want.Spare && (r == nil || r.acked == "") {
				return true
			}
		}
	}
	return false
}
