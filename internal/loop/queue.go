package loop

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// Feedback is what the proxies of a Gateway say.
type Feedback struct {
	Gateway object.Name
	State   xds.State
	Replica string // of the controller that they are connected to; empty for this process
}

// queue is what a loop takes in: what sources and proxies say.
type queue struct {
	batches chan source.Batch
	said    chan Feedback
	calls   chan func() // what else is to be done between two transactions
}

func newQueue() queue {
	return queue{batches: make(chan source.Batch), said: make(chan Feedback), calls: make(chan func())}
}

// maxBatch bounds how many events one transaction takes.
const maxBatch = 1024

// run is the one writer: it takes whatever has arrived since the last
// transaction as the next one, so that a lone event takes effect at once and a
// storm is worked off in few steps. Each minute is an event too, since
// certificates expire.
func (q queue) run(ctx context.Context, commit func([]source.Batch, []Feedback)) error {
	minute := time.NewTicker(time.Minute)
	defer minute.Stop()
	for {
		var batches []source.Batch
		var said []Feedback
		select {
		case <-ctx.Done():
			return ctx.Err()
		case b := <-q.batches:
			batches = append(batches, b)
		case f := <-q.said:
			said = append(said, f)
		case do := <-q.calls:
			do()
			continue
		case <-minute.C:
		}
		for more := true; more && len(batches)+len(said) < maxBatch; {
			select {
			case b := <-q.batches:
				batches = append(batches, b)
			case f := <-q.said:
				said = append(said, f)
			default:
				more = false
			}
		}
		commit(batches, said)
	}
}

// emit hands a batch to the loop unless ctx ends first.
func (q queue) emit(ctx context.Context, b source.Batch) {
	select {
	case q.batches <- b:
	case <-ctx.Done():
	}
}

// tell hands feedback to the loop unless ctx ends first.
func (q queue) tell(ctx context.Context, f Feedback) {
	select {
	case q.said <- f:
	case <-ctx.Done():
	}
}

// call runs a function between two transactions and waits for it, unless ctx ends
// before it has begun. It must not be used by what the loop runs itself.
func (q queue) call(ctx context.Context, do func()) {
	done := make(chan struct{})
	select {
	case q.calls <- func() { defer close(done); do() }:
		<-done
	case <-ctx.Done():
	}
}
