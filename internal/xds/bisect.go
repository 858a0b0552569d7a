package xds

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// bisection finds the hosts because of which a proxy refuses a route table. The refusal
// names none, but only a host that differs from the table in force can be at fault.
//
// All these are withheld first, so that the rest of the change is in force after one
// response: each is replaced by its last good version, or by a host that answers 500 if
// there is none. Then they are put back by halves: a half that is acknowledged stays, one
// that is refused is divided further. To find k hosts among n takes about k × log2 n
// responses.
//
// The last good version does not stand in for a host that says otherwise who may pass, once it
// is found to be at fault, nor do those of all hosts for a table that does: these answer 500.
// What is created, changed or broken there is to stop requests, which the last version may
// let pass. Until one is found it stands in for all suspects, since it was in force, unless its own
// table was another one around it, see mixes.
//
// It is a state machine without I/O: refused, accepted and rebase each leave in table what
// to serve next.
type bisection struct {
	substitute func(host string) *envoy.Part // of a host that has no good version

	table    *envoy.Resource
	withheld map[string]*withheld
	groups   []group // of names in withheld; a stack
	whole    bool    // the table's own fields are refused
	closed   bool    // and all hosts answer 500 for it
	trial    bool    // table has hosts that have not been acknowledged yet
}

// withheld is a host that is not served as it is wanted.
type withheld struct {
	hash    envoy.Hash
	message string
	culprit bool // certainly at fault; otherwise perhaps
	old     bool // its last good version is served
}

type group struct {
	names []string
	bad   bool // at least one of them is at fault
	// sibling marks the other half of a group on trial, one of which is at fault: if the
	// half on trial is acknowledged, it is this one.
	sibling bool
}

func newBisection(substitute func(string) *envoy.Part) *bisection {
	return &bisection{substitute: substitute, withheld: map[string]*withheld{}}
}

// idle reports whether nothing is withheld or on trial.
func (b *bisection) idle() bool {
	return !b.whole && len(b.withheld) == 0
}

// found reports whether all that is withheld is certainly at fault, and all else is served.
func (b *bisection) found() bool { return !b.whole && !b.trial && len(b.groups) == 0 && b.table != nil }

// refused handles the refusal of table r, which is what was served.
func (b *bisection) refused(want, good, r *envoy.Resource, message string) {
	b.trial = false
	if n := len(b.groups); n > 0 {
		b.groups[n-1].sibling = false
	}
	before := partHashes(good)
	var suspects []string
	for _, p := range r.Parts() {
		if h, ok := before[p.Name]; ok && h == p.Hash || b.withheld[p.Name] != nil {
			continue
		}
		suspects = append(suspects, p.Name)
		last, ok := before[p.Name]
		b.withheld[p.Name] = &withheld{
			hash:    p.Hash,
			message: message,
			old:     ok && last != b.substitute(p.Name).Hash,
		}
	}
	if len(suspects) == 0 {
		// Only the table's own fields can be at fault.
		b.whole = true
		b.groups = nil
		clear(b.withheld)
		b.standIn(want, good)
		return
	}
	b.groups = append(b.groups, group{names: suspects, bad: true})
	b.build(want, good)
	if b.table.EqualBytes(good) {
		b.next(want, good) // it is in force: no answer will come
	}
}

// accepted handles the acknowledgement of table r and reports whether it changes anything.
func (b *bisection) accepted(want, r *envoy.Resource) bool {
	if b.whole || !b.table.EqualBytes(r) {
		return false
	}
	if n := len(b.groups); n > 0 && b.trial && b.groups[n-1].sibling {
		b.groups[n-1].sibling = false
		b.groups[n-1].bad = true
	}
	return b.next(want, r)
}

// next puts back the next group of hosts and reports whether it changed anything. A group
// that is certainly at fault is not tried.
func (b *bisection) next(want, good *envoy.Resource) bool {
	acted := b.trial
	b.trial = false
	for len(b.groups) > 0 {
		g := b.groups[len(b.groups)-1]
		b.groups = b.groups[:len(b.groups)-1]
		names := b.suspects(g.names)
		if len(names) == 0 {
			continue
		}
		acted = true
		if len(names) < len(g.names) {
			g.bad = false // the host at fault may be one that is no longer withheld
		}
		if g.bad && len(names) == 1 {
			b.withheld[names[0]].culprit = true
			continue
		}
		if g.bad {
			half := len(names) / 2
			b.groups = append(b.groups, group{names: names[half:], sibling: true})
			names = names[:half]
		}
		for _, name := range names {
			delete(b.withheld, name)
		}
		b.trial = true
		b.build(want, good)
		return true
	}
	if acted {
		b.build(want, good) // of those that are found now, some may have no stand-in
	}
	return acted
}

// rebase handles a change of the wanted table: a host that has changed, or is no longer in
// it, is no longer withheld.
func (b *bisection) rebase(want, good *envoy.Resource) {
	b.whole, b.closed = false, false
	now := partHashes(want)
	for name, w := range b.withheld {
		if h, ok := now[name]; !ok || h != w.hash {
			delete(b.withheld, name)
		}
	}
	for i := range b.groups {
		b.groups[i].bad, b.groups[i].sibling = false, false
	}
	b.build(want, good)
	if b.table.EqualBytes(good) {
		b.next(want, good)
	}
}

// suspects returns those of the names that are withheld and may not be at fault.
func (b *bisection) suspects(names []string) []string {
	var out []string
	for _, name := range names {
		if w := b.withheld[name]; w != nil && !w.culprit {
			out = append(out, name)
		}
	}
	return out
}

// build makes the table that is served: the wanted one, with substitutes for what is withheld.
func (b *bisection) build(want, good *envoy.Resource) {
	if len(b.withheld) == 0 {
		b.table = want
		return
	}
	last := map[string]*envoy.Part{}
	if good != nil {
		for _, p := range good.Parts() {
			if b.withheld[p.Name] != nil {
				last[p.Name] = p
			}
		}
	}
	mixed := mixes(want, good)
	parts := make([]*envoy.Part, len(want.Parts()))
	for i, p := range want.Parts() {
		if w := b.withheld[p.Name]; w != nil && w.hash == p.Hash {
			old := last[p.Name]
			if old == nil || (w.culprit || mixed) && !p.Guard.KeptBy(old.Guard, want.Guard()) {
				old, w.old = b.substitute(p.Name), false
			}
			p = old
		}
		parts[i] = p
	}
	b.table = want.WithParts(parts)
}

// mixes reports whether a host of the last good version may get requests in the wanted table that
// its own table stopped or gave to another host: the table says otherwise who may pass, or has lost
// a host, whose requests one with a wildcard gets.
func mixes(want, good *envoy.Resource) bool {
	if good == nil {
		return false
	}
	now := partHashes(want)
	return !slices.Equal(want.Guard(), good.Guard()) || slices.ContainsFunc(good.Parts(), func(p *envoy.Part) bool {
		_, ok := now[p.Name]
		return !ok
	})
}

// standIn has the last good version of a table stand in for it, with the hosts of the new one. Those
// that are new, or that say otherwise who may pass, answer 500; all do where the table says otherwise.
func (b *bisection) standIn(want, good *envoy.Resource) {
	b.table = good
	if good == nil {
		return
	}
	if b.closed = !want.Guard().KeptBy(good.Guard(), nil); b.closed {
		b.table = b.empty(good)
		return
	}
	last := map[string]*envoy.Part{}
	for _, p := range good.Parts() {
		last[p.Name] = p
	}
	parts := make([]*envoy.Part, len(want.Parts()))
	changed := len(parts) != len(last)
	for i, p := range want.Parts() {
		parts[i] = last[p.Name]
		if parts[i] == nil || !p.Guard.KeptBy(parts[i].Guard, want.Guard()) {
			parts[i], changed = b.substitute(p.Name), true
		}
	}
	if changed {
		b.table = good.WithParts(parts)
	}
}

// empty returns a table all of whose hosts answer 500.
func (b *bisection) empty(r *envoy.Resource) *envoy.Resource {
	parts := make([]*envoy.Part, len(r.Parts()))
	for i, p := range r.Parts() {
		parts[i] = b.substitute(p.Name)
	}
	return r.WithParts(parts)
}

func partHashes(r *envoy.Resource) map[string]envoy.Hash {
	if r == nil {
		return nil
	}
	out := make(map[string]envoy.Hash, len(r.Parts()))
	for _, p := range r.Parts() {
		out[p.Name] = p.Hash
	}
	return out
}
