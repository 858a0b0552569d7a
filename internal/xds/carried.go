package xds

import (
	"cmp"
	"maps"
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// Carried is which of the marks on a Gateway's resources its proxies have in force, as what
// carries them says: see envoy.Resource.Carrying.
type Carried struct {
	// Proxies are those that have had a whole configuration. A new one serves nobody before.
	Proxies int `json:"proxies"`
	// Marks are those on the wanted resources, sorted; none without Proxies.
	Marks []uint64 `json:"marks"`
	// Lacking has those that not all Proxies have, with how many don't.
	Lacking map[uint64]int `json:"lacking,omitempty"`
}

func (c *Carried) equal(o *Carried) bool {
	if c == nil || o == nil {
		return c == o
	}
	return c.Proxies == o.Proxies && slices.Equal(c.Marks, o.Marks) && maps.Equal(c.Lacking, o.Lacking)
}

// merge joins what the proxies of two servers have. A mark that one of them doesn't know is
// one that its proxies lack.
func (c *Carried) merge(o *Carried) *Carried {
	if c == nil || o == nil {
		return cmp.Or(c, o)
	}
	out := &Carried{Proxies: c.Proxies + o.Proxies, Marks: c.Marks, Lacking: map[uint64]int{}}
	for m, n := range c.Lacking {
		out.Lacking[m] += n
	}
	for m, n := range o.Lacking {
		out.Lacking[m] += n
	}
	if !slices.Equal(c.Marks, o.Marks) {
		out.Marks = union(c.Marks, o.Marks)
		for _, m := range without(out.Marks, &c.Marks) {
			out.Lacking[m] += c.Proxies
		}
		for _, m := range without(out.Marks, &o.Marks) {
			out.Lacking[m] += o.Proxies
		}
	}
	if len(out.Lacking) == 0 {
		out.Lacking = nil
	}
	return out
}

// carriedTypes are those of the resources that may carry marks.
var carriedTypes = [...]envoy.Type{envoy.Extensions, envoy.Routes}

// carried adds to a state which marks proxies have; g.mu is held. It costs nothing that grows
// with the marks unless a proxy lacks some.
func (g *gateway) carried(st *State) {
	var all []*[]uint64
	for _, t := range carriedTypes {
		for _, e := range g.entries[t] {
			if marks := e.want.Carries(); marks != nil && !slices.Contains(all, marks) {
				all = append(all, marks)
			}
		}
	}
	if len(all) == 0 {
		return
	}
	out := &Carried{Lacking: map[uint64]int{}}
	for s := range g.sessions {
		if s.serves() {
			out.Proxies++
			s.lacks(out.Lacking)
		}
	}
	if out.Proxies == 0 {
		return
	}
	out.Marks = *all[0]
	for _, more := range all[1:] {
		out.Marks = union(out.Marks, *more)
	}
	if len(out.Lacking) == 0 {
		out.Lacking = nil
	}
	st.Carried = out
}

func union(a, b []uint64) []uint64 {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// serves reports whether the proxy has had something in force that carries marks, or should
// long have had it.
func (s *session) serves() bool {
	if s.behind != "" {
		return true
	}
	for _, t := range carriedTypes {
		for name, r := range s.each(t) {
			if e := s.gateway.entries[t][name]; e != nil && e.want.Carries() != nil && r.acked != "" {
				return true
			}
		}
	}
	return false
}

// lacks counts the marks that the proxy doesn't have everywhere. What it has never had of a
// resource serves nobody there, unless it should have had it for long.
func (s *session) lacks(count map[uint64]int) {
	var missing []uint64
	for _, t := range carriedTypes {
		for name, e := range s.gateway.entries[t] {
			want := e.want.Carries()
			if want == nil {
				continue
			}
			r := s.seen(Ref{t, name})
			if (r == nil || r.acked == "") && s.behind == "" {
				continue
			}
			if has := e.carriedBy(r); !envoy.AlikeMarks(has, want) {
				missing = append(missing, without(*want, has)...)
			}
		}
	}
	slices.Sort(missing)
	for _, m := range slices.Compact(missing) {
		count[m]++
	}
}

// without returns the marks of a sorted list that are not in another one.
func without(list []uint64, has *[]uint64) (out []uint64) {
	if has == nil {
		return list
	}
	i := 0
	for _, m := range list {
		for i < len(*has) && (*has)[i] < m {
			i++
		}
		if i == len(*has) || (*has)[i] != m {
			out = append(out, m)
		}
	}
	return out
}

// carriedBy returns the marks of what a proxy has of a resource. A table without some hosts
// that are refused brings all that its others do: of those hosts State says so.
func (e *entry) carriedBy(r *record) *[]uint64 {
	switch {
	case r == nil:
		return nil
	case r.acked == e.want.Version:
		return e.want.Carries()
	case e.quarantine != nil && e.quarantine.bisect != nil && e.quarantine.bisect.found() && r.acked == e.quarantine.bisect.table.Version:
		return e.want.Carries()
	}
	return r.carries
}

// remember keeps what proxies have of a resource before another one is wanted.
func (g *gateway) remember(ref Ref, e *entry) {
	if e.want == nil {
		return
	}
	for s := range g.sessions {
		if r := s.found(ref); r != nil {
			r.carries = e.carriedBy(r)
		}
	}
}

// noteCarried takes in that a proxy has a resource in force. What it has of a table in
// quarantine is known from that, see carriedBy.
func (g *gateway) noteCarried(r *record, res *envoy.Resource) {
	e := g.entries[res.Type][res.Name]
	if e != nil && e.quarantine != nil {
		return
	}
	if r.acked == "" && (res.Carries() != nil || e != nil && e.want.Carries() != nil) || !envoy.AlikeMarks(r.carries, res.Carries()) {
		r.carries = res.Carries()
		g.server.reports.add(g)
	}
}
