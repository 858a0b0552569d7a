package apply

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

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
func (f *Fleets) waiting(gateway object.Name, workload client.Object) string {
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
	return f.podTrouble(gateway, nameOf(workload))
}

// said is what was last said of each Gateway's fleet.
type said map[object.Name]infra.State

// report passes a state on if it is new.
func (f *Fleets) report(gateway object.Name, s infra.State) {
	f.mu.Lock()
	last, known := f.said[gateway]
	f.said[gateway] = s
	f.mu.Unlock()
	if f.onState != nil && (!known || last != s) {
		f.onState(gateway, &s)
	}
}

func (f *Fleets) lastStep(gateway object.Name) infra.Step {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.said[gateway].Step
}

// reportServing passes on which Service is to be used before anything else is known, so
// that the new Service is not used too early.
func (f *Fleets) reportServing(gateway, service object.Name) {
	f.mu.Lock()
	s := f.said[gateway]
	f.mu.Unlock()
	s.Serving = service
	f.report(gateway, s)
}

// forget reports that there is no fleet any more.
func (f *Fleets) forget(gateway object.Name) {
	f.mu.Lock()
	_, known := f.said[gateway]
	delete(f.said, gateway)
	delete(f.comparisons, gateway)
	f.mu.Unlock()
	if f.onState != nil && known {
		f.onState(gateway, nil)
	}
}
