package traffic

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// TestEverySettingIsWhole protects that a setting has all that users and we need of it.
func TestEverySettingIsWhole(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	reference, e2e := read("docs/reference/traffic.md"), read("test/e2e/trafficpolicy_test.go")
	files, err := filepath.Glob(filepath.Join(root, "test/golden/testdata/traffic-*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	var golden []string
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		golden = append(golden, string(text))
	}
	if names := Settings(); !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("the settings are not sorted, or one is there twice: %q", names)
	}
	for _, name := range Settings() {
		group, field, ok := strings.Cut(name, ".")
		if !ok {
			t.Errorf("%s: a setting is GROUP.FIELD", name)
		}
		if _, after, ok := strings.Cut(reference, "\n## "+group+"\n"); !ok || !strings.Contains(after, "| `"+field+"` |") {
			t.Errorf("%s: no line in docs/reference/traffic.md", name)
		}
		if !strings.Contains(e2e, `"`+name+`":`) {
			t.Errorf("%s: no test in test/e2e/trafficpolicy_test.go", name)
		}
		// What the file protects is said before its first section.
		if !slices.ContainsFunc(golden, func(text string) bool { return strings.HasPrefix(text, name+" of a TrafficPolicy:") }) {
			t.Errorf("%s: no golden file begins with %q", name, name+" of a TrafficPolicy:")
		}
	}
}

// parse returns the node of a policy with a spec that no schema has seen.
func parse(t *testing.T, spec string) *Policy {
	t.Helper()
	o := &v1alpha1.TrafficPolicy{}
	if err := yaml.UnmarshalStrict([]byte("spec: "+spec), o); err != nil {
		t.Fatal(err)
	}
	return Read(object.Name{Namespace: "ns", Name: "p"}, o, nil, func(n object.Name) (map[string]string, bool) {
		return map[string]string{"body": "page"}, n.Name == "pages"
	})
}

// TestProblems protects that a broken setting is told by its field, and left out.
func TestProblems(t *testing.T) {
	for spec, want := range map[string]string{
		"{request: {maxBodySize: 0}}":                            `spec.request.maxBodySize is "0"; write a number of bytes`,
		"{request: {maxBodySize: -5Mi}}":                         `spec.request.maxBodySize is "-5Mi"`,
		"{request: {maxBodySize: 10MB}}":                         `spec.request.maxBodySize is "10MB"`,
		"{request: {maxBodySize: 500m}}":                         `spec.request.maxBodySize is "500m"`,
		"{overrides: {request: {maxBodySize: 99999999999999G}}}": `spec.overrides.request.maxBodySize is "99999999999999G"`,

		"{response: {compression: {algorithms: [{type: Brotli, level: 99}]}}}":           "spec.response.compression.algorithms[0].level is 99; the levels of Brotli are 0 to 11",
		"{response: {compression: {algorithms: [{type: Gzip, level: 0}]}}}":              "algorithms[0].level is 0; the levels of Gzip are 1 to 9",
		"{response: {compression: {algorithms: [{type: Lzma}]}}}":                        `algorithms[0].type is "Lzma"; write Gzip, Brotli or Zstd`,
		"{response: {compression: {algorithms: [{type: Gzip}, {type: Gzip}]}}}":          "algorithms[1].type is Gzip, which another one is already",
		"{response: {compression: {contentTypes: [text/html, 'text/html; charset=x']}}}": "contentTypes[1] is",
		"{response: {compression: {minSize: 5G}}}":                                       `spec.response.compression.minSize is "5G"`,
		"{response: {compression: {disabled: true, minSize: 1}}}":                        "spec.response.compression.disabled is true",

		"{backend: {loadBalancing: {type: Maglev}}}":                                                                                                                               `spec.backend.loadBalancing.type is "Maglev"`,
		"{backend: {loadBalancing: {type: ConsistentHash}}}":                                                                                                                       "spec.backend.loadBalancing.consistentHash is missing",
		"{backend: {loadBalancing: {type: Random, consistentHash: {type: SourceIP}}}}":                                                                                             "consistentHash stands beside type: Random",
		"{backend: {loadBalancing: {type: ConsistentHash, consistentHash: {type: Header, header: {name: ''}}}}}":                                                                   `consistentHash.header.name is ""`,
		"{backend: {loadBalancing: {type: ConsistentHash, consistentHash: {type: Header}}}}":                                                                                       "consistentHash.header is missing",
		"{backend: {loadBalancing: {type: ConsistentHash, consistentHash: {type: Cookie, cookie: {name: 'a b'}}}}}":                                                                `consistentHash.cookie.name is "a b"`,
		"{backend: {loadBalancing: {type: ConsistentHash, consistentHash: {type: Cookie, cookie: {name: a, ttl: 10ms}}}}}":                                                         `consistentHash.cookie.ttl is "10ms"`,
		"{backend: {loadBalancing: {type: ConsistentHash, consistentHash: {type: QueryParam, queryParam: {name: ''}}}}}":                                                           "consistentHash.queryParam.name is empty",
		"{backend: {loadBalancing: {type: ConsistentHash, consistentHash: {type: SourceIP, header: {name: a}}}}}":                                                                  "consistentHash.header stands beside type: SourceIP",
		"{backend: {loadBalancing: {type: ConsistentHash, consistentHash: {type: Moon}}}}":                                                                                         `consistentHash.type is "Moon"`,
		"{targetRefs: [{group: '', kind: Service, name: a}], backend: {loadBalancing: {type: ConsistentHash, consistentHash: {type: Cookie, cookie: {name: a, sameSite: None}}}}}": "sameSite is None, which needs a cookie that is Secure",
		"{targetRefs: [{group: '', kind: Service, name: a}], request: {timeout: 5s}}":                                                                                              "spec.request.timeout is not about backends",
		"{request: {timeout: '5'}}":                                                                                 `spec.request.timeout is "5"`,
		"{request: {timeout: -5s}}":                                                                                 `spec.request.timeout is "-5s"`,
		"{request: {idleTimeout: 1.5s}}":                                                                            `spec.request.idleTimeout is "1.5s"`,
		"{request: {retry: {attempts: -1}}}":                                                                        "spec.request.retry.attempts is -1",
		"{request: {retry: {codes: [99]}}}":                                                                         "spec.request.retry.codes[0] is 99",
		"{request: {retry: {backoff: 0s}}}":                                                                         `spec.request.retry.backoff is "0s"`,
		"{request: {retry: {attempts: 0, codes: [503]}}}":                                                           "spec.request.retry.attempts is 0, and repeats nothing",
		"{request: {buffering: {maxSize: 65Mi}}}":                                                                   `spec.request.buffering.maxSize is "65Mi"`,
		"{request: {buffering: {maxSize: 1, disabled: true}}}":                                                      "spec.request.buffering.disabled is true",
		"{response: {headers: {}}}":                                                                                 "spec.response.headers changes nothing",
		"{response: {headers: {set: [{name: 'a b', value: c}]}}}":                                                   `set[0].name is "a b", which is no name of a header`,
		"{response: {headers: {add: [{name: TE, value: c}]}}}":                                                      `add[0].name is "TE", which is the Gateway's own to write`,
		`{response: {headers: {setIfAbsent: [{name: a, value: "b\r\nc"}]}}}`:                                        "setIfAbsent[0].value is",
		"{response: {headers: {add: [{name: a, value: b}], remove: [A]}}}":                                          `remove[0] is "A", of which there is another action already`,
		"{response: {headers: {remove: [a], disabled: true}}}":                                                      "headers.disabled is true",
		"{response: {strictTransportSecurity: {maxAge: 1y}}}":                                                       `strictTransportSecurity.maxAge is "1y"`,
		"{response: {strictTransportSecurity: {preload: true}}}":                                                    "preload is true, and needs includeSubDomains: true",
		"{response: {strictTransportSecurity: {preload: true, disabled: true}}}":                                    "strictTransportSecurity.disabled is true",
		"{response: {securityHeaders: {frameOptions: Some}}}":                                                       `frameOptions is "Some"`,
		`{response: {securityHeaders: {permissionsPolicy: "a\nb"}}}`:                                                "permissionsPolicy is",
		"{response: {securityHeaders: {frameOptions: Any, disabled: true}}}":                                        "securityHeaders.disabled is true",
		"{response: {errorPages: {}}}":                                                                              "spec.response.errorPages.pages is empty",
		"{response: {errorPages: {disabled: true, pages: [{statuses: ['404'], body: a}]}}}":                         "errorPages.disabled is true",
		"{response: {errorPages: {pages: [{body: a}]}}}":                                                            "pages[0].statuses is empty",
		"{response: {errorPages: {pages: [{statuses: ['30x'], body: a}]}}}":                                         `pages[0].statuses[0] is "30x"`,
		"{response: {errorPages: {pages: [{statuses: ['407'], body: a}]}}}":                                         "statuses[0] is 407, whose answers have headers",
		"{response: {errorPages: {pages: [{statuses: ['404']}]}}}":                                                  "pages[0].body is missing",
		"{response: {errorPages: {pages: [{statuses: ['404'], body: a, from: Me}]}}}":                               `pages[0].from is "Me"`,
		"{response: {errorPages: {pages: [{statuses: ['404'], body: a, contentType: a}]}}}":                         `pages[0].contentType is "a"`,
		"{response: {errorPages: {pages: [{statuses: ['404'], configMapRef: {name: a}}]}}}":                         "spec.response.errorPages.pages[0].configMapRef names ConfigMap ns/a, which does not exist",
		"{response: {errorPages: {pages: [{statuses: ['404'], configMapRef: {name: pages, key: a}}]}}}":             `which has no entry "a"`,
		"{response: {errorPages: {pages: [{statuses: ['404'], body: " + strings.Repeat("a", ir.MaxBody+1) + "}]}}}": "pages have texts of 65537 bytes together",
		"{response: {errorPages: {pages: [{statuses: ['404'], body: a, backendRef: {name: a}}]}}}":                  "pages[0].backendRef stands beside a text",
		"{response: {errorPages: {pages: [{statuses: ['404'], contentType: a/b, backendRef: {name: a}}]}}}":         "pages[0].contentType stands beside backendRef",
		"{response: {errorPages: {pages: [{statuses: ['404'], from: Gateway, backendRef: {name: a}}]}}}":            "pages[0].from stands beside backendRef",
		"{response: {errorPages: {pages: [{statuses: ['404'], configMapRef: {name: pages}}, {statuses: [5xx], body: " + strings.Repeat("a", ir.MaxBody) + "}]}}}": "pages have texts of 65540 bytes together",
		"{response: {errorPages: {pages: [{statuses: ['404'], body: a, contentType: 'a/b '}]}}}":                                                                  `pages[0].contentType is "a/b "`,
		"{response: {headers: {add: [{name: Strict-Transport-Security, value: a}]}}}":                                                                             "write response.strictTransportSecurity",
		"{response: {headers: {remove: [strict-transport-security]}}}":                                                                                            "write response.strictTransportSecurity",
		"{response: {headers: {set: [{name: Content-Encoding, value: a}]}}}":                                                                                      "it can only stand in add",
		"{response: {headers: {setIfAbsent: [{name: Set-Cookie, value: a}]}}}":                                                                                    "it can only stand in add",
		"{response: {headers: {remove: [WWW-Authenticate]}}}":                                                                                                     "it can only stand in add",
		"{response: {headers: {remove: [Vary]}}}":                                                                                                                 "it can only stand in add",
		`{response: {headers: {set: [{name: a, value: "b "}]}}}`:                                                                                                  "set[0].value is",
		`{response: {securityHeaders: {contentSecurityPolicy: "\ta"}}}`:                                                                                           "contentSecurityPolicy is",
		"{response: {strictTransportSecurity: {maxAge: 999ms}}}":                                                                                                  "write whole seconds",
		"{backend: {circuitBreaker: {maxConnections: 65537}}}":                                                                                                    "maxConnections is 65537",
		"{backend: {healthCheck: {type: TCP, timeout: 11s}}}":                                                                                                     `healthCheck.timeout is "11s"; write at most 10s`,
		"{request: {faults: {}}}":                                                                                              "spec.request.faults makes no faults",
		"{request: {faults: {disabled: true, abort: {}}}}":                                                                     "faults.disabled is true",
		"{request: {faults: {abort: {percent: 101}}}}":                                                                         "faults.abort.percent is 101",
		"{request: {faults: {abort: {status: 200}}}}":                                                                          "faults.abort.status is 200",
		"{request: {faults: {delay: {duration: 2m}}}}":                                                                         `faults.delay.duration is "2m"`,
		"{backend: {connectTimeout: 0s}}":                                                                                      `spec.backend.connectTimeout is "0s"`,
		"{backend: {connections: {}}}":                                                                                         "spec.backend.connections says nothing",
		"{backend: {connections: {maxRequests: -1}}}":                                                                          "connections.maxRequests is -1",
		"{backend: {connections: {keepAlive: 10ms}}}":                                                                          `connections.keepAlive is "10ms"`,
		"{backend: {circuitBreaker: {}}}":                                                                                      "spec.backend.circuitBreaker bounds nothing",
		"{backend: {circuitBreaker: {maxPendingRequests: 0}}}":                                                                 "circuitBreaker.maxPendingRequests is 0",
		"{backend: {retryBudget: {percent: 101}}}":                                                                             "retryBudget.percent is 101",
		"{backend: {outlierDetection: {consecutiveErrors: 0}}}":                                                                "outlierDetection.consecutiveErrors is 0",
		"{backend: {outlierDetection: {interval: 1ms}}}":                                                                       `outlierDetection.interval is "1ms"`,
		"{backend: {outlierDetection: {interval: 1s, disabled: true}}}":                                                        "outlierDetection.disabled is true",
		"{backend: {healthCheck: {type: ICMP}}}":                                                                               `healthCheck.type is "ICMP"`,
		"{backend: {healthCheck: {type: TCP, grpc: {service: a}}}}":                                                            "healthCheck.type is TCP, and what stands beside it is of another type",
		"{backend: {healthCheck: {type: HTTP, http: {path: a}}}}":                                                              `http.path is "a"; write a path that begins with /`,
		`{backend: {healthCheck: {type: HTTP, http: {hostname: "a b"}}}}`:                                                      `http.hostname is "a b"`,
		`{backend: {healthCheck: {type: GRPC, grpc: {service: "a b"}}}}`:                                                       `grpc.service is "a b"`,
		"{backend: {healthCheck: {type: TCP, unhealthyThreshold: 0}}}":                                                         "unhealthyThreshold is 0",
		"{backend: {healthCheck: {type: TCP, disabled: true}}}":                                                                "healthCheck.disabled is true",
		"{backend: {loadBalancing: {type: Random, slowStart: 1s}}}":                                                            "loadBalancing.slowStart stands beside type: Random",
		"{backend: {loadBalancing: {type: ConsistentHash, consistentHash: {type: SourceIP, algorithm: Dice}}}}":                `algorithm is "Dice"`,
		"{backend: {loadBalancing: {type: ConsistentHash, consistentHash: {type: SourceIP, algorithm: Maglev, ringSize: 9}}}}": "ringSize stands beside algorithm: Maglev",
		"{defaults: {}}": "spec.defaults has no settings",
		"{}":             "spec has no settings",
	} {
		p := parse(t, spec)
		if p.Refused == nil || !strings.Contains(p.Refused.Message, want) {
			t.Errorf("%s: %+v, want %q", spec, p.Refused, want)
		}
		if p.Asks != nil {
			t.Errorf("%s: it says %+v", spec, p.Asks)
		}
	}
	p := parse(t, "{request: {maxBodySize: 0}, response: {compression: {}}}")
	if len(p.Asks) != 1 || p.Asks[0].Name != "response.compression" {
		t.Errorf("beside a broken setting there is %+v", p.Asks)
	}
}

// TestMissingPage protects that a page whose text is missing costs itself alone.
func TestMissingPage(t *testing.T) {
	p := parse(t, "{response: {errorPages: {pages: [{statuses: ['404'], configMapRef: {name: a}}, {statuses: [5xx], body: b}]}}}")
	if p.Refused == nil || !strings.Contains(p.Refused.Message, "which does not exist") {
		t.Errorf("the policy is told %+v", p.Refused)
	}
	if len(p.Asks) != 1 || len(p.Asks[0].Value.ErrorPages.Pages) != 1 || p.Asks[0].Value.ErrorPages.Pages[0].Body != "b" {
		t.Errorf("it says %+v", p.Asks)
	}
}

// TestInForce protects that single settings of several policies are in force together.
func TestInForce(t *testing.T) {
	var path []policy.Placed[Setting]
	for _, spec := range []string{
		"{defaults: {strategy: merge, request: {maxBodySize: 1k}, response: {compression: {disabled: true}}}}",
		"{defaults: {strategy: merge, request: {maxBodySize: Unlimited}, backend: {loadBalancing: {type: Random}}}}",
	} {
		n := parse(t, spec)
		path = append(path, policy.Placed[Setting]{Said: policy.Said[policy.Rules[Setting]]{Policy: n.Name, Strategy: n.Strategy, Asks: n.Asks}})
	}
	want := &ir.Traffic{MaxBodySize: ptr.To[uint64](0), Compression: &ir.Compression{}, LoadBalancing: &ir.LoadBalancing{Balancer: ir.Random}}
	if got := InForce(policy.Combine(path)); !got.Equal(want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if InForce(nil) != nil {
		t.Error("no policies say something")
	}
}

// TestServiceTargets protects that only whole Services can be targets.
func TestServiceTargets(t *testing.T) {
	for ref, want := range map[string]string{
		"{group: '', kind: Service, name: a}":                    "",
		"{group: '', kind: Service, name: a, sectionName: http}": "spec.targetRefs[0].sectionName is set",
		"{group: apps, kind: Service, name: a}":                  "spec.targetRefs[0] is a Service.apps",
	} {
		p := parse(t, "{targetRefs: ["+ref+"], backend: {connectTimeout: 5s}}")
		if want == "" != (p.Refused == nil) || want != "" && !strings.Contains(p.Refused.Message, want) || len(p.Targets) > 0 != (want == "") {
			t.Errorf("%s: %v targets %v, want %q", ref, p.Refused, p.Targets, want)
		}
	}
}
