package loop

import (
	"context"
	"log/slog"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/keyset"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// Options configure a Loop.
type Options struct {
	Pipeline *pipeline.Pipeline
	// Server serves the proxies of this process.
	Server *xds.Server
	// Extensions, if not nil, takes what the server is to have, and hands it on.
	Extensions Extensions
	Log        *slog.Logger
	// Sources are those that there are, as who runs this process knows them. Of two that define an
	// object the first one counts.
	Sources []string
	// Derive, if not nil, makes objects of those that sources bring. They count as of the last source, which brings
	// none itself.
	Derive func(source.Batch) source.Batch
	// Shadowed, if not nil, is told of objects that don't count, see source.Merge.
	Shadowed func(k object.Key, by, from int, begins bool)
	// Select, if not nil, leaves of a batch what this process is to serve.
	Select func(source.Batch) source.Batch
	// Contents, if not nil, reads the Secrets and ConfigMaps that the pipeline asks for;
	// they count as of the source ContentsSource. Without it they come with the batches.
	Contents       Contents
	ContentsSource int
	// KeySets, if not nil, fetches the key sets that the pipeline asks for.
	KeySets KeySets
	// Late is how much later than a route a Service or an EndpointSlice may come that was made before it; 0 where
	// objects come in their order.
	Late time.Duration
	// Observers follow the commits, in this order.
	Observers []Observer
}

// Contents reads Secrets and ConfigMaps.
type Contents interface {
	// Want says which are wanted from now on. It returns the end of those that no longer
	// are, and a function that reads those newly wanted; nil where there are none. Another
	// goroutine calls that function. The loop calls Want, and what the function returns to
	// take what is newest of them.
	Want(secrets, configMaps []object.Name) (gone source.Batch, read func(context.Context) (take func() source.Batch))
}

// Extensions have others change what proxies are told before the server has it.
type Extensions interface {
	// Apply must not wait for anything.
	Apply(updates []xds.Update)
}

// KeySets fetches key sets, and hands over what it knows of each by Loop.Learn.
type KeySets interface {
	// Want says which are wanted from now on. It returns what is known of those newly
	// wanted, nil for those that no longer are, and those newly wanted of which something
	// will be handed over first.
	Want(keys []keyset.Key) (known map[keyset.Key]*keyset.Answer, unknown []keyset.Key)
}

// Observer follows the commits of a loop. The loop calls its methods, which must not
// wait for anything.
type Observer interface {
	// Committed takes in a commit.
	Committed(c *flow.Commit)
	// Published is called when proxies have been told of all commits so far. Of some
	// Gateways they may have been told before.
	Published()
}

// Loop drives a pipeline. Its fields are the goroutine's that runs it.
type Loop struct {
	Options
	queue  queue
	merge  *source.Merge // nil with one source
	unused unused

	// States is what proxies say, and Heard the Gateways of which they have said
	// something since the last publication.
	States States
	Heard  []object.Name
	// present are the Gateways with proxies. What the proxies of one had said before it
	// came takes effect in the next transaction, and so does the end of one that went.
	present    map[object.Name]bool
	came, gone []object.Name

	publication publication
}

// New prepares a loop.
func New(o Options) *Loop {
	l := &Loop{Options: o, queue: newQueue(), States: States{}, present: map[object.Name]bool{}}
	l.publication.known = map[object.Name]bool{}
	l.publication.keySets = keySets{pending: map[keyset.Key]struct{}{}, first: firstFetch, later: laterFetch}
	l.publication.late = late{services: map[object.Name]struct{}{}, gateways: map[object.Name]struct{}{}}
	if o.Late > 0 {
		o.Pipeline.NoteMissed()
	}
	if n := len(o.Sources); n > 1 {
		l.merge, l.unused = source.NewMerge(n), unused{}
		l.merge.Shadowed = l.shade
	}
	return l
}

// Run runs transactions until ctx ends.
func (l *Loop) Run(ctx context.Context) error {
	l.publication.running = ctx
	return l.queue.run(ctx, l.commit)
}

// Emit hands a batch of a source to the loop, unless ctx ends first.
func (l *Loop) Emit(ctx context.Context, from int, b source.Batch) {
	pipeline.Prepare(b)
	if l.merge == nil {
		l.queue.emit(ctx, b)
		return
	}
	l.Call(ctx, func() { l.commit(l.merged(from, b), nil) })
}

// merged is what a batch of a source changes, and what this changes of what is made of it.
func (l *Loop) merged(from int, b source.Batch) []source.Batch {
	b = l.merge.Take(from, b)
	if l.Derive == nil {
		return []source.Batch{b}
	}
	made := l.Derive(b)
	pipeline.Prepare(made)
	return []source.Batch{b, l.merge.Take(len(l.Sources)-1, made)}
}

// Tell hands feedback to the loop, unless ctx ends first.
func (l *Loop) Tell(ctx context.Context, f Feedback) { l.queue.tell(ctx, f) }

// Ignore takes what proxies say without listening to it, until the channel is closed:
// proxies that end after the loop must not find a full queue.
func (l *Loop) Ignore(until <-chan struct{}) {
	for {
		select {
		case <-l.queue.said:
		case <-until:
			return
		}
	}
}

// Call runs a function between two transactions and waits for it, unless ctx ends
// before it has begun. It must not be used by what the loop runs itself.
func (l *Loop) Call(ctx context.Context, do func()) { l.queue.call(ctx, do) }

// Update runs a transaction of its own. For functions that Call runs.
func (l *Loop) Update(change func(*flow.Tx)) {
	l.update(change)
	l.proceed()
}

// Learn takes in what is known of a key set, unless ctx ends first: it is not wanted then.
func (l *Loop) Learn(ctx context.Context, k keyset.Key, a keyset.Answer) {
	l.Call(ctx, func() {
		if ctx.Err() == nil {
			l.publication.keySets.learnt(k)
			l.Update(func(tx *flow.Tx) { l.Pipeline.TakeKeySets(tx, map[keyset.Key]*keyset.Answer{k: &a}) })
		}
	})
}

// TakeExtensions takes in what of a Gateway extension servers have no usable answer about, unless ctx ends first.
func (l *Loop) TakeExtensions(ctx context.Context, gateway object.Name, wrong []string) {
	l.Call(ctx, func() {
		l.Update(func(tx *flow.Tx) { l.Pipeline.TakeExtensions(tx, gateway, wrong) })
	})
}

// Retry has the contents that are asked for looked for again. For functions that Call
// runs.
func (l *Loop) Retry() { l.commit(nil, nil) }

// Forget takes back what a replica of the controller has said. For functions that Call
// runs.
func (l *Loop) Forget(replica string) {
	gateways := l.States.Drop(replica)
	if len(gateways) == 0 {
		return
	}
	l.Update(func(tx *flow.Tx) {
		for _, gateway := range gateways {
			if l.present[gateway] {
				l.Pipeline.TakeFeedback(tx, gateway, l.States.Merged(gateway))
			}
		}
	})
}

// Has reports whether a Gateway has proxies. For functions that Call runs.
func (l *Loop) Has(gateway object.Name) bool { return l.present[gateway] }

// Owner returns the source whose object counts; -1 if there is none, and 0 where there
// is one source only.
func (l *Loop) Owner(k object.Key) int {
	if l.merge == nil {
		return 0
	}
	return l.merge.Owner(k)
}

// commit takes in what has arrived.
func (l *Loop) commit(batches []source.Batch, said []Feedback) {
	if l.Select != nil {
		for i := range batches {
			batches[i] = l.Select(batches[i])
		}
	}
	l.transact(batches, said)
	l.proceed()
}

// transact runs one transaction.
func (l *Loop) transact(batches []source.Batch, said []Feedback) {
	l.update(func(tx *flow.Tx) {
		l.Pipeline.Tick(tx, time.Now())
		l.Pipeline.Take(tx, batches)
		l.tellShadows(tx)
		for _, gateway := range l.gone {
			l.Pipeline.DropFeedback(tx, gateway)
		}
		l.gone = nil
		// Replicas don't see Gateways come and go at the same time: what they say of one
		// that isn't there may be the last of its proxies' words, or the first of its
		// successor's.
		for _, f := range said {
			state := l.States.Take(f.Replica, f.Gateway, f.State)
			l.Heard = append(l.Heard, f.Gateway)
			if l.present[f.Gateway] {
				l.Pipeline.TakeFeedback(tx, f.Gateway, state)
			}
		}
		for _, gateway := range l.came {
			if l.present[gateway] {
				l.Pipeline.TakeFeedback(tx, gateway, l.States.Merged(gateway))
			}
		}
		l.came = nil
	})
}

func (l *Loop) update(change func(*flow.Tx)) {
	c := l.Pipeline.Update(change)
	logFailures(l.Log, c)
	logProblems(l.Log, l.Pipeline, c)
	updates := l.Pipeline.Updates(c)
	l.publication.add(updates)
	l.awaitLate(updates)
	for _, ch := range flow.Changes(c, l.Pipeline.Fleets) {
		if ch.Has {
			l.present[ch.Key] = true
			if len(l.States[ch.Key]) > 0 {
				l.came = append(l.came, ch.Key)
			}
		} else if ch.Had {
			delete(l.present, ch.Key)
			l.gone = append(l.gone, ch.Key)
			l.States.Take("", ch.Key, xds.State{})
		}
	}
	for _, o := range l.Observers {
		o.Committed(c)
	}
}
