package provisionermode

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// reconcileGateway makes a Gateway's Deployment, or deletes it. One that is there is
// left as it is.
func (p *provisioner) reconcileGateway(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	gateway := object.Name{Namespace: req.Namespace, Name: req.Name}
	wanted, err := p.wanted(ctx, req)
	if err != nil {
		return reconcile.Result{}, err
	}
	made := p.made[gateway]
	switch {
	case wanted == held || (wanted == yes) == made:
		return reconcile.Result{}, nil
	case wanted == yes:
		err = p.create(ctx, gateway)
	default:
		err = p.delete(ctx, gateway)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("gateway %s: %w", gateway, err)
	}
	if wanted == yes {
		p.made[gateway] = true
	} else {
		delete(p.made, gateway)
	}
	return reconcile.Result{}, nil
}

// want says whether a Gateway is to have a Deployment.
type want int

const (
	no want = iota
	yes
	held // as it is
)

func (p *provisioner) wanted(ctx context.Context, req reconcile.Request) (want, error) {
	gateway := &gwv1.Gateway{}
	err := p.client.Get(ctx, req.NamespacedName, gateway)
	switch {
	case apierrors.IsNotFound(err):
		return no, nil
	case err != nil:
		return held, err
	case gateway.DeletionTimestamp != nil:
		return no, nil
	}
	version, err := p.version(ctx)
	if err != nil {
		return held, err
	}
	ours := string(gateway.Spec.GatewayClassName) == p.o.Class
	switch {
	case !version.Usable():
		if ours {
			p.o.Log.Warn("a Gateway can't be understood, and stays as it is: "+version.Refused.Message, "gateway", req.String())
		}
		return held, nil
	case !ours:
		return no, nil
	}
	class := &gwv1.GatewayClass{}
	err = p.client.Get(ctx, client.ObjectKey{Name: p.o.Class}, class)
	switch {
	case apierrors.IsNotFound(err):
		// A class that is gone for a moment must not cost what runs.
		p.o.Log.Warn("there is no such GatewayClass; its Gateways stay as they are until there is", "class", p.o.Class, "gateway", req.String())
		return held, nil
	case err != nil:
		return held, err
	case string(class.Spec.ControllerName) != p.o.ControllerName:
		return no, nil
	}
	return yes, nil
}

func (p *provisioner) create(ctx context.Context, gateway object.Name) error {
	d, err := p.o.deployment(gateway)
	if err != nil {
		return err
	}
	err = p.client.Create(ctx, d)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("deployment %s/%s: %w", d.Namespace, d.Name, err)
	}
	p.o.Log.Info("a Gateway has its Deployment", "gateway", gateway.String(), "deployment", d.Name)
	return nil
}

func (p *provisioner) delete(ctx context.Context, gateway object.Name) error {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: p.o.Namespace, Name: nameOf(gateway, p.o.Class)}}
	err := p.client.Delete(ctx, d, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deployment %s/%s: %w", d.Namespace, d.Name, err)
	}
	p.o.Log.Info("the Deployment of a Gateway is deleted", "gateway", gateway.String(), "deployment", d.Name)
	return nil
}

// leftovers finds what was made before this process ran: some of it may be for
// Gateways that are gone.
func (p *provisioner) leftovers(ctx context.Context, reader client.Reader) ([]object.Name, error) {
	var all appsv1.DeploymentList
	if err := reader.List(ctx, &all, client.InNamespace(p.o.Namespace), client.MatchingLabels{classLabel: hash(p.o.Class)}); err != nil {
		return nil, fmt.Errorf("list the Deployments in %s: %w", p.o.Namespace, err)
	}
	var gateways []object.Name
	for i := range all.Items {
		gateway, ok := object.ParseName(all.Items[i].Annotations[gatewayAnnotation])
		if ok && all.Items[i].Name == nameOf(gateway, p.o.Class) {
			gateways = append(gateways, gateway)
		}
	}
	return gateways, nil
}
