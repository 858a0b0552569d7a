package cluster

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/fleet"
	"github.com/gatehouse-dev/gatehouse/internal/fleetapi"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/identity"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/replicas"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

// fleetAPI serves the proxies of the cluster as a resource of its API. Each replica gathers what all of them say, and
// lays it over the pods, so that any of them can answer.
type fleetAPI struct {
	of     *provisioned
	log    *slog.Logger
	board  *replicas.Board
	others *replicas.Reader
	store  *fleetapi.Store
	caller *fleetapi.Caller
}

func newFleetAPI(p *provisioned) *fleetAPI {
	log := p.cluster.opts.Logs.For(configuration.LogReplicas)
	a := &fleetAPI{
		of: p, log: log, board: replicas.NewBoard(), others: replicas.NewReader(p.identity.ClientTLS, log), store: fleetapi.NewStore(),
	}
	a.caller = fleetapi.NewCaller(func(ctx context.Context) (map[string]string, error) {
		var o corev1.ConfigMap
		err := p.cluster.direct.Get(ctx, client.ObjectKey{Namespace: fleetapi.CallerNamespace, Name: fleetapi.CallerConfigMap}, &o)
		return o.Data, err
	}, log)
	return a
}

// run gathers and serves until ctx ends.
func (a *fleetAPI) run(ctx context.Context) error {
	if !a.of.cluster.whole(ctx) {
		return nil
	}
	c := a.of.cluster
	fleets, err := podsOf(ctx, c, infra.ProxySelector, a.of.fleets.places.Watched(c.config.Cluster().Namespaces)...)
	if err != nil {
		return err
	}
	controllers, err := podsOf(ctx, c, controllerSelector, c.opts.Self.Namespace)
	if err != nil {
		return err
	}
	defer a.others.Wait()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.caller.Run(ctx) })
	group.Go(func() error { return fleets.Start(ctx) })
	group.Go(func() error { return controllers.Start(ctx) })
	group.Go(func() error { return a.gather(ctx, fleets, controllers) })
	group.Go(func() error { return a.serve(ctx) })
	return group.Wait()
}

// controllerSelector selects the pods of controllers, of any installation.
const controllerSelector = "app.kubernetes.io/name=gatehouse,app.kubernetes.io/component=controller"

// pods are those that a selector selects.
type pods struct {
	cache.Cache
	changed chan struct{} // has an element when there is another
}

// podsOf returns pods in some namespaces; none means all. They are read by Start.
func podsOf(ctx context.Context, c *Cluster, selector string, namespaces ...string) (*pods, error) {
	of, err := labels.Parse(selector)
	if err != nil {
		return nil, err
	}
	one := cache.ByObject{Label: of, Transform: stripPod}
	for _, ns := range namespaces {
		if one.Namespaces == nil {
			one.Namespaces = map[string]cache.Config{}
		}
		one.Namespaces[ns] = cache.Config{}
	}
	read, err := cache.New(c.opts.REST, cache.Options{
		Scheme: c.scheme, ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: one}, ReaderFailOnMissingInformer: true,
	})
	if err != nil {
		return nil, err
	}
	p := &pods{Cache: read, changed: make(chan struct{}, 1)}
	informer, err := p.GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	note := func() {
		select {
		case p.changed <- struct{}{}:
		default:
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { note() }, UpdateFunc: func(any, any) { note() }, DeleteFunc: func(any) { note() },
	})
	return p, err
}

// stripPod leaves what is shown.
func stripPod(in any) (any, error) {
	p, ok := in.(*corev1.Pod)
	if !ok {
		return in, nil
	}
	meta := metav1.ObjectMeta{
		Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion, Labels: p.Labels, DeletionTimestamp: p.DeletionTimestamp,
	}
	if of := p.Annotations[infra.GatewayAnnotation]; of != "" {
		meta.Annotations = map[string]string{infra.GatewayAnnotation: of}
	}
	out := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: p.Spec.NodeName}}
	out.Status.Phase, out.Status.PodIP = p.Status.Phase, p.Status.PodIP
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodReady {
			out.Status.Conditions = []corev1.PodCondition{{Type: condition.Type, Status: condition.Status}}
		}
	}
	return out, nil
}

func (p *pods) list(ctx context.Context) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := p.List(ctx, &list, client.UnsafeDisableDeepCopy)
	return list.Items, err
}

const (
	// boardInterval is how often a replica looks at its own proxies, unless that takes more than a tenth of the time.
	boardInterval = 250 * time.Millisecond
	boardShare    = 10
	// gatherPause is the time between two looks at all.
	gatherPause = 50 * time.Millisecond
)

// gather keeps the store up to date.
func (a *fleetAPI) gather(ctx context.Context, fleets, controllers *pods) error {
	if !fleets.WaitForCacheSync(ctx) || !controllers.WaitForCacheSync(ctx) {
		return nil // ctx has ended
	}
	if err := a.meet(ctx, controllers); err != nil {
		return err
	}
	look := time.NewTimer(0)
	defer look.Stop()
	for {
		_, shown := a.board.List()
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
			began := time.Now()
			a.board.Set(a.of.cluster.admin().Proxies())
			look.Reset(max(boardInterval, boardShare*time.Since(began)))
			select {
			case <-shown:
			default:
				if a.store.IsOpen() {
					continue // nothing is another
				}
			}
		case <-controllers.changed:
			if err := a.meet(ctx, controllers); err != nil {
				return err
			}
			continue // what that changes comes by the reader
		case <-fleets.changed:
		case <-a.others.Changed():
		}
		if err := a.put(ctx, fleets); err != nil {
			return err
		}
		select {
		case <-time.After(gatherPause):
		case <-ctx.Done():
		}
	}
}

// put lays what all replicas say over the pods, once each of them has been asked.
func (a *fleetAPI) put(ctx context.Context, fleets *pods) error {
	lists, known := a.others.Lists()
	if !known && !a.store.IsOpen() {
		return nil
	}
	own, _ := a.board.List()
	all, err := fleets.list(ctx)
	if err != nil {
		return err
	}
	var there []fleet.Pod
	for i := range all {
		if pod, ok := fleet.PodOf(&all[i], a.of.fleets.places); ok && a.serves(pod.Gateway) {
			there = append(there, pod)
		}
	}
	a.store.Set(fleet.Join(append(lists, own), there))
	return nil
}

// serves reports whether a Gateway is one of this installation's.
func (a *fleetAPI) serves(gateway string) bool {
	name, ok := object.ParseName(gateway)
	if !ok {
		return false
	}
	_, of := a.of.fleets.find(name)
	return of.there
}

// meet has the boards of the other controllers of this installation read.
func (a *fleetAPI) meet(ctx context.Context, controllers *pods) error {
	all, err := controllers.list(ctx)
	if err != nil {
		return err
	}
	self, installation := a.of.cluster.opts.Self, ""
	for i := range all {
		if all[i].Name == self.Name {
			installation = all[i].Labels[infra.InstanceLabel]
		}
	}
	addresses := map[string]bool{}
	for i := range all {
		p := &all[i]
		if p.Name != self.Name && p.Labels[infra.InstanceLabel] == installation && p.Status.PodIP != "" && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			addresses[net.JoinHostPort(p.Status.PodIP, strconv.Itoa(a.of.cluster.config.Ports.API))] = true
		}
	}
	a.others.Set(ctx, addresses)
	return nil
}

// serve answers the API server, and lets nobody else in.
func (a *fleetAPI) serve(ctx context.Context) error {
	select {
	case <-a.of.identity.Ready():
	case <-ctx.Done():
		return nil
	}
	c := a.of.cluster
	lis, err := c.listen(c.config.Ports.FleetAPI, fleetLimits)
	if err != nil {
		return err
	}
	server := fleetapi.NewServer(fleetapi.Options{
		Store: a.store, Caller: a.caller, Log: a.log,
		Draw: (&drawings{pipeline: c.pipeline}).draw, VisibleIn: view.VisibleIn,
		Allowed: func(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
			answer, err := c.set.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
			if err != nil {
				return authorizationv1.SubjectAccessReviewStatus{}, err
			}
			return answer.Status, nil
		},
	})
	return server.Serve(ctx, tls.NewListener(lis, a.of.identity.ServerTLSFor(a.caller.Authorities, "h2", "http/1.1")))
}

// authority is the work of a leader: the APIService has the authority of the controllers' certificates.
func (a *fleetAPI) authority() work {
	return &fleetAuthority{cluster: a.of.cluster, identity: a.of.identity, log: a.log}
}

type fleetAuthority struct {
	cluster  *Cluster
	identity *identity.Authority
	log      *slog.Logger
}

func (*fleetAuthority) begin(*flow.Engine) {}

func (*fleetAuthority) committed(*flow.Commit) {}

func (*fleetAuthority) complete() {}

func (*fleetAuthority) changed(object.Key) {}

const (
	apiService        = fleetapi.Version + "." + fleetapi.Group
	authorityInterval = time.Minute // an APIService may be made anew
	authorityRetry    = 5 * time.Second
)

func (w *fleetAuthority) run(ctx context.Context) error {
	select {
	case <-w.identity.Ready():
	case <-ctx.Done():
		return nil
	}
	for failed := ""; ; {
		changed, wait := w.identity.Next(), authorityInterval
		if err := w.write(ctx, w.identity.Bundle()); err != nil && ctx.Err() == nil {
			wait = authorityRetry
			if err.Error() != failed {
				w.log.Error("the API server can't be told by what authority it knows the controllers: kubectl shows no proxies; trying again", "object", "APIService "+apiService, "error", err)
			}
			failed = err.Error()
		} else {
			failed = ""
		}
		select {
		case <-changed:
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

// write puts the authorities into the APIService, unless they are there.
func (w *fleetAuthority) write(ctx context.Context, bundle []byte) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
	err := w.cluster.direct.Get(ctx, client.ObjectKey{Name: apiService}, live)
	if apierrors.IsNotFound(err) {
		return errors.New("there is none: apply that of the chart, with fleetAPI.enabled, or turn ports.fleetAPI off")
	}
	if err != nil {
		return err
	}
	namespace, _, _ := unstructured.NestedString(live.Object, "spec", "service", "namespace") //nolint:errcheck // it has its schema
	service, _, _ := unstructured.NestedString(live.Object, "spec", "service", "name")        //nolint:errcheck // likewise
	if ours := (object.Name{Namespace: w.cluster.opts.Self.Namespace, Name: w.cluster.config.Infrastructure.Service}); ours != (object.Name{Namespace: namespace, Name: service}) {
		return fmt.Errorf("it is of the Service %s/%s, and ours is %s: a cluster shows the proxies of one installation; turn ports.fleetAPI off in the other", namespace, service, ours)
	}
	text := base64.StdEncoding.EncodeToString(bundle)
	if is, _, _ := unstructured.NestedString(live.Object, "spec", "caBundle"); is == text { //nolint:errcheck // likewise
		return nil
	}
	return w.cluster.direct.Patch(ctx, live, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"caBundle":"`+text+`"}}`)), client.FieldOwner(infra.ManagedBy))
}
