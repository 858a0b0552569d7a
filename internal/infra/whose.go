package infra

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// ClassOf is the GatewayClass under which the fleet of a live object was made.
func ClassOf(o metav1.Object) string { return o.GetAnnotations()[classAnnotation] }

const GatewayKind = "Gateway"

func isGateway(owner *metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && gv.Group == gwv1.GroupVersion.Group && owner.Kind == GatewayKind
}
