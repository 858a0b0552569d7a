package kube

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Waiting for kinds: soon after a definition changed, then less and less often.
const (
	soonest = time.Second
	latest  = time.Minute
)

// followKinds watches kinds that come, and forgets those that go, until ctx ends.
// A definition that changed is the sign to look; what no definition tells of, such
// as a right that was granted, is found by looking now and then.
func (s *Source) followKinds(ctx context.Context) error {
	wait := soonest
	for {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-s.recall:
			timer.Stop()
			wait = soonest
			s.tellChannel()
			s.endForeign(ctx)
			if err := s.forget(ctx); err != nil {
				return err
			}
		case <-timer.C:
			wait = min(2*wait, latest)
		}
		s.look(ctx)
		s.lookForeign(ctx)
	}
}

// look begins to watch the kinds that are served and not watched yet. It returns
// those of which it can't be told now.
func (s *Source) look(ctx context.Context) (unknown []*kind.Descriptor) {
	for _, k := range s.kinds {
		if s.isWatched(k) || !s.needed(k) {
			continue
		}
		v, why, err := s.served(ctx, k)
		if err == nil && v != nil {
			err = s.watch(ctx, k, *v)
		}
		switch {
		case ctx.Err() != nil:
			return s.kinds
		case err != nil:
			s.sayOff(k, err.Error())
			unknown = append(unknown, k)
		case v == nil:
			if s.off[k.Kind] != why {
				s.tellUnread(k, why)
			}
			s.sayOff(k, why)
		case s.off[k.Kind] != "":
			s.log.Info("a kind is read from now on", "kind", k.String(), "version", v.Name)
			delete(s.off, k.Kind)
			s.tellUnread(k, "")
		}
	}
	return unknown
}

// forget stops to watch kinds that are not served any more. Each is asked for
// twice, lest a server that is just starting is taken at its word.
func (s *Source) forget(ctx context.Context) error {
	gone := s.unserved(ctx, s.watches())
	if len(gone) == 0 {
		return nil
	}
	if err := sleep(ctx, time.Second); err != nil {
		return err
	}
	for _, w := range s.unserved(ctx, gone) {
		text := "a kind is not served any more; its objects have no effect"
		if w.kind.Guards {
			text = "a kind that says who may pass is not served any more; what was known of it stays in force until there are some of their names again, or this process ends"
		}
		s.log.Warn(text, "kind", w.kind.String(), "version", w.version.Name)
		s.off[w.kind.Kind] = "gone"
		if err := s.unwatch(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// unserved returns those kinds with a definition that the cluster doesn't know.
func (s *Source) unserved(ctx context.Context, list []*watched) []*watched {
	var out []*watched
	for _, w := range list {
		if w.kind.Custom && notServed(s.try(ctx, w.version.List(), w.kind.Scope)) {
			out = append(out, w)
		}
	}
	return out
}

// needed reports whether objects of a kind are to be read: not those that are there for objects of another kind
// alone, while there are none of that.
func (s *Source) needed(k *kind.Descriptor) bool { return k.For == (object.Kind{}) || s.Uses(k.For) }

// lacks reports whether a kind that is needed has still to be looked for.
func (s *Source) lacks() bool {
	return slices.ContainsFunc(s.kinds, func(k *kind.Descriptor) bool {
		return k.For != (object.Kind{}) && s.needed(k) && !s.isWatched(k) && s.off[k.Kind] == ""
	})
}

// brings reports whether objects of another kind, which isn't watched, are needed for those of a kind.
func (s *Source) brings(of *kind.Descriptor) bool {
	return slices.ContainsFunc(s.kinds, func(k *kind.Descriptor) bool { return k.For == of.Kind && !s.isWatched(k) })
}

func (s *Source) isWatched(k *kind.Descriptor) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watched[k.Kind] != nil
}

// served returns the best version of a kind that the cluster serves and lets us
// read, or why there is none.
func (s *Source) served(ctx context.Context, k *kind.Descriptor) (v *kind.Version, why string, err error) {
	versions := k.Watched()
	for i := range versions {
		err := s.try(ctx, versions[i].List(), k.Scope)
		switch {
		case err == nil:
			return &versions[i], "", nil
		case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
			if k.Guards && s.mayBeDefined(ctx, k) {
				return nil, "", fmt.Errorf("%w: nothing new is served until they can be read, since they say who may pass", err)
			}
			return nil, err.Error(), nil
		case !notServed(err):
			return nil, "", err
		}
	}
	if s.defined(k.DefinitionName()) {
		return nil, "its CustomResourceDefinition doesn't serve " + versions[0].Name, nil
	}
	return nil, notDefined, nil
}

// notDefined is why most kinds that are not read are not read.
const notDefined = "the cluster doesn't serve it"

// defined reports whether a definition is known, by its name.
func (s *Source) defined(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.watched[kind.Definition]
	return w != nil && w.objects[object.Name{Name: name}] != nil
}

// mayBeDefined reports whether there may be objects of a kind that we may not read.
func (s *Source) mayBeDefined(ctx context.Context, k *kind.Descriptor) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	definition := kind.All.Of(kind.Definition).Watched()[0].New()
	return !apierrors.IsNotFound(s.opts.Client.Get(ctx, client.ObjectKey{Name: k.DefinitionName()}, definition))
}

// try reads one object of a list.
func (s *Source) try(ctx context.Context, list client.ObjectList, scope kind.Scope) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	opts := []client.ListOption{client.Limit(1)}
	if len(s.opts.Namespaces) > 0 && scope == kind.Namespaced {
		opts = append(opts, client.InNamespace(s.opts.Namespaces[0]))
	}
	return s.opts.Client.List(ctx, list, opts...)
}

func notServed(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }

// tellUnread hands over why a kind is not read; an empty reason says that it is.
func (s *Source) tellUnread(k *kind.Descriptor, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unread[k.Kind.Name()] = why
	signal(s.wake)
}

// sayOff logs why a kind is not read, when that is news.
func (s *Source) sayOff(k *kind.Descriptor, why string) {
	if s.off[k.Kind] == why {
		return
	}
	s.off[k.Kind] = why
	level := slog.LevelWarn
	if why == notDefined && k.Kind.Group() != kind.GatewayAPI {
		level = slog.LevelInfo // few need it
	}
	s.log.Log(context.Background(), level, "a kind is not read", "kind", k.String(), "reason", why)
}
