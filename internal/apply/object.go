package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// foreignError says that an object is not ours to write: it has the name of one of ours
// and belongs to somebody else, or nobody may have us write it.
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
func (f *Fleets) applyAll(ctx context.Context, c cache.Cache, g *infra.Gateway, objects []*unstructured.Unstructured) (applied []string, err error) {
	var failed []error
	for _, want := range objects {
		done, err := f.applyOne(ctx, c, g, want)
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
func (f *Fleets) applyOne(ctx context.Context, c cache.Cache, g *infra.Gateway, want *unstructured.Unstructured) (bool, error) {
	live, err := cached(ctx, c, want)
	if err != nil {
		return false, err
	}
	seen := live != nil
	if !seen {
		// The cache has only what is labelled as ours.
		if live, err = f.read(ctx, want); err != nil {
			return false, err
		}
	}
	key := keyOfObject(want.GetKind(), want)
	if live == nil {
		_, err := f.apply(ctx, key, want)
		return err == nil, err
	}
	if of, ok := f.options.Places.GatewayOf(live); !ok || of != g.Name {
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
	case holds(fields, want.Object), f.isSettled(key, want, fields):
		f.forgetWritten(key)
		return false, nil
	case f.isWritten(key, want, live):
		return false, nil
	}
	if err := f.change(ctx, g, key, live, want); err != nil {
		return false, err
	}
	f.noteWritten(key, want, live)
	return true, nil
}

// change applies an object where there is one already.
func (f *Fleets) change(ctx context.Context, g *infra.Gateway, key objectKey, live client.Object, want *unstructured.Unstructured) error {
	switch want.GetKind() {
	case "Service":
		return f.applyService(ctx, g, key, live, want)
	case "Deployment":
		if err := f.leaveReplicas(ctx, want); err != nil {
			return err
		}
	}
	_, err := f.apply(ctx, key, want)
	return err
}

// renewAuthorities gives the fleets of a Gateway the authorities of today, without which their
// proxies would not know their controller any more. All else of them stays.
func (f *Fleets) renewAuthorities(ctx context.Context, c cache.Cache, gateway object.Name, authorities []byte) error {
	if len(authorities) == 0 {
		return nil // SetAuthorities runs this again
	}
	text, err := json.Marshal(map[string]any{"data": map[string]string{infra.AuthoritiesKey: string(authorities)}})
	if err != nil {
		return err
	}
	all := &corev1.ConfigMapList{}
	if err := c.List(ctx, all, client.MatchingFields{byGateway: gateway.String()}); err != nil {
		return err
	}
	var failed []error
	for i := range all.Items {
		live := &all.Items[i]
		if of, ok := f.options.Places.OfFleet(live, f.options.ControllerName); !ok || of != gateway || live.DeletionTimestamp != nil ||
			live.Data[infra.AuthoritiesKey] == string(authorities) {
			continue
		}
		err := f.client.Patch(ctx, live, client.RawPatch(types.MergePatchType, text), client.FieldOwner(infra.ManagedBy))
		f.count("ConfigMap", "apply", err)
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}
