package identity

import (
	"sync"
	"time"
)

const (
	// What one address may ask in vain: some at once, then so many a second.
	limitBurst = 20
	limitRate  = 2.0

	// Addresses that are remembered.
	maxSources = 4096
)

// limiter bounds what each address may ask in vain, by a bucket of tokens for each.
type limiter struct {
	mu      sync.Mutex
	sources map[string]*bucket
}

type bucket struct {
	tokens float64
	at     time.Time // when tokens was right
}

func newLimiter() *limiter { return &limiter{sources: map[string]*bucket{}} }

// allow takes a token from an address.
func (l *limiter) allow(source string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.sources[source]
	if b == nil {
		if len(l.sources) >= maxSources {
			l.forget(now)
		}
		b = &bucket{tokens: limitBurst, at: now}
		l.sources[source] = b
	}
	b.fill(now)
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// granted gives back what allow took: what is not in vain costs nothing.
func (l *limiter) granted(source string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.sources[source]; b != nil {
		b.tokens++
	}
}

func (b *bucket) fill(now time.Time) {
	b.tokens = min(limitBurst, b.tokens+limitRate*now.Sub(b.at).Seconds())
	b.at = now
}

// forget makes room: addresses that have long been silent go, and if there are
// none, any one does.
func (l *limiter) forget(now time.Time) {
	for source, b := range l.sources {
		if b.fill(now); b.tokens >= limitBurst {
			delete(l.sources, source)
		}
	}
	for source := range l.sources {
		if len(l.sources) < maxSources {
			return
		}
		delete(l.sources, source)
	}
}
