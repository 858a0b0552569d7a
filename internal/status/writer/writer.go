package writer

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Options configure a Writer.
type Options struct {
	// Client writes; it needs no cache, and should not be limited below what the API
	// server can take.
	Client client.Client
	// Live returns the newest known object, status included, and nil if there is none.
	// It is called often, and from several goroutines.
	Live func(object.Key) client.Object
	// ControllerName marks our entries in lists that controllers share.
	ControllerName string
	// FieldOwner is who writes, in managedFields; at most 128 bytes.
	FieldOwner string
	// Kinds has the statuses that are written; nil is kind.All.
	Kinds *kind.Table
	// Owns says which of the entries with our name are this writer's, by the object that
	// they stand in and the parent or ancestor that they are about; nil for all. It
	// matters where several processes share the name.
	Owns func(o client.Object, ref *gwv1.ParentReference) bool
	// Events gets what condition.EventReason says; nil for nobody.
	Events     events.EventRecorder
	Log        *slog.Logger
	Registerer prometheus.Registerer // nil for none
}

// Writer writes statuses.
type Writer struct {
	opts    Options
	metrics *metrics

	// Routes are many, and have a queue of their own: what they are attached to must
	// not wait for all of them.
	routes, others workqueue.TypedDelayingInterface[object.Key]

	mu       sync.Mutex
	objects  map[object.Key]*tracked
	complete bool
}

// tracked is what the writer knows of an object. Fields below mu's are those of the
// one worker that has the key.
type tracked struct {
	desired any // guarded by Writer.mu
	left    any // the last desired status before there was none; guarded by Writer.mu

	pace    pace
	written client.Object // as the last write left it, until Live has it
	pruned  pruned
	failure string // of the last attempt
	retries int
	told    time.Time // the last event
	untold  any       // the status before that of which no event could be made yet; nil for none
}

// pruned is what the API server made of a status of which it doesn't keep all: its
// CustomResourceDefinitions are of another version.
type pruned struct{ desired, kept any }

// New returns a writer that is at rest until Run.
func New(opts Options) *Writer {
	opts.Kinds = cmp.Or(opts.Kinds, kind.All)
	return &Writer{
		opts: opts, metrics: newMetrics(opts.Registerer), objects: map[object.Key]*tracked{},
		routes: workqueue.NewTypedDelayingQueue[object.Key](),
		others: workqueue.NewTypedDelayingQueue[object.Key](),
	}
}

// Set says what the status of an object should be: a pointer to a status of the
// Gateway API, which nobody changes any more. nil is that nothing of ours is to stay.
// Set never blocks, and the last one wins.
func (w *Writer) Set(k object.Key, desired any) {
	w.mu.Lock()
	o := w.objects[k]
	if o == nil {
		o = &tracked{}
		w.objects[k] = o
	}
	if desired == nil && o.desired != nil {
		o.left = o.desired
	}
	o.desired = desired
	w.mu.Unlock()
	w.queue(k).Add(k)
}

// Changed says that a live object is another than before, by whomever.
func (w *Writer) Changed(k object.Key) {
	w.mu.Lock()
	_, known := w.objects[k]
	complete := w.complete
	w.mu.Unlock()
	switch {
	case known:
		w.queue(k).Add(k)
	case complete && w.leftBehind(k):
		w.Set(k, nil)
	}
}

// Complete says that every object that has a status of ours has been Set, to all that it is to
// be. From then on entries of ours that are not desired are taken out, first of the objects given
// here: that there is to be none is not known before.
func (w *Writer) Complete(all iter.Seq[object.Key]) {
	w.mu.Lock()
	w.complete = true
	w.mu.Unlock()
	for k := range all {
		w.Changed(k)
	}
}

// leftBehind reports whether an object has entries of ours.
func (w *Writer) leftBehind(k object.Key) bool {
	live, s := w.opts.Live(k), w.opts.Kinds.StatusOf(k.Kind)
	return live != nil && s != nil && w.merging(live).mentioned(s, s.Of(live))
}

func (w *Writer) queue(k object.Key) workqueue.TypedDelayingInterface[object.Key] {
	if d := w.opts.Kinds.Of(k.Kind); d != nil && d.Family == kind.Route {
		return w.routes
	}
	return w.others
}

// How many objects are written at a time.
const (
	routeWorkers = 8
	otherWorkers = 4
)

// Run writes until ctx ends. It can't be run again.
func (w *Writer) Run(ctx context.Context) error {
	var group sync.WaitGroup
	for range routeWorkers {
		group.Go(func() { w.work(ctx, w.routes) })
	}
	for range otherWorkers {
		group.Go(func() { w.work(ctx, w.others) })
	}
	<-ctx.Done()
	w.routes.ShutDown()
	w.others.ShutDown()
	group.Wait()
	return nil
}

func (w *Writer) work(ctx context.Context, queue workqueue.TypedDelayingInterface[object.Key]) {
	for {
		k, shutdown := queue.Get()
		if shutdown {
			return
		}
		if ctx.Err() == nil {
			if again := w.settle(ctx, k); again > 0 {
				queue.AddAfter(k, again)
			}
		}
		queue.Done(k)
	}
}

// settle makes the live status of an object what it should be. It returns after how
// long it wants to be called again, 0 where that has no need.
func (w *Writer) settle(ctx context.Context, k object.Key) time.Duration {
	w.mu.Lock()
	o := w.objects[k]
	if o == nil {
		w.mu.Unlock()
		return 0
	}
	desired, left := o.desired, o.left
	w.mu.Unlock()

	live := o.latest(w.opts.Live(k))
	if live == nil {
		w.forget(k, o)
		return 0
	}
	s := w.opts.Kinds.StatusOf(k.Kind)
	if s == nil || outdated(generationOf(s, desired), live) {
		return 0
	}
	status := s.Of(live)
	next := w.merging(live).merge(s, status, desired, left)
	if equality.Semantic.DeepEqual(status, next) ||
		o.pruned.kept != nil && o.pruned.desired == desired && equality.Semantic.DeepEqual(status, o.pruned.kept) {
		w.succeed(k, o)
		if o.untold != nil {
			if again := w.tell(o, live, s, status, status, time.Now()); again > 0 {
				return again
			}
		}
		// What has been Set since then is still to be written, nil as well.
		if desired == nil {
			w.forget(k, o)
		}
		return 0
	}
	now := time.Now()
	if wait := o.pace.wait(now); wait > 0 {
		return wait
	}
	if again, err := w.write(ctx, k, o, live, status, next); err != nil {
		return again
	}
	o.pace.wrote(now)
	if kept := s.Of(o.written); !equality.Semantic.DeepEqual(kept, next) {
		o.pruned = pruned{desired, kept}
	} else {
		o.pruned = pruned{}
	}
	return w.tell(o, live, s, status, next, now)
}

// write writes one status. Where that fails, it returns after how long to try again;
// 0 where there is nothing to try.
func (w *Writer) write(ctx context.Context, k object.Key, o *tracked, live client.Object, status, next any) (time.Duration, error) {
	patch, err := patchOf(live.GetResourceVersion(), status, next)
	if err != nil {
		w.fail(k, o, err)
		return 0, err
	}
	written := w.opts.Kinds.Of(k.Kind).New()
	written.SetNamespace(live.GetNamespace())
	written.SetName(live.GetName())
	err = w.opts.Client.Status().Patch(ctx, written, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(w.opts.FieldOwner))
	switch {
	case err == nil:
		w.metrics.count(k, resultOK)
		o.written = written
		w.succeed(k, o)
		return 0, nil
	case apierrors.IsNotFound(err):
		w.metrics.count(k, resultGone)
		return 0, err
	case apierrors.IsConflict(err):
		w.metrics.count(k, resultConflict)
		o.written = nil
		return o.retry(conflictRetry, conflictRetryMost), err
	case ctx.Err() != nil:
		return 0, err
	default:
		w.metrics.count(k, resultError)
		w.fail(k, o, err)
		return o.retry(errorRetry, errorRetryMost), err
	}
}

// outdated reports whether a status that was computed from an object of a generation was
// computed from an older one than the live one; 0 is of any.
func outdated(generation int64, live client.Object) bool {
	return generation > 0 && generation < live.GetGeneration()
}

// Retries come after waits that double. A conflict mends itself as soon as the cache
// has seen the other's write, which is its own reason to look again.
const (
	conflictRetry     = 20 * time.Millisecond
	conflictRetryMost = time.Second
	errorRetry        = 200 * time.Millisecond
	errorRetryMost    = 30 * time.Second
)

func (o *tracked) retry(first, most time.Duration) time.Duration {
	wait := min(most, first<<min(o.retries, 16))
	o.retries++
	return wait
}

// latest returns the newer one of the cache's object and what the last write left. The
// cache may be several writes behind.
func (o *tracked) latest(live client.Object) client.Object {
	if o.written == nil {
		return live
	}
	if live != nil {
		order, err := resourceversion.CompareResourceVersion(live.GetResourceVersion(), o.written.GetResourceVersion())
		if err == nil && order < 0 {
			return o.written
		}
	}
	o.written = nil
	return live
}

// forget drops what is known of an object that there is nothing left to do for.
func (w *Writer) forget(k object.Key, o *tracked) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o.desired == nil && o.written == nil && w.objects[k] == o {
		delete(w.objects, k)
	}
}

// fail notes an error. It is logged once for an object, until it passes.
func (w *Writer) fail(k object.Key, o *tracked, err error) {
	if o.failure == "" {
		w.opts.Log.Warn("a status can't be written", "object", k.String(), "error", err)
	}
	o.failure = err.Error()
}

func (w *Writer) succeed(k object.Key, o *tracked) {
	if o.failure != "" {
		w.opts.Log.Info("the status could be written again", "object", k.String())
	}
	o.failure, o.retries = "", 0
}

// merging is how a status of an object is merged.
func (w *Writer) merging(live client.Object) *merging {
	w.mu.Lock()
	complete := w.complete
	w.mu.Unlock()
	m := &merging{
		keeps:      !complete,
		controller: gwv1.GatewayController(w.opts.ControllerName), namespace: live.GetNamespace(),
		now:  metav1.NewTime(time.Now().Truncate(time.Second)),
		owns: func(*gwv1.ParentReference) bool { return true },
	}
	if w.opts.Owns != nil {
		m.owns = func(ref *gwv1.ParentReference) bool { return w.opts.Owns(live, ref) }
	}
	return m
}
