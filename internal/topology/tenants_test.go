package topology

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// No message names an object of another namespace to which the object that has the message
// doesn't refer, whatever the objects are: all golden files are read as if each namespace
// belonged to somebody else.
func TestMessagesNameNothingOfOthers(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := settings{ImplicitClass: "gatehouse"}
			var objects []source.Object
			for _, f := range archive.Files {
				switch f.Name {
				case "options.yaml":
					if err := yaml.UnmarshalStrict(f.Data, &s); err != nil {
						t.Fatal(err)
					}
				case "objects.yaml":
					objects = decode(t, string(f.Data))
				}
			}
			if s.SharedHost {
				t.Skip("whoever shares a host runs all that is on it")
			}
			s.Tenants = true
			w := newWorld(s.options())
			w.set(t, objects...)
			w.eachCondition(func(of source.Object, c metav1.Condition) {
				text, err := json.Marshal(of)
				if err != nil {
					t.Fatal(err)
				}
				for _, o := range objects {
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
			all(route, r.ResolvedRefs)
			for _, p := range w.graph.Parents(c, key) {
				all(route, p.Accepted)
			}
		}
		for name, list := range flow.All(c, w.graph.Ancestors) {
			p, _ := flow.Get(c, w.graph.BackendTLSPolicies, name)
			all(p.Object, p.ResolvedRefs)
			for _, a := range list {
				all(p.Object, a.Accepted)
			}
		}
		for name, list := range flow.All(c, w.graph.TrafficAncestors) {
			p, _ := flow.Get(c, w.graph.TrafficPolicies, name)
			for _, a := range list {
				all(p.Object, a.Accepted)
			}
		}
	})
}
