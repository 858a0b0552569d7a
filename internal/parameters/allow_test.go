package parameters

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// TestUnallowed protects namespaces from pods that whoever may write Gateways, and no
// Deployments, could have there.
func TestUnallowed(t *testing.T) {
	for text, want := range map[string][]string{
		"{}":        nil,
		"{pod: {}}": nil,
		"deployment: {replicas: 2, autoscaling: {maxReplicas: 5}, podDisruptionBudget: {minAvailable: 1}}": nil,
		"daemonSet: {updateStrategy: {type: OnDelete}}":                                                    nil,
		"pod: {labels: {a: b}, annotations: {a: b}, nodeSelector: {a: b}, affinity: {}, topologySpreadConstraints: [], terminationGracePeriodSeconds: 5, imagePullSecrets: []}": nil,
		"pod: {securityContext: {runAsUser: 0}}":                              {"spec.pod.securityContext"},
		"pod: {volumes: [{name: root, hostPath: {path: /}}]}":                 {"spec.pod.volumes"},
		"pod: {containers: [{name: a}], initContainers: [{name: b}]}":         {"spec.pod.initContainers", "spec.pod.containers"},
		"pod: {containers: []}":                                               {"spec.pod.containers"},
		"pod: {tolerations: [{operator: Exists}], priorityClassName: high}":   {"spec.pod.tolerations", "spec.pod.priorityClassName"},
		"container: {image: {repository: evil.example/x}}":                    {"spec.container.image"},
		"container: {image: {pullPolicy: Always}}":                            {"spec.container.image"},
		"container: {securityContext: {privileged: true}}":                    {"spec.container.securityContext"},
		"container: {env: [{name: LD_PRELOAD, value: /x}], volumeMounts: []}": {"spec.container.env", "spec.container.volumeMounts"},
		"container: {resources: {limits: {cpu: 1}}}":                          nil,
		"service: {type: NodePort, nodePorts: [], annotations: {a: b}}":       nil,
		"patches: [{target: {kind: Deployment}, value: {}}]":                  {"spec.patches"},
		"patches: []": {"spec.patches"},
		"envoy: {concurrency: 2, logLevel: debug, bootstrap: {a: 1}}":            {"spec.envoy.bootstrap"},
		"{drain: {delay: 1s}, metrics: {backends: true}, client: {http3: true}}": nil,
		"limits: {replicas: 2, resources: {limits: {memory: 1Gi}}}":              nil,
		"limits: {replicas: 2, redis: {host: victim}}":                           {"spec.limits.redis"},
		"accessLog: []": nil,
		"accessLog: [{text: x}, {path: /tmp/x}, {openTelemetry: {host: victim}}]": {"spec.accessLog[1].path", "spec.accessLog[2].openTelemetry"},
		"tracing: {samplingPercent: 5, openTelemetry: {host: victim}}":            {"spec.tracing.openTelemetry"},
	} {
		if diff := gocmp.Diff(want, Unallowed(readSettings(t, text), Allowed(nil))); diff != "" {
			t.Errorf("%s: -want +got:\n%s", text, diff)
		}
		if got := Unallowed(readSettings(t, text), v1alpha1.AllowAll); got != nil {
			t.Errorf("%s: All doesn't allow %s", text, got)
		}
	}
	none := &v1alpha1.Allow{Parameters: new(v1alpha1.AllowNone)}
	if got, want := Unallowed(readSettings(t, "{deployment: {replicas: 2}, accessLog: []}"), Allowed(none)), []string{"spec.deployment", "spec.accessLog"}; !gocmp.Equal(got, want) {
		t.Errorf("None: got %s, want %s", got, want)
	}
	if got := Unallowed(&v1alpha1.Settings{}, Allowed(none)); got != nil {
		t.Errorf("None: %s of nothing", got)
	}
}
