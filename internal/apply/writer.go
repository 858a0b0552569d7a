package apply

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// writer writes objects to the API server, each time that there is something to change and
// not more often.
type writer struct {
	client client.Client
	log    *slog.Logger
	writes *prometheus.CounterVec

	known   sync.Mutex
	settled map[objectKey]string // see apply
	written map[objectKey]string // see isWritten

	// manager is who owns the fields that are written. asCached returns the fields of an
	// object as those are read that it is compared with.
	manager  client.FieldOwner
	asCached func(*unstructured.Unstructured) (map[string]any, error)
}

// objectKey names an object of a fleet.
type objectKey struct {
	kind string
	object.Name
}

func keyOfObject(kind string, o client.Object) objectKey {
	return objectKey{kind, nameOf(o)}
}

func nameOf(o client.Object) object.Name {
	return object.Name{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// newWriter returns a writer whose writes are counted by a metric; registerer may be nil.
func newWriter(c client.Client, log *slog.Logger, manager client.FieldOwner, writes prometheus.CounterOpts, registerer prometheus.Registerer) (*writer, error) {
	w := &writer{
		client: c, log: log, manager: manager, settled: map[objectKey]string{}, written: map[objectKey]string{},
		writes:   prometheus.NewCounterVec(writes, []string{"kind", "verb", "result"}),
		asCached: func(o *unstructured.Unstructured) (map[string]any, error) { return o.Object, nil },
	}
	if registerer != nil {
		if err := registerer.Register(w.writes); err != nil {
			return nil, fmt.Errorf("register metrics of writes: %w", err)
		}
	}
	return w, nil
}

// read asks the API server for an object; nil if there is none.
func (w *writer) read(ctx context.Context, want *unstructured.Unstructured) (client.Object, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(want.GroupVersionKind())
	err := w.client.Get(ctx, client.ObjectKeyFromObject(want), live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return live, err
}

// gatewayObject is a Gateway as Events name it, or the class whose Gateways share a fleet.
func gatewayObject(gateway object.Name, uid types.UID) client.Object {
	if class, shared := gateway.SharedBy(); shared {
		return &gwv1.GatewayClass{
			TypeMeta:   metav1.TypeMeta{APIVersion: gwv1.GroupVersion.String(), Kind: "GatewayClass"},
			ObjectMeta: metav1.ObjectMeta{Name: class},
		}
	}
	return &gwv1.Gateway{
		TypeMeta:   metav1.TypeMeta{APIVersion: gwv1.GroupVersion.String(), Kind: infra.GatewayKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: gateway.Namespace, Name: gateway.Name, UID: uid},
	}
}

// readGateway asks the API server for a Gateway.
func (w *writer) readGateway(ctx context.Context, gateway object.Name) (*unstructured.Unstructured, error) {
	return w.readLive(ctx, object.Key{Kind: object.KindOf(gwv1.GroupName, infra.GatewayKind), Name: gateway})
}

// readClass asks the API server for a GatewayClass.
func (w *writer) readClass(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	return w.readLive(ctx, object.Key{Kind: object.KindOf(gwv1.GroupName, "GatewayClass"), Name: object.Name{Name: name}})
}

// readLive asks the API server for an object of the Gateway API.
func (w *writer) readLive(ctx context.Context, key object.Key) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetAPIVersion(gwv1.GroupVersion.String())
	live.SetKind(key.Kind.Name())
	if err := w.client.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name.Name}, live); err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return live, nil
}

// apply writes an object. An admission controller may change it, and an old API server
// may not know one of its fields. It is remembered that this was applied, because to
// apply it again would change nothing.
func (w *writer) apply(ctx context.Context, key objectKey, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	got := want.DeepCopy()
	err := w.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(got), w.manager, client.ForceOwnership)
	w.count(want.GetKind(), "apply", err)
	if err != nil {
		return nil, err
	}
	w.log.Debug("an object is applied", "object", key.kind+" "+key.Name.String())
	fields, err := w.asCached(got)
	if err != nil {
		return nil, err
	}
	settled := ""
	if !holds(fields, want.Object) {
		if settled, err = settlement(want, fields); err != nil {
			return nil, err
		}
	}
	w.known.Lock()
	defer w.known.Unlock()
	if delete(w.settled, key); settled != "" {
		w.settled[key] = settled
	}
	return got, nil
}

// isWritten reports whether this very version of an object has been changed to the wanted
// one already, and the cache doesn't show it yet. The watch brings the new version, with
// which the fleet is looked at again; where the write changed nothing, there is nothing to
// do.
func (w *writer) isWritten(key objectKey, want *unstructured.Unstructured, live client.Object) bool {
	w.known.Lock()
	defer w.known.Unlock()
	return w.written[key] == writing(want, live)
}

// noteWritten remembers for isWritten that an object has been changed.
func (w *writer) noteWritten(key objectKey, want *unstructured.Unstructured, live client.Object) {
	w.known.Lock()
	w.written[key] = writing(want, live)
	w.known.Unlock()
}

func (w *writer) forgetWritten(key objectKey) {
	w.known.Lock()
	delete(w.written, key)
	w.known.Unlock()
}

// writing identifies a change: what was there, and what it was to become.
func writing(want *unstructured.Unstructured, live client.Object) string {
	return live.GetResourceVersion() + " " + want.GetAnnotations()[infra.AppliedAnnotation]
}

// isSettled reports whether a live object is what the API server makes of a wanted
// one.
func (w *writer) isSettled(key objectKey, want *unstructured.Unstructured, live map[string]any) bool {
	w.known.Lock()
	settled, ok := w.settled[key]
	w.known.Unlock()
	if !ok {
		return false
	}
	print, err := settlement(want, live)
	return err == nil && print == settled
}

// forgetSettled has an object be applied again where it is not as it should be.
func (w *writer) forgetSettled(key objectKey) {
	w.known.Lock()
	delete(w.settled, key)
	w.known.Unlock()
}

func settlement(want *unstructured.Unstructured, live map[string]any) (string, error) {
	print, err := fingerprint(live)
	return want.GetAnnotations()[infra.AppliedAnnotation] + print, err
}

func (w *writer) count(kind, verb string, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	w.writes.WithLabelValues(kind, verb, result).Inc()
}

// delete deletes the very object that was looked at.
func (w *writer) delete(ctx context.Context, kind string, live client.Object) error {
	uid := live.GetUID()
	err := w.client.Delete(ctx, live.DeepCopyObject().(client.Object),
		client.Preconditions(metav1.Preconditions{UID: &uid}), client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.count(kind, "delete", err)
	if err != nil {
		return fmt.Errorf("delete %s %s/%s: %w", kind, live.GetNamespace(), live.GetName(), err)
	}
	w.log.Debug("an object is deleted", "object", kind+" "+live.GetNamespace()+"/"+live.GetName())
	w.known.Lock()
	delete(w.settled, keyOfObject(kind, live))
	delete(w.written, keyOfObject(kind, live))
	w.known.Unlock()
	return nil
}
