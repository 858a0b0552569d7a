package apply

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

func testAutoscaling(t *testing.T, at *applierTest) {
	g := at.gateway(with(v1alpha1.Settings{Deployment: &v1alpha1.Deployment{Replicas: new(int32(7))}}))
	a := at.start()
	a.Set(g)
	deployment, scaler := &appsv1.Deployment{}, &autoscalingv2.HorizontalPodAutoscaler{}
	at.await("7 replicas", func() bool { return at.get(g, deployment) && *deployment.Spec.Replicas == 7 })

	scaled := at.gateway(with(v1alpha1.Settings{Deployment: &v1alpha1.Deployment{Autoscaling: &v1alpha1.Autoscaling{MaxReplicas: new(int32(9))}}}))
	a.Set(scaled)
	at.await("an autoscaler", func() bool { return at.get(g, scaler) })
	if at.get(g, deployment); *deployment.Spec.Replicas != 7 {
		t.Errorf("the autoscaler begins with %d replicas", *deployment.Spec.Replicas)
	}
	// The autoscaler's way to scale.
	at.patch(deployment, `{"spec": {"replicas": 3}}`)
	again := *scaled
	again.Ports = again.Ports[:1]
	a.Set(&again)
	service := &corev1.Service{}
	at.await("1 port", func() bool { return at.get(g, service) && len(service.Spec.Ports) == 1 })
	if at.get(g, deployment); *deployment.Spec.Replicas != 3 {
		t.Errorf("the autoscaler wanted 3 replicas, and has %d", *deployment.Spec.Replicas)
	}
	a.take()
	a.Set(at.gateway())
	at.await("no autoscaler", func() bool { return !at.get(g, scaler) })
	at.await("1 replica", func() bool { return at.get(g, deployment) && *deployment.Spec.Replicas == 1 })
}

func testDaemonSet(t *testing.T, at *applierTest) {
	g := at.gateway(with(v1alpha1.Settings{Deployment: &v1alpha1.Deployment{
		Autoscaling: &v1alpha1.Autoscaling{MaxReplicas: new(int32(9))}, PodDisruptionBudget: &v1alpha1.PodDisruptionBudget{MinAvailable: new(intstr.FromInt32(1))},
	}}))
	a := at.start()
	a.Set(g)
	deployment, daemons := &appsv1.Deployment{}, &appsv1.DaemonSet{}
	at.await("an autoscaler", func() bool { return at.get(g, &autoscalingv2.HorizontalPodAutoscaler{}) })

	a.Set(at.gateway(with(v1alpha1.Settings{DaemonSet: &v1alpha1.DaemonSet{}})))
	at.await("a DaemonSet", func() bool { return at.get(g, daemons) })
	at.await("no autoscaler", func() bool { return !at.get(g, &autoscalingv2.HorizontalPodAutoscaler{}) })
	if !at.get(g, deployment) {
		t.Error("the Deployment goes before the DaemonSet is ready")
	}
	at.setReady(daemons)
	at.await("no Deployment", func() bool { return !at.get(g, deployment) })
	if !at.get(g, &corev1.Service{}) || !at.get(g, &corev1.ServiceAccount{}) {
		t.Error("more than the Deployment is gone")
	}
}

func testWaiting(t *testing.T, at *applierTest) {
	g := at.gateway()
	a := at.start()
	a.Set(g)
	deployment := &appsv1.Deployment{}
	at.await("a Deployment", func() bool { return at.get(g, deployment) })
	pod := at.pod(g, "web-gatehouse-1")
	waits := func(want string) {
		t.Helper()
		at.await(fmt.Sprintf("%q", want), func() bool { s := a.state(g.Name); return s != nil && s.Waiting == want })
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "proxy", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off pulling image"}},
	}}
	at.must(at.Status().Update(t.Context(), pod))
	waits("Pod says-why-nothing-works/web-gatehouse-1 waits for its container proxy: ImagePullBackOff: Back-off pulling image")

	pod.Status.ContainerStatuses = nil
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes are available"}}
	at.must(at.Status().Update(t.Context(), pod))
	waits("Pod says-why-nothing-works/web-gatehouse-1 can't be scheduled: 0/1 nodes are available")

	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now()}}
	at.must(at.Status().Update(t.Context(), pod))
	waits("")
	pod.Status.Conditions[0].LastTransitionTime = metav1.NewTime(time.Now().Add(-time.Minute))
	at.must(at.Status().Update(t.Context(), pod))
	waits("Pod says-why-nothing-works/web-gatehouse-1 runs but is not ready; its log says whether it reaches the controller")

	deployment.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota"}}
	at.must(at.Status().Update(t.Context(), deployment))
	waits("Deployment says-why-nothing-works/web-gatehouse: exceeded quota")

	at.setReady(deployment)
	waits("")
}
