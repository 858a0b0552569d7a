package kube

import (
	"context"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// guards are objects of kinds that say who may pass. Without one of them something is open. A
// person who deletes one means that. Nobody who deletes a CustomResourceDefinition does: the API
// server deletes all objects of its kind first, one by one, and the definition last. So the end
// of such an object is handed over when the definition is there to stay. Else the object stays in
// force, until there is one of its name again: when the definition comes back, its objects come after
// it. The Source's lock is that of guards.
type guards struct {
	doubts   map[object.Key]*ended // of which it is not known yet why
	kept     map[object.Key]*ended // with their definition
	doubtful chan struct{}
}

// ended is an object that has been deleted, as it was.
type ended struct {
	kind *kind.Descriptor
	last client.Object
}

func newGuards() guards {
	return guards{doubts: map[object.Key]*ended{}, kept: map[object.Key]*ended{}, doubtful: make(chan struct{}, 1)}
}

// doubt notes a deletion.
func (g *guards) doubt(k *kind.Descriptor, o client.Object) {
	g.doubts[k.KeyOf(o)] = &ended{k, o}
	signal(g.doubtful)
}

// keep has an object stay in force although it can't be read any more.
func (g *guards) keep(k *kind.Descriptor, o client.Object) { g.kept[k.KeyOf(o)] = &ended{k, o} }

// back notes that there is an object of that name again.
func (g *guards) back(k object.Key) {
	delete(g.doubts, k)
	delete(g.kept, k)
}

// Kept counts, by kind, the objects that stay in force although their kind was deleted.
func (s *Source) Kept() map[object.Kind]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[object.Kind]int{}
	for k := range s.guards.kept {
		counts[k.Kind]++
	}
	return counts
}

// followDoubts hands deletions over, or keeps what was deleted, until ctx ends.
func (s *Source) followDoubts(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.guards.doubtful:
		}
		for !s.decide(ctx) {
			if err := sleep(ctx, time.Second); err != nil {
				return err
			}
		}
	}
}

// decide settles the doubts that there are; false where the API server doesn't answer.
func (s *Source) decide(ctx context.Context) bool {
	s.mu.Lock()
	doubts := maps.Clone(s.guards.doubts) // what comes now may come of what is deleted now
	s.mu.Unlock()
	stays := map[object.Kind]bool{}
	for _, d := range doubts {
		if _, asked := stays[d.kind.Kind]; asked {
			continue
		}
		yes, err := s.definitionStays(ctx, d.kind)
		if err != nil {
			return false
		}
		stays[d.kind.Kind] = yes
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := 0
	for key, d := range doubts {
		switch {
		case s.guards.doubts[key] != d: // it is there again, or was deleted once more
			continue
		case stays[d.kind.Kind]:
			s.change(d.kind, d.last, nil)
		default:
			s.guards.keep(d.kind, d.last)
			kept++
		}
		delete(s.guards.doubts, key)
	}
	if kept > 0 {
		s.log.Warn("objects that say who may pass were deleted with their CustomResourceDefinition; they stay in force until there are some of their names again, or this process ends",
			"objects", kept)
	}
	return true
}

// definitionStays reports whether a kind's definition exists and is not being deleted. Who may
// not read it takes it for one that stays.
func (s *Source) definitionStays(ctx context.Context, k *kind.Descriptor) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	definition := kind.All.Of(kind.Definition).Watched()[0].New()
	switch err := s.opts.Client.Get(ctx, client.ObjectKey{Name: k.DefinitionName()}, definition); {
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsForbidden(err):
		return true, nil
	case err != nil:
		return false, err
	}
	return definition.GetDeletionTimestamp() == nil, nil
}
