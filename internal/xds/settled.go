package xds

import (
	"maps"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// Of nearly all that a proxy has there is nothing more to say than that it has acknowledged the version that
// is wanted. Such a resource is settled: a bit of the session stands for its record, so that a proxy of 5,000
// routes costs a few kB and not a MB. A bit says what the entry's wanted version is, so all are made records
// again before that changes (gateway.unsettle).

// slots number the entries of a type.
type slots struct {
	free []int
	next int
}

func (n *slots) take() int {
	if last := len(n.free) - 1; last >= 0 {
		slot := n.free[last]
		n.free = n.free[:last]
		return slot
	}
	n.next++
	return n.next - 1
}

// slotSet is a set of slots.
type slotSet struct {
	words []uint64
	n     int
}

func (b *slotSet) has(slot int) bool {
	return slot/64 < len(b.words) && b.words[slot/64]&(1<<(slot%64)) != 0
}

// add adds one of so many slots.
func (b *slotSet) add(slot, of int) {
	if need := (of + 63) / 64; slot/64 >= len(b.words) {
		b.words = append(make([]uint64, 0, need), b.words...)[:need]
	}
	b.words[slot/64] |= 1 << (slot % 64)
	b.n++
}

func (b *slotSet) remove(slot int) {
	b.words[slot/64] &^= 1 << (slot % 64)
	b.n--
}

// settle replaces a record by a bit, if that says as much.
func (s *session) settle(ref Ref, r *record) {
	y, e := &s.types[ref.Type], s.gateway.entries[ref.Type][ref.Name]
	switch {
	case y.isSettled(e):
	case e == nil || r.sent != e.want.Version || r.acked != r.sent || r.nonce != 0:
	case r.subscribed == y.wildcard || r.early || r.charged || r.warming || r.takesOver:
	case r.first == 0 && y.beside != nil: // see isTakenOver
	default:
		y.settled.add(e.slot, s.gateway.slots[ref.Type].next)
		delete(y.records, ref.Name)
		if y.most > fewEntries && (4*len(y.records) < y.most || len(y.records) == 0) {
			// A map never shrinks.
			y.records, y.most = maps.Collect(maps.All(y.records)), len(y.records)
		}
	}
}

// isSettled reports whether a bit stands for the record of an entry.
func (y *subscription) isSettled(e *entry) bool { return e != nil && y.settled.has(e.slot) }

// settledRecord is the record that a bit stands for.
func (y *subscription) settledRecord(e *entry) *record {
	return &record{sent: e.want.Version, acked: e.want.Version, first: 1, subscribed: !y.wildcard, carries: e.want.Carries()}
}

// seen returns the record of a resource to look at; nil for none.
func (s *session) seen(ref Ref) *record {
	y := &s.types[ref.Type]
	if r := y.records[ref.Name]; r != nil {
		return r
	}
	if e := s.gateway.entries[ref.Type][ref.Name]; y.isSettled(e) {
		return y.settledRecord(e)
	}
	return nil
}

// found returns the record of a resource to change; nil for none.
func (s *session) found(ref Ref) *record {
	y := &s.types[ref.Type]
	if r := y.records[ref.Name]; r != nil {
		return r
	}
	e := s.gateway.entries[ref.Type][ref.Name]
	if !y.isSettled(e) {
		return nil
	}
	r := y.settledRecord(e)
	y.settled.remove(e.slot)
	y.records[e.want.Name] = r
	return r
}

// each yields all records of a type, to look at.
func (s *session) each(t envoy.Type) func(yield func(string, *record) bool) {
	y := &s.types[t]
	return func(yield func(string, *record) bool) {
		for name, r := range y.records {
			if !yield(name, r) {
				return
			}
		}
		if y.settled.n == 0 {
			return
		}
		for name, e := range s.gateway.entries[t] {
			if y.isSettled(e) && !yield(name, y.settledRecord(e)) {
				return
			}
		}
	}
}

// size is how many records there are.
func (y *subscription) size() int { return len(y.records) + y.settled.n }

// unsettle makes records of the bits of an entry, whose wanted version is about to change.
func (g *gateway) unsettle(ref Ref) {
	for s := range g.sessions {
		s.found(ref)
	}
}
