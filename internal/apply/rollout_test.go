package apply

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/internal/infra"
)

// versioned makes a pod of a version of the template.
func (t *applierTest) versioned(g *infra.Gateway, name, hash string) *corev1.Pod {
	t.Helper()
	pod := t.pod(g, name)
	t.patch(pod, `{"metadata": {"labels": {"pod-template-hash": "`+hash+`"}}}`)
	return pod
}

// testRollout protects whoever changes the pods of a fleet, by a nodeSelector that fits no
// node for one: the old proxies serve, and nothing else says that the new ones don't come.
// A rollout that only takes its time says nothing.
func testRollout(t *testing.T, at *applierTest) {
	g := at.gateway(with(v1alpha1.Settings{Deployment: &v1alpha1.Deployment{Replicas: new(int32(2))}}))
	a := at.start()
	a.Set(g)
	deployment := &appsv1.Deployment{}
	at.await("a Deployment", func() bool { return at.get(g, deployment) })
	at.setReady(deployment)
	long, now := metav1.NewTime(time.Now().Add(-time.Hour)), metav1.Now()
	set := func(pod *corev1.Pod, conditions []corev1.PodCondition, statuses ...corev1.ContainerStatus) {
		t.Helper()
		pod.Status.Phase = corev1.PodRunning
		if len(statuses) > 0 && statuses[0].State.Waiting != nil && statuses[0].RestartCount == 0 {
			pod.Status.Phase = corev1.PodPending
		}
		pod.Status.Conditions, pod.Status.ContainerStatuses = conditions, statuses
		at.must(at.Status().Update(t.Context(), pod))
	}
	ready := []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: long}}
	unready := func(since metav1.Time) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: since}}
	}
	for i := range 2 {
		set(at.versioned(g, fmt.Sprintf("old-%d", i), "old"), ready)
	}
	deployment.Status.Replicas, deployment.Status.UpdatedReplicas = 3, 1
	at.must(at.Status().Update(t.Context(), deployment))
	pod := at.versioned(g, "new-0", "new")
	says := func(newest int32, why string) {
		t.Helper()
		want := infra.Rollout{}
		if why != "" {
			want = infra.Rollout{Newest: newest, Wanted: 2, Why: "Pod " + at.namespace + "/new-0 " + why}
		}
		at.await(fmt.Sprintf("%+v", want), func() bool { s := a.state(g.Name); return s != nil && s.Rollout == want && s.Waiting == "" })
	}
	says(0, "")

	unscheduled := func(since metav1.Time) []corev1.PodCondition {
		return []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", LastTransitionTime: since,
			Message: "0/3 nodes are available",
		}}
	}
	set(pod, unscheduled(long))
	says(0, "can't be scheduled: 0/3 nodes are available")
	set(pod, unscheduled(now)) // a node may be on its way
	says(0, "")

	waiting := func(reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{
			Name: "proxy", Image: "nowhere/proxy:1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}
	}
	set(pod, unready(long), waiting("ErrImagePull", "not found"))
	says(0, "can't get image nowhere/proxy:1 of its container proxy (ImagePullBackOff)")
	told := a.count()
	set(pod, unready(long), waiting("ImagePullBackOff", "Back-off pulling image"))
	set(pod, unready(long), waiting("ErrImagePull", "timeout"))
	set(pod, unready(long), waiting("ContainerCreating", ""))
	says(0, "")
	if n := a.count() - told; n != 1 {
		t.Errorf("the attempts of the kubelet were told %d times", n-1)
	}

	crashed := waiting("CrashLoopBackOff", "back-off 10s restarting failed container")
	crashed.RestartCount, crashed.LastTerminationState.Terminated = 3, &corev1.ContainerStateTerminated{ExitCode: 2}
	set(pod, unready(long), crashed)
	crashes := "has a container that ends again and again (CrashLoopBackOff): proxy, with exit code 2; see its log"
	says(0, crashes)
	told = a.count()
	crashed.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}} // the next attempt
	set(pod, unready(long), crashed)
	set(pod, unready(long))
	says(0, "runs but is not ready; its log says whether it reaches the controller")
	if n := a.count() - told; n != 1 {
		t.Errorf("the attempts of the kubelet were told %d times", n-1)
	}

	// One of two new ones is ready.
	deployment.Status.UpdatedReplicas = 2
	at.must(at.Status().Update(t.Context(), deployment))
	set(at.versioned(g, "new-1", "new"), ready)
	says(1, "runs but is not ready; its log says whether it reaches the controller")
	set(pod, ready)
	says(0, "")

	deployment.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Message: "it has timed out progressing"}}
	at.must(at.Status().Update(t.Context(), deployment))
	want := infra.Rollout{Newest: 2, Wanted: 2, Why: "Deployment " + at.namespace + "/web-gatehouse: it has timed out progressing"}
	at.await("the Deployment's own words", func() bool { return a.state(g.Name).Rollout == want })
}

// testFirstRollout protects whoever makes a Gateway whose proxies fit no node: that is told as
// that of an edit is, and not before it may have needed time alone.
func testFirstRollout(t *testing.T, at *applierTest) {
	g := at.gateway(with(v1alpha1.Settings{Deployment: &v1alpha1.Deployment{Replicas: new(int32(2))}}))
	a := at.start()
	a.Set(g)
	at.await("a Deployment", func() bool { return at.get(g, &appsv1.Deployment{}) })
	pod := at.versioned(g, "new-0", "new")
	unscheduled := func(since time.Time) {
		t.Helper()
		pod.Status.Phase = corev1.PodPending
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
			LastTransitionTime: metav1.NewTime(since), Message: "0/3 nodes are available",
		}}
		at.must(at.Status().Update(t.Context(), pod))
	}
	why := "Pod " + at.namespace + "/new-0 can't be scheduled: 0/3 nodes are available"
	unscheduled(time.Now().Add(time.Hour)) // which no machine is too slow for
	at.await("why no proxy is ready", func() bool { s := a.state(g.Name); return s != nil && s.Waiting == why })
	if r := a.state(g.Name).Rollout; r != (infra.Rollout{}) {
		t.Errorf("a node may be on its way, and it is told: %+v", r)
	}
	unscheduled(time.Now().Add(-time.Hour))
	want := infra.Rollout{Wanted: 2, Why: why}
	at.await(fmt.Sprintf("%+v", want), func() bool { s := a.state(g.Name); return s.Rollout == want && s.Waiting == why })
}

// count returns how often states were told.
func (r *running) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.told
}

// TestReadyOfNewestInOneSecond protects who edits twice in a second from the figure of the
// former pods, and from one that changes by chance.
func TestReadyOfNewestInOneSecond(t *testing.T) {
	now := metav1.Now()
	pod := func(hash string, ready corev1.ConditionStatus) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: now, Labels: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: hash}},
			Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
		}
	}
	pods := []*corev1.Pod{
		pod("new", corev1.ConditionFalse), pod("new", corev1.ConditionTrue), pod("old", corev1.ConditionTrue), pod("old", corev1.ConditionTrue),
	}
	for range 100 { // the order of a map is another one each time
		if n := readyOfNewest(pods, 2); n != 1 {
			t.Fatalf("%d of the newest are ready, want 1", n)
		}
	}
}
