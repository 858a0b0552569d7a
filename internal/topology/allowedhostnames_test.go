package topology

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/parameters"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

const sharedGateway = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: gatehouse}
spec:
  controllerName: gatehouse.dev/controller
  parametersRef: {group: gatehouse.dev, kind: GatewayParameters, namespace: platform, name: class}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: infra, name: shared}
spec:
  gatewayClassName: gatehouse
  listeners: [{name: http, port: 80, protocol: HTTP, hostname: "*.test", allowedRoutes: {namespaces: {from: All}}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: team-a, name: a}
spec:
  parentRefs: [{namespace: infra, name: shared}]
  hostnames: [a.test]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: team-b, name: b}
spec:
  parentRefs: [{namespace: infra, name: shared}]
  hostnames: [b.test]
`

// classParameters are those of the class, with rules for hostnames.
func classParameters(rules string) string {
	return "apiVersion: gatehouse.dev/v1alpha1\nkind: GatewayParameters\nmetadata: {namespace: platform, name: class}\nspec: {allow: {hostnames: " + rules + "}}"
}

// accepts reports whether the route of a team is accepted.
func (w *world) accepts(team string) (accepted bool) {
	key := object.Key{Kind: kind.HTTPRoute, Name: object.Name{Namespace: "team-" + team, Name: team}}
	w.engine.View(func(c *flow.Ctx) {
		for _, p := range w.graph.Parents(c, key) {
			accepted = p.Accepted().Status == metav1.ConditionTrue
		}
	})
	return accepted
}

// Rules for hostnames stay in force while the parameters of the class can't be used: who
// could break them, or wait for that, could take hosts of others.
func TestHostnamesStayAllowed(t *testing.T) {
	w := newWorld(settings{Provisioned: true, Tenants: true}.options())
	w.set(t, decode(t, sharedGateway)...)
	w.set(t, decode(t, classParameters("[{namespaces: {names: [team-a]}, hostnames: [a.test, b.test]}]"))...)
	check := func(when string) {
		t.Helper()
		if !w.accepts("a") || w.accepts("b") {
			t.Errorf("%s: the route of team-a is accepted %t, that of team-b %t", when, w.accepts("a"), w.accepts("b"))
		}
	}
	check("at first")
	name := object.Name{Namespace: "infra", Name: "shared"}
	gw := w.gateway(name)
	w.engine.Update(func(tx *flow.Tx) {
		w.in.Kept.Set(tx, name, parameters.Kept{UID: gw.Object.UID, Class: gw.Class, Settings: gw.Parameters, Allow: gw.Allow})
	})
	w.set(t, decode(t, classParameters("[{namespaces: {names: [team-b]}, hostnames: ['not a name']}]"))...)
	check("with parameters that can't be used")
	w.apply(t, source.Batch{Deleted: []object.Key{{Kind: kind.GatewayParameters, Name: object.Name{Namespace: "platform", Name: "class"}}}})
	check("without the parameters")
	w.set(t, decode(t, classParameters("[{namespaces: {names: [team-b]}, hostnames: ['*']}]"))...)
	if w.accepts("a") || !w.accepts("b") {
		t.Error("new rules have no effect")
	}
}

// What a namespace may use follows its labels.
func TestHostnameRulesFollowLabels(t *testing.T) {
	w := newWorld(settings{Provisioned: true, Tenants: true}.options())
	w.set(t, decode(t, sharedGateway)...)
	w.set(t, decode(t, classParameters("[{namespaces: {names: [team-a]}, hostnames: [a.test]}, {namespaces: {selector: {matchLabels: {edge: 'true'}}}, hostnames: ['*.test']}]"))...)
	if !w.accepts("a") || w.accepts("b") {
		t.Fatal("the rules have no effect")
	}
	w.set(t, decode(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: team-b, labels: {edge: 'true'}}")...)
	if !w.accepts("b") {
		t.Error("a label of the namespace has no effect")
	}
	w.set(t, decode(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: team-b}")...)
	if w.accepts("b") {
		t.Error("the end of the label has no effect")
	}
}
