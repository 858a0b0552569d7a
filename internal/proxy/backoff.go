package proxy

import (
	"math/rand/v2"
	"time"
)

const (
	backoffBase = 200 * time.Millisecond
	backoffMax  = 10 * time.Second
	// stableAfter is how long a process must have lived for its end to count
	// as the first one again.
	stableAfter = 60 * time.Second
)

// backoff spaces restarts: the first is immediate, since a lone crash or kill
// should cost as little traffic as possible, the following wait from 0.2 s,
// doubling up to 10 s.
type backoff struct{ failures int }

// next returns the wait before the start that follows a process that has lived
// this long. The last half is random, so that many Envoys with one cause don't
// come back in one instant.
func (b *backoff) next(lived time.Duration) time.Duration {
	if lived >= stableAfter {
		b.failures = 0
	}
	b.failures++
	if b.failures == 1 {
		return 0
	}
	d := backoffMax
	if shift := b.failures - 2; shift < 6 {
		d = min(backoffBase<<shift, backoffMax)
	}
	return d/2 + rand.N(d/2+1)
}
