package identity

import (
	"sync"
	"time"
)

const (
	// One address may have so many requests refused at once, and then so many a second.
	limitBurst = 20
	limitRate  = 2.0

	// This many addresses are remembered.
	maxSources = 4096
)

// limiter bounds the requests of each address that are refused, by a bucket of tokens
// for each.
type limiter struct {
	mu      sync.Mutex
	sources map[string]*bucket
}

type bucket struct {
	tokens float64
	at     time.Time // when tokens was right
}

func newLimiter() *limiter { return &limiter{sources: map[string]*bucket{}} }

// allow removes a token from the bucket of an address.
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

// granted puts the token back that allow removed: a request that is granted does not
// count.
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

// forget makes room. It removes the addresses whose buckets are full again, and any
// others if that is not enough.
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
