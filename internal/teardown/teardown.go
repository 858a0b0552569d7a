package teardown

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Options say what ends.
type Options struct {
	REST *rest.Config
	// ControllerName is that of the GatewayClasses.
	ControllerName string
	// Namespace and Deployments are where the controllers are.
	Namespace   string
	Deployments []string
	// Claim is the Lease of ControllerName, and Holder what they sign it with.
	Claim  client.ObjectKey
	Holder string
	// Tell is called for each thing that is done, with a sentence for a person.
	Tell func(string)
}

// claim names the Lease of the controllerName.
func (o Options) claim() string { return "Lease " + o.Claim.String() }

// Run stops the controllers, then releases their GatewayClasses, unless another
// installation serves these. It waits for the controllers until ctx ends.
func Run(ctx context.Context, o Options) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, autoscalingv1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme, gwv1.Install} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	c, err := client.New(o.REST, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("reach the API server: %w", err)
	}
	for _, deployment := range o.Deployments {
		if err := stop(ctx, c, o, deployment); err != nil {
			return fmt.Errorf("stop the controllers: %w", err)
		}
	}
	lease, err := claimed(ctx, c, o)
	if err != nil {
		return err
	}
	if other := holder(lease); other != "" && other != o.Holder {
		silent := silentFor(lease, time.Now())
		if silent == 0 {
			o.Tell(fmt.Sprintf("the GatewayClasses of controllerName %s stay as they are: the installation whose Lease is %s has the controllerName and serves them", o.ControllerName, other))
			return nil
		}
		o.Tell(fmt.Sprintf("the installation whose Lease is %s has not renewed %s for %s, so nobody serves the GatewayClasses", other, o.claim(), silent))
	}
	if err := release(ctx, c, o); err != nil {
		return err
	}
	return unclaim(ctx, c, o)
}

// claimed reads the Lease of the controllerName; nil where there is none, or no right to
// read it. An installation without that right writes as if it were alone, and ends so.
func claimed(ctx context.Context, c client.Client, o Options) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	switch err := c.Get(ctx, o.Claim, lease); {
	case apierrors.IsNotFound(err) || apierrors.IsForbidden(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", o.claim(), err)
	}
	return lease, nil
}

// holder is who has signed a Lease last; empty for nobody.
func holder(lease *coordinationv1.Lease) string {
	if lease == nil {
		return ""
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// silentFor is how long a Lease has not been renewed, if that is longer than its holder may
// keep it so; else 0. Clocks that differ by as much as that, minutes, are not reckoned with.
func silentFor(lease *coordinationv1.Lease, now time.Time) time.Duration {
	renewed, keeps := lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds
	if renewed == nil || keeps == nil {
		return 0
	}
	silent := now.Sub(renewed.Time).Truncate(time.Second)
	if silent <= time.Duration(*keeps)*time.Second {
		return 0
	}
	return silent
}

// unclaim deletes the Lease of the controllerName, if it is that of the controllers which
// have ended: another installation need not wait until it has run out.
func unclaim(ctx context.Context, c client.Client, o Options) error {
	lease := &coordinationv1.Lease{}
	name := o.claim()
	err := c.Get(ctx, o.Claim, lease)
	if err == nil {
		if holder(lease) != o.Holder {
			return nil
		}
		err = c.Delete(ctx, lease, client.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion})
	}
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	}
	o.Tell(name + ": deleted, so that another installation may have controllerName " + o.ControllerName)
	return nil
}

// stop scales a Deployment to zero. It waits until the Deployment controller has seen
// that, since it may make pods until then, and until the pods have gone. Where there is no
// Deployment, nothing runs.
func stop(ctx context.Context, c client.Client, o Options, deployment string) error {
	d := &appsv1.Deployment{}
	err := c.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: deployment}, d)
	name := "Deployment " + o.Namespace + "/" + deployment
	switch {
	case apierrors.IsNotFound(err):
		o.Tell(name + ": there is none, so no controller is stopped")
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	}
	// The scale is all that is asked for: who may write a Deployment may run anything as its
	// ServiceAccount.
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":0}}`))
	body := &client.SubResourcePatchOptions{SubResourceBody: &autoscalingv1.Scale{}}
	if err := c.SubResource("scale").Patch(ctx, d, patch, body); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(d), d); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	pods, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		seen, err := scaledDown(ctx, c, d)
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		var left corev1.PodList
		err = c.List(ctx, &left, client.InNamespace(o.Namespace), client.MatchingLabelsSelector{Selector: pods})
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("pods of %s: %w", name, err)
		}
		// Those that have ended, evicted ones for example, are nobody's to remove.
		left.Items = slices.DeleteFunc(left.Items, func(p corev1.Pod) bool {
			return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		})
		if err == nil && seen && len(left.Items) == 0 {
			o.Tell(name + ": stopped")
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if len(left.Items) == 0 {
				return errors.Join(fmt.Errorf("%s: its status still counts replicas, or is of an older generation; see whether the cluster's Deployment controller runs", name), err)
			}
			var names []string
			for i := range left.Items {
				names = append(names, left.Items[i].Name)
			}
			return fmt.Errorf("%s: pods are left: %s; delete them, or give them longer", name, strings.Join(names, ", "))
		}
	}
}

// scaledDown reports whether the Deployment controller has seen the generation of d, and
// counts no replica any more.
func scaledDown(ctx context.Context, c client.Client, d *appsv1.Deployment) (bool, error) {
	live := &appsv1.Deployment{}
	err := c.Get(ctx, client.ObjectKeyFromObject(d), live)
	if err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	return live.Status.ObservedGeneration >= d.Generation && live.Status.Replicas == 0, nil
}

// pause is the time between two looks at the pods, which take seconds to end.
const pause = 250 * time.Millisecond

// release takes our finalizer from the GatewayClasses.
func release(ctx context.Context, c client.Client, o Options) error {
	var classes gwv1.GatewayClassList
	if err := c.List(ctx, &classes); err != nil {
		return fmt.Errorf("list the GatewayClasses: %w", err)
	}
	var failed []error
	for i := range classes.Items {
		class := &classes.Items[i]
		if string(class.Spec.ControllerName) != o.ControllerName || !slices.Contains(class.Finalizers, finalizer) {
			continue
		}
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { return remove(ctx, c, class.Name) })
		if client.IgnoreNotFound(err) != nil {
			failed = append(failed, fmt.Errorf("GatewayClass %s: %w", class.Name, err)) //nolint:revive // a kind's name
			continue
		}
		o.Tell("GatewayClass " + class.Name + ": released; its Gateways and their proxies stay, and stay as they are until a controller runs again")
	}
	return errors.Join(failed...)
}

const finalizer = gwv1.GatewayClassFinalizerGatewaysExist

// remove removes the finalizer from a class, and leaves those of others.
func remove(ctx context.Context, c client.Client, class string) error {
	live := &gwv1.GatewayClass{}
	if err := c.Get(ctx, client.ObjectKey{Name: class}, live); err != nil {
		return err
	}
	next := live.DeepCopy()
	next.Finalizers = slices.DeleteFunc(next.Finalizers, func(s string) bool { return s == finalizer })
	return c.Patch(ctx, next, client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{}))
}
