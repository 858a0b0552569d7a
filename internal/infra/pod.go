package infra

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// These are paths in a proxy's container.
const (
	tokenDir     = "/var/run/secrets/gatehouse.dev/token" //nolint:gosec // a path
	caDir        = "/var/run/secrets/gatehouse.dev/ca"
	bootstrapDir = "/etc/gatehouse"
	stateDir     = "/var/run/gatehouse"
)

const bootstrapVolume = "gatehouse-bootstrap"

const (
	// HealthPort answers for a proxy's health and has its metrics. Listeners can't
	// have it.
	HealthPort = 19001
	// tokenAudience keeps the token of a proxy from being of use anywhere else.
	tokenAudience = "gatehouse.dev"
	tokenSeconds  = 3600
	user          = 65532
)

const (
	defaultDrainDelay   = 5 * time.Second
	defaultDrainTimeout = 20 * time.Second
	// graceAfterDrain is the time for what comes after draining. With the default drain
	// it adds up to the time that Kubernetes gives a pod, so that a namespace can be
	// deleted quickly.
	graceAfterDrain = 5 * time.Second
)

// podTemplate is the proxies' pods. Nothing in it depends on listeners or routes, but for ports of
// nodes, nor on the authorities, which are rotated: proxies learn of all that while they
// run, and a change of the template would replace them.
func (f *fleet) podTemplate() (corev1.PodTemplateSpec, error) {
	pod := f.settings.Pod
	if pod == nil {
		pod = &v1alpha1.Pod{}
	}
	drain, err := f.drain()
	if err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	grace := int64(math.Ceil((drain.delay + drain.timeout + graceAfterDrain).Seconds())) + f.sleeps()
	container, err := f.container(drain)
	if err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	security, err := overlaid(podSecurity(), pod.SecurityContext)
	if err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: f.labels(given(pod.Labels)), Annotations: f.podAnnotations(pod.Annotations)},
		Spec: corev1.PodSpec{
			ServiceAccountName:            f.name,
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			TerminationGracePeriodSeconds: new(ptr.Deref(pod.TerminationGracePeriodSeconds, grace)),
			SecurityContext:               &security,
			NodeSelector:                  pod.NodeSelector,
			Affinity:                      pod.Affinity,
			Tolerations:                   pod.Tolerations,
			TopologySpreadConstraints:     f.spread(pod.TopologySpreadConstraints),
			PriorityClassName:             ptr.Deref(pod.PriorityClassName, ""),
			ImagePullSecrets:              pod.ImagePullSecrets,
			InitContainers:                pod.InitContainers,
			Containers:                    append([]corev1.Container{container}, pod.Containers...),
			Volumes:                       append(f.volumes(), pod.Volumes...),
		},
	}, nil
}

// podSecurity is what the pods of a fleet may do.
func podSecurity() corev1.PodSecurityContext {
	return corev1.PodSecurityContext{
		RunAsNonRoot:   new(true),
		RunAsUser:      new(int64(user)),
		RunAsGroup:     new(int64(user)),
		FSGroup:        new(int64(user)), // reads the token
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// containerSecurity is what their containers may do.
func containerSecurity() corev1.SecurityContext {
	return corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		ReadOnlyRootFilesystem:   new(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// podAnnotations are those of the proxies' pods.
func (f *fleet) podAnnotations(further map[string]string) map[string]string {
	out := f.memberAnnotations(further)
	// Envoy reads its bootstrap configuration once: another one takes another pod.
	if b := f.bootstrap(); b != nil {
		sum := sha256.Sum256(b)
		out["gatehouse.dev/bootstrap"] = hex.EncodeToString(sum[:8])
	}
	return out
}

// memberAnnotations are those of all pods of a fleet.
func (f *fleet) memberAnnotations(further map[string]string) map[string]string {
	out := map[string]string{}
	if m := f.settings.Metrics; m == nil || ptr.Deref(m.Scrape, true) {
		out["prometheus.io/scrape"] = "true"
		out["prometheus.io/port"] = strconv.Itoa(HealthPort)
		out["prometheus.io/path"] = "/metrics"
	}
	maps.Copy(out, f.Annotations)
	maps.Copy(out, further)
	out[GatewayAnnotation], out[classAnnotation] = f.Name.String(), f.Class
	return out
}

// spread completes the constraints of the parameters, or returns the default ones.
// A DaemonSet is spread anyway.
func (f *fleet) spread(constraints []corev1.TopologySpreadConstraint) []corev1.TopologySpreadConstraint {
	if constraints == nil && f.settings.DaemonSet == nil {
		return spread(selecting(f.name))
	}
	out := make([]corev1.TopologySpreadConstraint, len(constraints))
	for i, c := range constraints {
		if c.LabelSelector == nil {
			c.LabelSelector = &metav1.LabelSelector{MatchLabels: selecting(f.name)}
		}
		out[i] = c
	}
	return out
}

// spread spreads pods over nodes and zones, as far as that can be done.
func spread(pods map[string]string) []corev1.TopologySpreadConstraint {
	var out []corev1.TopologySpreadConstraint
	for _, key := range []string{corev1.LabelHostname, corev1.LabelTopologyZone} {
		out = append(out, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{MatchLabels: pods},
		})
	}
	return out
}

// configVolume is a key of the fleet's ConfigMap as a file.
func (f *fleet) configVolume(name, key string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: f.name},
		Items:                []corev1.KeyToPath{{Key: key, Path: key}},
	}}}
}

// identityVolumes are what a pod and its controller know each other by.
func (f *fleet) identityVolumes() []corev1.Volume {
	return []corev1.Volume{
		{Name: "gatehouse-token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
				Audience: tokenAudience, ExpirationSeconds: new(int64(tokenSeconds)), Path: "token",
			}}},
		}}},
		f.configVolume("gatehouse-ca", AuthoritiesKey),
	}
}

// identityMounts are where containers have them.
func identityMounts() []corev1.VolumeMount {
	return []corev1.VolumeMount{
		{Name: "gatehouse-token", MountPath: tokenDir, ReadOnly: true},
		{Name: "gatehouse-ca", MountPath: caDir, ReadOnly: true},
	}
}

func (f *fleet) volumes() []corev1.Volume {
	empty := func(name string, medium corev1.StorageMedium) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium}}}
	}
	// The state has keys of certificates, which belong on no disk: see package lastgood.
	out := append(f.identityVolumes(),
		empty("gatehouse-state", corev1.StorageMediumMemory), empty("gatehouse-tmp", corev1.StorageMediumDefault))
	if f.bootstrap() != nil {
		out = append(out, f.configVolume(bootstrapVolume, bootstrapKey))
	}
	return out
}

// container is the proxy's own.
func (f *fleet) container(drain drain) (corev1.Container, error) {
	c := f.settings.Container
	if c == nil {
		c = &v1alpha1.Container{}
	}
	security, err := overlaid(containerSecurity(), c.SecurityContext)
	if err != nil {
		return corev1.Container{}, err
	}
	mounts := append(identityMounts(),
		corev1.VolumeMount{Name: "gatehouse-state", MountPath: stateDir},
		corev1.VolumeMount{Name: "gatehouse-tmp", MountPath: "/tmp"})
	if f.bootstrap() != nil {
		mounts = append(mounts, corev1.VolumeMount{Name: bootstrapVolume, MountPath: bootstrapDir, ReadOnly: true})
	}
	image, pull := f.image()
	out := corev1.Container{
		Name:            "proxy",
		Image:           image,
		ImagePullPolicy: pull,
		Args:            f.args(drain),
		Env:             c.Env,
		Ports:           append([]corev1.ContainerPort{{Name: "metrics", ContainerPort: HealthPort, Protocol: corev1.ProtocolTCP}}, f.hostPorts(c.HostPorts)...),
		Lifecycle:       c.Lifecycle,
		Resources:       f.resources(c.Resources),
		SecurityContext: &security,
		VolumeMounts:    append(mounts, c.VolumeMounts...),
		// A proxy is ready a second after its first configuration is in force. It stays
		// ready for longer when probes fail, because on a busy node it still serves.
		StartupProbe:   probe("/healthz", 1, 2, 120),
		ReadinessProbe: probe("/readyz", 1, 2, 5),
		LivenessProbe:  probe("/healthz", 10, 5, 6),
	}
	return out, nil
}

// hostPorts are the ports of listeners that nodes have too.
func (f *fleet) hostPorts(hostPorts []v1alpha1.HostPort) (out []corev1.ContainerPort) {
	for _, h := range hostPorts {
		for _, p := range f.Ports {
			if int32(p.Port) != h.ListenerPort {
				continue
			}
			protocol, name := corev1.ProtocolTCP, fmt.Sprintf("tcp-%d", p.Port)
			if p.UDP {
				protocol, name = corev1.ProtocolUDP, fmt.Sprintf("udp-%d", p.Port)
			}
			out = append(out, corev1.ContainerPort{Name: name, ContainerPort: int32(p.Target), HostPort: h.HostPort, Protocol: protocol})
		}
	}
	return out
}

// sleeps is for how many seconds a hook has the proxy wait before it is told to end.
func (f *fleet) sleeps() int64 {
	if c := f.settings.Container; c != nil && c.Lifecycle != nil && c.Lifecycle.PreStop != nil && c.Lifecycle.PreStop.Sleep != nil {
		return c.Lifecycle.PreStop.Sleep.Seconds
	}
	return 0
}

// probe asks a container of a fleet for its health.
func probe(path string, period, timeout, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: path, Port: intstr.FromInt32(HealthPort), Scheme: corev1.URISchemeHTTP,
		}},
		PeriodSeconds: period, TimeoutSeconds: timeout, SuccessThreshold: 1, FailureThreshold: failures,
	}
}

// image is what the containers of the fleet run, and when it is fetched.
func (f *fleet) image() (string, corev1.PullPolicy) {
	c := f.settings.Container
	if c == nil || c.Image == nil {
		return f.options.Image, f.options.PullPolicy
	}
	return imageOf(f.options.Image, c.Image), ptr.Deref(c.Image.PullPolicy, f.options.PullPolicy)
}

func (f *fleet) args(drain drain) []string {
	args := []string{
		"proxy",
		"--gateway=" + f.Name.String(),
		fmt.Sprintf("--controller=%s.%s.svc", f.options.ControllerService, f.options.ControllerNamespace),
		fmt.Sprintf("--xds-port=%d", f.options.XDSPort),
		fmt.Sprintf("--api-port=%d", f.options.APIPort),
		"--token-file=" + tokenDir + "/token",
		"--ca-file=" + caDir + "/" + AuthoritiesKey,
		"--state-dir=" + stateDir,
		fmt.Sprintf("--health=:%d", HealthPort),
		"--limits=" + f.limitsAddress(),
		"--drain-delay=" + drain.delay.String(),
		"--drain-timeout=" + drain.timeout.String(),
	}
	e := f.settings.Envoy
	if e == nil {
		e = &v1alpha1.Envoy{}
	}
	if e.Concurrency != nil {
		args = append(args, fmt.Sprintf("--concurrency=%d", *e.Concurrency))
	}
	if e.LogLevel != nil {
		args = append(args, "--log-level="+string(*e.LogLevel))
	}
	if m := f.settings.Metrics; m != nil && ptr.Deref(m.Backends, false) {
		args = append(args, "--backend-metrics")
	}
	if f.bootstrap() != nil {
		args = append(args, "--bootstrap-merge="+bootstrapDir+"/"+bootstrapKey)
	}
	return args
}

// drain is how long a proxy takes to end.
type drain struct{ delay, timeout time.Duration }

func (f *fleet) drain() (drain, error) {
	out := drain{defaultDrainDelay, defaultDrainTimeout}
	s := f.settings.Drain
	if s == nil {
		return out, nil
	}
	var err error
	if s.Delay != nil {
		if out.delay, err = time.ParseDuration(string(*s.Delay)); err != nil {
			return out, fmt.Errorf("drain.delay: %w", err)
		}
	}
	if s.Timeout != nil {
		if out.timeout, err = time.ParseDuration(string(*s.Timeout)); err != nil {
			return out, fmt.Errorf("drain.timeout: %w", err)
		}
	}
	return out, nil
}

// These are the requests of a proxy. An idle proxy needs as little as this. A proxy
// that is scaled by the CPU that it uses needs a share by which that is measured.
const (
	defaultCPU    = "10m"
	autoscaledCPU = "250m"
	defaultMemory = "64Mi"
)

// resources completes what the parameters say by the default requests. A limit
// stands for a request too.
func (f *fleet) resources(given *corev1.ResourceRequirements) corev1.ResourceRequirements {
	var out corev1.ResourceRequirements
	if given != nil {
		out = *given.DeepCopy()
	}
	cpu := defaultCPU
	if d := f.settings.Deployment; d != nil && d.Autoscaling != nil && len(d.Autoscaling.Metrics) == 0 {
		cpu = autoscaledCPU
	}
	return requesting(out, map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: defaultMemory})
}

// requesting completes resources, which may be changed, by default requests.
func requesting(out corev1.ResourceRequirements, defaults map[corev1.ResourceName]string) corev1.ResourceRequirements {
	for name, amount := range defaults {
		_, requested := out.Requests[name]
		if _, limited := out.Limits[name]; requested || limited {
			continue
		}
		if out.Requests == nil {
			out.Requests = corev1.ResourceList{}
		}
		out.Requests[name] = resource.MustParse(amount)
	}
	return out
}

// imageOf lays an image of the parameters over the default one, part by part.
func imageOf(image string, over *v1alpha1.Image) string {
	if over == nil {
		return image
	}
	repository, version := image, ""
	if i := strings.IndexByte(image, '@'); i >= 0 {
		repository, version = image[:i], image[i:]
	}
	if i := strings.LastIndexByte(repository, ':'); i > strings.LastIndexByte(repository, '/') {
		if version == "" {
			version = repository[i:]
		}
		repository = repository[:i]
	}
	switch {
	case over.Digest != nil:
		version = "@" + *over.Digest
	case over.Tag != nil:
		version = ":" + *over.Tag
	}
	return ptr.Deref(over.Repository, repository) + version
}

// overlaid merges settings into default ones, field by field.
func overlaid[T any](base T, over *T) (T, error) {
	if over == nil {
		return base, nil
	}
	var out T
	below, err := json.Marshal(base)
	if err != nil {
		return out, err
	}
	above, err := json.Marshal(over)
	if err != nil {
		return out, err
	}
	merged, err := jsonpatch.MergePatch(below, above)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(merged, &out)
}
