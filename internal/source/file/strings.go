package file

import (
	"hash/maphash"
	"sync/atomic"
)

// recent finds strings that have been read a moment ago: the name of a Service is
// also that of its EndpointSlice, of a label's value and of a route's backend,
// mostly in the same file. One copy serves all. It forgets a string when another one
// takes its place, so that it costs the same however much is read, and it may be
// used by many at once.
type recent struct {
	seed  maphash.Seed
	slots [1024]atomic.Pointer[string]
}

func newRecent() *recent { return &recent{seed: maphash.MakeSeed()} }

// maxRecent is the longest string that is looked for: longer ones seldom come twice.
const maxRecent = 64

// copyOf returns a string that equals s, an earlier one if there is one.
func (r *recent) copyOf(s string) string {
	if r == nil || len(s) > maxRecent {
		return s
	}
	slot := &r.slots[maphash.String(r.seed, s)%uint64(len(r.slots))]
	if earlier := slot.Load(); earlier != nil && *earlier == s {
		return *earlier
	}
	slot.Store(&s)
	return s
}
