package cluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// tellConfigured has Events of this process's pod say whether its changed configuration is in force: a file in a
// ConfigMap has no status.
func (c *Cluster) tellConfigured(ctx context.Context) error {
	pod := &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: c.opts.Self.Namespace, Name: c.opts.Self.Name}
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-c.opts.Configured:
			if err != nil {
				c.recorder.Eventf(pod, nil, corev1.EventTypeWarning, "ConfigurationInvalid", "Configure", "The changed configuration is not used; the last good one stays in force: %v", err)
			} else {
				c.recorder.Eventf(pod, nil, corev1.EventTypeNormal, "ConfigurationValid", "Configure", "The configuration is in force")
			}
		}
	}
}
