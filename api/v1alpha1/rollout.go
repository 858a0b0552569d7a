package v1alpha1

// RolloutStrategy is how what proxies run is replaced.
//
// +kubebuilder:validation:Enum=Rolling;BlueGreen
type RolloutStrategy string

// The strategies.
const (
	RolloutRolling   RolloutStrategy = "Rolling"
	RolloutBlueGreen RolloutStrategy = "BlueGreen"
)

// Rollout is how proxies are replaced when their pod template changes: by another
// image, other parameters, or another version of the controller.
type Rollout struct {
	// Strategy is Rolling, the default, where the Deployment replaces its pods one after
	// the other, or BlueGreen, where a second Deployment is made beside the first one:
	// clients go over to it when the Gateway has the annotation gatehouse.dev/promote with
	// its revision, and the first one stays as it is until then. BlueGreen can't be had
	// together with daemonSet.
	// +optional
	Strategy *RolloutStrategy `json:"strategy,omitempty"`
}
