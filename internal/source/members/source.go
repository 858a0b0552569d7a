package members

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// Name is what the source is called, in problems and logs.
const Name = "member clusters"

// DefaultKeepFor is how long what a lost cluster had stays in force, if nothing else is said.
const DefaultKeepFor = 10 * time.Minute

// Cluster is one of the clusters whose Services belong together.
type Cluster struct {
	// Name is what policies and EndpointSlices call it: a DNS label.
	Name string
	// Kubeconfig is a file, and Context one of its contexts; empty for the current one. The file is read again when it
	// changes.
	Kubeconfig, Context string
	// REST is how the cluster is reached that has no Kubeconfig: the one that this process serves.
	REST *rest.Config
	// Namespaces are those that are read; none means all.
	Namespaces []string
	// KeepFor is how long what the cluster had last stays in force once it can't be asked.
	KeepFor time.Duration
}

// check says what is wrong with the options of a cluster.
func (c Cluster) check() error {
	switch {
	case len(validation.IsDNS1123Label(c.Name)) > 0:
		return fmt.Errorf("member cluster %q: the name must be a DNS label, such as west", c.Name)
	case c.Kubeconfig == "" && c.REST == nil:
		return fmt.Errorf("member cluster %s: name its kubeconfig", c.Name)
	}
	return nil
}

// Options say which clusters are read.
type Options struct {
	Clusters []Cluster
	// Patience is how long a start waits for clusters that don't answer. They count as empty then, until they do.
	Patience time.Duration
	Log      *slog.Logger
}

// Source reads member clusters.
type Source struct {
	opts    Options
	members []*member
	wake    chan struct{} // something is to be made anew

	mu    sync.Mutex // of all below, and of the members' contents
	dirty map[object.Name]bool
	told  map[string]string // what is wrong with a cluster, as it was told last

	made map[object.Name]*made // Run's alone
}

// New checks the options.
func New(o Options) (*Source, error) {
	s := &Source{
		opts: o, wake: make(chan struct{}, 1), dirty: map[object.Name]bool{}, told: map[string]string{}, made: map[object.Name]*made{},
	}
	if s.opts.Log == nil {
		s.opts.Log = slog.New(slog.DiscardHandler)
	}
	var errs []error
	for _, c := range o.Clusters {
		if err := c.check(); err != nil {
			errs = append(errs, err)
		}
		if slices.ContainsFunc(s.members, func(m *member) bool { return m.Name == c.Name }) {
			errs = append(errs, fmt.Errorf("member cluster %s: there are two of this name", c.Name))
		}
		s.members = append(s.members, newMember(s, c))
	}
	return s, errors.Join(errs...)
}

// States say how it is with each cluster.
func (s *Source) States() (out []source.Remote) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.members {
		out = append(out, m.stateNow())
	}
	return out
}

// Run reads the clusters until ctx ends. The first call of apply has all objects, of the clusters that have answered until
// then. apply is called from this goroutine, one batch at a time.
func (s *Source) Run(ctx context.Context, apply func(source.Batch)) error {
	var group sync.WaitGroup
	defer group.Wait()
	for _, m := range s.members {
		group.Go(func() { m.run(ctx) })
	}
	s.awaitAll(ctx)
	for first := true; ctx.Err() == nil; first = false {
		if b := s.batch(); first || !b.Empty() {
			apply(b)
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
		}
	}
	return nil
}

// awaitAll waits until each cluster has been read, but no longer than a start may.
func (s *Source) awaitAll(ctx context.Context) {
	patience := time.NewTimer(s.opts.Patience)
	defer patience.Stop()
	for _, m := range s.members {
		select {
		case <-m.read:
		case <-patience.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// touch notes Services that are to be made anew; the caller has the lock.
func (s *Source) touch(names ...object.Name) {
	for _, n := range names {
		s.dirty[n] = true
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// batch returns what has changed since the last one.
func (s *Source) batch() source.Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b source.Batch
	for _, name := range slices.SortedFunc(maps.Keys(s.dirty), object.Name.Compare) {
		before := s.made[name]
		now := s.make(name, before)
		now.since(before, &b)
		if s.made[name] = now; now == nil {
			delete(s.made, name)
		}
	}
	clear(s.dirty)
	for _, m := range s.members {
		text := m.problem()
		if s.told[m.Name] == text {
			continue
		}
		s.told[m.Name] = text
		if b.Problems == nil {
			b.Problems = map[string][]source.Problem{}
		}
		b.Problems[m.title()] = nil
		if text != "" {
			b.Problems[m.title()] = []source.Problem{{File: m.title(), Reason: source.Unread, Message: text}}
		}
	}
	return b
}
