package loop

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/keyset"
)

// keySets are the key sets that were asked for last, and those of them that were when the last
// reading ended: something is known of them, or they could not be had in time.
type keySets struct {
	wanted, settled map[keyset.Key]struct{}
	once            bool // some have been waited for
}

// How long what proxies are told waits for key sets. The first time they have what the process
// before has told them, and a set that comes too late would refuse tokens that it took. Later
// whoever writes a policy must not hold up those who share its Gateway for long.
const (
	firstFetch = 5 * time.Second
	laterFetch = time.Second
)

func (s *keySets) settle() { s.settled = s.wanted }

func (s *keySets) isSettled(k keyset.Key) bool {
	_, ok := s.settled[k]
	return ok
}

// askKeySets returns a function that waits for the key sets that are newly asked for; nil
// where there are none.
func (l *Loop) askKeySets() func(context.Context) {
	if l.KeySets == nil {
		return nil
	}
	keys, changed := l.Pipeline.AskedKeySets()
	if !changed {
		return nil
	}
	known, first := l.KeySets.Want(keys)
	if len(known) > 0 {
		l.update(func(tx *flow.Tx) { l.Pipeline.TakeKeySets(tx, known) })
	}
	s := &l.publication.keySets
	s.wanted = make(map[keyset.Key]struct{}, len(keys))
	for _, k := range keys {
		s.wanted[k] = struct{}{}
	}
	if first == nil {
		return nil
	}
	patience := laterFetch
	if !s.once {
		s.once, patience = true, firstFetch
	}
	return func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		first(ctx)
	}
}
