package infra

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// apiObject is any object of the API, as those who have a client know it too.
type apiObject interface {
	metav1.Object
	runtime.Object
}
