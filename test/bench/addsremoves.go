package main

import (
	"context"
	"sync/atomic"

	"github.com/gatehouse-dev/gatehouse/test/visit"
)

// additionsAndRemovals brings new routes and takes each back when some more have
// come, so that clusters come and go at the same time. One more client asks for
// all of them.
func (w *workload) additionsAndRemovals() *changes {
	const (
		count = 300
		lag   = 100 // how many are there at a time
	)
	entries := make([]entry, count)
	for i := range entries {
		index := w.routes + len(w.added) + i
		entries[i] = entry{index: index, port: w.backends[0].port(index)}
	}
	p := &presence{entries: entries}
	added, removed := 0, 0
	return &changes{
		shape: addsAndRemovals, count: 2 * count,
		next: func() (*change, error) {
			if added < count && added-removed < lag {
				c := w.addition(entries[added])
				added++
				return p.note(c, &p.added), nil
			}
			c := w.deletion(entries[removed])
			removed++
			return p.note(c, &p.removed), nil
		},
		beside: func(ctx context.Context) (asked, wrong int64) { return w.lookAt(ctx, p.next) },
	}
}

// presence knows which routes are there. They are added in their order, and
// removed in it.
type presence struct {
	entries        []entry
	added, removed atomic.Int64 // that have begun
	asked          int
}

// note counts a change from its beginning on.
func (p *presence) note(c *change, counter *atomic.Int64) *change {
	do := c.make
	c.make = func() error {
		counter.Add(1)
		return do()
	}
	return c
}

// next is a request for one of the routes after the other. While a route changes,
// it may be there and may not. That begins with its change and ends when the next
// one but one begins: then it is in force on every connection, and not only on the
// one that was the first to see it.
func (p *presence) next() ask {
	const settled = 2
	i := int64(p.asked % len(p.entries))
	p.asked++
	there, gone := i < p.added.Load()-settled, i < p.removed.Load()-settled
	legal := func(a answer) bool { // looks again: a change may have begun meanwhile
		switch {
		case gone || i >= p.added.Load():
			return missing(a)
		case there && i >= p.removed.Load():
			return ok(a)
		}
		return okOrMissing(a)
	}
	return ask{Request: visit.Request{Host: p.entries[i].host(), Path: "/"}, legal: legal}
}
