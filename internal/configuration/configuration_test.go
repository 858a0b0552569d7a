package configuration

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/infra"
)

const head = "apiVersion: config.gatehouse.dev/v1alpha1\nkind: Configuration\n"

func TestDefaultIsValidAndReadsBack(t *testing.T) {
	c := Default()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, back); diff != "" {
		t.Errorf("what is written is not what is read:\n%s", diff)
	}
}

// The reference shows the defaults.
func TestReference(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	shown := &Configuration{}
	if err := yaml.UnmarshalStrict([]byte(text), shown); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), shown); diff != "" {
		t.Errorf("docs/reference/configuration.md shows other defaults:\n%s", diff)
	}
}

func TestFileIsLaidOverTheDefault(t *testing.T) {
	c, err := Parse([]byte(head + "log: {level: debug}\nports: {metrics: 0}\nsources: [{files: {paths: [/etc/x]}}, {kubernetes: {namespaces: [a]}}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Log.Level = "debug"
	want.Ports.Metrics = 0
	want.Sources = []Source{{Files: &Files{Paths: []string{"/etc/x"}}}, {Kubernetes: &Kubernetes{Namespaces: []string{"a"}}}}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
}

// Fleets that get a namespace for all of them move there from their Gateways', unless it is said that none has to.
func TestPlaces(t *testing.T) {
	for text, want := range map[string]infra.Places{
		"":                                    {},
		"infrastructure: {namespace: fleets}": {Namespace: "fleets", Former: []string{infra.OfGateways}},
		"infrastructure: {namespace: fleets, formerNamespaces: []}":         {Namespace: "fleets", Former: []string{}},
		"infrastructure: {formerNamespaces: [fleets]}":                      {Former: []string{"fleets"}},
		"infrastructure: {namespace: fleets, formerNamespaces: [\"*\", a]}": {Namespace: "fleets", Former: []string{"*", "a"}},
	} {
		c, err := Parse([]byte(head + text))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, c.Infrastructure.Places()); diff != "" {
			t.Errorf("%s:\n%s", text, diff)
		}
	}
}

// Each mistake is refused with the field that has it.
func TestMistakes(t *testing.T) {
	for text, field := range map[string]string{
		"kind: Configuration\n":                                          "apiVersion",
		"apiVersion: config.gatehouse.dev/v1alpha1\n":                    "kind",
		head + "prots: {xds: 1}\n":                                       "prots",
		head + "controllerName: nonsense\n":                              "controllerName",
		head + "roles: []\n":                                             "roles",
		head + "roles: [Proxies]\n":                                      "roles[0]",
		head + "roles: [Configuration, Configuration]\n":                 "roles[1]",
		head + "roles: [Infrastructure]\ninfrastructure: {type: None}\n": "roles",
		head + "infrastructure: {namespace: A_b}\n":                      "infrastructure.namespace",
		head + "infrastructure: {formerNamespaces: [A_b]}\n":             "infrastructure.formerNamespaces[0]",
		head + "infrastructure: {namespace: fleets}\nsources: [{kubernetes: {namespaces: [shop]}}]\n":                       "infrastructure.namespace",
		head + "infrastructure: {namespace: fleets}\nsources: [{kubernetes: {namespaceSelector: {matchLabels: {a: b}}}}]\n": "infrastructure.namespace",
		head + "sources: []\n":                                                                                 "sources",
		head + "sources: [{}]\n":                                                                               "sources[0]",
		head + "sources: [{kubernetes: {}}, {kubernetes: {}}]\n":                                               "sources[1].kubernetes",
		head + "sources: [{kubernetes: {namespaces: [A_b]}}]\n":                                                "sources[0].kubernetes.namespaces[0]",
		head + "sources: [{kubernetes: {}}, {remote: {address: host}}]\n":                                      "sources[1].remote.address",
		head + "sources: [{kubernetes: {}}, {remote: {address: a:1, tls: {certFile: c}}}]\n":                   "sources[1].remote.tls.keyFile",
		head + "sources: [{kubernetes: {}}, {remote: {address: a:1, tls: {caFile: c, plaintext: true}}}]\n":    "sources[1].remote.tls.plaintext",
		head + "sources: [{kubernetes: {}}, {remote: {address: a:1, tokenFile: c, tls: {plaintext: true}}}]\n": "sources[1].remote.tokenFile",
		head + "sources: [{kubernetes: {}}, {remote: {address: a:1}, files: {paths: [a]}}]\n":                  "sources[1]",
		head + "sources: [{files: {}}]\n":                                                                      "sources[0].files.paths",
		head + "infrastructure: {type: Moon}\n":                                                                "infrastructure.type",
		head + "infrastructure: {imagePullPolicy: Sometimes}\n":                                                "infrastructure.imagePullPolicy",
		head + "leaderElection: {renewDeadline: 20s}\n":                                                        "leaderElection.leaseDuration",
		head + "leaderElection: {takeOverAfter: 10s}\n":                                                        "leaderElection.takeOverAfter",
		head + "gatewayClass: {name: A}\n":                                                                     "gatewayClass.name",
		head + "leaderElection: {retryPeriod: 10s}\n":                                                          "leaderElection.renewDeadline",
		head + "identity: {proxyLifetime: 1m}\n":                                                               "identity.proxyLifetime",
		head + "identity: {authorityLifetime: 3h}\n":                                                           "identity.authorityLifetime",
		head + "ports: {xds: 0}\n":                                                                             "ports.xds",
		head + "ports: {api: 18000}\n":                                                                         "ports.api",
		head + "log: {level: loud}\n":                                                                          "log.level",
		head + "log: {levels: {moon: debug}}\n":                                                                "log.levels[moon]",
		head + "log: {levels: {xds: loud}}\n":                                                                  "log.levels[xds]",
		head + "apiServer: {qps: 10, burst: 1}\n":                                                              "apiServer.burst",
		head + "figures: {maxSeriesPerNamespace: -1}\n":                                                        "figures.maxSeriesPerNamespace",
		head + "figures: {otlp: {endpoint: collector:4318}}\n":                                                 "figures.otlp.endpoint",
		head + "figures: {otlp: {interval: 1ms}}\n":                                                            "figures.otlp.interval",
		head + "sources: [{kubernetes: {namespaces: [a], namespaceSelector: {}}}]\n":                           "sources[0].kubernetes.namespaceSelector",
		head + "sources: [{ingress: {class: nginx, gateway: a/b}}, {kubernetes: {}}]\n":                        "sources[0].ingress",
		head + "sources: [{kubernetes: {}}, {ingress: {class: nginx, gateway: b}}]\n":                          "sources[1].ingress.gateway",
		head + "sources: [{kubernetes: {}}, {ingress: {gateway: a/b}}]\n":                                      "sources[1].ingress.class",
		head + "xds: {maxConnectionAge: 59s}\n":                                                                "xds.maxConnectionAge",
	} {
		_, err := Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s\nerror %v, want one that names %s", text, err, field)
		}
	}
}

// A file is often a link to a directory that is swapped, as in a pod.
func TestWatchFollowsSwappedLinks(t *testing.T) {
	dir := t.TempDir()
	write := func(version, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, version), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, version, "config.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(filepath.Join(dir, "next"))
		if err := os.Symlink(version, filepath.Join(dir, "next")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "data")); err != nil {
			t.Fatal(err)
		}
	}
	write("1", head)
	path := filepath.Join(dir, "config.yaml")
	if err := os.Symlink(filepath.Join("data", "config.yaml"), path); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	changes, failures, done := make(chan *Configuration), make(chan error), make(chan error, 1)
	go func() {
		done <- Watch(ctx, path, []byte(head), Watched{
			Changed: func(c *Configuration, _ []byte) { changes <- c },
			Refused: func(err error) { failures <- err },
			Missed:  func(err error) { t.Error(err) },
		})
	}()
	deadline := time.After(20 * time.Second)
	// The watch may begin after a write; so write until it is seen.
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	for n, seen := 2, false; !seen; n++ {
		write(string(rune('0'+n%8)), head+"log: {level: "+Levels[n%2]+"}\n")
		select {
		case <-changes:
			seen = true
		case <-again.C:
		case <-deadline:
			t.Fatal("no change seen")
		}
	}
	write("9", head+"log: {level: loud}\n")
	select {
	case err := <-failures:
		if !strings.Contains(err.Error(), "log.level") {
			t.Error(err)
		}
	case c := <-changes:
		t.Errorf("a configuration with a mistake came through: %+v", c.Log)
	case <-deadline:
		t.Fatal("no failure seen")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
