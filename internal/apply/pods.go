package apply

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// watchPods follows the pods of fleets, to know what keeps them from working. Fleets
// are applied whether that is known or not.
func (f *Fleets) watchPods(ctx context.Context, c cache.Cache) error {
	informer, err := c.GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch the pods of fleets: %w", err)
	}
	set := func(o any) {
		if pod, ok := o.(*corev1.Pod); ok {
			f.notePod(pod, pod)
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: set, UpdateFunc: func(_, o any) { set(o) },
		DeleteFunc: func(o any) {
			if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			if pod, ok := o.(*corev1.Pod); ok {
				f.notePod(pod, nil)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch the pods of fleets: %w", err)
	}
	return nil
}

// notePod remembers a pod as it is now; nil if it is gone.
func (f *Fleets) notePod(pod, now *corev1.Pod) {
	gateway, ok := f.options.Places.GatewayOf(pod)
	if !ok {
		return
	}
	f.mu.Lock()
	pods, name := f.pods[gateway], object.Name{Namespace: pod.Namespace, Name: pod.Name}
	switch {
	case now == nil:
		if delete(pods, name); len(pods) == 0 {
			delete(f.pods, gateway)
		}
	case pods == nil:
		f.pods[gateway] = map[object.Name]*corev1.Pod{name: now}
	default:
		pods[name] = now
	}
	f.mu.Unlock()
	f.queue.Add(gateway)
}

// slowStart is after how long a pod that runs should be ready.
const slowStart = 15 * time.Second

// podTrouble says what is wrong with the pods of a workload; empty where they only need
// time.
func (f *Fleets) podTrouble(gateway, workload object.Name) string {
	for _, pod := range f.podsOf(gateway, workload) { // the newest one is reported
		trouble := trouble(pod)
		if since, starting := unready(pod); trouble == "" && starting {
			if left := slowStart - time.Since(since); left > 0 {
				f.queue.AddAfter(gateway, left)
				continue
			}
			trouble = "runs but is not ready; its log says whether it reaches the controller"
		}
		if trouble != "" {
			return fmt.Sprintf("Pod %s/%s %s", pod.Namespace, pod.Name, trouble)
		}
	}
	return ""
}

// podsOf returns the pods of a workload that are to stay, the newest first.
func (f *Fleets) podsOf(gateway, workload object.Name) []*corev1.Pod {
	f.mu.Lock()
	pods := slices.Collect(maps.Values(f.pods[gateway]))
	f.mu.Unlock()
	pods = slices.DeleteFunc(pods, func(pod *corev1.Pod) bool {
		return instanceOf(pod) != workload || pod.DeletionTimestamp != nil
	})
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return pods
}

// instanceOf names the workload that a pod is of.
func instanceOf(pod *corev1.Pod) object.Name {
	return object.Name{Namespace: pod.Namespace, Name: pod.Labels[infra.InstanceLabel]}
}

// unready returns since when a pod is not ready; false where it is, or doesn't run.
func unready(pod *corev1.Pod) (time.Time, bool) {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionFalse {
			return condition.LastTransitionTime.Time, pod.Status.Phase == corev1.PodRunning
		}
	}
	return time.Time{}, false
}

// trouble says what keeps a pod from running, unless it only needs time.
func trouble(pod *corev1.Pod) string {
	if pod.Status.Phase == corev1.PodFailed {
		return fmt.Sprintf("has failed: %s %s", pod.Status.Reason, pod.Status.Message)
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return "can't be scheduled: " + condition.Message
		}
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := status.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			text := fmt.Sprintf("waits for its container %s: %s", status.Name, w.Reason)
			if w.Message != "" {
				text += ": " + w.Message
			}
			if last := status.LastTerminationState.Terminated; last != nil {
				text += fmt.Sprintf(" (it ended with exit code %d; see its log)", last.ExitCode)
			}
			return text
		}
	}
	return ""
}
