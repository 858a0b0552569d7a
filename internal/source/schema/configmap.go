package schema

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// finishConfigMap applies the API server's rules for keys and size.
func finishConfigMap(config *corev1.ConfigMap) field.ErrorList {
	var errs field.ErrorList
	size := 0
	for key, value := range config.Data {
		errs = append(errs, checkDataKey(field.NewPath("data"), key)...)
		if _, ok := config.BinaryData[key]; ok {
			errs = append(errs, field.Invalid(field.NewPath("data"), key, "the key is in binaryData as well: keep one of them"))
		}
		size += len(value)
	}
	for key, value := range config.BinaryData {
		errs = append(errs, checkDataKey(field.NewPath("binaryData"), key)...)
		size += len(value)
	}
	if size > corev1.MaxSecretSize { // the API server's limit for both
		errs = append(errs, field.TooLong(field.NewPath("data"), "", corev1.MaxSecretSize))
	}
	slices.SortFunc(errs, byText) // maps have no order, reports do
	return errs
}
