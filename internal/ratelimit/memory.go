package ratelimit

import (
	"context"
	"sync"
	"time"
)

// How many counts a Memory holds: up to 100 bytes each, and as much again that the garbage
// collector has not collected yet.
const (
	maxCounts         = 1_000_000
	maxCountsPerLimit = 400_000

	// How often counts whose window has ended are let go while nobody asks for them.
	sweepInterval = 10 * time.Second
	// How many are let go at a time, and how many for each new count beside it.
	sweepBatch = 1000
	sweepAside = 2
)

// Memory is a Store in memory. Its counts end with it.
//
// Each limit has a list of its counts in the order of their last use. What has not been used
// for a window has ended, so what can be let go is at the list's end, and nothing is searched.
type Memory struct {
	total, perLimit int
	began           time.Time
	stop            chan struct{}
	stopped         sync.WaitGroup
	closing         sync.Once

	mu      sync.Mutex
	counts  map[Key]ref
	limits  map[Key]*limit
	slab    slab
	largest *limit // that has, or had, the most counts
	evicted uint64 // before their window ended
}

// limit is the list of a limit's counts.
type limit struct {
	key            Key
	newest, oldest ref
	n              int
}

// NewMemory returns an empty store.
func NewMemory() *Memory { return newMemory(maxCounts, maxCountsPerLimit) }

func newMemory(total, perLimit int) *Memory {
	m := &Memory{
		total: total, perLimit: perLimit, began: time.Now(), stop: make(chan struct{}),
		counts: map[Key]ref{}, limits: map[Key]*limit{},
	}
	m.stopped.Go(m.sweeps)
	return m
}

// Close ends the store's goroutine.
func (m *Memory) Close() error {
	m.closing.Do(func() { close(m.stop) })
	m.stopped.Wait()
	return nil
}

// now is the time since the store began, by a clock that nobody sets.
func (m *Memory) now() time.Duration { return time.Since(m.began) }

// Take never returns an error.
func (m *Memory) Take(_ context.Context, hits []Hit, verdicts []Verdict) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	refused := false
	for i := range hits {
		h, v := &hits[i], &verdicts[i]
		*v = m.hit(h, now)
		refused = refused || v.Over && h.Mode == Enforced
	}
	if refused {
		// Backwards: where two hits are of one count, the first one has made it.
		for i := len(hits) - 1; i >= 0; i-- {
			m.undo(&hits[i], &verdicts[i])
		}
	}
	return refused, nil
}

// hit charges a hit unless it is over. Undo takes it back.
func (m *Memory) hit(h *Hit, now time.Duration) Verdict {
	at, ok := m.counts[h.Count]
	if ok && m.slab.at(at).end <= now {
		m.remove(at)
		ok = false
	}
	if !ok {
		v := Verdict{Over: h.Mode != Charged && judge(0, h.N, h.Rate.Limit), Reset: h.Rate.Window}
		if h.N == 0 || v.Over {
			return v // no window begins
		}
		m.insert(h, now)
		v.Count = h.N
		return v
	}
	c := m.slab.at(at)
	// The limit's window may have been made shorter.
	c.end = min(c.end, now+h.Rate.Window)
	m.use(at)
	v := Verdict{Over: h.Mode != Charged && judge(c.n, h.N, h.Rate.Limit), Reset: c.end - now}
	if !v.Over {
		c.n = add(c.n, h.N)
	}
	v.Count = c.n
	return v
}

// undo takes back what hit has charged, and the window that it has begun.
func (m *Memory) undo(h *Hit, v *Verdict) {
	if v.Over || h.N == 0 || h.Mode == Charged {
		return
	}
	at, ok := m.counts[h.Count]
	if !ok {
		return // evicted by another hit of the request
	}
	c := m.slab.at(at)
	c.n -= min(c.n, h.N)
	v.Count = c.n
	if c.n == 0 {
		m.remove(at)
		v.Reset = h.Rate.Window
	}
}

// insert begins a count's window.
func (m *Memory) insert(h *Hit, now time.Duration) {
	l := m.limits[h.Limit]
	if l != nil {
		m.letGo(l, now, sweepAside)
	}
	if l != nil && l.n >= m.perLimit {
		m.evict(l)
	}
	if len(m.counts) >= m.total {
		m.evict(m.mostCounts())
	}
	// Whoever loses its last count is gone.
	if l = m.limits[h.Limit]; l == nil {
		l = &limit{key: h.Limit}
		m.limits[h.Limit] = l
	}
	at := m.slab.take()
	c := m.slab.at(at)
	c.key, c.limit, c.n, c.end = h.Count, l, h.N, now+h.Rate.Window
	m.counts[h.Count] = at
	m.push(l, at)
	if l.n++; m.largest == nil || l.n > m.largest.n {
		m.largest = l
	}
}

// mostCounts returns a limit with many counts, and the one with the most if none has lost
// many.
func (m *Memory) mostCounts() *limit {
	if m.largest == nil || m.largest.n == 0 {
		m.largest = nil
		for _, l := range m.limits {
			if m.largest == nil || l.n > m.largest.n {
				m.largest = l
			}
		}
	}
	return m.largest
}

func (m *Memory) evict(l *limit) {
	m.evicted++
	m.remove(l.oldest)
}

// letGo removes some of a limit's counts whose window has ended, and says how many.
func (m *Memory) letGo(l *limit, now time.Duration, most int) int {
	gone := 0
	for gone < most && l.n > 0 && m.slab.at(l.oldest).end <= now {
		m.remove(l.oldest)
		gone++
	}
	return gone
}

func (m *Memory) remove(at ref) {
	c := m.slab.at(at)
	l := c.limit
	m.unlink(l, at)
	delete(m.counts, c.key)
	if l.n--; l.n == 0 {
		delete(m.limits, l.key)
	}
	m.slab.give(at)
}

// sweeps lets go what has ended, in batches so that no request waits for long.
func (m *Memory) sweeps() {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-m.stop:
			return
		case <-ticker.C:
			for m.sweep() {
			}
		}
	}
}

// sweep lets go a batch and says whether there may be more.
func (m *Memory) sweep() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	left := sweepBatch
	for _, l := range m.limits {
		if left -= m.letGo(l, now, left); left == 0 {
			return true
		}
	}
	return false
}

// size returns how many counts are held, and how many were evicted.
func (m *Memory) size() (counts int, evicted uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.counts), m.evicted
}
