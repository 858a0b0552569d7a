//go:build linux

package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/test/apiserver"
)

// Ingresses are read from a cluster, with what they name, and an API server takes what becomes of them.
func TestMigrateCluster(t *testing.T) {
	t.Parallel()
	server := apiserver.Start(t, apiserver.Options{Channel: apiserver.Standard})
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	writeKubeconfig(t, server, "", nil, kubeconfig)
	apply := func(manifests string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "objects.yaml")
		if err := os.WriteFile(file, []byte(manifests), 0o600); err != nil {
			t.Fatal(err)
		}
		apiserver.Install(t, server.Config, file)
	}
	apply(`
{apiVersion: v1, kind: Namespace, metadata: {name: site}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: ingress-nginx}}
---
{apiVersion: v1, kind: Service, metadata: {namespace: site, name: v1}, spec: {ports: [{name: web, port: 8080}]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ingress-nginx, name: ingress-nginx-controller}, data: {proxy-body-size: 3m, hsts: "false"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: site, name: answers}, data: {X-Team: shop}}
---
{apiVersion: v1, kind: Secret, metadata: {namespace: site, name: users}, stringData: {auth: "ann:$apr1$x$y"}}
` + ingressOf("web", early, []string{
		"rewrite-target: /$2", "auth-type: basic", "auth-secret: users", "custom-headers: site/answers", "limit-rps: 5", "enable-cors: true",
		"whitelist-source-range: 10.0.0.0/8", "affinity: cookie", "proxy-read-timeout: 30", "auth-url: http://v1.site.svc:8080/check", "backend-protocol: HTTPS",
	}, "tls: [{hosts: [a.example], secretName: cert}]\nrules:\n"+strings.ReplaceAll(hostPaths("a.example", "~ /shop(/|$)(.*) v1", "/ / v1"), "number: 8080", "name: web")))
	out, err := exec.CommandContext(t.Context(), needTools(t).gatehouse, "migrate", "-A", "--kubeconfig", kubeconfig, "--gateway", "site/gw").Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		t.Fatalf("%v: %s", err, exit.Stderr)
	} else if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"maxBodySize: 3Mi", "name: X-Team", "port: 8080", "idleTimeout: 30s"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
	if strings.Contains(string(out), "strictTransportSecurity") {
		t.Error("hsts: false of the controller's ConfigMap doesn't count")
	}
	apply(string(out))
}
