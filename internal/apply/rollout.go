package apply

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// rollout says what keeps proxies of a workload from running, the first ones too. What may
// just need time is not told: an ordinary rollout says nothing.
func (f *Fleets) rollout(gateway object.Name, workload client.Object) infra.Rollout {
	pods := f.podsOf(gateway, nameOf(workload))
	out := infra.Rollout{}
	for _, pod := range pods {
		why, since := stuck(pod)
		if why == "" {
			continue
		}
		if left := slowStart - time.Since(since); left > 0 {
			f.queue.AddAfter(gateway, left)
			continue
		}
		out.Why = fmt.Sprintf("Pod %s/%s %s", pod.Namespace, pod.Name, why)
		break
	}
	var updated int32
	switch w := workload.(type) {
	case *appsv1.Deployment:
		out.Wanted, updated = ptr.Deref(w.Spec.Replicas, 1), w.Status.UpdatedReplicas
		out.Why = cmp.Or(out.Why, deadline(w))
	case *appsv1.DaemonSet:
		out.Wanted, updated = w.Status.DesiredNumberScheduled, w.Status.UpdatedNumberScheduled
	}
	if out.Why == "" {
		return infra.Rollout{}
	}
	out.Newest = min(readyOfNewest(pods, int(updated)), out.Wanted)
	return out
}

// deadline says why a Deployment goes no further, where it has found that itself.
func deadline(w *appsv1.Deployment) string {
	for _, c := range w.Status.Conditions {
		failed := c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue ||
			c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse
		if failed && w.Status.ObservedGeneration >= w.Generation {
			return fmt.Sprintf("Deployment %s/%s: %s", w.Namespace, w.Name, c.Message)
		}
	}
	return ""
}

// stuck says what keeps a pod from being ready that time alone doesn't mend, and since
// when. Its words are the same at each attempt of the kubelet: messages with the length of
// the next pause, or with what failed this time, would write a status at each.
func stuck(pod *corev1.Pod) (why string, since time.Time) {
	since = pod.CreationTimestamp.Time
	for _, c := range pod.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue:
			return "", time.Time{}
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse:
			return "can't be scheduled: " + c.Message, c.LastTransitionTime.Time
		case c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse:
			since = c.LastTransitionTime.Time
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return trouble(pod), since
	}
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if why := containerStuck(&s); why != "" {
			return why, since
		}
	}
	if pod.Status.Phase == corev1.PodRunning {
		return "runs but is not ready; its log says whether it reaches the controller", since
	}
	return "", time.Time{}
}

// containerStuck is stuck for a container.
func containerStuck(s *corev1.ContainerStatus) string {
	reason := ""
	if s.State.Waiting != nil {
		reason = s.State.Waiting.Reason
	}
	switch {
	case reason == "ErrImagePull" || reason == "ImagePullBackOff":
		return fmt.Sprintf("can't get image %s of its container %s (ImagePullBackOff)", s.Image, s.Name)
	case s.RestartCount > 0 && !s.Ready && s.LastTerminationState.Terminated != nil:
		return fmt.Sprintf("has a container that ends again and again (CrashLoopBackOff): %s, with exit code %d; see its log",
			s.Name, s.LastTerminationState.Terminated.ExitCode)
	case reason != "" && reason != "ContainerCreating" && reason != "PodInitializing":
		return fmt.Sprintf("waits for its container %s: %s", s.Name, reason)
	}
	return ""
}

// The labels by which workloads tell the versions of their pod templates apart.
var templateLabels = []string{appsv1.DefaultDeploymentUniqueLabelKey, appsv1.ControllerRevisionHashLabelKey}

// readyOfNewest counts the ready pods of the newest template, of which there are updated
// pods. Which template that is, only a ReplicaSet says, which isn't watched: it is the
// last one of those with so many pods that a pod was made of first. Of two in the same second
// it is the one with fewer that are ready: a rollout isn't told to be further than it may be.
func readyOfNewest(pods []*corev1.Pod, updated int) int32 {
	type version struct {
		pods, ready int
		first       metav1.Time
	}
	versions := map[string]*version{}
	for _, pod := range pods {
		hash := cmp.Or(pod.Labels[templateLabels[0]], pod.Labels[templateLabels[1]])
		v := versions[hash]
		if v == nil {
			v = &version{}
			versions[hash] = v
		}
		v.pods++
		v.first = pod.CreationTimestamp // they come with the newest first
		if slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) {
			v.ready++
		}
	}
	var newest *version
	for _, v := range versions {
		if v.pods != updated {
			continue
		}
		if newest == nil || cmp.Or(v.first.Compare(newest.first.Time), cmp.Compare(newest.ready, v.ready)) > 0 {
			newest = v
		}
	}
	if newest == nil {
		return 0
	}
	return int32(newest.ready) //nolint:gosec // a count of objects in memory
}
