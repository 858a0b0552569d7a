package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// watched is a kind that is being read.
type watched struct {
	kind         *kind.Descriptor
	version      kind.Version
	informer     cache.Informer
	registration toolscache.ResourceEventHandlerRegistration
	objects      map[object.Name]client.Object // the newest of each, also in namespaces that are not read
	ended        bool
}

func nameOf(o client.Object) object.Name {
	return object.Name{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// watch begins to read a kind.
func (s *Source) watch(ctx context.Context, k *kind.Descriptor, v kind.Version) error {
	informer, err := s.opts.Cache.GetInformer(ctx, v.New(), cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	w := &watched{kind: k, version: v, informer: informer, objects: map[object.Name]client.Object{}}
	s.mu.Lock()
	s.watched[k.Kind] = w
	s.mu.Unlock()
	w.registration, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { s.seen(w, nil, o) },
		UpdateFunc: func(old, o any) { s.seen(w, old, o) },
		DeleteFunc: func(o any) { s.gone(w, o) },
	})
	if err != nil { // the informer has ended
		s.mu.Lock()
		delete(s.watched, k.Kind)
		s.mu.Unlock()
	}
	return err
}

// unwatch ends reading a kind: its objects are gone for the pipeline, but for those that guard.
func (s *Source) unwatch(ctx context.Context, w *watched) error {
	s.mu.Lock()
	w.ended = true
	delete(s.watched, w.kind.Kind)
	for _, o := range w.objects {
		if w.kind.Guards && s.reads(o.GetNamespace()) {
			s.guards.keep(w.kind, o)
		} else {
			s.change(w.kind, o, nil)
		}
	}
	s.mu.Unlock()
	return s.opts.Cache.RemoveInformer(ctx, w.version.New())
}

// unwatchAll ends listening; the caches go on for whoever else reads them.
func (s *Source) unwatchAll() {
	for _, w := range s.watches() {
		_ = w.informer.RemoveEventHandler(w.registration) // it may have ended already
	}
}

// watches returns what is watched, in the order of the table.
func (s *Source) watches() []*watched {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*watched
	for _, k := range s.kinds {
		if w := s.watched[k.Kind]; w != nil {
			out = append(out, w)
		}
	}
	return out
}

// seen takes in a new or changed object.
func (s *Source) seen(w *watched, old, current any) {
	o, ok := current.(client.Object)
	if !ok {
		return
	}
	same := false
	if last, ok := old.(client.Object); ok {
		if w.kind.Reading == kind.ByName {
			same = last.GetResourceVersion() == o.GetResourceVersion() && last.GetUID() == o.GetUID()
		} else {
			same = unchanged(last, o)
		}
	}
	if w.version.Convert != nil {
		o = w.version.Convert(o)
	}
	s.mu.Lock()
	if w.ended {
		s.mu.Unlock()
		return
	}
	w.objects[nameOf(o)] = o
	if w.kind.Guards {
		s.guards.back(w.kind.KeyOf(o))
	}
	if !same {
		s.change(w.kind, o, o)
	}
	s.mu.Unlock()
	if definition(w.kind) || s.brings(w.kind) {
		signal(s.recall)
	}
	s.opts.Changed(w.kind.KeyOf(o))
}

// gone takes in a deletion.
func (s *Source) gone(w *watched, last any) {
	if unseen, ok := last.(toolscache.DeletedFinalStateUnknown); ok {
		last = unseen.Obj
	}
	o, ok := last.(client.Object)
	if !ok {
		return
	}
	s.mu.Lock()
	if w.ended {
		s.mu.Unlock()
		return
	}
	delete(w.objects, nameOf(o))
	if w.kind.Guards && s.reads(o.GetNamespace()) {
		s.guards.doubt(w.kind, o)
	} else {
		s.change(w.kind, o, nil)
	}
	s.mu.Unlock()
	if definition(w.kind) {
		signal(s.recall)
	}
	s.opts.Changed(w.kind.KeyOf(o))
}

// change makes an object's newest version pending, nil for its end. The caller
// holds the lock.
func (s *Source) change(k *kind.Descriptor, o, newest client.Object) {
	switch key := k.KeyOf(o); {
	case !s.reads(o.GetNamespace()):
	case k.Reading == kind.ByName:
		s.expire(key)
	case definition(k) && !OfGatewayAPI(o): // somebody else's
	default:
		s.put(key, newest)
	}
	if ns, ok := o.(*corev1.Namespace); ok && s.opts.Selector != nil {
		s.selectNamespace(ns.Name, newest != nil && s.opts.Selector.Matches(labels.Set(ns.Labels)))
	}
}

// definition tells the kind whose objects define kinds.
func definition(k *kind.Descriptor) bool { return k.Kind == kind.Definition }
