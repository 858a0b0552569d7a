package condition

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Inexpressible is a rule that Envoy's configuration can't express.
func Inexpressible(field string, err error) metav1.Condition {
	return unsupportedValue(field, "Envoy can't be told this: %v", err)
}
