package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/test/cluster"
)

// restartFleet restarts a fleet of two as `kubectl rollout restart` does, under
// load.
func (b *bench) restartFleet(ctx context.Context) error {
	parameters, reference := fleetOf("two", 2)
	for _, object := range []client.Object{parameters, b.gateway("two", reference), b.route("two", "two")} {
		if err := b.client.Create(ctx, object); err != nil {
			return err
		}
	}
	address, err := b.ready(ctx, "two")
	if err != nil {
		return err
	}
	fleet, err := b.fleet(ctx, "two")
	if err != nil {
		return err
	}
	load := b.load(ctx, address, "two")
	err = func() error {
		if err := cluster.Sleep(ctx, around); err != nil {
			return err
		}
		restart := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":%q}}}}}`, time.Now().Format(time.RFC3339))
		if err := b.client.Patch(ctx, &fleet, client.RawPatch(types.StrategicMergePatchType, []byte(restart)), client.FieldOwner("kubectl-rollout")); err != nil {
			return err
		}
		started := time.Now()
		if err := cluster.Await(ctx, "the fleet", func() error { return b.rolledOut(ctx, namespace, fleet.Name) }); err != nil {
			return err
		}
		fmt.Printf("  both proxies are new after %v\n", time.Since(started).Round(100*time.Millisecond))
		return cluster.Sleep(ctx, around)
	}()
	failures, changes := load.end()
	if err := errors.Join(err, changes); err != nil {
		return err
	}
	b.figures[rolloutFailures] = failures
	return nil
}

// fleet returns the Deployment of a Gateway once all of its proxies are ready.
func (b *bench) fleet(ctx context.Context, gateway string) (fleet appsv1.Deployment, err error) {
	var all appsv1.DeploymentList
	if err := b.client.List(ctx, &all, client.InNamespace(namespace), client.MatchingLabels{gwv1.GatewayNameLabelKey: gateway}); err != nil {
		return fleet, err
	}
	if len(all.Items) != 1 {
		return fleet, fmt.Errorf("the Gateway %s has %d Deployments, want 1", gateway, len(all.Items))
	}
	fleet = all.Items[0]
	return fleet, cluster.Await(ctx, "the fleet", func() error { return b.rolledOut(ctx, namespace, fleet.Name) })
}

// rolledOut is an error unless all replicas of a Deployment are new and ready,
// and no old ones are left.
func (b *bench) rolledOut(ctx context.Context, ns, name string) error {
	var d appsv1.Deployment
	if err := b.client.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, &d); err != nil {
		return err
	}
	s := d.Status
	if s.ObservedGeneration < d.Generation || s.UpdatedReplicas != *d.Spec.Replicas || s.ReadyReplicas != *d.Spec.Replicas || s.Replicas != *d.Spec.Replicas {
		return fmt.Errorf("Deployment %s/%s: %d of %d ready, %d of them new", ns, name, s.ReadyReplicas, *d.Spec.Replicas, s.UpdatedReplicas)
	}
	return nil
}
