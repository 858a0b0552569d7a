package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/remote/wire"
	"github.com/gatehouse-dev/gatehouse/internal/source/schema"
)

// Options say which server to subscribe to, and how.
type Options struct {
	// Address is HOST:PORT.
	Address string
	// TLS says how the server is known, and what is shown to it.
	TLS TLS
	// TokenFile has a bearer token; empty for none. It is read at each connection.
	TokenFile string
	// Kinds are those that are read; nil is kind.All.
	Kinds *kind.Table
	// Experimental selects the experimental channel of the Gateway API.
	Experimental bool
	// StateDir is a private directory, locked by this process, in which the last state is kept;
	// empty keeps nothing beyond the process. Several sources may have the same.
	StateDir string
	// Patience is how long a server is waited for of which nothing is kept; then it counts as one
	// without objects until it answers. 0 waits for ever.
	Patience time.Duration
	Log      *slog.Logger
}

// Source subscribes to a config server.
type Source struct {
	opts      Options
	log       *slog.Logger
	types     wire.Types
	urls      map[object.Kind]string
	validator *schema.Validator
	kept      *keeper // nil if nothing outlives the process

	entries map[object.Key]*entry
	reports *reports
	// plain says that the server can't read what is compressed.
	plain bool

	mu    sync.Mutex
	state source.Remote
}

// entry is what is known of an object.
type entry struct {
	// version is the server's, of what it sent last; empty to have that sent again.
	version  string
	object   source.Object // in force; nil for nothing
	standIn  bool          // which is not the object, that never was valid
	problems []source.Problem
}

// New checks the options.
func New(o Options) (*Source, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	o.Kinds = cmp.Or(o.Kinds, kind.All)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Source{
		opts: o, log: o.Log.With("remote", o.Address), types: wire.TypesOf(o.Kinds, o.Experimental), urls: map[object.Kind]string{},
		entries: map[object.Key]*entry{}, reports: newReports(), state: source.Remote{Address: o.Address},
	}
	for url, d := range s.types {
		s.urls[d.Kind] = url
	}
	var err error
	if s.validator, err = schema.New(o.Kinds, o.Experimental); err != nil {
		return nil, fmt.Errorf("remote source: %w", err)
	}
	return s, nil
}

// Name names the source in problems and logs.
func (s *Source) Name() string { return "remote " + s.opts.Address }

// State returns how it is with the server.
func (s *Source) State() source.Remote {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.state
	if st.Current {
		st.AsOf = time.Now()
	}
	return st
}

func (s *Source) setState(change func(*source.Remote)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.state)
}

// How long to wait after a connection that has failed. The time doubles, and is drawn from the
// upper half, so that clients of a server that comes back don't come all at once.
const (
	firstWait = 100 * time.Millisecond
	lastWait  = 15 * time.Second
)

// Run subscribes until ctx ends, and connects again as often as it takes. The first call of
// apply has all objects: those that are kept if there are any, else those of the server. apply
// is called from this goroutine, one batch at a time.
func (s *Source) Run(ctx context.Context, apply func(source.Batch)) error {
	s.kept = openKeeper(s.opts.StateDir, s.opts.Address, s.log)
	defer s.kept.close()
	told := s.restore(apply)
	var beside sync.WaitGroup
	defer beside.Wait()
	aging, end := context.WithCancel(ctx)
	defer end()
	beside.Go(func() { s.kept.age(aging, s.State) })
	begun := time.Now()
	for wait := firstWait; ctx.Err() == nil; {
		whole, err := s.subscribe(ctx, func(b source.Batch) {
			if !told || !b.Empty() {
				told = true
				apply(b)
			}
		})
		if ctx.Err() != nil {
			break
		}
		told = s.lost(err, apply, told, s.opts.Patience > 0 && time.Since(begun) > s.opts.Patience)
		if whole {
			wait = firstWait
		}
		if !sleep(ctx, wait/2+rand.N(wait/2)) {
			break
		}
		wait = min(2*wait, lastWait)
	}
	s.kept.seen(s.State())
	return nil
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// restore puts in force what an earlier process has kept, and reports whether there was anything.
func (s *Source) restore(apply func(source.Batch)) bool {
	asOf, ok := s.kept.load(s)
	if !ok {
		return false
	}
	var b source.Batch
	for _, key := range slices.SortedFunc(maps.Keys(s.entries), object.Key.Compare) {
		if o := s.entries[key].object; o != nil {
			b.Set = append(b.Set, o)
		}
	}
	s.setState(func(st *source.Remote) { st.AsOf, st.Objects = asOf, len(s.entries) })
	s.log.Info("serving the state that was kept until the config server answers", "objects", len(b.Set), "as_of", asOf.Format(time.RFC3339))
	apply(b)
	return true
}

// lost notes why there is no connection. It is said once, until there is one again or the
// reason is another one. It returns whether anything has been told to who takes the batches: before, a
// problem would count as all that there is, unless nobody waits any longer.
func (s *Source) lost(err error, apply func(source.Batch), told, late bool) bool {
	text := reason(err)
	was := s.State()
	s.setState(func(st *source.Remote) { st.Current, st.AsOf, st.Error = false, was.AsOf, text })
	if was.Current {
		s.kept.seen(was)
	}
	if !told && !late {
		if was.Error != text {
			s.log.Error("the config server can't be asked, and nothing is kept of it; it is tried again", "error", text)
		}
		return false
	}
	if was.Error != text || !told {
		stays := ", and its last state stays in force: "
		if was.AsOf.IsZero() {
			stays = ", and nothing is known of it: "
		}
		apply(source.Batch{Problems: map[string][]source.Problem{s.Name(): {{
			File: s.Name(), Reason: source.Unread, Message: "the config server can't be asked" + stays + text,
		}}}})
	}
	return true
}

var errTooMuch = errors.New("it sends more than this process takes")
