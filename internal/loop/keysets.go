package loop

import (
	"maps"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/keyset"
)

// keySets are the key sets that a publication waits for.
type keySets struct {
	pending  map[keyset.Key]struct{} // nothing is known of them
	deadline deadline
	once     bool // some have been waited for
	first    time.Duration
	later    time.Duration
}

// How long a publication waits for key sets, however many come to be wanted meanwhile. The
// first time proxies have what the process before has told them, and a set that comes too late
// would refuse tokens that it took. Later whoever writes a policy must not hold up those who
// share its Gateway for long.
const (
	firstFetch = 5 * time.Second
	laterFetch = time.Second
)

// end ends the waiting. What is missing still refuses tokens until it comes.
func (s *keySets) end() {
	clear(s.pending)
	s.deadline.clear()
}

func (s *keySets) learnt(k keyset.Key) { delete(s.pending, k) }

// askKeySets asks for the key sets that are newly wanted.
func (l *Loop) askKeySets() {
	if l.KeySets == nil {
		return
	}
	keys, changed := l.Pipeline.AskedKeySets()
	if !changed {
		return
	}
	known, unknown := l.KeySets.Want(keys)
	if len(known) > 0 {
		l.update(func(tx *flow.Tx) { l.Pipeline.TakeKeySets(tx, known) })
	}
	s := &l.publication.keySets
	maps.DeleteFunc(s.pending, func(k keyset.Key, _ struct{}) bool { _, ok := known[k]; return ok })
	for _, k := range unknown {
		s.pending[k] = struct{}{}
	}
	if len(s.pending) > 0 && !s.deadline.isSet() {
		l.awaitKeySets()
	}
}

// awaitKeySets sets the deadline of a publication.
func (l *Loop) awaitKeySets() {
	s := &l.publication.keySets
	patience := s.later
	if !s.once {
		s.once, patience = true, s.first
	}
	s.deadline.set(l, patience, s.end)
}
