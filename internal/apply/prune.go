package apply

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// workload returns the live Deployment or DaemonSet of a fleet; nil if there is
// none yet.
func (f *Fleets) workload(ctx context.Context, c cache.Cache, objects []*unstructured.Unstructured) (client.Object, error) {
	for _, o := range objects {
		switch o.GetKind() {
		case "Deployment", "DaemonSet":
			return cached(ctx, c, o)
		}
	}
	return nil, nil
}

// prune deletes what a fleet doesn't consist of any more. When it becomes a DaemonSet,
// or a Deployment, what served until now goes on until the new proxies do. So it is with what is of one
// revision. Settled says that the
// Gateway is not on its way from another class.
func (f *Fleets) prune(ctx context.Context, c cache.Cache, g *infra.Gateway, objects []*unstructured.Unstructured, at *pair, replaced, settled bool) error {
	wanted := map[objectKey]bool{}
	for _, o := range objects {
		wanted[keyOfObject(o.GetKind(), o)] = true
	}
	ledTo := "" // as the API server has it: the cache may be behind
	name := f.options.Places.Name(g.Name, g.Class)
	var failed []error
	for _, k := range kinds {
		live, err := children(ctx, c, k, g.Name)
		if err != nil {
			return err
		}
		for _, o := range live {
			counts, here := infra.CountsFor(o, g.Name), infra.FleetOf(o, g.Name) == name
			// What counted for a fleet that the Gateway has left counts for nobody any more.
			ours := counts && (here || settled) ||
				here && (o.GetName() == name.Name && (k.eager || replaced) || f.options.Places.OfRevision(o))
			// What clients are led to goes when that has been seen to have changed.
			if here && at.beside() && (o.GetName() == at.plan.Live.Workload || o.GetName() == at.name) && !k.eager {
				continue
			}
			if at.plan.Unscaled && k.name == "HorizontalPodAutoscaler" { // made since
				continue
			}
			if !ours || wanted[keyOfObject(k.name, o)] {
				continue
			}
			if !k.eager && !works(wanted, o) {
				if ledTo == "" {
					if ledTo, err = f.ledTo(ctx, g); err != nil {
						return errors.Join(append(failed, err)...)
					}
				}
				if o.GetName() == ledTo {
					continue // a change of the Service runs this again
				}
			}
			failed = append(failed, f.discard(ctx, k, o))
		}
	}
	return errors.Join(failed...)
}

// works reports whether there is to be a workload of the name of an object.
func works(wanted map[objectKey]bool, o client.Object) bool {
	return wanted[keyOfObject("Deployment", o)] || wanted[keyOfObject("DaemonSet", o)]
}

// ledTo asks the API server which workload clients are led to. Where there is no Service, that is none.
func (f *Fleets) ledTo(ctx context.Context, g *infra.Gateway) (string, error) {
	s := &corev1.Service{}
	err := f.client.Get(ctx, client.ObjectKey(f.options.Places.Name(g.Name, g.Class)), s)
	if apierrors.IsNotFound(err) {
		return "-", nil // no name
	}
	return infra.LiveOf(s), err
}

// remove deletes the fleets of a Gateway that is to have none. Where that is not
// certain, because the Gateway is just not seen any more, only those go that are
// nobody's.
func (f *Fleets) remove(ctx context.Context, c cache.Cache, gateway object.Name, certain bool) error {
	var failed []error
	kept := false
	orphans := map[string]bool{} // by class, which alone decides: Gateways are looked at once for all objects of a fleet
	for _, k := range kinds {
		live, err := children(ctx, c, k, gateway)
		if err != nil {
			return err
		}
		for _, o := range live {
			if !certain {
				class := infra.ClassOf(o)
				orphan, known := orphans[class]
				if !known {
					if orphan, err = f.isOrphan(ctx, gateway, class); err != nil {
						return err
					}
					orphans[class] = orphan
				}
				if !orphan {
					kept = true
					continue
				}
			}
			failed = append(failed, f.discard(ctx, k, o))
		}
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	if !kept {
		f.forget(gateway)
	}
	return nil
}

// isOrphan asks the API server whether the fleet that a Gateway has by a class has lost its Gateway.
// That we don't know a Gateway may have other causes: it may be in a namespace that
// we don't watch, or we may not be allowed to read it.
func (f *Fleets) isOrphan(ctx context.Context, gateway object.Name, of string) (bool, error) {
	if now := f.sharedFleet(of); !now.IsZero() {
		return now != gateway, nil // the Gateways of the class have moved to it
	}
	if class, shared := gateway.SharedBy(); shared {
		return f.isUnshared(ctx, class)
	}
	live, err := f.readGateway(ctx, gateway)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	class, _, _ := unstructured.NestedString(live.Object, "spec", "gatewayClassName")
	if class == of {
		return false, nil
	}
	_, err = f.readClass(ctx, class)
	return err == nil, client.IgnoreNotFound(err) // a mistake in the class's name costs no fleet
}

// sharedFleet names the fleet that the Gateways of a class are known to share.
func (f *Fleets) sharedFleet(class string) object.Name {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, g := range f.wanted {
		if of, shared := name.SharedBy(); shared && of == class && !g.Frozen && len(g.Ports) > 0 {
			return name
		}
	}
	return object.Name{}
}

// isUnshared asks the API server whether all Gateways of a class have fleets of their own, so that none is
// served by the one that they have shared.
func (f *Fleets) isUnshared(ctx context.Context, class string) (bool, error) {
	scope := f.scope
	if len(scope) == 0 {
		scope = []string{metav1.NamespaceAll}
	}
	for _, namespace := range scope {
		live := &gwv1.GatewayList{}
		if err := f.client.List(ctx, live, client.InNamespace(namespace)); err != nil {
			return false, fmt.Errorf("list Gateways: %w", err)
		}
		for i := range live.Items {
			gw := &live.Items[i]
			f.mu.Lock()
			own := f.wanted[object.Name{Namespace: gw.Namespace, Name: gw.Name}]
			f.mu.Unlock()
			// What isn't known, or what a mistake holds, may be served by the fleet.
			if (own == nil || own.Frozen) && f.mayHave(ctx, string(gw.Spec.GatewayClassName), class) {
				return false, nil
			}
		}
	}
	return true, nil
}

// mayHave reports whether a Gateway that names one class may be of another one: the two are one, or the one that it
// names doesn't exist.
func (f *Fleets) mayHave(ctx context.Context, named, class string) bool {
	if named == class {
		return true
	}
	_, err := f.readClass(ctx, named)
	return err != nil
}

// discard deletes an object of a fleet, if the fleet is ours: another controller of
// another name may have one for the same Gateway.
func (f *Fleets) discard(ctx context.Context, k kind, o client.Object) error {
	if o.GetDeletionTimestamp() != nil || o.GetAnnotations()[infra.ControllerAnnotation] != f.options.ControllerName {
		return nil
	}
	return f.delete(ctx, k.name, o)
}
