package schema

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

var objectMetaType = reflect.TypeFor[metav1.ObjectMeta]()

// serverFields are those of metadata that the API server sets itself, whatever a
// manifest says. creationTimestamp is not among them: it orders routes that
// conflict, and a dump of a cluster should keep its order.
var serverFields = []string{
	"deletionGracePeriodSeconds", "deletionTimestamp", "generation",
	"managedFields", "resourceVersion", "selfLink", "uid",
}

func cleanMeta(meta map[string]any) {
	for _, name := range serverFields {
		delete(meta, name)
	}
	if annotations, ok := meta["annotations"].(map[string]any); ok {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		if len(annotations) == 0 {
			delete(meta, "annotations")
		}
	}
}

func validNamespace(name string) []string { return validation.ValidateNamespaceName(name, false) }

func finishMeta(id Identity, object source.Object) field.ErrorList {
	return validation.ValidateObjectMetaAccessor(object, id.row.Scope == kind.Namespaced, id.row.validName, field.NewPath("metadata"))
}
