package infra

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// State is what there is to say of a Gateway's fleet.
type State struct {
	// Problem is why the fleet can't be made what it should be; empty while it can.
	Problem string `json:"problem,omitempty"`
	// Waiting is why no proxy is ready; empty while one is, and while none is just a
	// matter of seconds.
	Waiting string `json:"waiting,omitempty"`
	// Rollout is what keeps proxies from running, of which others may run.
	Rollout Rollout `json:"rollout,omitzero"`
	// Counting says that requests are counted for all proxies together, and NotCounting why
	// they are not, where they are to be.
	Counting    bool   `json:"counting,omitempty"`
	NotCounting string `json:"notCounting,omitempty"`
	// Serving is the Service that clients are to use, while the Gateway moves here from
	// fleets of other classes; empty where it doesn't.
	Serving string `json:"serving,omitempty"`
}

// ready reports whether a workload has all the proxies that it is to have, so that it
// can take the place of another.
func ready(workload client.Object) bool {
	switch w := workload.(type) {
	case *appsv1.Deployment:
		return w.Status.ObservedGeneration >= w.Generation && w.Status.AvailableReplicas >= ptr.Deref(w.Spec.Replicas, 1)
	case *appsv1.DaemonSet:
		return w.Status.ObservedGeneration >= w.Generation && w.Status.NumberReady > 0 &&
			w.Status.NumberReady >= w.Status.DesiredNumberScheduled
	default:
		return false
	}
}

// waiting says why a workload has no proxy that is ready; empty where it has one.
func (a *Applier) waiting(gateway object.Name, workload client.Object) string {
	switch w := workload.(type) {
	case *appsv1.Deployment:
		if w.Status.AvailableReplicas > 0 {
			return ""
		}
		if w.Spec.Replicas != nil && *w.Spec.Replicas == 0 {
			return fmt.Sprintf("Deployment %s/%s is scaled to 0", w.Namespace, w.Name)
		}
		for _, condition := range w.Status.Conditions {
			if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
				return fmt.Sprintf("Deployment %s/%s: %s", w.Namespace, w.Name, condition.Message)
			}
		}
	case *appsv1.DaemonSet:
		if w.Status.NumberReady > 0 {
			return ""
		}
		if w.Status.ObservedGeneration >= w.Generation && w.Status.DesiredNumberScheduled == 0 {
			return fmt.Sprintf("DaemonSet %s/%s has no node that its pods may run on", w.Namespace, w.Name)
		}
	}
	return a.podTrouble(gateway, workload.GetName())
}

// said is what was last said of each Gateway's fleet.
type said map[object.Name]State

// report passes a state on if it is new.
func (a *Applier) report(gateway object.Name, s State) {
	a.mu.Lock()
	last, known := a.said[gateway]
	a.said[gateway] = s
	a.mu.Unlock()
	if a.onState != nil && (!known || last != s) {
		a.onState(gateway, &s)
	}
}

// reportServing passes on which Service is to be used before anything else is known, so
// that the new Service is not used too early.
func (a *Applier) reportServing(gateway object.Name, service string) {
	a.mu.Lock()
	s := a.said[gateway]
	a.mu.Unlock()
	s.Serving = service
	a.report(gateway, s)
}

// forget reports that there is no fleet any more.
func (a *Applier) forget(gateway object.Name) {
	a.mu.Lock()
	_, known := a.said[gateway]
	delete(a.said, gateway)
	a.mu.Unlock()
	if a.onState != nil && known {
		a.onState(gateway, nil)
	}
}
