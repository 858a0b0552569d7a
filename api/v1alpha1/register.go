package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and the version of the kinds.
var GroupVersion = schema.GroupVersion{Group: "gatehouse.dev", Version: "v1alpha1"}

// AddToScheme makes a scheme know the kinds.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &GatewayParameters{}, &GatewayParametersList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
