package parameters

import (
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// TestCheckParameters protects fleets from settings that pass the schema and that
// no API server or Envoy would take.
func TestCheckParameters(t *testing.T) {
	for text, want := range map[string][]string{
		"pod: {labels: {a: b}, annotations: {c: d e}, nodeSelector: {e: f}}": nil,
		"pod: {labels: {a: b c}}":                                          {"spec.pod.labels"},
		"pod: {annotations: {'a b': c}}":                                   {"spec.pod.annotations"},
		"pod: {nodeSelector: {a: b c}}":                                    {"spec.pod.nodeSelector"},
		"service: {labels: {'-': c}}":                                      {"spec.service.labels"},
		"service: {annotations: {'a b': ''}}":                              {"spec.service.annotations"},
		"service: {loadBalancerSourceRanges: [10.0.0.0/8, 2001:db8::/32]}": nil,
		"service: {loadBalancerSourceRanges: [10.0.0.0/8, 10.0.0.1]}":      {"spec.service.loadBalancerSourceRanges[1]"},
		"service: {nodePorts: [{listenerPort: 80, nodePort: 30080}, {listenerPort: 443, nodePort: 30443}]}": nil,
		"service: {nodePorts: [{listenerPort: 80, nodePort: 30080}, {listenerPort: 80, nodePort: 30080}]}":  {"spec.service.nodePorts[1].listenerPort", "spec.service.nodePorts[1].nodePort"},
		"service: {ipFamilies: [IPv4, IPv4]}": {"spec.service.ipFamilies[1]"},
		"patches: [{target: {kind: Service}, value: {a: 1}}, {target: {kind: Service}, type: JSONPatch, value: [{op: test}]}]": nil,
		"patches: [{target: {kind: Service}, value: [1]}]":                                                                     {"spec.patches[0].value"},
		"patches: [{target: {kind: Service}, type: JSONPatch, value: {a: 1}}]":                                                 {"spec.patches[0].value"},
		"patches: [{target: {kind: Service}}]":                                                                                 {"spec.patches[0].value"},
		"envoy: {bootstrap: {a: 1}}":                                                                                           nil,
		"envoy: {bootstrap: 5}":                                                                                                {"spec.envoy.bootstrap"},
		"drain: {delay: 0s, timeout: 1h30m}":                                                                                   nil,
		"drain: {delay: 99h, timeout: x}":                                                                                      {"spec.drain.delay", "spec.drain.timeout"},
		"accessLog: [{path: /var/log/access}, {openTelemetry: {host: collector.svc, port: 4317}}, {openTelemetry: {host: '::1', port: 4317}}]": nil,
		"accessLog: [{path: /var/../log}]":                      {"spec.accessLog[0].path"},
		"accessLog: [{openTelemetry: {host: 'a b', port: 1}}]":  {"spec.accessLog[0].openTelemetry.host"},
		"tracing: {openTelemetry: {host: 'http://x', port: 1}}": {"spec.tracing.openTelemetry.host"},
		"limits: {redis: {host: redis.svc, port: 6380, secretRef: {name: redis}, tls: {caCertificateRef: {name: ca}, serverName: r.test}}}": nil,
		"limits: {redis: {host: 'a:1', secretRef: {name: ../a}, tls: {caCertificateRef: {name: A}, serverName: 'a b'}}}": {
			"spec.limits.redis.host", "spec.limits.redis.secretRef.name", "spec.limits.redis.tls.caCertificateRef.name", "spec.limits.redis.tls.serverName",
		},
		"client: {limits: {headersTimeout: 0s, idleTimeout: 1ms}}":                                                                                                           {"spec.client.limits.headersTimeout"},
		"client: {paths: {escapedSlashes: Redirect, listeners: [{listenerPort: 80, mergeSlashes: true}]}}":                                                                   nil,
		"client: {paths: {escapedSlashes: Redirect, mergeSlashes: false}}":                                                                                                   {"spec.client.paths.escapedSlashes"},
		"client: {paths: {escapedSlashes: Redirect, listeners: [{listenerPort: 80, mergeSlashes: false}, {listenerPort: 81, mergeSlashes: false, escapedSlashes: Reject}]}}": {"spec.client.paths.listeners[0].escapedSlashes"},
		"client: {paths: {mergeSlashes: false, listeners: [{listenerPort: 80, escapedSlashes: Redirect}, {listenerPort: 80, escapedSlashes: Keep}]}}":                        {"spec.client.paths.listeners[0].escapedSlashes", "spec.client.paths.listeners[1].listenerPort"},
		"overrides: {envoy: {bootstrap: []}}":                                                    {"spec.overrides.envoy.bootstrap"},
		"allow: {addresses: [192.0.2.0/24, '2001:db8::/64'], externalIPs: [198.51.100.7/32]}":    nil,
		"allow: {addresses: [192.0.2.1], externalIPs: [198.51.100.0/33]}":                        {"spec.allow.addresses[0]", "spec.allow.externalIPs[0]"},
		"allow: {hostnames: [{namespaces: {names: [a]}, hostnames: ['*', '*.a.test', a.test]}]}": nil,
		"allow: {hostnames: [{namespaces: {selector: {matchExpressions: [{key: a, operator: Is}]}}, hostnames: [A.test, '*.*.test', '*a.test']}]}": {
			"spec.allow.hostnames[0].hostnames[0]", "spec.allow.hostnames[0].hostnames[1]", "spec.allow.hostnames[0].hostnames[2]",
			"spec.allow.hostnames[0].namespaces.selector.matchExpressions[0].operator",
		},
	} {
		o := &v1alpha1.GatewayParameters{}
		if err := yaml.UnmarshalStrict([]byte("spec: {"+text+"}"), o); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if d := gocmp.Diff(want, fields(Check(o))); d != "" {
			t.Errorf("%s: -want +got:\n%s", text, d)
		}
	}
}

// TestCheckWhole protects them from levels that are right by themselves and wrong
// together.
func TestCheckWhole(t *testing.T) {
	for text, want := range map[string][]string{
		"deployment: {autoscaling: {maxReplicas: 2}}":                                                                                    nil,
		"deployment: {autoscaling: {minReplicas: 2}}":                                                                                    {"spec.deployment.autoscaling.maxReplicas"},
		"deployment: {autoscaling: {minReplicas: 2, maxReplicas: 1}}":                                                                    {"spec.deployment.autoscaling.minReplicas"},
		"container: {resources: {requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1}}}":                                                    nil,
		"container: {resources: {requests: {cpu: 2}, limits: {cpu: 1, memory: -1}}}":                                                     {"spec.container.resources.limits[memory]", "spec.container.resources.requests[cpu]"},
		"container: {hostPorts: [{listenerPort: 80, hostPort: 80}, {listenerPort: 80, hostPort: 81}, {listenerPort: 81, hostPort: 80}]}": {"spec.container.hostPorts[1].listenerPort", "spec.container.hostPorts[2].hostPort"},
		"limits: {replicas: 1}":                                                                nil,
		"limits: {replicas: 2}":                                                                {"spec.limits.replicas"},
		"limits: {replicas: 2, redis: {host: redis.svc}}":                                      nil,
		"limits: {resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}}":                {"spec.limits.resources.requests[memory]"},
		"tracing: {samplingPercent: 5}":                                                        {"spec.tracing.openTelemetry"},
		"tracing: {samplingPercent: 0}":                                                        nil,
		"tracing: {samplingFraction: {numerator: 1, denominator: 1000}}":                       {"spec.tracing.openTelemetry"},
		"client: {http3: true, proxyProtocol: true}":                                           {"spec.client.http3"},
		"client: {trustedHops: 1, trustedAddresses: [10.0.0.0/8]}":                             {"spec.client.trustedHops"},
		"client: {trustedHops: 0, trustedAddresses: [10.0.0.0/8]}":                             nil,
		"client: {addressHeader: CF-Connecting-IP, trustedAddresses: [10.0.0.0/8]}":            nil,
		"client: {addressHeader: CF-Connecting-IP}":                                            {"spec.client.trustedAddresses"},
		"patches: [{target: {kind: Service}, value: {spec: {nonesuch: 1}}}]":                   {"spec"},
		"patches: [{target: {kind: Service}, type: JSONPatch, value: [{op: test, path: ''}]}]": {"spec"},
		"envoy: {bootstrap: {a: '" + strings.Repeat("x", maxBootstrap) + "'}}":                 {"spec.envoy.bootstrap"},
		"envoy: {bootstrap: {a: " + strings.Repeat("[", 64) + strings.Repeat("]", 64) + "}}":   {"spec.envoy.bootstrap"},
	} {
		if d := gocmp.Diff(want, fields(CheckWhole(readSettings(t, text), Pods))); d != "" {
			t.Errorf("%s: -want +got:\n%s", text, d)
		}
	}
}

// TestSampling protects the share of requests that is traced.
func TestSampling(t *testing.T) {
	for text, want := range map[string]uint32{
		"{}":                                 1_000_000,
		"{samplingPercent: 0}":               0,
		"{samplingPercent: 7}":               70_000,
		"{samplingFraction: {numerator: 7}}": 70_000,
		"{samplingFraction: {numerator: 1, denominator: 1000}}":                1_000,
		"{samplingFraction: {numerator: 2147483647, denominator: 2147483647}}": 1_000_000,
	} {
		if got := Sampling(readSettings(t, "tracing: "+text).Tracing); got != want {
			t.Errorf("%s: got %d, want %d", text, got, want)
		}
	}
}

func fields(errs field.ErrorList) (out []string) {
	for _, e := range errs {
		out = append(out, e.Field)
	}
	slices.Sort(out)
	return out
}

// TestDepth protects the bound on nested objects from texts that only look nested, and
// from those that hide it.
func TestDepth(t *testing.T) {
	for text, want := range map[string]int{
		`{}`: 1, `[[], [[]]]`: 3, `{"a": "[[[["}`: 1, `{"a": "\"[[[["}`: 1, `{"a": "\\", "b": [1]}`: 2, `"{"`: 0,
	} {
		if got := depth([]byte(text)); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}
