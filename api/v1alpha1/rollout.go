package v1alpha1

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// RolloutStrategy is how what proxies run is replaced.
//
// +kubebuilder:validation:Enum=Rolling;BlueGreen
type RolloutStrategy string

// The strategies.
const (
	RolloutRolling   RolloutStrategy = "Rolling"
	RolloutBlueGreen RolloutStrategy = "BlueGreen"
)

// PromotionStrategy is who decides that clients go over to other proxies.
//
// +kubebuilder:validation:Enum=Manual;Automatic
type PromotionStrategy string

// The strategies of promotion.
const (
	PromotionManual    PromotionStrategy = "Manual"
	PromotionAutomatic PromotionStrategy = "Automatic"
)

// Rollout is how proxies are replaced when their pod template changes: by another
// image, other parameters, or another version of the controller.
type Rollout struct {
	// Strategy is Rolling, the default, where the Deployment replaces its pods one after
	// the other, or BlueGreen, where a second Deployment is made beside the first one:
	// clients go over to it when it is promoted, and the first one stays as it is until
	// then. BlueGreen can't be had together with daemonSet.
	// +optional
	Strategy *RolloutStrategy `json:"strategy,omitempty"`

	// Promotion is how clients go over with the strategy BlueGreen.
	// +optional
	Promotion *Promotion `json:"promotion,omitempty"`
}

// Promotion is how clients go over from proxies to those of another revision.
type Promotion struct {
	// Strategy is Manual, the default, where clients go over when the Gateway has the
	// annotation gatehouse.dev/promote with the revision, or Automatic, where one new proxy
	// gets requests beside those that serve, and is compared with them: if it is no worse, the
	// revision is promoted, else the proxy gets no more requests. The annotation promotes with
	// Automatic too.
	// +optional
	Strategy *PromotionStrategy `json:"strategy,omitempty"`

	// Window is how long proxies are compared, at least; 2m by default. The comparison goes on
	// until the new proxy has had 100 requests, unless the Gateway has had none in that time.
	// +optional
	Window *gwv1.Duration `json:"window,omitempty"`

	// MaxErrorIncrease is by how many percentage points the share of answers with 5xx may be
	// higher than that of the proxies that serve, 1 by default.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MaxErrorIncrease *int32 `json:"maxErrorIncrease,omitempty"`

	// MaxLatencyIncrease is by how many percent the 99th percentile of latencies may be
	// higher, 50 by default.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	MaxLatencyIncrease *int32 `json:"maxLatencyIncrease,omitempty"`
}
