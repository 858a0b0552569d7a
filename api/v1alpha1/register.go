package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion is the group and the version of the kinds.
var GroupVersion = schema.GroupVersion{Group: "gatehouse.dev", Version: "v1alpha1"}
