package apply

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/infra"
)

// applyService applies a Service where there is one already.
func (f *Fleets) applyService(ctx context.Context, g *infra.Gateway, key objectKey, live client.Object, want *unstructured.Unstructured) error {
	got, err := f.apply(ctx, key, want)
	switch {
	case refuses(err, "spec.loadBalancerClass", "spec.clusterIP", "spec.ipFamilies"):
		return f.recreate(ctx, g, live, err)
	case refuses(err, "spec.ports"), err == nil && hasFurtherItems(got.Object, want.Object, "spec", "ports"):
		if err := f.resetPorts(ctx, want); err != nil {
			return err
		}
		// What had further ports must not be believed to be what the API server makes of it.
		f.forgetSettled(key)
		return nil
	}
	return err
}

// refuses reports whether the API server finds one of some fields invalid.
func refuses(err error, fields ...string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	for _, cause := range status.Status().Details.Causes {
		for _, field := range fields {
			if strings.HasPrefix(cause.Field, field) {
				return true
			}
		}
	}
	return false
}

// recreate deletes a Service that can't be changed. It comes back when it is gone.
func (f *Fleets) recreate(ctx context.Context, g *infra.Gateway, live client.Object, why error) error {
	if f.events != nil {
		f.events.Eventf(gatewayObject(g.Name, g.UID), nil, corev1.EventTypeWarning, "RecreatingService", "Recreate",
			"Service %s is deleted and made again, since it can't be changed: %v", live.GetName(), why)
	}
	f.log.Warn("a Service is deleted and made again, since it can't be changed",
		"service", live.GetNamespace()+"/"+live.GetName(), "gateway", g.Name.String(), "error", why)
	return f.delete(ctx, "Service", live)
}

// resetPorts replaces the ports of a Service. To apply them leaves those that
// somebody else has added, which would open what no listener asks for.
func (f *Fleets) resetPorts(ctx context.Context, want *unstructured.Unstructured) error {
	ports, _, err := unstructured.NestedSlice(want.Object, "spec", "ports")
	if err != nil {
		return err
	}
	text, err := json.Marshal(map[string]any{"spec": map[string]any{"ports": ports}})
	if err != nil {
		return err
	}
	err = f.client.Patch(ctx, want.DeepCopy(), client.RawPatch(types.MergePatchType, text), client.FieldOwner(infra.ManagedBy))
	f.count(want.GetKind(), "apply", err)
	return err
}
