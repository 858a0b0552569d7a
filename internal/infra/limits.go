package infra

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Where requests are counted for all proxies of a Gateway together, a pod beside them counts. It
// has a ServiceAccount of its own, by which the controller knows what it is, and a Service that
// the proxies of the Gateway reach it by.

const (
	limitsName = "gatehouse-limits" // of the application
	limitsPort = 19002              // where it counts; its health is where that of proxies is
	limitsCPU  = "10m"
	// An idle one takes 25 MB, one with a million counts, of which there are no more, 200 MB:
	// see package ratelimit. What more proxies ask for at once comes on top.
	limitsMemory    = "64Mi"
	limitsMemoryMax = "384Mi"
)

// limitsName is the name of the objects that count requests.
func (f *fleet) limitsName() string { return limitsNameIn(f.namespace, f.Name, f.Class) }

// limitsAddress is where proxies reach what counts for them.
func (f *fleet) limitsAddress() string {
	return fmt.Sprintf("%s.%s.svc:%d", f.limitsName(), f.namespace, limitsPort)
}

// limits are the objects that count requests; none where nothing is counted together.
func (f *fleet) limits() []apiObject {
	if !f.Limits {
		return nil
	}
	pods := f.limitsSelector()
	replicas := int32(1)
	if l := f.settings.Limits; l != nil {
		replicas = ptr.Deref(l.Replicas, 1)
	}
	objects := []apiObject{
		&corev1.ServiceAccount{
			TypeMeta:                     metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
			ObjectMeta:                   f.limitsMeta(),
			AutomountServiceAccountToken: new(false),
		},
		&corev1.Service{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
			ObjectMeta: f.limitsMeta(),
			Spec: corev1.ServiceSpec{
				Type: corev1.ServiceTypeClusterIP, Selector: pods,
				Ports: []corev1.ServicePort{{
					Name: "grpc-limits", Protocol: corev1.ProtocolTCP, Port: limitsPort, TargetPort: intstr.FromInt32(limitsPort),
				}},
			},
		},
		&appsv1.Deployment{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			ObjectMeta: f.limitsMeta(),
			Spec: appsv1.DeploymentSpec{
				Replicas: new(replicas),
				Selector: &metav1.LabelSelector{MatchLabels: pods},
				// The next one is there before the last one goes, and counts anew without Redis.
				// For a moment both count, which is better than that nobody does.
				Strategy: appsv1.DeploymentStrategy{
					Type: appsv1.RollingUpdateDeploymentStrategyType,
					RollingUpdate: &appsv1.RollingUpdateDeployment{
						MaxUnavailable: new(intstr.FromInt32(0)), MaxSurge: new(intstr.FromInt32(1)),
					},
				},
				Template: f.limitsTemplate(replicas),
			},
		},
	}
	if replicas > 1 {
		objects = append(objects, &policyv1.PodDisruptionBudget{
			TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
			ObjectMeta: f.limitsMeta(),
			Spec: policyv1.PodDisruptionBudgetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: pods}, MaxUnavailable: new(intstr.FromInt32(1)),
			},
		})
	}
	return objects
}

// limitsSelector picks the pods that count.
func (f *fleet) limitsSelector() map[string]string {
	return map[string]string{nameLabel: limitsName, InstanceLabel: f.limitsName()}
}

// limitsMeta is the metadata of these objects, which tell them from those of the proxies.
func (f *fleet) limitsMeta() metav1.ObjectMeta {
	out := f.meta(nil, nil)
	out.Name = f.limitsName()
	out.Labels[nameLabel], out.Labels[InstanceLabel], out.Labels[componentLabel] = limitsName, out.Name, "limits"
	return out
}

func (f *fleet) limitsTemplate(replicas int32) corev1.PodTemplateSpec {
	meta := f.limitsMeta()
	image, pull := f.image()
	spec := corev1.PodSpec{
		ServiceAccountName:            meta.Name,
		AutomountServiceAccountToken:  new(false),
		EnableServiceLinks:            new(false),
		SecurityContext:               new(podSecurity()),
		TerminationGracePeriodSeconds: new(int64(10)),
		Containers: []corev1.Container{{
			Name: "limits", Image: image, ImagePullPolicy: pull,
			Args: []string{
				"limits",
				"--gateway=" + f.Name.String(),
				fmt.Sprintf("--controller=%s.%s.svc", f.options.ControllerService, f.options.ControllerNamespace),
				fmt.Sprintf("--api-port=%d", f.options.APIPort),
				"--token-file=" + tokenDir + "/token",
				"--ca-file=" + caDir + "/" + AuthoritiesKey,
				fmt.Sprintf("--listen=:%d", limitsPort),
				fmt.Sprintf("--health=:%d", HealthPort),
			},
			Ports: []corev1.ContainerPort{
				{Name: "grpc-limits", ContainerPort: limitsPort, Protocol: corev1.ProtocolTCP},
				{Name: "metrics", ContainerPort: HealthPort, Protocol: corev1.ProtocolTCP},
			},
			Resources:       f.limitsResources(),
			SecurityContext: new(containerSecurity()),
			VolumeMounts:    identityMounts(),
			StartupProbe:    probe("/healthz", 1, 2, 120),
			ReadinessProbe:  probe("/readyz", 1, 2, 5),
			LivenessProbe:   probe("/healthz", 10, 5, 6),
		}},
		Volumes: f.identityVolumes(),
	}
	if args, volume, mount := f.redis(); args != nil {
		c := &spec.Containers[0]
		c.Args = append(c.Args, args...)
		if volume != nil {
			spec.Volumes, c.VolumeMounts = append(spec.Volumes, *volume), append(c.VolumeMounts, *mount)
		}
	}
	if replicas > 1 {
		spec.TopologySpreadConstraints = spread(f.limitsSelector())
	}
	if p := f.settings.Pod; p != nil {
		spec.NodeSelector, spec.Affinity, spec.Tolerations = p.NodeSelector, p.Affinity, p.Tolerations
		spec.ImagePullSecrets = p.ImagePullSecrets
		if p.PriorityClassName != nil {
			spec.PriorityClassName = *p.PriorityClassName
		}
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels, Annotations: f.memberAnnotations(nil)},
		Spec:       spec,
	}
}

// limitsResources completes what the parameters say.
func (f *fleet) limitsResources() corev1.ResourceRequirements {
	var out corev1.ResourceRequirements
	if l := f.settings.Limits; l != nil && l.Resources != nil {
		out = *l.Resources.DeepCopy()
	}
	_, own := out.Requests[corev1.ResourceMemory]
	out = requesting(out, map[corev1.ResourceName]string{corev1.ResourceCPU: limitsCPU, corev1.ResourceMemory: limitsMemory})
	if _, limited := out.Limits[corev1.ResourceMemory]; !own && !limited {
		if out.Limits == nil {
			out.Limits = corev1.ResourceList{}
		}
		out.Limits[corev1.ResourceMemory] = resource.MustParse(limitsMemoryMax)
	}
	return out
}
