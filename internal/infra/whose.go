package infra

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// GatewayOf names the Gateway whose fleet a live object belongs to; false where it
// belongs to none.
func GatewayOf(o metav1.Object) (object.Name, bool) {
	if labels := o.GetLabels(); labels[PartOfLabel] != "" || labels[SetIDLabel] != "" {
		return object.Name{}, false
	}
	if owner := metav1.GetControllerOf(o); owner != nil {
		if isGateway(owner) {
			return object.Name{Namespace: o.GetNamespace(), Name: owner.Name}, true
		}
		if _, pod := o.(*corev1.Pod); !pod { // pods are their Deployment's
			return object.Name{}, false
		}
	}
	if o.GetLabels()[ManagedByLabel] != ManagedBy {
		return object.Name{}, false
	}
	name := o.GetAnnotations()[GatewayAnnotation]
	namespace := o.GetNamespace() + "/"
	if len(name) <= len(namespace) || name[:len(namespace)] != namespace {
		return object.Name{}, false
	}
	return object.Name{Namespace: o.GetNamespace(), Name: name[len(namespace):]}, true
}

// OfFleet names the Gateway that a live object belongs to, if the object is part of a
// fleet of the controller with this name. The fleet may be that of the Gateway's class
// or of a former class.
func OfFleet(o metav1.Object, controllerName string) (object.Name, bool) {
	gateway, ok := GatewayOf(o)
	annotations := o.GetAnnotations()
	return gateway, ok && annotations[ControllerAnnotation] == controllerName && o.GetName() == Name(gateway, annotations[classAnnotation])
}

// ClassOf is the GatewayClass under which the fleet of a live object was made.
func ClassOf(o metav1.Object) string { return o.GetAnnotations()[classAnnotation] }

const GatewayKind = "Gateway"

func isGateway(owner *metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && gv.Group == gwv1.GroupVersion.Group && owner.Kind == GatewayKind
}
