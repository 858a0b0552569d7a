package apply

import (
	"context"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/infra"
)

// replicasManager holds the number of replicas from when it stops being ours until
// an autoscaler changes it.
const replicasManager = infra.ManagedBy + "-replicas"

// leaveReplicas prepares that a Deployment is applied without its number of
// replicas: where nobody else has said a number, the API server would take it back
// to 1.
func (f *Fleets) leaveReplicas(ctx context.Context, want *unstructured.Unstructured) error {
	if _, has, _ := unstructured.NestedFieldNoCopy(want.Object, "spec", "replicas"); has {
		return nil
	}
	live := &appsv1.Deployment{}
	if err := f.client.Get(ctx, client.ObjectKeyFromObject(want), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	ours := false
	for _, m := range live.ManagedFields {
		if m.Manager == infra.ManagedBy && m.Operation == metav1.ManagedFieldsOperationApply && m.FieldsV1 != nil {
			ours = strings.Contains(m.FieldsV1.GetRawString(), `"f:replicas"`)
		}
	}
	if !ours || live.Spec.Replicas == nil {
		return nil
	}
	hold := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(*live.Spec.Replicas)}}}
	hold.SetGroupVersionKind(want.GroupVersionKind())
	hold.SetNamespace(want.GetNamespace())
	hold.SetName(want.GetName())
	err := f.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(hold), client.FieldOwner(replicasManager), client.ForceOwnership)
	f.count(want.GetKind(), "apply", err)
	return err
}
