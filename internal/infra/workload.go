package infra

import (
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// workload is the Deployment or DaemonSet that runs the proxies.
func (f *fleet) workload() (apiObject, error) {
	template, err := f.podTemplate()
	if err != nil {
		return nil, err
	}
	pods := &metav1.LabelSelector{MatchLabels: selecting(f.name)}
	if d := f.settings.DaemonSet; d != nil {
		out := &appsv1.DaemonSet{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
			ObjectMeta: f.meta(nil, nil),
			Spec:       appsv1.DaemonSetSpec{Selector: pods, Template: template},
		}
		if d.UpdateStrategy != nil {
			out.Spec.UpdateStrategy = *d.UpdateStrategy
		}
		return out, nil
	}
	d := f.deployment()
	out := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: f.meta(nil, nil),
		Spec: appsv1.DeploymentSpec{
			Selector: pods, Template: template,
			// A new proxy is there before an old one goes, however few there are.
			Strategy: ptr.Deref(d.Strategy, appsv1.DeploymentStrategy{
				Type: appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{
					MaxUnavailable: new(intstr.FromInt32(0)), MaxSurge: new(intstr.FromString("25%")),
				},
			}),
		},
	}
	if d.Autoscaling == nil { // else the number is the autoscaler's
		out.Spec.Replicas = new(ptr.Deref(d.Replicas, 1))
	}
	return out, nil
}

func (f *fleet) deployment() *v1alpha1.Deployment {
	if f.settings.Deployment == nil {
		return &v1alpha1.Deployment{}
	}
	return f.settings.Deployment
}

// defaultUtilization is what of the requested CPU an autoscaler aims at, in percent.
const defaultUtilization = 80

// autoscaler is nil without autoscaling.
func (f *fleet) autoscaler() (apiObject, error) {
	a := f.deployment().Autoscaling
	if a == nil || f.settings.DaemonSet != nil {
		return nil, nil
	}
	if a.MaxReplicas == nil {
		return nil, errors.New("deployment.autoscaling.maxReplicas is not set; say how many proxies there may be")
	}
	metrics := a.Metrics
	if len(metrics) == 0 {
		metrics = []autoscalingv2.MetricSpec{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{
				Name: corev1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{
					Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(defaultUtilization)),
				},
			},
		}}
	}
	return &autoscalingv2.HorizontalPodAutoscaler{
		TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler"},
		ObjectMeta: f.meta(nil, nil),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: f.live},
			MinReplicas:    new(ptr.Deref(a.MinReplicas, 1)),
			MaxReplicas:    *a.MaxReplicas,
			Metrics:        metrics,
			Behavior:       a.Behavior,
		},
	}, nil
}

// budget is nil where evictions are not limited.
func (f *fleet) budget() apiObject {
	b := f.deployment().PodDisruptionBudget
	if b == nil || f.settings.DaemonSet != nil || b.MinAvailable == nil && b.MaxUnavailable == nil {
		return nil
	}
	return &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
		ObjectMeta: f.meta(nil, nil),
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector:                   &metav1.LabelSelector{MatchLabels: selecting(f.live)},
			MinAvailable:               b.MinAvailable,
			MaxUnavailable:             b.MaxUnavailable,
			UnhealthyPodEvictionPolicy: b.UnhealthyPodEvictionPolicy,
		},
	}
}
