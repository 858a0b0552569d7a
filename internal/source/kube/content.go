package kube

import (
	"context"
	"reflect"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// content is a Secret or ConfigMap that the pipeline wants.
type content struct {
	object client.Object // as it was handed over; nil if it doesn't exist
	stale  bool          // it is to be read
	failed bool          // it becomes stale again after a while
	// begun counts how often reading it has begun, and taken is the last of these whose
	// answer counts: one that comes after the answer to a later reading is old.
	begun, taken int
	// answered says that it was read once, or that reading it failed.
	answered bool
	failure  string // of the last attempt; empty if it went well
}

// Reading contents: how many at once, how long the loop may wait for all of them,
// and when a failure is tried again.
const (
	readers     = 16
	patience    = 5 * time.Second
	firstRetry  = time.Second
	latestRetry = 30 * time.Second
)

// How many contents of one namespace are read before others have their turn again: of
// those that the loop waits for, and of those that have changed. Who asks for more waits
// for his own; a listener of a Gateway has one or two, and a Gateway has up to 64.
const (
	awaited = 256
	turn    = 64
)

// Want says which Secrets and ConfigMaps the pipeline asks for. It returns the end of
// those no longer wanted, and a function that reads those newly wanted; nil where there
// are none. It reads only what is new, and not for long: what could not be read in time
// comes through Run, as all later changes do. The function returns another one, which
// returns those that exist as they are when it is called: a change may have come through
// Run meanwhile. Want and that one are for one goroutine, that of the loop, and Want is
// not to be called before it has been.
func (s *Source) Want(secrets, configMaps []object.Name) (gone source.Batch, read func(context.Context) (take func() source.Batch)) {
	wanted := make(map[object.Key]bool, len(secrets)+len(configMaps))
	for _, n := range secrets {
		wanted[object.Key{Kind: kind.Secret, Name: n}] = true
	}
	for _, n := range configMaps {
		wanted[object.Key{Kind: kind.ConfigMap, Name: n}] = true
	}

	fresh := map[object.Key]*content{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, c := range s.contents {
		if !wanted[k] {
			delete(s.contents, k)
			delete(s.pending, k)
			if c.object != nil {
				gone.Deleted = append(gone.Deleted, k)
			}
		}
	}
	for k := range wanted {
		if s.contents[k] == nil {
			fresh[k] = &content{}
			s.contents[k] = fresh[k]
		}
	}
	if len(fresh) == 0 {
		return gone, nil
	}
	return gone, func(ctx context.Context) func() source.Batch {
		s.readFresh(ctx, fresh)
		return func() source.Batch { return s.takeFresh(fresh) }
	}
}

// readFresh reads contents for the first time.
func (s *Source) readFresh(ctx context.Context, fresh map[object.Key]*content) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	first := inTurns(fresh, awaited)
	failed := s.readAll(ctx, first, fresh, func(_ object.Key, c *content, o client.Object) {
		if c.object == nil && o != nil { // else a change has come already
			c.object = o
		}
	})
	if failed {
		s.retry()
	}
	if len(first) < len(fresh) {
		s.postpone(fresh)
	}
}

// postpone has those contents read later of which nothing is known yet.
func (s *Source) postpone(fresh map[object.Key]*content) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, c := range fresh {
		c.stale = c.stale || s.contents[k] == c && c.begun == 0
	}
	signal(s.stale)
}

// takeFresh returns those contents that exist and are wanted still.
func (s *Source) takeFresh(fresh map[object.Key]*content) (out source.Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, c := range fresh {
		if s.contents[k] == c && c.object != nil {
			out.Set = append(out.Set, c.object)
		}
	}
	return out
}

// Unread counts the wanted Secrets and ConfigMaps of which nothing is known yet.
func (s *Source) Unread() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.contents {
		if !c.answered {
			n++
		}
	}
	return n
}

// expire has a content read again if it is wanted. The caller holds the lock.
func (s *Source) expire(k object.Key) {
	if c := s.contents[k]; c != nil {
		c.stale = true
		signal(s.stale)
	}
}

// followContents reads what changed, and again what could not be read, until ctx
// ends.
func (s *Source) followContents(ctx context.Context) error {
	wait := firstRetry
	var retry <-chan time.Time // nil while none is due
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-retry:
			retry = nil
			s.retry()
			continue
		case <-s.stale:
		}
		keys, stale := s.takeStale()
		failed := s.readAll(ctx, keys, stale, func(k object.Key, c *content, o client.Object) {
			if !sameContent(c.object, o) {
				c.object = o
				s.put(k, o)
			}
		})
		switch {
		case retry != nil:
		case failed:
			retry = time.After(wait)
			wait = min(2*wait, latestRetry)
		default:
			wait = firstRetry
		}
	}
}

// retry has those contents read again that could not be read.
func (s *Source) retry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.contents {
		c.stale, c.failed = c.stale || c.failed, false
	}
	signal(s.stale)
}

// takeStale returns contents that are to be read, in their order. Those beyond a turn
// remain.
func (s *Source) takeStale() ([]object.Key, map[object.Key]*content) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stale := map[object.Key]*content{}
	for k, c := range s.contents {
		if c.stale {
			stale[k] = c
		}
	}
	now := inTurns(stale, turn)
	for _, k := range now {
		stale[k].stale, stale[k].failed = false, false
	}
	if len(now) < len(stale) {
		signal(s.stale)
	}
	return now, stale
}

// inTurns orders contents so that namespaces take turns, and leaves out what is beyond so
// many of a namespace.
func inTurns(list map[object.Key]*content, most int) []object.Key {
	byNamespace := map[string][]object.Key{}
	for k := range list {
		if of := byNamespace[k.Namespace]; len(of) < most {
			byNamespace[k.Namespace] = append(of, k)
		}
	}
	var out []object.Key
	for i := 0; len(byNamespace) > 0; i++ {
		for namespace, of := range byNamespace {
			if i == len(of) {
				delete(byNamespace, namespace)
				continue
			}
			out = append(out, of[i])
		}
	}
	return out
}

// readAll reads contents, in the order of the keys, and gives each one that is still wanted
// to done, which is called with the lock held. What could not be read has failed
// afterwards.
func (s *Source) readAll(ctx context.Context, keys []object.Key, list map[object.Key]*content, done func(object.Key, *content, client.Object)) (failed bool) {
	var failures atomic.Bool
	var group errgroup.Group
	group.SetLimit(readers)
	for _, k := range keys {
		c := list[k]
		group.Go(func() error {
			begun := s.startReading(c)
			o, err := s.read(ctx, k)
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.contents[k] != c {
				return nil // no longer wanted
			}
			if begun < c.taken {
				return nil // what was read later is known already
			}
			if err == nil {
				c.taken, c.answered, c.failure = begun, true, ""
				done(k, c, o)
				return nil
			}
			c.failed = true
			failures.Store(true)
			if ctx.Err() == nil && c.failure != err.Error() {
				c.answered, c.failure = true, err.Error()
				s.log.Warn("an object can't be read; it is tried again", "object", k.String(), "error", err)
			}
			return nil
		})
	}
	_ = group.Wait() // none of them returns an error
	return failures.Load()
}

// startReading counts a reading of a content that begins.
func (s *Source) startReading(c *content) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.begun++
	return c.begun
}

// read reads one content; nil if it doesn't exist.
func (s *Source) read(ctx context.Context, k object.Key) (client.Object, error) {
	if s.absent(k) {
		return nil, nil
	}
	d := s.opts.Kinds.Of(k.Kind)
	o := d.New()
	if err := s.opts.Client.Get(ctx, client.ObjectKey{Namespace: k.Namespace, Name: k.Name.Name}, o); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	stripMeta(o)
	setType(o, d.TypeMeta(d.Versions[0].Name))
	return o, nil
}

// absent reports whether it is known without asking that there is nothing to read.
func (s *Source) absent(k object.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opts.Kinds.Of(k.Kind) == nil || !s.reads(k.Namespace) {
		return true
	}
	w := s.watched[k.Kind]
	return w != nil && w.objects[k.Name] == nil
}

// sameContent reports whether two versions of a content hold the same.
func sameContent(a, b client.Object) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	switch a := a.(type) {
	case *corev1.Secret:
		b, ok := b.(*corev1.Secret)
		return ok && a.Type == b.Type && reflect.DeepEqual(a.Data, b.Data)
	case *corev1.ConfigMap:
		b, ok := b.(*corev1.ConfigMap)
		return ok && reflect.DeepEqual(a.Data, b.Data) && reflect.DeepEqual(a.BinaryData, b.BinaryData)
	}
	return false
}
