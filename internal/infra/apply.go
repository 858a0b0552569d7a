package infra

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// foreignError says that an object has the name of a fleet's object and belongs to
// somebody else.
type foreignError struct{ text string }

func (e *foreignError) Error() string { return e.text }

// errGoing says that an object has to be gone before it can come back. Its end is
// seen by the watch.
var errGoing = errors.New("the object is being deleted")

// lasting reports whether an error stays until somebody does something.
func lasting(err error) bool {
	var foreign *foreignError
	return errors.As(err, &foreign) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// applyAll applies the objects of a fleet, in order. If one fails, the others are still
// applied, unless proxies can't run without it. It returns the kinds of those that have
// been written.
func (a *Applier) applyAll(ctx context.Context, c cache.Cache, g *Gateway, objects []client.Object) (applied []string, err error) {
	var failed []error
	for _, o := range objects {
		want := o.(*unstructured.Unstructured)
		done, err := a.applyOne(ctx, c, g, want)
		if errors.Is(err, errGoing) {
			continue
		}
		if done {
			applied = append(applied, want.GetKind())
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s %s/%s: %w", want.GetKind(), want.GetNamespace(), want.GetName(), err))
			if kind := want.GetKind(); kind == "ServiceAccount" || kind == "ConfigMap" {
				break
			}
		}
	}
	return applied, errors.Join(failed...)
}

// applyOne applies an object unless it is already so, and reports whether it has.
func (a *Applier) applyOne(ctx context.Context, c cache.Cache, g *Gateway, want *unstructured.Unstructured) (bool, error) {
	live, err := cached(ctx, c, want)
	if err != nil {
		return false, err
	}
	seen := live != nil
	if !seen {
		// The cache has only what is labelled as ours.
		if live, err = a.read(ctx, want); err != nil {
			return false, err
		}
	}
	key := keyOfObject(want.GetKind(), want)
	if live == nil {
		_, err := a.apply(ctx, key, want)
		return err == nil, err
	}
	if of, ok := GatewayOf(live); !ok || of != g.Name {
		return false, &foreignError{"there is one already that is not this Gateway's; rename it or the Gateway"}
	}
	if live.GetDeletionTimestamp() != nil {
		if seen {
			return false, errGoing
		}
		return false, errors.New("it is being deleted")
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return false, err
	}
	switch {
	case holds(fields, want.Object), a.isSettled(key, want, fields):
		a.mu.Lock()
		delete(a.written, key)
		a.mu.Unlock()
		return false, nil
	case a.isWritten(key, want, live):
		return false, nil
	}
	if err := a.change(ctx, g, key, live, want); err != nil {
		return false, err
	}
	a.mu.Lock()
	a.written[key] = writing(want, live)
	a.mu.Unlock()
	return true, nil
}

// change applies an object where there is one already.
func (a *Applier) change(ctx context.Context, g *Gateway, key objectKey, live client.Object, want *unstructured.Unstructured) error {
	switch want.GetKind() {
	case "Service":
		return a.applyService(ctx, g, key, live, want)
	case "Deployment":
		if err := a.leaveReplicas(ctx, want); err != nil {
			return err
		}
	}
	_, err := a.apply(ctx, key, want)
	return err
}

// isWritten reports whether this very version of an object has been changed to the wanted
// one already, and the cache doesn't show it yet. The watch brings the new version, with
// which the fleet is looked at again; where the write changed nothing, there is nothing to
// do.
func (a *Applier) isWritten(key objectKey, want *unstructured.Unstructured, live client.Object) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.written[key] == writing(want, live)
}

// writing identifies a change: what was there, and what it was to become.
func writing(want *unstructured.Unstructured, live client.Object) string {
	return live.GetResourceVersion() + " " + want.GetAnnotations()[appliedAnnotation]
}

// renewAuthorities gives the fleets of a Gateway the authorities of today, without which their
// proxies would not know their controller any more. All else of them stays.
func (a *Applier) renewAuthorities(ctx context.Context, c cache.Cache, gateway object.Name, authorities []byte) error {
	if len(authorities) == 0 {
		return nil // SetAuthorities runs this again
	}
	text, err := json.Marshal(map[string]any{"data": map[string]string{authoritiesKey: string(authorities)}})
	if err != nil {
		return err
	}
	all := &corev1.ConfigMapList{}
	if err := c.List(ctx, all, client.InNamespace(gateway.Namespace), client.MatchingLabels{GatewayLabel: LabelValue(gateway.Name)}); err != nil {
		return err
	}
	var failed []error
	for i := range all.Items {
		live := &all.Items[i]
		if of, ok := OfFleet(live, a.options.ControllerName); !ok || of != gateway || live.DeletionTimestamp != nil ||
			live.Data[authoritiesKey] == string(authorities) {
			continue
		}
		err := a.client.Patch(ctx, live, client.RawPatch(types.MergePatchType, text), client.FieldOwner(ManagedBy))
		a.count("ConfigMap", "apply", err)
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// read asks the API server for an object; nil if there is none.
func (a *Applier) read(ctx context.Context, want *unstructured.Unstructured) (client.Object, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(want.GroupVersionKind())
	err := a.client.Get(ctx, client.ObjectKeyFromObject(want), live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return live, err
}

// apply writes an object. An admission controller may change it, and an old API server
// may not know one of its fields. It is remembered that this was applied, because to
// apply it again would change nothing.
func (a *Applier) apply(ctx context.Context, key objectKey, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	got := want.DeepCopy()
	err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(got), client.FieldOwner(ManagedBy), client.ForceOwnership)
	a.count(want.GetKind(), "apply", err)
	if err != nil {
		return nil, err
	}
	a.log.Debug("an object of a fleet is applied", "object", key.kind+" "+key.Name.String())
	fields, err := typed(got)
	if err != nil {
		return nil, err
	}
	settled := ""
	if !holds(fields, want.Object) {
		if settled, err = settlement(want, fields); err != nil {
			return nil, err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if delete(a.settled, key); settled != "" {
		a.settled[key] = settled
	}
	return got, nil
}

// isSettled reports whether a live object is what the API server makes of a wanted
// one.
func (a *Applier) isSettled(key objectKey, want *unstructured.Unstructured, live map[string]any) bool {
	a.mu.Lock()
	settled, ok := a.settled[key]
	a.mu.Unlock()
	if !ok {
		return false
	}
	print, err := settlement(want, live)
	return err == nil && print == settled
}

func settlement(want *unstructured.Unstructured, live map[string]any) (string, error) {
	print, err := fingerprint(live)
	return want.GetAnnotations()[appliedAnnotation] + print, err
}

func (a *Applier) count(kind, verb string, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	a.writes.WithLabelValues(kind, verb, result).Inc()
}

// delete deletes the very object that was looked at.
func (a *Applier) delete(ctx context.Context, kind string, live client.Object) error {
	uid := live.GetUID()
	err := a.client.Delete(ctx, live.DeepCopyObject().(client.Object),
		client.Preconditions(metav1.Preconditions{UID: &uid}), client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierrors.IsNotFound(err) {
		return nil
	}
	a.count(kind, "delete", err)
	if err != nil {
		return fmt.Errorf("delete %s %s/%s: %w", kind, live.GetNamespace(), live.GetName(), err)
	}
	a.log.Debug("an object of a fleet is deleted", "object", kind+" "+live.GetNamespace()+"/"+live.GetName())
	a.mu.Lock()
	delete(a.settled, keyOfObject(kind, live))
	delete(a.written, keyOfObject(kind, live))
	a.mu.Unlock()
	return nil
}
