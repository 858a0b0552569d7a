package v1alpha1

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Deployment is how many proxies there are.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.replicas) && has(self.autoscaling))",message="replicas and autoscaling can't be had together: autoscaling has minReplicas"
type Deployment struct {
	// Replicas is how many proxies run, 1 by default.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Replicas *int32 `json:"replicas,omitempty" merge:"choice"`

	// Autoscaling lets a HorizontalPodAutoscaler decide how many run.
	// +optional
	Autoscaling *Autoscaling `json:"autoscaling,omitempty" merge:"choice"`

	// PodDisruptionBudget is how many proxies evictions may take at a time; {} removes
	// an inherited one.
	// +optional
	PodDisruptionBudget *PodDisruptionBudget `json:"podDisruptionBudget,omitempty" merge:"whole"`

	// Strategy is how a change is rolled out. By default a new proxy is ready before
	// an old one ends.
	// +optional
	Strategy *appsv1.DeploymentStrategy `json:"strategy,omitempty" merge:"whole"`
}

// Autoscaling are the fields of a HorizontalPodAutoscaler.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",message="minReplicas is more than maxReplicas"
type Autoscaling struct {
	// MinReplicas is the least that runs, 1 by default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// MaxReplicas is the most that runs. One of the levels must set it.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`

	// Metrics are what decides; by default the CPU that is used, with 80% of what is
	// requested as the target.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Metrics []autoscalingv2.MetricSpec `json:"metrics,omitzero"`

	// Behavior is how fast it goes up and down.
	// +optional
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior,omitempty"`
}

// PodDisruptionBudget are the fields of a PodDisruptionBudget.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.minAvailable) && has(self.maxUnavailable))",message="minAvailable and maxUnavailable can't be had together"
type PodDisruptionBudget struct {
	// MinAvailable is how many proxies, or what percentage of them, evictions leave.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([0-9]+|[0-9]{1,3}%)$`
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`

	// MaxUnavailable is how many, or what percentage, evictions may take.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([0-9]+|[0-9]{1,3}%)$`
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// UnhealthyPodEvictionPolicy says whether pods that are not ready may always be
	// evicted.
	// +optional
	// +kubebuilder:validation:Enum=IfHealthyBudget;AlwaysAllow
	UnhealthyPodEvictionPolicy *policyv1.UnhealthyPodEvictionPolicyType `json:"unhealthyPodEvictionPolicy,omitempty"`
}

// DaemonSet runs a proxy on every node that the pod's nodeSelector, affinity and
// tolerations allow.
type DaemonSet struct {
	// UpdateStrategy is how a change is rolled out.
	// +optional
	UpdateStrategy *appsv1.DaemonSetUpdateStrategy `json:"updateStrategy,omitempty" merge:"whole"`
}

// Pod is the template of the proxies' pods.
type Pod struct {
	// Labels are further labels. Those that the proxies are selected by can't be set.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitzero" allow:"Safe"`

	// Annotations are further annotations.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitzero" allow:"Safe"`

	// NodeSelector are the labels that nodes must have.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	NodeSelector map[string]string `json:"nodeSelector,omitzero" allow:"Safe"`

	// Affinity is where the pods should be.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty" allow:"Safe"`

	// Tolerations are the taints that don't keep the pods away.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tolerations []corev1.Toleration `json:"tolerations,omitzero"`

	// TopologySpreadConstraints spread the pods; by default over nodes and zones, as
	// far as that can be done. One without a labelSelector is about this Gateway's
	// proxies.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitzero" allow:"Safe"`

	// PriorityClassName is the pods' priority.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName *string `json:"priorityClassName,omitempty"`

	// SecurityContext is merged with the default one, under which nothing runs as
	// root.
	// +optional
	SecurityContext *corev1.PodSecurityContext `json:"securityContext,omitempty"`

	// TerminationGracePeriodSeconds is how long a pod may take to end; by default as
	// long as drain lets it, and a little more.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty" allow:"Safe"`

	// ImagePullSecrets are the names of Secrets, in the Gateway's namespace, with
	// which the images are pulled.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitzero" allow:"Safe"`

	// Volumes are further volumes.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Volumes []corev1.Volume `json:"volumes,omitzero"`

	// InitContainers are run before the proxy starts.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	InitContainers []corev1.Container `json:"initContainers,omitzero"`

	// Containers run beside the proxy.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Containers []corev1.Container `json:"containers,omitzero"`
}

// Container is the proxy's own container.
type Container struct {
	// Image is what to run; by default the controller's own image.
	// +optional
	Image *Image `json:"image,omitempty"`

	// Resources are 10m CPU and 64Mi memory requested, and no limits, by default.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty" allow:"Safe"`

	// SecurityContext is merged with the default one, which has no capabilities and
	// can't write to its root.
	// +optional
	SecurityContext *corev1.SecurityContext `json:"securityContext,omitempty"`

	// Env are further environment variables.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Env []corev1.EnvVar `json:"env,omitzero"`

	// VolumeMounts say where the pod's volumes are.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitzero"`

	// HostPorts are ports of the node at which listeners can be reached beside their
	// Service.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	HostPorts []HostPort `json:"hostPorts,omitzero"`

	// Lifecycle are hooks at the start and the end of the container. What a preStop hook
	// sleeps is added to the default of the pod's terminationGracePeriodSeconds.
	// +optional
	Lifecycle *corev1.Lifecycle `json:"lifecycle,omitempty"`
}

// HostPort is the port of a node for a listener's port.
type HostPort struct {
	// ListenerPort is the port of one or more listeners.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	ListenerPort int32 `json:"listenerPort"`

	// HostPort is the port of each node that has a proxy.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	HostPort int32 `json:"hostPort"`
}

// Image names a container image. What isn't set is that of the controller's image.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.tag) && has(self.digest))",message="tag and digest can't be had together"
type Image struct {
	// Repository is the image's name with its registry, without a tag.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Repository *string `json:"repository,omitempty"`

	// Tag is the image's tag.
	// +optional
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`
	Tag *string `json:"tag,omitempty" merge:"choice"`

	// Digest is the image's content, such as sha256:… .
	// +optional
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest *string `json:"digest,omitempty" merge:"choice"`

	// PullPolicy says when the image is fetched.
	// +optional
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	PullPolicy *corev1.PullPolicy `json:"pullPolicy,omitempty"`
}
