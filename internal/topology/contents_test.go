package topology

import (
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

const referrers = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: team, name: web}
spec:
  gatewayClassName: gatehouse
  allowedListeners: {namespaces: {from: All}}
  tls:
    backend: {clientCertificateRef: {namespace: victim, name: client}}
    frontend: {default: {validation: {caCertificateRefs: [{group: "", kind: ConfigMap, namespace: victim, name: ca}, {group: "", kind: Secret, namespace: victim, name: ca}]}}}
  listeners:
  - {name: own, port: 443, protocol: HTTPS, hostname: a.test, tls: {certificateRefs: [{name: own}, {namespace: victim, name: server}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {namespace: sets, name: web}
spec:
  parentRef: {namespace: team, name: web}
  listeners:
  - {name: set, port: 443, protocol: HTTPS, hostname: b.test, tls: {certificateRefs: [{namespace: victim, name: of-set}]}}
`

const grants = `
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {namespace: victim, name: grant}
spec:
  from:
  - {group: gateway.networking.k8s.io, kind: Gateway, namespace: team}
  - {group: gateway.networking.k8s.io, kind: ListenerSet, namespace: sets}
  to:
  - {group: "", kind: Secret}
  - {group: "", kind: ConfigMap}
`

// Nothing of another namespace is asked for without a grant: whoever may write Gateways
// would have the controller read any Secret, and wait for it.
func TestNothingIsAskedForWithoutGrant(t *testing.T) {
	w := newWorld(Options{ControllerName: "gatehouse.dev/controller", ImplicitClass: "gatehouse"})
	// asked is what is looked for, and of is that of the Gateway.
	asked := func() (all, of []string) {
		for n := range w.in.Secrets.Asked {
			all = append(all, "Secret "+n.String())
		}
		for n := range w.in.ConfigMaps.Asked {
			all = append(all, "ConfigMap "+n.String())
		}
		w.engine.View(func(c *flow.Ctx) {
			w.graph.Contents(c, object.Name{Namespace: "team", Name: "web"}, func(k object.Key) { of = append(of, fmt.Sprintf("%s %s", k.Kind, k.Name)) })
		})
		slices.Sort(all)
		slices.Sort(of)
		return all, of
	}
	check := func(when string, want ...string) {
		t.Helper()
		all, of := asked()
		if d := gocmp.Diff(want, all); d != "" {
			t.Errorf("%s, what is asked for differs (-want +got):\n%s", when, d)
		}
		if d := gocmp.Diff(want, of); d != "" {
			t.Errorf("%s, the Gateway's contents differ (-want +got):\n%s", when, d)
		}
	}
	w.set(t, decode(t, referrers)...)
	check("without a grant", "Secret team/own")
	w.set(t, decode(t, grants)...)
	check("with a grant", "ConfigMap victim/ca", "Secret team/own", "Secret victim/ca", "Secret victim/client", "Secret victim/of-set", "Secret victim/server")
}
