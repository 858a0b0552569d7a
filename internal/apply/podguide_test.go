package apply

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
)

// What the guide says of pods is what a real API server has then. Each block of YAML of that section is applied, one after
// the other, to one Gateway.
func testPodGuide(t *testing.T, at *applierTest) {
	page, err := os.ReadFile("../../docs/guide/parameters.md")
	at.must(err)
	_, section, _ := strings.Cut(string(page), "\n## What runs in a pod\n")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(section, -1)
	has := map[string]func(corev1.PodSpec, corev1.ServiceSpec) bool{
		"hostPorts": func(pod corev1.PodSpec, _ corev1.ServiceSpec) bool {
			var got []corev1.ContainerPort
			for _, p := range pod.Containers[0].Ports {
				if p.HostPort != 0 {
					got = append(got, p)
				}
			}
			return cmp.Equal(got, []corev1.ContainerPort{
				{Name: "tcp-80", HostPort: 80, ContainerPort: 10080, Protocol: corev1.ProtocolTCP},
				{Name: "tcp-443", HostPort: 443, ContainerPort: 10443, Protocol: corev1.ProtocolTCP},
				{Name: "udp-443", HostPort: 443, ContainerPort: 10443, Protocol: corev1.ProtocolUDP},
			})
		},
		"preStop": func(pod corev1.PodSpec, _ corev1.ServiceSpec) bool {
			l := pod.Containers[0].Lifecycle
			return l != nil && l.PreStop.Sleep.Seconds == 10 && *pod.TerminationGracePeriodSeconds == 40
		},
		"readinessProbe": func(pod corev1.PodSpec, _ corev1.ServiceSpec) bool {
			c := pod.Containers[0]
			return c.ReadinessProbe.PeriodSeconds == 5 && c.ReadinessProbe.FailureThreshold == 2 && c.ReadinessProbe.HTTPGet.Path == "/readyz" &&
				c.StartupProbe.FailureThreshold == 600 && c.StartupProbe.HTTPGet.Port.IntVal == infra.HealthPort
		},
		"name: fetch": func(pod corev1.PodSpec, _ corev1.ServiceSpec) bool {
			return len(pod.InitContainers) == 1 && pod.InitContainers[0].RestartPolicy == nil && pod.InitContainers[0].VolumeMounts[0].Name == "geo" &&
				slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "geo" && m.ReadOnly })
		},
		"restartPolicy": func(pod corev1.PodSpec, _ corev1.ServiceSpec) bool {
			return len(pod.InitContainers) == 1 && ptr.Deref(pod.InitContainers[0].RestartPolicy, "") == corev1.ContainerRestartPolicyAlways &&
				len(pod.Containers) == 2 && pod.Containers[0].Name == "proxy" && pod.Containers[1].Name == "watcher"
		},
		"ipFamilies": func(_ corev1.PodSpec, s corev1.ServiceSpec) bool {
			return *s.IPFamilyPolicy == corev1.IPFamilyPolicyPreferDualStack
		},
	}
	a := at.start()
	for _, block := range blocks {
		var parameters struct {
			Spec v1alpha1.Settings `json:"spec"`
		}
		at.must(yaml.UnmarshalStrict([]byte(block[1]), &parameters))
		about := ""
		for word := range has {
			if strings.Contains(block[1], word) {
				about = word
			}
		}
		if about == "" {
			t.Errorf("nothing is known of what this makes:\n%s", block[1])
			continue
		}
		g := at.gateway(with(parameters.Spec))
		if about == "ipFamilies" && slices.Contains(parameters.Spec.Service.IPFamilies, corev1.IPv6Protocol) {
			g.Settings.Service.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol} // the API server here has one
		}
		a.Set(g)
		at.await(about, func() bool {
			service := &corev1.Service{}
			if !at.get(g, service) {
				return false
			}
			if g.Settings.DaemonSet != nil {
				o := &appsv1.DaemonSet{}
				return at.get(g, o) && has[about](o.Spec.Template.Spec, service.Spec)
			}
			o := &appsv1.Deployment{}
			return at.get(g, o) && has[about](o.Spec.Template.Spec, service.Spec)
		})
		if s := a.state(g.Name); s != nil && s.Problem != "" {
			t.Errorf("%s: %s", about, s.Problem)
		}
		delete(has, about)
	}
	for word := range has {
		t.Errorf("the guide doesn't show %s", word)
	}
}
