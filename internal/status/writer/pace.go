package writer

import "time"

// The least time between two writes of one object: short for a lone change, and
// longer while changes keep coming, such as those of attachedRoutes. The longest is
// within the time in which a count must be right.
const (
	leastGap = 100 * time.Millisecond
	mostGap  = time.Second
	// calm is after how long without a write the gap is short again.
	calm = 4 * time.Second
)

// pace spaces the writes of an object.
type pace struct {
	last time.Time // the last write
	gap  time.Duration
}

// wait returns how long the next write has to wait.
func (p *pace) wait(now time.Time) time.Duration {
	if p.last.IsZero() {
		return 0
	}
	return max(0, p.gap-now.Sub(p.last))
}

// wrote notes a write, or an attempt at one.
func (p *pace) wrote(now time.Time) {
	if now.Sub(p.last) >= calm {
		p.gap = leastGap
	} else {
		p.gap = min(2*p.gap, mostGap)
	}
	p.last = now
}
