package kube

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/foreign"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// Options configure a Source.
type Options struct {
	// Cache is the manager's, made with CacheOptions. The Source does not start it.
	Cache cache.Cache
	// Client reads past the cache, and knows the kinds that the cluster has.
	Client interface {
		client.Reader
		RESTMapper() apimeta.RESTMapper
	}
	// Namespaces are those whose objects are read, or those whose labels Selector
	// matches; all if both are empty. Objects of others are as good as absent.
	Namespaces []string
	Selector   labels.Selector
	// Experimental reads the kinds of the experimental channel too.
	Experimental bool
	Log          *slog.Logger
	// Kinds are those that are read; nil is kind.All.
	Kinds *kind.Table
	// Foreign are the kinds of other implementations' policies that are read where the cluster has them; nil is
	// foreign.Kinds.
	Foreign []foreign.Kind
	// Expected names the kinds of which an earlier process has read objects. As long as one of them can't be
	// read, there is no first batch, though not for longer than expectFor: a definition that was
	// deleted, or a right that was taken away, while no process ran is a mistake more often than it is
	// meant.
	Expected []string
	// Changed is told of each change of an object that is watched, also of those that
	// are not handed over. It must be quick; nil if nobody wants to know.
	Changed func(object.Key)
	// OtherChannel is told when the cluster has another channel than what is read; nil if
	// nobody wants to know.
	OtherChannel func()
}

// Source reads a cluster.
type Source struct {
	opts   Options
	log    *slog.Logger
	kinds  []*kind.Descriptor
	recall chan struct{} // a CustomResourceDefinition changed
	wake   chan struct{} // something is pending
	stale  chan struct{} // contents are to be read

	mu      sync.Mutex
	watched map[object.Kind]*watched
	// pending is what the next batch brings; nil for an object that is gone.
	pending map[object.Key]client.Object
	unread  map[string]string           // likewise, by kind
	foreign map[string][]foreign.Policy // likewise
	// selected are the namespaces that the selector matches.
	selected map[string]bool
	contents map[object.Key]*content
	guards   guards

	// Of the goroutine that looks for kinds.
	off          map[object.Kind]string // why a kind is not read
	foreignKinds map[object.Kind]*foreignKind
	channel      string // of the Gateway API, when it was last told
}

// New prepares reading; Run begins it.
func New(opts Options) (*Source, error) {
	if len(opts.Namespaces) > 0 && opts.Selector != nil {
		return nil, fmt.Errorf("namespaces by name and by labels: only one of them can be used")
	}
	opts.Kinds = cmp.Or(opts.Kinds, kind.All)
	if opts.Foreign == nil {
		opts.Foreign = foreign.Kinds
	}
	if opts.Changed == nil {
		opts.Changed = func(object.Key) {}
	}
	s := &Source{
		opts: opts, log: opts.Log,
		recall:   make(chan struct{}, 1),
		wake:     make(chan struct{}, 1),
		stale:    make(chan struct{}, 1),
		watched:  map[object.Kind]*watched{},
		pending:  map[object.Key]client.Object{},
		unread:   map[string]string{},
		selected: map[string]bool{},
		contents: map[object.Key]*content{},
		guards:   newGuards(),
		off:      map[object.Kind]string{},
		foreign:  map[string][]foreign.Policy{}, foreignKinds: map[object.Kind]*foreignKind{},
	}
	for k := range opts.Kinds.Rows() {
		if k.Channel == kind.Standard || opts.Experimental {
			s.kinds = append(s.kinds, k)
		}
	}
	return s, nil
}

// Run reads until ctx ends. The first batch is everything; emit gets one batch at a
// time.
func (s *Source) Run(ctx context.Context, emit func(source.Batch)) error {
	defer s.unwatchAll()
	if err := s.begin(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.followKinds(ctx) })
	group.Go(func() error { return s.followContents(ctx) })
	group.Go(func() error { return s.followDoubts(ctx) })
	group.Go(func() error {
		first := s.take()
		first.Deleted = nil // nobody has heard of it
		emit(first)
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-s.wake:
			}
			if b := s.take(); !b.Empty() {
				emit(b)
			}
		}
	})
	return group.Wait()
}

// expectFor is how long a kind that there were objects of is waited for. After that it is
// taken for one that was given up.
const expectFor = 5 * time.Minute

// Used returns the kinds of which there are objects.
func (s *Source) Used() map[object.Kind]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[object.Kind]bool{}
	for k, w := range s.watched {
		if len(w.objects) > 0 {
			out[k] = true
		}
	}
	return out
}

// Uses reports whether there are objects of a kind.
func (s *Source) Uses(k object.Kind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.watched[k]
	return w != nil && len(w.objects) > 0
}

// missing returns the expected kinds that can't be read.
func (s *Source) missing() (out []*kind.Descriptor) {
	for _, k := range s.kinds {
		if k.For != (object.Kind{}) {
			continue // those that it is for may have gone
		}
		if slices.Contains(s.opts.Expected, k.Kind.Name()) && !s.isWatched(k) {
			out = append(out, k)
		}
	}
	return out
}

// begin starts to watch what is there, and returns when all of it is known.
func (s *Source) begin(ctx context.Context) error {
	began, said := time.Now(), ""
	for {
		unknown := s.look(ctx)
		if missing := s.missing(); time.Since(began) < expectFor {
			if text := names(missing); text != "" && text != said {
				said = text
				s.log.Warn("kinds that there were objects of can't be read; nothing new is served until they can be",
					"kinds", text, "at_most", expectFor.String())
			}
			unknown = append(unknown, missing...)
		}
		synced := s.settle(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case !synced: // a kind that went meanwhile is never known
			if err := s.forget(ctx); err != nil {
				return err
			}
		case len(unknown) == 0 && s.lacks(): // it is needed for what has just been read
		case len(unknown) == 0:
			return nil
		default: // the API server doesn't say
			if err := sleep(ctx, time.Second); err != nil {
				return err
			}
		}
	}
}

func names(list []*kind.Descriptor) string {
	var out []string
	for _, k := range list {
		out = append(out, k.String())
	}
	return strings.Join(out, ", ")
}

// settle waits until all that is watched is known, for a while.
func (s *Source) settle(ctx context.Context) (synced bool) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, w := range s.watches() {
		select {
		case <-w.registration.HasSyncedChecker().Done():
		case <-ctx.Done():
			s.log.Warn("objects are still being read", "kind", w.kind.String())
			return false
		}
	}
	return true
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// take returns what is pending, and forgets it.
func (s *Source) take() source.Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := source.Batch{Unread: s.unread, Foreign: s.foreign}
	s.unread, s.foreign = map[string]string{}, map[string][]foreign.Policy{}
	if len(s.pending) == 0 {
		return b
	}
	for k, o := range s.pending {
		if o == nil {
			b.Deleted = append(b.Deleted, k)
		} else {
			b.Set = append(b.Set, o)
		}
	}
	s.pending = map[object.Key]client.Object{} // maps don't shrink
	return b
}

// put makes a change pending. The caller holds the lock.
func (s *Source) put(k object.Key, o client.Object) {
	s.pending[k] = o
	signal(s.wake)
}

// signal wakes whoever reads the channel, once for any number of calls.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// Live returns the newest object, status included, which nobody may change; nil if
// there is none.
func (s *Source) Live(k object.Key) client.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.watched[k.Kind]
	if w == nil {
		return nil
	}
	return w.objects[k.Name]
}
