package apply

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/blueprint"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// blueprintManager is the field manager of what is applied.
const blueprintManager = infra.ManagedBy + "-blueprint"

// ChildrenOptions configure Children.
type ChildrenOptions struct {
	REST           *rest.Config
	Client         client.Client // not of a cache
	Namespace      string        // the controller's, where inventories are
	Namespaces     []string      // that Gateways may be in; nil is all
	ControllerName string
	// Events gets Events at the Gateway about what is out of the ordinary; may be nil.
	Events     events.EventRecorder
	Log        *slog.Logger
	Registerer prometheus.Registerer // may be nil
	// OnLive is called with objects as they are; nil for one that is gone.
	OnLive func(blueprint.Ref, *unstructured.Unstructured)
	// OnScope is called with what is known of a kind, nil where there is none, once the objects of the kind have been said.
	OnScope func(of schema.GroupVersionKind, namespaced *bool)
	// OnMade is called with the objects that a Gateway has, where it matters in which places.
	OnMade func(gateway object.Name, made map[blueprint.Place][]blueprint.Ref)
	// OnProblems is called when it changes why objects of a Gateway aren't as they should be.
	OnProblems func(gateway object.Name, problems map[blueprint.Ref]string)
}

// Children make the objects of blueprints what they should be, and keep them so. All methods
// but Run return at once and may be called at any time, by any goroutine.
type Children struct {
	*writer
	o     ChildrenOptions
	queue *gatewayQueue

	mu          sync.Mutex
	wanted      map[object.Name]*blueprint.Children
	deleted     map[object.Name]bool // Gateways that are to have none
	complete    bool
	cache       cache.Cache // while Run runs
	watched     map[schema.GroupVersionKind]bool
	inventories map[object.Name]*inventory // as they were last read or written
	problems    map[object.Name]map[blueprint.Ref]problem
	counts      map[object.Name]map[string]int // of objects by their state
	told        map[object.Name]map[blueprint.Place][]blueprint.Ref

	objects             *prometheus.GaugeVec
	deletionPatience    time.Duration
	replacementPatience time.Duration
}

// problem is why an object isn't as it should be.
type problem struct {
	reason string // of an Event; empty for what may pass by itself
	text   string
}

// The reasons of Events.
const (
	reasonForbidden     = "BlueprintObjectForbidden"
	reasonFailed        = "BlueprintObjectFailed"
	reasonDeletionStuck = "BlueprintDeletionStuck"
	reasonReplaced      = "BlueprintObjectReplaced"
	reasonNotReplaced   = "BlueprintReplacementStuck"
)

// The states of objects.
const (
	stateApplied  = "applied"
	stateFailed   = "failed"
	stateReplaced = "replaced"
	stateDeleting = "deleting"
	stateStuck    = "stuck"
)

// NewChildren returns Children that do nothing until they run.
func NewChildren(o ChildrenOptions) (*Children, error) {
	w, err := newWriter(o.Client, o.Log, blueprintManager, prometheus.CounterOpts{
		Name: "gatehouse_blueprint_writes_total",
		Help: "Writes of objects of blueprints, by kind, verb (apply or delete) and result (ok or error).",
	}, o.Registerer)
	if err != nil {
		return nil, err
	}
	ch := &Children{
		writer: w, o: o, wanted: map[object.Name]*blueprint.Children{}, deleted: map[object.Name]bool{},
		watched: map[schema.GroupVersionKind]bool{}, problems: map[object.Name]map[blueprint.Ref]problem{}, counts: map[object.Name]map[string]int{},
		told: map[object.Name]map[blueprint.Place][]blueprint.Ref{}, inventories: map[object.Name]*inventory{},
		queue: newGatewayQueue(o.Log, "the objects of a Gateway's blueprint are not as they should be; trying again"),
		objects: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "gatehouse_blueprint_objects",
			Help: "Objects of blueprints by their state: applied, failed, replaced where another one takes their place, deleting, or stuck where one of both takes too long.",
		}, []string{"state"}),
		deletionPatience: deletionPatience, replacementPatience: replacementPatience,
	}
	if o.Registerer != nil {
		if err := o.Registerer.Register(ch.objects); err != nil {
			return nil, fmt.Errorf("register metrics of objects: %w", err)
		}
	}
	return ch, nil
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
	ours, err := labels.NewRequirement(infra.ResourceLabel, selection.Exists, nil)
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
	inventory, err := ch.inventory(ctx, gateway)
	if err != nil {
		return err
	}
	s := &childrenSync{Children: ch, cache: c, in: inventory, want: want, problems: map[blueprint.Ref]problem{}, counts: map[string]int{}, live: map[objectKey]*unstructured.Unstructured{}}
	if want == nil {
		if unwanted, err := ch.isUnwanted(ctx, gateway, deleted); err != nil || !unwanted {
			return err
		}
		s.tell()
		err = s.prune(ctx)
	} else {
		err = s.all(ctx)
	}
	ch.report(s)
	return err
}

// childrenSync is one look at the objects of a Gateway.
type childrenSync struct {
	*Children
	cache    cache.Cache
	in       *inventory
	want     *blueprint.Children // nil for none
	problems map[blueprint.Ref]problem
	counts   map[string]int
	// live are the objects that were found to be as they should be.
	live map[objectKey]*unstructured.Unstructured
}

// all applies and prunes.
func (s *childrenSync) all(ctx context.Context) error {
	var failed []error
	for _, kind := range s.want.Kinds {
		if err := s.follow(ctx, kind); err != nil {
			failed = append(failed, err)
		}
	}
	if s.tell(); !s.isInformed() {
		// Objects might be changed to read one that isn't ready. The pipeline says anew what there should be.
		return errors.Join(failed...)
	}
	// What is made is in the inventory before it is made: nothing is forgotten.
	if err := s.remember(ctx, s.in, s.want); err != nil {
		return err
	}
	s.tell()
	for i := range s.want.Children {
		child := &s.want.Children[i]
		ref := child.Ref()
		err := s.apply(ctx, child)
		if err == nil {
			s.counts[stateApplied]++
			continue
		}
		s.counts[stateFailed]++
		why := explain(ref.Kind, err)
		if foreign := (*foreignError)(nil); !errors.As(err, &foreign) { // else the text is ours
			why.text = withoutValues(why.text, child.Object.Object)
		}
		if s.problems[ref] = why; !lasting(err) {
			failed = append(failed, fmt.Errorf("%s: %s", ref, why.text))
		} else if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
			s.queue.AddAfter(s.in.gateway, lookAgain) // a right, or the end of what is in the way, is told by nobody
		}
	}
	return errors.Join(append(failed, s.prune(ctx))...)
}

// follow watches the objects of a kind. Where that can't be, it is tried again later.
func (s *childrenSync) follow(ctx context.Context, kind schema.GroupVersionKind) error {
	known, err := s.Children.follow(ctx, s.cache, kind)
	if !known {
		s.queue.AddAfter(s.in.gateway, lookAgain)
	}
	return err
}

// lookAgain is after how long it is looked whether a kind or a right has come, or what is in the way has gone.
const lookAgain = 5 * time.Second

// explain says why an object isn't as it should be, and what to do.
func explain(kind schema.GroupVersionKind, err error) problem {
	switch {
	case !lasting(err):
		return problem{text: err.Error()}
	case !apierrors.IsForbidden(err):
		return problem{reasonFailed, err.Error()}
	}
	return problem{reasonForbidden, fmt.Sprintf("the controller may not write objects of the kind %s; give it the right by a ClusterRole with the label %s=true and the rule "+
		"{apiGroups: [%q], resources: [%s], verbs: [get, list, watch, create, patch, delete]}", kind.Kind, blueprint.AggregateLabel, kind.Group, blueprint.Plural(kind))}
}

// apply applies an object unless it is already so.
func (s *childrenSync) apply(ctx context.Context, child *blueprint.Child) error {
	want, err := labelled(s.in, s.want, child)
	if err != nil {
		return err
	}
	ref := child.Ref()
	if why := s.refused(ref); why != "" {
		return &foreignError{why}
	}
	key := keyOfRef(ref)
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(ref.Kind)
	err = apierrors.NewNotFound(schema.GroupResource{}, ref.Name.Name)
	if s.isWatched(ref.Kind) {
		err = s.cache.Get(ctx, client.ObjectKeyFromObject(want), live, client.UnsafeDisableDeepCopy)
	}
	if apierrors.IsNotFound(err) { // the cache has only what is labelled as ours
		found, err := s.read(ctx, want)
		if err != nil {
			return err
		}
		if found == nil {
			_, err := s.writer.apply(ctx, key, want)
			return err
		}
		live = found.(*unstructured.Unstructured)
	} else if err != nil {
		return err
	}
	if live.GetLabels()[infra.PartOfLabel] != s.in.id {
		return &foreignError{"there is one already that is not of this Gateway's blueprint; rename it, or what the template makes"}
	}
	switch {
	case live.GetDeletionTimestamp() != nil:
		return errGoing
	case holds(live.Object, want.Object), s.isSettled(key, want, live.Object):
		s.forgetWritten(key)
		s.live[key] = live
		return nil
	case s.isWritten(key, want, live):
		return nil
	}
	if _, err := s.writer.apply(ctx, key, want); err != nil {
		return err
	}
	s.noteWritten(key, want, live)
	return nil
}

func keyOfRef(ref blueprint.Ref) objectKey { return objectKey{ref.Kind.GroupKind().String(), ref.Name} }

// labelled is an object as it is applied: with what it is known by again.
func labelled(in *inventory, of *blueprint.Children, child *blueprint.Child) (*unstructured.Unstructured, error) {
	out := child.Object.DeepCopy()
	l := out.GetLabels()
	if l == nil {
		l = map[string]string{}
	}
	l[infra.PartOfLabel], l[infra.ManagedByLabel], l[infra.ResourceLabel] = in.id, infra.ManagedBy, child.ID
	out.SetLabels(l)
	// The garbage collector takes no account of waves: it may have only what goes first anyway.
	if child.Wave == 0 && out.GetNamespace() == of.Gateway.Namespace && of.UID != "" {
		out.SetOwnerReferences([]metav1.OwnerReference{infra.OwnedBy(of.Gateway, of.UID)})
	}
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
	return out, nil
}

// report passes on how the objects of a Gateway are, if that is new.
func (ch *Children) report(s *childrenSync) {
	gateway := s.in.gateway
	ch.mu.Lock()
	before, counted := ch.problems[gateway], ch.counts[gateway]
	set(ch.problems, gateway, s.problems)
	set(ch.counts, gateway, s.counts)
	ch.mu.Unlock()
	for state, n := range counted {
		ch.objects.WithLabelValues(state).Sub(float64(n))
	}
	for state, n := range s.counts {
		ch.objects.WithLabelValues(state).Add(float64(n))
	}
	if maps.Equal(before, s.problems) {
		return
	}
	texts := map[blueprint.Ref]string{}
	for ref, p := range s.problems {
		texts[ref] = p.text
		if before[ref] != p && p.reason != "" {
			ch.log.Warn("an object of a Gateway's blueprint is not as it should be", "gateway", gateway.String(), "object", ref.String(), "why", p.text)
			s.event(corev1.EventTypeWarning, p.reason, ref.String()+": "+p.text)
		}
	}
	ch.o.OnProblems(gateway, texts)
}

// set sets an entry, or deletes it where there is nothing to remember.
func set[K, L comparable, V any](m map[K]map[L]V, k K, v map[L]V) {
	if len(v) == 0 {
		delete(m, k)
	} else {
		m[k] = v
	}
}

// event says something at the Gateway, if there is one.
func (s *childrenSync) event(of, reason, text string) {
	if s.want != nil && s.o.Events != nil {
		s.o.Events.Eventf(gatewayObject(s.in.gateway, s.want.UID), nil, of, reason, "Apply", "%s", text)
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
	// Who may not list them would wait for ever. What is missing is said where they are written.
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	in := client.ListOptions{Limit: 1}
	if namespaced && len(ch.o.Namespaces) > 0 {
		in.Namespace = ch.o.Namespaces[0]
	}
	if err := ch.client.List(ctx, list, &in); err != nil {
		if apierrors.IsForbidden(err) {
			ch.o.OnScope(kind, &namespaced)
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
	there, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { ch.seen(kind, o, true) },
		UpdateFunc: func(_, o any) { ch.seen(kind, o, true) },
		DeleteFunc: func(o any) { ch.seen(kind, o, false) },
	})
	if err != nil {
		return false, err
	}
	// What there is has been said before the kind is: nothing seems to be missing that only hasn't been looked at.
	if toolscache.WaitFor(ctx, "", there.HasSyncedChecker()) {
		ch.o.OnScope(kind, &namespaced)
	}
	return true, nil
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
	ref := blueprint.Ref{Kind: kind, Name: nameOf(live)}
	if there {
		ch.o.OnLive(ref, live)
	} else {
		ch.o.OnLive(ref, nil)
	}
	if gateway, ok := object.ParseName(live.GetAnnotations()[infra.GatewayAnnotation]); ok {
		ch.queue.Add(gateway)
	}
}
