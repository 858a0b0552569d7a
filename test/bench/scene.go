package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/visit"
)

// scene is a route that goes from state to state. What every request is answered
// in each of them is known in full, so that an answer is wrong unless the state
// before or the one after gives it.
type scene struct {
	shape string
	count int
	every time.Duration
	state func(n int) state
}

// state is the text of the scene's file, and what is answered while it is in force.
type state struct {
	manifest []byte
	answers  []expected // to the same requests, in the same order, in every state
}

// expected is the answer to a request: which rule and which backend give it.
type expected struct {
	path, header  string
	rule, backend string
}

func (e expected) given(a answer) bool {
	return a == answer{status: http.StatusOK, version: e.rule, backend: e.backend}
}

// play measures a scene from its first state on, and takes it away.
func (w *workload) play(ctx context.Context, s scene) error {
	first := s.state(0)
	present := w.step(s, first, first)
	if err := present.make(); err != nil {
		return err
	}
	if err := w.inForce(ctx, present); err != nil {
		return err
	}
	n := 0
	err := w.latencies(ctx, &changes{shape: s.shape, count: s.count, every: s.every, next: func() (*change, error) {
		n++
		return w.step(s, s.state(n-1), s.state(n)), nil
	}})
	if err != nil {
		return err
	}
	remove := func() error { return os.Remove(filepath.Join(w.manifests(), s.file())) }
	gone := shown(visit.Request{Host: s.host(), Path: "/"}, remove, missing, okOrMissing)
	return errors.Join(gone.make(), w.inForce(ctx, gone))
}

func (s scene) host() string { return s.shape + ".example.com" }
func (s scene) file() string { return s.shape + ".yaml" }

// step is the change from one state to the next.
func (w *workload) step(s scene, before, after state) *change {
	c := &change{make: func() error {
		return errors.Join(w.stage(s.file(), after.manifest), w.place(s.file()))
	}}
	for i, now := range after.answers {
		was := before.answers[i]
		c.asks = append(c.asks, ask{
			Request: visit.Request{Host: s.host(), Path: now.path, Header: now.header},
			right:   now.given,
			legal:   func(a answer) bool { return was.given(a) || now.given(a) },
		})
	}
	return c
}

// service is a Service for scenes, the one of an entry that has no route. The
// numbers below it are left to the routes that are added.
func (w *workload) service(i, backend int) entry {
	const first = 1000
	e := entry{index: w.routes + first + i}
	e.port = w.backends[backend].port(e.index)
	return e
}

// sceneRule is a rule of a scene's route. It says its name in the header version.
type sceneRule struct {
	name    string
	to      entry
	matches []string
}

// under is a match by a path, and by headers that are set to 1.
func under(path string, headers ...string) string {
	var all []string
	for _, name := range headers {
		all = append(all, fmt.Sprintf(`{name: %s, value: "1"}`, name))
	}
	return fmt.Sprintf("{path: {type: PathPrefix, value: %s}, headers: [%s]}", path, strings.Join(all, ", "))
}

// manifest is a route with these rules, and the Services.
func (s scene) manifest(rules []sceneRule, services ...entry) []byte {
	text := fmt.Appendf(nil, `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: %s, namespace: bench}
spec:
  parentRefs: [{name: gateway}]
  hostnames: [%s]
  rules:
`, s.shape, s.host())
	for _, r := range rules {
		text = fmt.Appendf(text, `    - matches: [%s]
      filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: version, value: %s}]}}]
      backendRefs: [{name: %s, port: 80}]
`, strings.Join(r.matches, ", "), r.name, r.to.name())
	}
	parts := [][]byte{text}
	for _, e := range services {
		parts = append(parts, e.backendManifest())
	}
	return bytes.Join(parts, []byte("---\n"))
}

// toggle goes from one Service to another and back, neither of which anybody else uses.
func (w *workload) toggle() scene {
	s := scene{shape: toggle, count: 30, every: 200 * time.Millisecond}
	a, b := w.service(0, 0), w.service(1, 1)
	s.state = func(n int) state {
		to := []entry{a, b}[n%2]
		return state{
			s.manifest([]sceneRule{{"all", to, []string{under("/")}}}, a, b),
			[]expected{{"/", "", "all", w.backends[n%2].name}},
		}
	}
	return s
}

// reorder turns the order of a route's rules, and that of each rule's matches. It
// decides only where two rules match equally well.
func (w *workload) reorder() scene {
	s := scene{shape: reorder, count: w.changes / 2}
	a, b := w.service(0, 0), w.service(1, 1)
	left := sceneRule{"left", a, []string{under("/", "x-left"), under("/left")}}
	right := sceneRule{"right", b, []string{under("/", "x-right"), under("/right")}}
	rest := sceneRule{"rest", a, []string{under("/")}}
	s.state = func(n int) state {
		const both = "X-Left: 1\r\nX-Right: 1"
		rules, first := []sceneRule{left, right, rest}, expected{"/", both, "left", "a"}
		if n%2 == 1 {
			rules, first = []sceneRule{rest, turned(right), turned(left)}, expected{"/", both, "right", "b"}
		}
		return state{s.manifest(rules, a, b), []expected{
			first,
			{"/", "", "rest", "a"},
			{"/", "X-Left: 1", "left", "a"},
			{"/", "X-Right: 1", "right", "b"},
			{"/left", "X-Right: 1", "left", "a"}, // the longer path comes before the header
			{"/right", "X-Left: 1", "right", "b"},
		}}
	}
	return s
}

func turned(r sceneRule) sceneRule {
	r.matches = []string{r.matches[1], r.matches[0]}
	return r
}

// insert brings a rule that is more specific than the others, before them or after
// them, with a Service that nobody else uses, and takes it back.
func (w *workload) insert() scene {
	s := scene{shape: insert, count: w.changes / 2}
	a, b := w.service(0, 0), w.service(1, 1)
	rest := sceneRule{"rest", a, []string{under("/")}}
	more := sceneRule{"more", a, []string{under("/more")}}
	most := sceneRule{"most", b, []string{under("/more/still")}}
	s.state = func(n int) state {
		rules, still := []sceneRule{rest, more}, expected{"/more/still", "", "more", "a"}
		if n%2 == 1 {
			still = expected{"/more/still", "", "most", "b"}
			if n%4 == 1 {
				rules = []sceneRule{most, rest, more}
			} else {
				rules = []sceneRule{rest, more, most}
			}
		}
		return state{s.manifest(rules, a, b), []expected{still, {"/", "", "rest", "a"}, {"/more", "", "more", "a"}}}
	}
	return s
}

// swap gives a route's Service another endpoint and, every other time, the route
// another Service of a name that was never used, whose cluster is brand-new; the
// Service before goes.
func (w *workload) swap() scene {
	s := scene{shape: serviceSwap, count: w.changes}
	s.state = func(n int) state {
		to := w.service(n/2, n%2)
		return state{
			s.manifest([]sceneRule{{"all", to, []string{under("/")}}}, to),
			[]expected{{"/", "", "all", w.backends[n%2].name}},
		}
	}
	return s
}
