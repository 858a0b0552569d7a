package kube

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/foreign"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// foreignKind is a kind of another implementation's policies that is being read.
type foreignKind struct {
	of    schema.GroupVersionKind
	keys  map[object.Key]bool // of policies with targets
	ended bool
}

// lookForeign begins to watch the policies of other implementations whose definitions the cluster has. Nothing waits for
// them: they have no effect.
func (s *Source) lookForeign(ctx context.Context) {
	for i := range s.opts.Foreign {
		if k := &s.opts.Foreign[i]; s.foreignKinds[k.Kind] == nil && s.defined(k.Plural+"."+k.Group()) {
			s.watchForeign(ctx, k)
		}
	}
}

// endForeign stops to watch the policies of those whose definitions have gone, or have another version.
func (s *Source) endForeign(ctx context.Context) {
	for of, w := range s.foreignKinds {
		if !s.defined(foreign.KindOf(of).Plural+"."+of.Group()) || s.unservedForeign(ctx, w) {
			s.unwatchForeign(ctx, w)
			delete(s.foreignKinds, of)
		}
	}
}

// unservedForeign reports whether the version that is watched isn't served any more.
func (s *Source) unservedForeign(ctx context.Context, w *foreignKind) bool {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(w.of)
	return notServed(s.try(ctx, list, kind.Namespaced))
}

// watchForeign begins to watch a kind. What can't be read now is tried again when kinds are looked for next.
func (s *Source) watchForeign(ctx context.Context, k *foreign.Kind) {
	of, err := s.opts.Client.RESTMapper().KindFor(schema.GroupVersionResource{Group: k.Group(), Resource: k.Plural})
	if err == nil {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(of)
		err = s.try(ctx, list, kind.Namespaced)
	}
	var informer cache.Informer
	if err == nil {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(of)
		informer, err = s.opts.Cache.GetInformer(ctx, o, cache.BlockUntilSynced(false))
	}
	watched := &foreignKind{of: of, keys: map[object.Key]bool{}}
	if err == nil {
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { s.seenForeign(watched, o) },
			UpdateFunc: func(_, o any) { s.seenForeign(watched, o) },
			DeleteFunc: func(o any) { s.goneForeign(watched, o) },
		})
	}
	if ctx.Err() != nil || apimeta.IsNoMatchError(err) {
		return
	}
	if err != nil {
		s.sayForeign(k, err)
		return
	}
	delete(s.off, k.Kind)
	s.foreignKinds[k.Kind] = watched
}

// sayForeign logs why a kind's policies are not read, when that is news.
func (s *Source) sayForeign(k *foreign.Kind, err error) {
	if s.off[k.Kind] == err.Error() {
		return
	}
	s.off[k.Kind] = err.Error()
	text := "the policies of another implementation can't be read: nobody is told of those that have no effect here"
	if apierrors.IsForbidden(err) {
		text += "; let the controller list and watch them"
	}
	s.log.Info(text, "kind", k.Plural+"."+k.Group(), "of", k.Of, "error", err)
}

// unwatchForeign ends watching a kind.
func (s *Source) unwatchForeign(ctx context.Context, w *foreignKind) {
	s.mu.Lock()
	w.ended = true
	for key := range w.keys {
		s.putForeign(key, nil)
	}
	s.mu.Unlock()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(w.of)
	_ = s.opts.Cache.RemoveInformer(ctx, o) // it may be gone
}

// seenForeign takes in a new or changed policy.
func (s *Source) seenForeign(w *foreignKind, current any) {
	o, ok := current.(*unstructured.Unstructured)
	if !ok {
		return
	}
	p, has := foreign.PolicyOf(o.Object)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case w.ended:
	case has:
		w.keys[p.Key] = true
		s.putForeign(p.Key, []foreign.Policy{p})
	default: // it targets nothing, or nothing any more
		s.forgetForeign(w, o)
	}
}

// goneForeign takes in a deletion.
func (s *Source) goneForeign(w *foreignKind, last any) {
	if unseen, ok := last.(toolscache.DeletedFinalStateUnknown); ok {
		last = unseen.Obj
	}
	if o, ok := last.(*unstructured.Unstructured); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.forgetForeign(w, o)
	}
}

// forgetForeign takes back what was said of a policy. The caller holds the lock.
func (s *Source) forgetForeign(w *foreignKind, o client.Object) {
	key := object.Key{Kind: object.KindOf(w.of.Group, w.of.Kind), Name: nameOf(o)}
	if w.keys[key] {
		delete(w.keys, key)
		s.putForeign(key, nil)
	}
}

// putForeign makes a change pending; nil for a policy that is gone. The caller holds the lock.
func (s *Source) putForeign(key object.Key, list []foreign.Policy) {
	s.foreign[foreignKey(key)] = list
	signal(s.wake)
}

// foreignKey is what stands for a file where a cluster has a policy.
func foreignKey(key object.Key) string { return "\x00" + key.Kind.Group() + " " + key.String() }

// loadForeign reads the policies of other implementations that the person may read.
func (r *Reader) loadForeign(ctx context.Context) map[string][]foreign.Policy {
	out := map[string][]foreign.Policy{}
	for i := range foreign.Kinds {
		k := &foreign.Kinds[i]
		of, err := r.mapper.KindFor(schema.GroupVersionResource{Group: k.Group(), Resource: k.Plural})
		if err != nil {
			continue // most clusters don't have it
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(of)
		err = r.client.List(ctx, list)
		if apierrors.IsForbidden(err) && r.namespace != "" {
			err = r.client.List(ctx, list, client.InNamespace(r.namespace))
		}
		if err != nil {
			continue
		}
		for _, o := range list.Items {
			if p, ok := foreign.PolicyOf(o.Object); ok {
				out[foreignKey(p.Key)] = []foreign.Policy{p}
			}
		}
	}
	return out
}
