package infra

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Where requests are counted for all proxies of a Gateway together, a pod beside them counts. It
// has a ServiceAccount of its own, by which the controller knows what it is, and a Service that
// the proxies of the Gateway reach it by.

const (
	limitsName   = "gatehouse-limits" // of the application
	limitsPort   = 19002              // where it counts; its health is where that of proxies is
	limitsCPU    = "10m"
	limitsMemory = "32Mi"
)

// LimitsName returns the name of the objects that count requests for a Gateway, in its namespace.
// It ends with a hash, so that it is that of no other Gateway's fleet.
func LimitsName(gateway object.Name, class string) string {
	return shortened(Name(gateway, class)+"-limits", gateway.Name+"/"+class+"/limits")
}

// limitsAddress is where proxies reach what counts for them.
func (f *fleet) limitsAddress() string {
	return fmt.Sprintf("%s.%s.svc:%d", LimitsName(f.Name, f.Class), f.Name.Namespace, limitsPort)
}

// limits are the objects that count requests; none where nothing is counted together.
func (f *fleet) limits() []client.Object {
	if !f.Limits {
		return nil
	}
	pods := map[string]string{nameLabel: limitsName, instanceLabel: LimitsName(f.Name, f.Class)}
	return []client.Object{
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
				Replicas: new(int32(1)),
				Selector: &metav1.LabelSelector{MatchLabels: pods},
				// The next one is there before the last one goes, and counts anew. For a moment
				// both count, which is better than that nobody does.
				Strategy: appsv1.DeploymentStrategy{
					Type: appsv1.RollingUpdateDeploymentStrategyType,
					RollingUpdate: &appsv1.RollingUpdateDeployment{
						MaxUnavailable: new(intstr.FromInt32(0)), MaxSurge: new(intstr.FromInt32(1)),
					},
				},
				Template: f.limitsTemplate(),
			},
		},
	}
}

// limitsMeta is the metadata of these objects, which tell them from those of the proxies.
func (f *fleet) limitsMeta() metav1.ObjectMeta {
	out := f.meta(nil, nil)
	out.Name = LimitsName(f.Name, f.Class)
	out.Labels[nameLabel], out.Labels[instanceLabel], out.Labels[componentLabel] = limitsName, out.Name, "limits"
	return out
}

func (f *fleet) limitsTemplate() corev1.PodTemplateSpec {
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
				"--ca-file=" + caDir + "/" + authoritiesKey,
				fmt.Sprintf("--listen=:%d", limitsPort),
				fmt.Sprintf("--health=:%d", healthPort),
			},
			Ports: []corev1.ContainerPort{
				{Name: "grpc-limits", ContainerPort: limitsPort, Protocol: corev1.ProtocolTCP},
				{Name: "metrics", ContainerPort: healthPort, Protocol: corev1.ProtocolTCP},
			},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse(limitsCPU), corev1.ResourceMemory: resource.MustParse(limitsMemory),
			}},
			SecurityContext: new(containerSecurity()),
			VolumeMounts:    identityMounts(),
			StartupProbe:    probe("/healthz", 1, 2, 120),
			ReadinessProbe:  probe("/readyz", 1, 2, 5),
			LivenessProbe:   probe("/healthz", 10, 5, 6),
		}},
		Volumes: f.identityVolumes(),
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

// reportCounting says in a state whether requests for a Gateway are counted.
func (a *Applier) reportCounting(ctx context.Context, c cache.Cache, g *Gateway, state *State) error {
	why, err := a.counting(ctx, c, g)
	state.Counting, state.NotCounting = why == "" && err == nil, why
	return err
}

// counting says why nobody counts requests for a Gateway; empty where somebody does.
func (a *Applier) counting(ctx context.Context, c cache.Cache, g *Gateway) (string, error) {
	want := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: g.Name.Namespace, Name: LimitsName(g.Name, g.Class)},
	}
	live, err := cached(ctx, c, want)
	if err != nil {
		return "", err
	}
	if d, ok := live.(*appsv1.Deployment); ok {
		if d.Status.AvailableReplicas > 0 {
			return "", nil
		}
		if why := a.waiting(g.Name, d); why != "" {
			return why, nil
		}
	}
	return fmt.Sprintf("Deployment %s/%s has no pod that is ready yet", want.Namespace, want.Name), nil
}
