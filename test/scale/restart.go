package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// around is how long there is load before and after what happens.
const around = 5 * time.Second

// fleetResources are what a fleet may be made of.
var fleetResources = map[string]bool{
	"deployments": true, "daemonsets": true, "services": true, "configmaps": true, "serviceaccounts": true,
	"horizontalpodautoscalers": true, "poddisruptionbudgets": true,
}

// killController kills every replica of the controller at once, under load, and
// waits until those that follow do their work.
func (b *bench) killController(ctx context.Context) error {
	ns, name, _ := strings.Cut(b.controller, "/")
	if err := b.audit.forget(); err != nil {
		return err
	}
	load := b.load(ctx, b.address, "one")
	err := func() error {
		if err := sleep(ctx, around); err != nil {
			return err
		}
		pods, err := b.controllers(ctx)
		if err != nil {
			return err
		}
		old := map[string]bool{}
		for _, pod := range pods {
			old[pod.Name] = true
			if err := b.client.Delete(ctx, &pod, client.GracePeriodSeconds(0)); err != nil {
				return err
			}
		}
		killed := time.Now()
		if err := wait(ctx, func() error {
			pods, err := b.controllers(ctx)
			for _, pod := range pods {
				if old[pod.Name] {
					err = errors.Join(err, fmt.Errorf("pod %s is still there", pod.Name))
				}
			}
			return errors.Join(err, b.rolledOut(ctx, ns, name))
		}); err != nil {
			return err
		}
		fmt.Printf("  the controller is ready again after %v\n", time.Since(killed).Round(100*time.Millisecond))
		// A change says that the new ones lead.
		if err := b.client.Create(ctx, b.route("after", "one")); err != nil {
			return err
		}
		if err := wait(ctx, func() error { return b.get(ctx, b.address, "after") }); err != nil {
			return fmt.Errorf("a route made afterwards: %w", err)
		}
		fmt.Printf("  a new route serves after %v\n", time.Since(killed).Round(100*time.Millisecond))
		return b.quiet(ctx)
	}()
	b.figures[killFailures] = load.end()
	if err != nil {
		return err
	}
	all, err := b.audit.writes()
	if err != nil {
		return err
	}
	ofFleet := func(w write) bool { return fleetResources[w.resource] }
	b.figures[killWrites] = count(all, ofFleet)
	count(all, func(w write) bool { return !ofFleet(w) })
	return nil
}

// restartFleet restarts a fleet of two as `kubectl rollout restart` does, under
// load.
func (b *bench) restartFleet(ctx context.Context) error {
	parameters := &gwv1.LocalParametersReference{Group: gwv1.Group(v1alpha1.GroupVersion.Group), Kind: "GatewayParameters", Name: "two"}
	for _, object := range []client.Object{b.gateway("two", parameters), b.route("two", "two")} {
		if err := b.client.Create(ctx, object); err != nil {
			return err
		}
	}
	address, err := b.ready(ctx, "two")
	if err != nil {
		return err
	}
	var fleets appsv1.DeploymentList
	if err := b.client.List(ctx, &fleets, client.InNamespace(namespace), client.MatchingLabels{"gateway.networking.k8s.io/gateway-name": "two"}); err != nil {
		return err
	}
	if len(fleets.Items) != 1 {
		return fmt.Errorf("the Gateway two has %d Deployments, want 1", len(fleets.Items))
	}
	fleet := fleets.Items[0]
	if err := wait(ctx, func() error { return b.rolledOut(ctx, namespace, fleet.Name) }); err != nil {
		return err
	}
	load := b.load(ctx, address, "two")
	err = func() error {
		if err := sleep(ctx, around); err != nil {
			return err
		}
		restart := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":%q}}}}}`, time.Now().Format(time.RFC3339))
		if err := b.client.Patch(ctx, &fleet, client.RawPatch(types.StrategicMergePatchType, []byte(restart)), client.FieldOwner("kubectl-rollout")); err != nil {
			return err
		}
		started := time.Now()
		if err := wait(ctx, func() error { return b.rolledOut(ctx, namespace, fleet.Name) }); err != nil {
			return err
		}
		fmt.Printf("  both proxies are new after %v\n", time.Since(started).Round(100*time.Millisecond))
		return sleep(ctx, around)
	}()
	b.figures[rolloutFailures] = load.end()
	return err
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
