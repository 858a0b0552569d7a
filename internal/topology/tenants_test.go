package topology

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// No message names an object of another namespace to which the object that has the message
// doesn't refer, whatever the objects are: all golden files are read as if each namespace
// belonged to somebody else.
func TestMessagesNameNothingOfOthers(t *testing.T) {
	eachGolden(t, func(t *testing.T, g golden) {
		if g.settings.SharedHost {
			t.Skip("whoever shares a host runs all that is on it")
		}
		g.settings.Tenants = true
		w := newWorld(g.settings.options())
		w.set(t, g.objects...)
		w.eachCondition(func(of source.Object, c metav1.Condition) {
			text, err := json.Marshal(of)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range g.objects {
				if o.GetNamespace() == "" || o.GetNamespace() == of.GetNamespace() {
					continue
				}
				name := object.Name{Namespace: o.GetNamespace(), Name: o.GetName()}.String()
				if strings.Contains(c.Message, name) && !strings.Contains(string(text), strconv.Quote(o.GetName())) {
					t.Errorf("%s is told of %s: %s", source.KeyOf(of), name, printCondition(c))
				}
			}
		})
	})
}

// eachCondition yields all conditions of the graph, with the objects that have them.
func (w *world) eachCondition(yield func(of source.Object, c metav1.Condition)) {
	all := func(of source.Object, list ...metav1.Condition) {
		for _, c := range list {
			yield(of, c)
		}
	}
	listeners := func(of source.Object, list []*Listener) {
		for _, l := range list {
			all(of, l.Conditions...)
		}
	}
	w.engine.View(func(c *flow.Ctx) {
		for _, gw := range flow.All(c, w.graph.Gateways) {
			all(gw.Object, gw.Accepted, gw.ResolvedRefs)
			if gw.Unusable != nil {
				yield(gw.Object, *gw.Unusable)
			}
			listeners(gw.Object, gw.Listeners)
		}
		for _, s := range flow.All(c, w.graph.ListenerSets) {
			all(s.Object, s.Accepted)
			listeners(s.Object, s.Listeners)
		}
		for key, r := range flow.All(c, w.graph.Routes) {
			route := r.Object.(source.Object)
			all(route, r.ResolvedRefs())
			for _, p := range w.graph.Parents(c, key) {
				all(route, p.Accepted())
			}
		}
		for name, list := range flow.All(c, w.graph.Ancestors) {
			p, _ := flow.Get(c, w.graph.BackendTLSPolicies, name)
			all(p.Object, p.ResolvedRefs)
			for _, a := range list {
				all(p.Object, a.Accepted)
			}
		}
		for name, list := range flow.All(c, w.graph.BackendTrafficAncestors) {
			p, _ := flow.Get(c, w.graph.BackendTrafficPolicies, name)
			for _, a := range list {
				all(p.Object, a.Accepted)
			}
		}
	})
}
