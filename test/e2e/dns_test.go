//go:build linux

package e2e

import (
	"net/http"
	"syscall"
	"testing"
	"time"
)

// unresolvable is a Service of a name that needs DNS and has no address, and a
// route to it.
const unresolvable = `---
apiVersion: v1
kind: Service
metadata: {name: nowhere, namespace: site}
spec: {type: ExternalName, externalName: no.invalid, ports: [{port: 80}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: nowhere, namespace: site}
spec:
  parentRefs: [{name: gw}]
  hostnames: [nowhere.example]
  rules: [{backendRefs: [{name: nowhere, port: 80}]}]
`

// TestUnresolvableName protects everybody else from a Service whose name can't
// be resolved: at the start, after Envoy's end, and when endpoints change. Envoy
// would wait 15 s for such a name.
func TestUnresolvableName(t *testing.T) {
	t.Parallel()
	needTools(t)
	const bound = 10 * time.Second // a busy machine starts an Envoy in a few
	started := time.Now()
	s := startSite(t, map[string]string{"nowhere.yaml": unresolvable})
	if took := time.Since(started); took > bound {
		t.Errorf("it took %s to start", took)
	}
	s.answers(t, "http://nowhere.example/", http.StatusServiceUnavailable)

	killed := time.Now()
	if err := syscall.Kill(s.envoyPID(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.serves(t, "home.example", "v1")
	if took := time.Since(killed); took > bound {
		t.Errorf("it took %s until Envoy served again", took)
	}
	s.answers(t, "http://nowhere.example/", http.StatusServiceUnavailable)
	s.write(t, "second.yaml", siteRoute("second", "second.example", "v2"))
	s.serves(t, "second.example", "v2")
	s.serves(t, "home.example", "v1")
}
