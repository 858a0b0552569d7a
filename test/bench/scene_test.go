package main

import (
	"net/http"
	"testing"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/source/schema"
)

// A change that no answer shows would be in force before it is made, and objects
// that are refused would leave the ones before in force.
func TestScenes(t *testing.T) {
	v, err := schema.New(kind.All, false)
	if err != nil {
		t.Fatal(err)
	}
	w := &workload{real: &real{changes: 8}, routes: 90_000}
	for i, name := range []string{"a", "b"} {
		w.backends[i] = &backend{name: name, ports: []int{3000 + i}}
	}
	for _, s := range []scene{w.toggle(), w.reorder(), w.insert(), w.swap()} {
		t.Run(s.shape, func(t *testing.T) {
			for n := range 8 {
				before, after := s.state(n), s.state(n+1)
				routes := 0
				docs, err := documents(after.manifest)
				if err != nil {
					t.Fatal(err)
				}
				for _, doc := range docs {
					object, err := decode(v, doc)
					if err != nil {
						t.Fatal(err)
					}
					if route, ok := object.(*gwv1.HTTPRoute); ok && string(route.Spec.Hostnames[0]) == s.host() {
						routes++
					}
				}
				if routes != 1 {
					t.Fatalf("%d routes of %s in\n%s", routes, s.host(), after.manifest)
				}
				shown := false
				for i, q := range w.step(s, before, after).asks {
					was, now := before.answers[i], after.answers[i]
					old := answer{http.StatusOK, was.rule, was.backend}
					shown = shown || !q.right(old)
					switch {
					case was.path != now.path || was.header != now.header:
						t.Errorf("request %d is %s %q in one state and %s %q in the next", i, was.path, was.header, now.path, now.header)
					case !q.legal(old) || !q.right(answer{http.StatusOK, now.rule, now.backend}):
						t.Errorf("what a state gives counts as wrong: %v, %v", was, now)
					case q.legal(answer{status: http.StatusNotFound}), q.legal(answer{http.StatusOK, now.rule, "c"}):
						t.Errorf("what no state gives counts as legal: %v, %v", was, now)
					}
				}
				if !shown {
					t.Errorf("nothing shows the change from state %d", n)
				}
			}
		})
	}
}

// Which answers a route may give depends on whether it is there.
func TestPresence(t *testing.T) {
	const none, either, there = "404", "200 404", "200"
	p := &presence{entries: make([]entry, 8)}
	p.added.Store(6)
	p.removed.Store(3)
	for i, want := range []string{none, either, either, there, either, either, none, none} {
		q, got := p.next(), ""
		if q.legal(answer{status: http.StatusOK}) {
			got = "200"
		}
		if q.legal(answer{status: http.StatusNotFound}) {
			got = map[string]string{"": none, "200": either}[got]
		}
		if got != want {
			t.Errorf("route %d may answer %q, want %q", i, got, want)
		}
		if q.legal(answer{status: http.StatusServiceUnavailable}) {
			t.Errorf("route %d may fail", i)
		}
	}
}

// As many routes are removed as are added, and never more than have come.
func TestAdditionsAndRemovals(t *testing.T) {
	w := &workload{real: &real{}, routes: 100, standalone: &standalone{root: t.TempDir()}}
	w.backends[0] = &backend{ports: []int{3000}}
	c := w.additionsAndRemovals()
	present := map[string]bool{}
	for range c.count {
		change, err := c.next()
		if err != nil {
			t.Fatal(err)
		}
		host, added := change.asks[0].Host, change.asks[0].right(answer{status: http.StatusOK})
		if present[host] == added {
			t.Fatalf("%s is added: %t; it was there before: %t", host, added, present[host])
		}
		present[host] = added
	}
	for host, there := range present {
		if there {
			t.Errorf("%s is left", host)
		}
	}
	if len(present) != 300 {
		t.Errorf("%d routes were added and removed", len(present))
	}
}
