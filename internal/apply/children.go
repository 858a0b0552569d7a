package apply

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/blueprint"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// These are on the objects of blueprints.
const (
	// resourceLabel is the id of the resource that an object is of.
	resourceLabel = "gatehouse.dev/blueprint-resource"
	// blueprintManager is the field manager of what is applied.
	blueprintManager = infra.ManagedBy + "-blueprint"
)

// ChildrenOptions configure Children.
type ChildrenOptions struct {
	REST           *rest.Config
	Client         client.Client // not of a cache
	Namespace      string        // the controller's, where inventories are
	Namespaces     []string      // that Gateways may be in; nil is all
	ControllerName string
	Log            *slog.Logger
	Registerer     prometheus.Registerer // may be nil
	// OnLive is called with objects as they are; nil for one that is gone.
	OnLive func(blueprint.Ref, *unstructured.Unstructured)
	// OnScope is called with what is known of a kind; nil where there is none.
	OnScope func(of schema.GroupVersionKind, namespaced *bool)
	// OnProblems is called when it changes why objects of a Gateway aren't as they should be.
	OnProblems func(gateway object.Name, problems map[blueprint.Ref]string)
}

// Children make the objects of blueprints what they should be, and keep them so. All methods
// but Run return at once and may be called at any time, by any goroutine.
type Children struct {
	*writer
	o     ChildrenOptions
	queue *gatewayQueue

	mu       sync.Mutex
	wanted   map[object.Name]*blueprint.Children
	deleted  map[object.Name]bool // Gateways that are to have none
	complete bool
	cache    cache.Cache // while Run runs
	watched  map[schema.GroupVersionKind]bool
	problems map[object.Name]map[blueprint.Ref]string
}

// NewChildren returns Children that do nothing until they run.
func NewChildren(o ChildrenOptions) (*Children, error) {
	w, err := newWriter(o.Client, o.Log, blueprintManager, prometheus.CounterOpts{
		Name: "gatehouse_blueprint_writes_total",
		Help: "Writes of objects of blueprints, by kind, verb (apply or delete) and result (ok or error).",
	}, o.Registerer)
	if err != nil {
		return nil, err
	}
	return &Children{
		writer: w, o: o, wanted: map[object.Name]*blueprint.Children{}, deleted: map[object.Name]bool{},
		watched: map[schema.GroupVersionKind]bool{}, problems: map[object.Name]map[blueprint.Ref]string{},
		queue: newGatewayQueue(o.Log, "the objects of a Gateway's blueprint are not as they should be; trying again"),
	}, nil
}

// Set says which objects a Gateway should have.
func (ch *Children) Set(c *blueprint.Children) {
	ch.mu.Lock()
	ch.wanted[c.Gateway] = c
	delete(ch.deleted, c.Gateway)
	ch.mu.Unlock()
	ch.queue.Add(c.Gateway)
}

// Delete says that a Gateway is to have none.
func (ch *Children) Delete(gateway object.Name) {
	ch.mu.Lock()
	delete(ch.wanted, gateway)
	ch.deleted[gateway] = true
	ch.mu.Unlock()
	ch.queue.Add(gateway)
}

// Complete says that Set has been called for every Gateway: what others have is nobody's.
func (ch *Children) Complete() {
	ch.mu.Lock()
	ch.complete = true
	running := ch.cache != nil
	ch.mu.Unlock()
	if running {
		ch.enqueueInventories(context.Background())
	}
}

// Run works until ctx ends. Only one controller may run at a time.
func (ch *Children) Run(ctx context.Context) error {
	ours, err := labels.NewRequirement(resourceLabel, selection.Exists, nil)
	if err != nil {
		return err
	}
	options := cache.Options{
		Mapper: ch.client.RESTMapper(), DefaultLabelSelector: labels.NewSelector().Add(*ours),
		DefaultTransform: cache.TransformStripManagedFields(),
	}
	for _, namespace := range ch.o.Namespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	c, err := cache.New(ch.o.REST, options)
	if err != nil {
		return fmt.Errorf("watch the objects of blueprints: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.Start(ctx) })
	group.Go(func() error {
		defer ch.queue.ShutDown()
		ch.mu.Lock()
		ch.cache = c
		clear(ch.watched)
		complete := ch.complete
		ch.mu.Unlock()
		if complete {
			ch.enqueueInventories(ctx)
		}
		ch.queue.start(ctx, group, func(ctx context.Context, gateway object.Name) error { return ch.sync(ctx, c, gateway) })
		<-ctx.Done()
		ch.mu.Lock()
		ch.cache = nil
		ch.mu.Unlock()
		return nil
	})
	return group.Wait()
}

// sync makes the objects of a Gateway what they should be.
func (ch *Children) sync(ctx context.Context, c cache.Cache, gateway object.Name) error {
	ch.mu.Lock()
	want, deleted, complete := ch.wanted[gateway], ch.deleted[gateway], ch.complete
	ch.mu.Unlock()
	if want == nil && !deleted && !complete || want != nil && want.Unknown != "" {
		return nil // what there should be isn't known
	}
	inventory, err := ch.readInventory(ctx, gateway)
	if err != nil {
		return err
	}
	if want == nil {
		ch.report(gateway, nil)
		return ch.prune(ctx, inventory, nil)
	}
	problems := map[blueprint.Ref]string{}
	defer func() { ch.report(gateway, problems) }()
	var failed []error
	for _, kind := range want.Kinds {
		known, err := ch.follow(ctx, c, kind)
		if err != nil {
			failed = append(failed, err)
		}
		if !known {
			ch.queue.AddAfter(gateway, lookAgain)
		}
	}
	// What is made is in the inventory before it is made: nothing is forgotten.
	if err := ch.remember(ctx, inventory, want); err != nil {
		return err
	}
	for i := range want.Children {
		child := &want.Children[i]
		if err := ch.applyChild(ctx, c, inventory, want, child); err != nil {
			problems[child.Ref()] = explain(child, err)
			if !lasting(err) {
				failed = append(failed, fmt.Errorf("%s: %w", child.Ref(), err))
			}
		}
	}
	if err := ch.prune(ctx, inventory, want); err != nil {
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// lookAgain is after how long it is looked whether a kind or a right has come.
const lookAgain = 5 * time.Second

// explain says why an object isn't there, and what to do.
func explain(child *blueprint.Child, err error) string {
	if !apierrors.IsForbidden(err) {
		return err.Error()
	}
	kind := child.Object.GroupVersionKind()
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return fmt.Sprintf("the controller may not write objects of the kind %s; give it the right by a ClusterRole with the label %s=true and the rule "+
		"{apiGroups: [%q], resources: [%s], verbs: [get, list, watch, create, patch, delete]}", kind.Kind, aggregateLabel, kind.Group, plural.Resource)
}

// aggregateLabel is on the ClusterRoles whose rules the controller has for blueprints.
const aggregateLabel = "gatehouse.dev/aggregate-to-blueprints"

// applyChild applies an object unless it is already so.
func (ch *Children) applyChild(ctx context.Context, c cache.Cache, in *inventory, of *blueprint.Children, child *blueprint.Child) error {
	want, err := ch.labelled(in, of, child)
	if err != nil {
		return err
	}
	ref := child.Ref()
	key := objectKey{ref.Kind.GroupKind().String(), ref.Name}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(ref.Kind)
	err = apierrors.NewNotFound(schema.GroupResource{}, ref.Name.Name)
	if ch.isWatched(ref.Kind) {
		err = c.Get(ctx, client.ObjectKeyFromObject(want), live, client.UnsafeDisableDeepCopy)
	}
	if apierrors.IsNotFound(err) { // the cache has only what is labelled as ours
		found, err := ch.read(ctx, want)
		if err != nil {
			return err
		}
		if found == nil {
			_, err := ch.apply(ctx, key, want)
			return err
		}
		live = found.(*unstructured.Unstructured)
	} else if err != nil {
		return err
	}
	if live.GetLabels()[infra.PartOfLabel] != in.id {
		return &foreignError{"there is one already that is not of this Gateway's blueprint; rename it, or what the template makes"}
	}
	switch {
	case live.GetDeletionTimestamp() != nil:
		return errGoing
	case holds(live.Object, want.Object), ch.isSettled(key, want, live.Object):
		ch.forgetWritten(key)
		return nil
	case ch.isWritten(key, want, live):
		return nil
	}
	if _, err := ch.apply(ctx, key, want); err != nil {
		return err
	}
	ch.noteWritten(key, want, live)
	return nil
}

// labelled is an object as it is applied: with what it is known by again.
func (ch *Children) labelled(in *inventory, of *blueprint.Children, child *blueprint.Child) (*unstructured.Unstructured, error) {
	out := child.Object.DeepCopy()
	l := out.GetLabels()
	if l == nil {
		l = map[string]string{}
	}
	l[infra.PartOfLabel], l[infra.ManagedByLabel], l[resourceLabel] = in.id, infra.ManagedBy, child.ID
	out.SetLabels(l)
	hash, err := infra.Hash(out.Object)
	if err != nil {
		return nil, err
	}
	annotations := out.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[infra.GatewayAnnotation], annotations[infra.AppliedAnnotation] = of.Gateway.String(), hash
	out.SetAnnotations(annotations)
	if out.GetNamespace() == of.Gateway.Namespace && of.UID != "" {
		out.SetOwnerReferences([]metav1.OwnerReference{infra.OwnedBy(of.Gateway, of.UID)})
	}
	return out, nil
}

// report passes on why objects of a Gateway aren't as they should be, if that is new.
func (ch *Children) report(gateway object.Name, problems map[blueprint.Ref]string) {
	ch.mu.Lock()
	changed := !maps.Equal(ch.problems[gateway], problems)
	if len(problems) == 0 {
		delete(ch.problems, gateway)
	} else {
		ch.problems[gateway] = problems
	}
	ch.mu.Unlock()
	if changed {
		ch.o.OnProblems(gateway, problems)
	}
}

func (ch *Children) isWatched(kind schema.GroupVersionKind) bool {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return ch.watched[kind]
}

// follow watches the objects of a kind that are ours. It reports false where there is no such kind,
// or where its objects may not be read.
func (ch *Children) follow(ctx context.Context, c cache.Cache, kind schema.GroupVersionKind) (known bool, err error) {
	if ch.isWatched(kind) {
		return true, nil
	}
	mapping, err := ch.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		ch.o.OnScope(kind, nil)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	ch.o.OnScope(kind, &namespaced)
	// Who may not list them would wait for ever. What is missing is said where they are written.
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	in := client.ListOptions{Limit: 1}
	if namespaced && len(ch.o.Namespaces) > 0 {
		in.Namespace = ch.o.Namespaces[0]
	}
	if err := ch.client.List(ctx, list, &in); err != nil {
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		return false, err
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	informer, err := c.GetInformer(ctx, o)
	if err != nil {
		return false, fmt.Errorf("watch objects of the kind %s: %w", kind.Kind, err)
	}
	ch.mu.Lock()
	first := !ch.watched[kind]
	ch.watched[kind] = true
	ch.mu.Unlock()
	if !first {
		return true, nil
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { ch.seen(kind, o, true) },
		UpdateFunc: func(_, o any) { ch.seen(kind, o, true) },
		DeleteFunc: func(o any) { ch.seen(kind, o, false) },
	})
	return true, err
}

// seen passes on an object as it is, and wakes its Gateway.
func (ch *Children) seen(kind schema.GroupVersionKind, o any, there bool) {
	if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	live, ok := o.(*unstructured.Unstructured)
	if !ok {
		return
	}
	ref := blueprint.Ref{Kind: kind, Name: object.Name{Namespace: live.GetNamespace(), Name: live.GetName()}}
	if there {
		ch.o.OnLive(ref, live)
	} else {
		ch.o.OnLive(ref, nil)
	}
	if gateway, ok := object.ParseName(live.GetAnnotations()[infra.GatewayAnnotation]); ok {
		ch.queue.Add(gateway)
	}
}

// prune deletes what is in the inventory and should not be, the last that was made first. What
// a resource had of which it isn't known what there should be stays.
func (ch *Children) prune(ctx context.Context, in *inventory, want *blueprint.Children) error {
	wanted, held := map[blueprint.Ref]bool{}, map[string]bool{}
	if want != nil {
		for i := range want.Children {
			wanted[want.Children[i].Ref()] = true
		}
		for _, h := range want.Held {
			held[h.ID] = true
		}
	}
	var failed []error
	kept := in.entries[:0:0]
	for _, e := range slices.Backward(in.entries) {
		if wanted[e.Ref] || held[e.ID] {
			kept = append(kept, e)
			continue
		}
		gone, err := ch.discard(ctx, in, e.Ref)
		if err != nil {
			failed = append(failed, err)
		}
		if !gone {
			kept = append(kept, e)
		}
	}
	slices.Reverse(kept)
	if len(kept) < len(in.entries) {
		in.entries = kept
		if err := ch.writeInventory(ctx, in); err != nil {
			failed = append(failed, err)
		}
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	if want == nil && len(kept) > 0 {
		ch.queue.AddAfter(in.gateway, time.Second) // they are on their way
	}
	return nil
}

// discard deletes an object that is ours, and reports whether it is gone.
func (ch *Children) discard(ctx context.Context, in *inventory, ref blueprint.Ref) (gone bool, err error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(ref.Kind)
	o.SetNamespace(ref.Namespace)
	o.SetName(ref.Name.Name)
	live, err := ch.read(ctx, o)
	switch {
	case meta.IsNoMatchError(err):
		return true, nil // its kind went, and all objects with it
	case err != nil:
		return false, fmt.Errorf("read %s: %w", ref, err)
	case live == nil || live.GetLabels()[infra.PartOfLabel] != in.id:
		return true, nil
	case live.GetDeletionTimestamp() != nil:
		return false, nil
	}
	return false, ch.delete(ctx, ref.Kind.Kind, live)
}
