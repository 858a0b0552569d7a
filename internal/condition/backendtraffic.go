package condition

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BackendTrafficPolicyConflicted says which policy takes precedence over this one for a
// target.
func BackendTrafficPolicyConflicted(target, winner string) metav1.Condition {
	return KindConflicted("XBackendTrafficPolicy", target, winner)
}
