package control

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
)

// Whoever restricts the namespaces is told that the parameters of a class are in
// another one, instead of being asked to make what is there.
func TestParametersThatAreNotRead(t *testing.T) {
	for _, test := range []struct {
		name   string
		source config.Kubernetes
		labels string
		want   string
	}{
		{"all", config.Kubernetes{}, "{}", "doesn't exist"},
		{"listed", config.Kubernetes{Namespaces: []string{"shop", "infra"}}, "{}", "doesn't exist"},
		{"not listed", config.Kubernetes{Namespaces: []string{"shop"}}, "{}", "leaves namespace infra out"},
		{"selected", config.Kubernetes{NamespaceSelector: metav1.AddLabelToSelector(&metav1.LabelSelector{}, "read", "yes")}, "{read: \"yes\"}", "doesn't exist"},
		{"not selected", config.Kubernetes{NamespaceSelector: metav1.AddLabelToSelector(&metav1.LabelSelector{}, "read", "yes")}, "{}", "leaves namespace infra out"},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := config.Default()
			cfg.Sources = []config.Source{{Kubernetes: &test.source}}
			p := newProvisioned(t)
			p.Pipeline = NewPipeline(clusterPipeline(cfg, true))
			p.set(`{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: gatehouse}, spec: {controllerName: gatehouse.dev/controller, parametersRef: {group: gatehouse.dev, kind: GatewayParameters, namespace: infra, name: p}}}`)
			// The namespace is heard of last: the class must be looked at again.
			p.set(`{apiVersion: v1, kind: Namespace, metadata: {name: infra, labels: ` + test.labels + `}}`)
			p.engine.View(func(c *flow.Ctx) {
				class, _ := flow.Get(c, p.graph.Classes, "gatehouse")
				if !strings.Contains(class.Accepted.Message, test.want) {
					t.Errorf("got %q, want one with %q", class.Accepted.Message, test.want)
				}
			})
		})
	}
}
