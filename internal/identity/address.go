package identity

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// addressed waits until a pod has an address, and returns it. A proxy asks as soon as it
// runs, before the kubelet has written the address. To refuse it then would delay every
// new pod, and fill the log with refusals without a reason to act. When that takes too long,
// or too many requests wait already, the pod is returned without an address.
func (s *Server) addressed(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	if len(pod.Status.PodIPs) > 0 {
		return pod, nil
	}
	select {
	case s.waits <- struct{}{}:
		defer func() { <-s.waits }()
	default:
		return pod, nil
	}
	ctx, cancel := context.WithTimeout(ctx, addressTime)
	defer cancel()
	changes, err := s.o.Client.Watch(ctx, &corev1.PodList{}, client.InNamespace(pod.Namespace), client.MatchingFields{"metadata.name": pod.Name},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: pod.ResourceVersion}})
	if err != nil {
		return nil, fmt.Errorf("Pod %s/%s: %w", pod.Namespace, pod.Name, err) //nolint:revive // a kind's name
	}
	defer changes.Stop()
	for {
		select {
		case <-ctx.Done():
			return pod, nil
		case change, ok := <-changes.ResultChan():
			now, isPod := change.Object.(*corev1.Pod)
			switch {
			case !ok || !isPod: // the API server doesn't go on with it
				return pod, nil
			case change.Type == watch.Deleted || now.UID != pod.UID:
				return nil, gone(pod.Namespace, pod.Name)
			}
			if no := runs(now, time.Now()); no != nil {
				return nil, no
			}
			if pod = now; len(pod.Status.PodIPs) > 0 {
				return pod, nil
			}
		}
	}
}
