package parameters

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// TestMergeSettings protects the rules by which levels of parameters are laid over
// each other, the weakest first.
func TestMergeSettings(t *testing.T) {
	for _, test := range []struct {
		name   string
		levels []string
		want   string
	}{
		{"nothing", []string{"", ""}, "{}"},
		{
			"fields of different levels", []string{"deployment: {replicas: 2}", "service: {type: NodePort}"},
			"{deployment: {replicas: 2}, service: {type: NodePort}}",
		},
		{
			"the stronger value", []string{"deployment: {replicas: 2}", "deployment: {replicas: 3}", "deployment: {replicas: 4}"},
			"deployment: {replicas: 4}",
		},
		{"zero is a value", []string{"deployment: {replicas: 2}", "deployment: {replicas: 0}"}, "deployment: {replicas: 0}"},
		{"false is a value", []string{"client: {http3: true}", "client: {http3: false}"}, "client: {http3: false}"},
		{"the empty text is a value", []string{"pod: {priorityClassName: high}", `pod: {priorityClassName: ""}`}, `pod: {priorityClassName: ""}`},
		{
			"structures in structures", []string{"client: {trustedHops: 1, limits: {headers: 50}}", "client: {limits: {streams: 7}}"},
			"client: {trustedHops: 1, limits: {headers: 50, streams: 7}}",
		},
		{
			"maps by key", []string{"pod: {labels: {a: weak, b: weak}}", "pod: {labels: {b: strong, c: strong}}"},
			"pod: {labels: {a: weak, b: strong, c: strong}}",
		},
		{"an empty map clears", []string{"pod: {labels: {a: weak}}", "pod: {labels: {}}"}, "pod: {labels: {}}"},
		{
			"lists are replaced", []string{"pod: {tolerations: [{key: a}, {key: b}]}", "pod: {tolerations: [{key: c}]}"},
			"pod: {tolerations: [{key: c}]}",
		},
		{"an empty list clears", []string{"accessLog: [{path: /dev/stderr}]", "accessLog: []"}, "accessLog: []"},
		{"an empty list is inherited", []string{"accessLog: []", "deployment: {replicas: 1}"}, "{accessLog: [], deployment: {replicas: 1}}"},
		{"daemonSet removes deployment", []string{"deployment: {replicas: 2}", "daemonSet: {}"}, "daemonSet: {}"},
		{"deployment removes daemonSet", []string{"daemonSet: {}", "deployment: {}"}, "deployment: {}"},
		{
			"replicas remove autoscaling, the rest stays",
			[]string{"deployment: {autoscaling: {maxReplicas: 5}, strategy: {type: Recreate}}", "deployment: {replicas: 1}"},
			"deployment: {replicas: 1, strategy: {type: Recreate}}",
		},
		{
			"autoscaling is merged", []string{"deployment: {autoscaling: {maxReplicas: 5}}", "deployment: {autoscaling: {minReplicas: 2}}"},
			"deployment: {autoscaling: {minReplicas: 2, maxReplicas: 5}}",
		},
		{
			"a budget is replaced", []string{"deployment: {podDisruptionBudget: {minAvailable: 1}}", "deployment: {podDisruptionBudget: {maxUnavailable: 50%}}"},
			"deployment: {podDisruptionBudget: {maxUnavailable: 50%}}",
		},
		{
			"an empty budget removes", []string{"deployment: {podDisruptionBudget: {minAvailable: 1}}", "deployment: {podDisruptionBudget: {}}"},
			"deployment: {podDisruptionBudget: {}}",
		},
		{
			"a Redis is replaced with its Secret", []string{"limits: {replicas: 2, redis: {host: a, secretRef: {name: s}}}", "limits: {redis: {host: b}}"},
			"limits: {replicas: 2, redis: {host: b}}",
		},
		{
			"a strategy is replaced",
			[]string{"deployment: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}}", "deployment: {strategy: {type: Recreate}}"},
			"deployment: {strategy: {type: Recreate}}",
		},
		{
			"resources by name", []string{"container: {resources: {requests: {cpu: 1, memory: 1Gi}}}", "container: {resources: {requests: {cpu: 2}, limits: {cpu: 4}}}"},
			`container: {resources: {requests: {cpu: "2", memory: 1Gi}, limits: {cpu: "4"}}}`,
		},
		{
			"Kubernetes' own by their direct fields",
			[]string{
				"container: {securityContext: {runAsUser: 5, seccompProfile: {type: Localhost, localhostProfile: x}}}",
				"container: {securityContext: {privileged: false, seccompProfile: {type: RuntimeDefault}}}",
			},
			"container: {securityContext: {runAsUser: 5, privileged: false, seccompProfile: {type: RuntimeDefault}}}",
		},
		{"a digest removes a tag", []string{"container: {image: {repository: r, tag: t}}", "container: {image: {digest: d}}"}, "container: {image: {repository: r, digest: d}}"},
		{
			"a fraction removes a percentage", []string{"tracing: {openTelemetry: {host: a, serviceName: s}, samplingPercent: 5}", "tracing: {openTelemetry: {host: b}, samplingFraction: {numerator: 0}}"},
			"tracing: {openTelemetry: {host: b}, samplingFraction: {numerator: 0}}",
		},
		{"a bootstrap is replaced", []string{"envoy: {bootstrap: {a: 1}, logLevel: info}", "envoy: {bootstrap: {b: 2}}"}, "envoy: {bootstrap: {b: 2}, logLevel: info}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			levels := []*v1alpha1.Settings{nil}
			for _, text := range test.levels {
				levels = append(levels, readSettings(t, text))
			}
			got := Merge(levels...)
			if d := gocmp.Diff(yamlText(t, readSettings(t, test.want)), yamlText(t, got)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			for i, text := range test.levels {
				if d := gocmp.Diff(yamlText(t, readSettings(t, text)), yamlText(t, levels[i+1])); d != "" {
					t.Errorf("level %d was written into:\n%s", i, d)
				}
			}
		})
	}
}

func readSettings(t testing.TB, text string) *v1alpha1.Settings {
	t.Helper()
	s := &v1alpha1.Settings{}
	if err := yaml.UnmarshalStrict([]byte(text), s); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return s
}

func yamlText(t testing.TB, v any) string {
	t.Helper()
	text, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
