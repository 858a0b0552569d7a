package control

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// feedback is what the proxies of a Gateway said.
type feedback struct {
	gateway string
	state   xds.State
	replica string // that they are connected to; empty for this process
}

// eventQueue is what a mode's loop takes in: what sources and proxies tell.
type eventQueue struct {
	batches chan source.Batch
	said    chan feedback
	calls   chan func() // what else is to be done between two transactions
}

func newEventQueue() eventQueue {
	return eventQueue{batches: make(chan source.Batch), said: make(chan feedback), calls: make(chan func())}
}

// maxBatch bounds how many events one transaction takes.
const maxBatch = 1024

// loop is the one writer: it takes whatever has arrived since the last
// transaction as the next one, so that a lone event takes effect at once and a
// storm is worked off in few steps. Each minute is an event too, since
// certificates expire.
func (e eventQueue) loop(ctx context.Context, commit func([]source.Batch, []feedback)) error {
	minute := time.NewTicker(time.Minute)
	defer minute.Stop()
	for {
		var batches []source.Batch
		var said []feedback
		select {
		case <-ctx.Done():
			return ctx.Err()
		case b := <-e.batches:
			batches = append(batches, b)
		case f := <-e.said:
			said = append(said, f)
		case do := <-e.calls:
			do()
			continue
		case <-minute.C:
		}
		for more := true; more && len(batches)+len(said) < maxBatch; {
			select {
			case b := <-e.batches:
				batches = append(batches, b)
			case f := <-e.said:
				said = append(said, f)
			default:
				more = false
			}
		}
		commit(batches, said)
	}
}

// emit hands a batch to the loop unless ctx ends first.
func (e eventQueue) emit(ctx context.Context, b source.Batch) {
	select {
	case e.batches <- b:
	case <-ctx.Done():
	}
}

// tell hands feedback to the loop unless ctx ends first.
func (e eventQueue) tell(ctx context.Context, f feedback) {
	select {
	case e.said <- f:
	case <-ctx.Done():
	}
}

// call runs a function between two transactions and waits for it, unless ctx ends
// before it has begun. It must not be used by what the loop runs itself.
func (e eventQueue) call(ctx context.Context, do func()) {
	done := make(chan struct{})
	select {
	case e.calls <- func() { defer close(done); do() }:
		<-done
	case <-ctx.Done():
	}
}

func logFailures(log *slog.Logger, c *flow.Commit) {
	for _, f := range c.Failures {
		log.Error("a value could not be processed; its last good state stays in force, please report this",
			"table", f.Table, "key", fmt.Sprint(f.Key), "cause", fmt.Sprint(f.Cause), "stack", f.Stack)
	}
}

// maxProblemLines bounds what one commit logs of broken inputs; a tree of files
// that is replaced by nonsense must not bury what else is said.
const maxProblemLines = 20

// logProblems logs what a commit brings of broken inputs.
func logProblems(log *slog.Logger, p *Pipeline, c *flow.Commit) {
	fresh := 0
	for _, ch := range flow.Changes(c, p.problems) {
		known := map[string]bool{}
		for _, problem := range ch.Old {
			known[problem.Error()] = true
		}
		for _, problem := range ch.New {
			if known[problem.Error()] {
				continue
			}
			if fresh++; fresh <= maxProblemLines {
				log.Warn("input problem", "problem", problem.Error(), "reason", string(problem.Reason), "last_good_stays", problem.Stale)
			}
		}
	}
	if fresh > maxProblemLines {
		log.Warn("more input problems; `gatehouse status` shows all", "more", fresh-maxProblemLines)
	}
}
