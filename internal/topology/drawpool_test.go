package topology

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	poolsv1 "sigs.k8s.io/gateway-api-inference-extension/api/v1"
)

func drawInferencePool(t *rapid.T) *poolsv1.InferencePool {
	p := &poolsv1.InferencePool{ObjectMeta: drawMeta(t)}
	p.Spec.Selector.MatchLabels = map[poolsv1.LabelKey]poolsv1.LabelValue{"app": poolsv1.LabelValue(someName.Draw(t, "app"))}
	p.Spec.TargetPorts = []poolsv1.Port{{Number: poolsv1.PortNumber(somePort.Draw(t, "target port"))}}
	if rapid.IntRange(0, 4).Draw(t, "picker?") > 0 {
		p.Spec.EndpointPickerRef = &poolsv1.EndpointPickerRef{
			Kind: rapid.SampledFrom([]poolsv1.Kind{"", "Service", "Bucket"}).Draw(t, "picker kind"),
			Name: poolsv1.ObjectName(someObjectName.Draw(t, "picker")),
			Port: &poolsv1.Port{Number: poolsv1.PortNumber(somePort.Draw(t, "picker port"))},
			FailureMode: rapid.SampledFrom([]poolsv1.EndpointPickerFailureMode{
				poolsv1.EndpointPickerFailOpen, poolsv1.EndpointPickerFailClose,
			}).Draw(t, "failure mode"),
		}
	}
	return p
}

func drawPod(t *rapid.T) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: drawMeta(t)}
	p.Labels = map[string]string{"app": someName.Draw(t, "app")}
	p.Status.PodIP = rapid.SampledFrom([]string{"", "10.0.0.1", "10.0.0.2"}).Draw(t, "pod IP")
	p.Status.Phase = rapid.SampledFrom([]corev1.PodPhase{corev1.PodRunning, corev1.PodSucceeded}).Draw(t, "phase")
	if rapid.Bool().Draw(t, "ends?") {
		p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	}
	return p
}
