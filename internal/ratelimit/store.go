package ratelimit

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/ratelimit/descriptor"
)

// MaxHits bounds the hits of one descriptor. It is the highest limit that there can be.
const MaxHits = descriptor.MaxLimit

// A Key is a hash that names a limit or a count: whoever finds two names with one
// hash has broken SHA-256.
type Key [16]byte

// Mode says what becomes of a hit.
type Mode uint8

const (
	// Enforced hits are charged if all of their request are within their limits.
	Enforced Mode = iota
	// Shadowed hits refuse nothing. They are charged if they are within their limit, and
	// their request is not refused.
	Shadowed
	// Charged hits are charged in any case, also if their request is refused for others.
	Charged
)

// A Hit is what one descriptor of a request asks for.
type Hit struct {
	Limit Key // to which the count belongs
	Count Key
	Rate  descriptor.Rate
	N     uint32 // 0 to MaxHits; 0 only looks
	Mode  Mode
}

// A Verdict is what became of a Hit.
type Verdict struct {
	Over  bool          // the hit is beyond its limit; never of Charged ones
	Count uint32        // after the request; the highest number stands for all above
	Reset time.Duration // until the window ends; the whole window if none has begun
}

// remaining returns how many hits are left in the window.
func (v Verdict) remaining(r descriptor.Rate) uint32 {
	if v.Count >= r.Limit {
		return 0
	}
	return r.Limit - v.Count
}

// A Store keeps counts. It is safe for concurrent use.
type Store interface {
	// Take judges and charges the hits of one request, at once: no other request sees or
	// changes a count in between. It writes a verdict for each hit and says whether the
	// request is refused. The hits are not kept. It returns when the context ends at the
	// latest. After an error nothing is known of the counts.
	Take(ctx context.Context, hits []Hit, verdicts []Verdict) (refused bool, err error)
	// Close ends what the store runs. Nothing is taken after it.
	Close() error
}

// judge says whether n hits on top of count are beyond the limit.
func judge(count, n, limit uint32) bool {
	if n == 0 {
		return count >= limit
	}
	return uint64(count)+uint64(n) > uint64(limit)
}

// add adds hits to a count, and stays at the highest number instead of passing it.
func add(count, n uint32) uint32 {
	if sum := count + n; sum >= count {
		return sum
	}
	return ^uint32(0)
}
