package provisionermode

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
)

// reconcileClass writes the status of a class with our controller's name.
func (p *provisioner) reconcileClass(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	class := &gwv1.GatewayClass{}
	if err := p.client.Get(ctx, req.NamespacedName, class); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if string(class.Spec.ControllerName) != p.o.ControllerName {
		if class.Name == p.o.Class {
			p.o.Log.Warn("the GatewayClass is another controller's", "class", class.Name, "controller", class.Spec.ControllerName)
		}
		return reconcile.Result{}, nil
	}
	version, err := p.version(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	next := class.DeepCopy()
	set := func(c metav1.Condition) {
		c.ObservedGeneration = class.Generation
		meta.SetStatusCondition(&next.Status.Conditions, c)
	}
	switch {
	case class.Name != p.o.Class:
		set(condition.ClassConflict())
	case version.Usable():
		set(condition.ClassAccepted())
	default:
		set(version.Refused)
	}
	if class.Name == p.o.Class {
		set(version.Supported)
		next.Status.SupportedFeatures = p.features
	}
	if equality.Semantic.DeepEqual(class.Status, next.Status) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, p.client.Status().Update(ctx, next)
}
