package standalone

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/file"
)

// site takes everything on its host, and is older by its name than what guards a part of it.
const site = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata:
  name: web
  namespace: infra
spec:
  gatewayClassName: gatehouse
  listeners:
  - name: http
    port: 80
    protocol: HTTP
    allowedRoutes: {namespaces: {from: All}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: a-site
  namespace: infra
spec:
  parentRefs:
  - name: web
  hostnames: [site.example]
  rules:
  - filters:
    - type: RequestRedirect
      requestRedirect: {hostname: open.example}
`

// guard asks for a password, so to speak, before a part of the site.
const guard = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: guard
  namespace: infra
spec:
  parentRefs:
  - name: web
    kind: Gateway
  hostnames:
  - site.example
  rules:
  - matches:
    - path:
        value: /admin
    filters:
    - type: RequestRedirect
      requestRedirect: {hostname: login.example}
`

// guarded is a directory with a site, as a process serves it.
type guarded struct {
	*testing.T
	dir   string
	state string
	p     *pipeline.Pipeline
	mu    sync.Mutex
	told  map[string][]source.Problem
	edits int // how many there were, as beacon says to the source
	seen  int // of them, as the source has said
	stop  func()
}

// beacon is an object that means nothing. A scan that has read it has read what was written
// before it.
const beacon = "beacon"

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	t.Parallel()
	g := &guarded{T: t, dir: t.TempDir(), state: t.TempDir(), stop: func() {}}
	t.Cleanup(func() { g.stop() })
	g.put("site.yaml", site)
	return g
}

func (g *guarded) put(name, text string) {
	g.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, name), []byte(text), 0o600); err != nil {
		g.Fatal(err)
	}
}

// edit writes a file, and waits for what that means.
func (g *guarded) edit(name, text string) {
	g.Helper()
	g.put(name, text)
	g.await()
}

func (g *guarded) remove(name string) {
	g.Helper()
	if err := os.Remove(filepath.Join(g.dir, name)); err != nil {
		g.Fatal(err)
	}
	g.await()
}

// await waits until what was written has been read, whether or not it means anything.
func (g *guarded) await() {
	g.Helper()
	g.edits++
	whole := filepath.Join(g.state, beacon)
	text := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: infra}\ndata: {edits: %q}\n", beacon, strconv.Itoa(g.edits))
	if err := os.WriteFile(whole, []byte(text), 0o600); err != nil {
		g.Fatal(err)
	}
	if err := os.Rename(whole, filepath.Join(g.dir, beacon+".yaml")); err != nil {
		g.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		g.mu.Lock()
		seen := g.seen
		g.mu.Unlock()
		if seen == g.edits {
			return
		}
		if time.Now().After(end) {
			g.Fatal("what was written has not been read")
		}
	}
}

// take applies a batch.
func (g *guarded) take(b source.Batch) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.p.Apply(b)
	maps.Copy(g.told, b.Problems)
	for _, o := range b.Set {
		if m, ok := o.(*corev1.ConfigMap); ok && m.Name == beacon {
			g.seen, _ = strconv.Atoi(m.Data["edits"])
		}
	}
}

// start begins the next process.
func (g *guarded) start() {
	g.Helper()
	g.stop()
	options, err := pipelineOptions([]string{"127.0.0.1"}, 0, ClientOptions{})
	if err != nil {
		g.Fatal(err)
	}
	files, err := file.New(file.Options{Paths: []string{g.dir}, StateDir: g.state, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		g.Fatal(err)
	}
	g.p, g.told = pipeline.New(options), map[string][]source.Problem{}
	ctx, cancel := context.WithCancel(g.Context())
	done, came := make(chan error, 1), make(chan struct{})
	go func() {
		first := sync.OnceFunc(func() { close(came) })
		done <- files.Run(ctx, func(b source.Batch) {
			g.take(b)
			first()
		})
	}()
	g.stop = func() {
		cancel()
		if err := <-done; err != nil {
			g.Error(err)
		}
		g.stop = func() {}
	}
	<-came
}

// problems are all that is told.
func (g *guarded) problems() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var texts []string
	for _, list := range g.told {
		for _, p := range list {
			texts = append(texts, strings.TrimPrefix(p.Error(), g.dir+"/"))
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, "\n")
}

// answer is where a request is redirected to, or "500", or "404".
func (g *guarded) answer(host, path string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var best *ir.Host
	g.p.Engine.View(func(c *flow.Ctx) {
		for k, h := range flow.All(c, g.p.Hosts) {
			fits := k.Domain == host || k.Domain == "*" || strings.HasPrefix(k.Domain, "*.") && strings.HasSuffix(host, k.Domain[1:])
			if fits && (best == nil || len(k.Domain) > len(best.Domain)) {
				best = h
			}
		}
	})
	if best == nil {
		return "404"
	}
	for _, r := range best.Rules {
		if !takes(g.T, r.Match, path) {
			continue
		}
		if r.Redirect != nil {
			return r.Redirect.Hostname
		}
		return "500"
	}
	return "404"
}

func takes(t *testing.T, m ir.Match, path string) bool {
	t.Helper()
	if m.Method != "" && m.Method != "GET" {
		return false
	}
	for _, h := range m.Headers {
		if h.Name != "host" {
			return false
		}
	}
	switch m.Path.Kind {
	case ir.PathPrefix:
		return m.Path.Value == "/" || path == m.Path.Value || strings.HasPrefix(path, m.Path.Value+"/")
	case ir.PathExact:
		return path == m.Path.Value
	case ir.PathRegex:
		re, err := regexp.Compile("^(?:" + m.Path.Value + ")$")
		if err != nil {
			t.Fatal(err)
		}
		return re.MatchString(path)
	default:
		return false
	}
}

// held checks that what the guard guards is not served by the site, but by the guard where
// that was there before.
func (g *guarded) held(want string) {
	g.Helper()
	if got := g.answer("site.example", "/admin/users"); got != want {
		g.Errorf("/admin answers %s, want %s; problems:\n%s", got, want, g.problems())
	}
}

const (
	open  = "open.example"
	login = "login.example"
)

// TestGuardWithMistakes: a route that is in force stays so while its text has a mistake, and is gone
// where nothing tells that the text is about it. One that never was valid has no effect.
func TestGuardWithMistakes(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"kind: HTTPRoute", "kind: HTTPRout", login},
		{"networking.k8s.io", "networking.k8s.oi", login},
		{"k8s.io/v1", "k8s.io/v2", login},
		{"kind: Gateway", "kind: Gatway", login},
		{"parentRefs:", "parentRef:", login},
		{"spec:", "sepc:", login},
		{"  rules:", "rules:", login},
		{"    - path:\n        value: /admin", "    -", login},
		{"    filters:\n    - type: RequestRedirect\n      requestRedirect: {hostname: login.example}", "    filters:", login},
		{"        value: /admin", "\t\tvalue: /admin", login},
		{"  hostnames:\n", "  hostnames\n", login},
		{guard, guard + "<<<<<<< HEAD\n", login},
		{guard, guard + strings.ReplaceAll(guard, "guard", "other"), login}, // no --- between two
		{guard, "guard", login},
		{"kind: HTTPRoute", "kind:", open},
		{"apiVersion: gateway.networking.k8s.io/v1\n", "", open},
		{"  name: guard\n", "", open},
		{"  name: guard", "  name: Guard_1", open},
		{guard, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n", open},
	} {
		t.Run(c.from+" → "+c.to, func(t *testing.T) {
			text := strings.Replace(guard, c.from, c.to, 1)
			g := newGuarded(t)
			g.put("guard.yaml", guard)
			g.start()
			for range 2 {
				g.edit("guard.yaml", text)
				g.held(c.want)
				g.start()
				g.held(c.want)
			}
			g.stop()
			g.put("guard.yaml", guard)
			g.start()
			g.held(login)
			g.stop()
			g.put("guard.yaml", text)
			g.start()
			g.held(c.want)
			if lines := strings.Split(g.problems(), "\n"); len(lines) > 3 || slices.ContainsFunc(lines, func(line string) bool { return len(line) > 250 }) {
				t.Errorf("problems:\n%s", g.problems())
			}
			g.remove("guard.yaml")
			g.held(open)
			if c.from != guard {
				g.edit("guard.yaml", text)
				g.held(open) // as if it never had been there
			}
		})
	}
}

// TestDeletedBesideMistake: what is deleted is gone, whatever else is wrong in its file.
func TestDeletedBesideMistake(t *testing.T) {
	const another = "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: third, namespace: infra}\nspec: {parentRef: [{name: web}]}\n"
	for name, c := range map[string]struct{ text, want string }{
		"an object that is new":      {another, open},
		"one without a name":         {strings.Replace(another, "name: third, ", "", 1), open},
		"of a kind that is misspelt": {strings.Replace(another, "HTTPRoute", "HTTPRout", 1), open},
		"of any kind":                {"---\nspec: {}\n", open},
		"no YAML":                    {another + "  ]", login},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuarded(t)
			g.put("guard.yaml", guard)
			g.start()
			g.edit("guard.yaml", c.text)
			g.held(c.want)
			g.start()
			g.held(c.want)
		})
	}
}

// TestWrittenNull: what is written as null is as if it were not there, as an API server has it.
func TestWrittenNull(t *testing.T) {
	g := newGuarded(t)
	g.put("guard.yaml", strings.Replace(guard, "  rules:\n", "  useDefaultGateways: null\n  rules:\n", 1))
	g.put("more.yaml", strings.NewReplacer("guard", "more", "/admin", "/more", "  - site.example\n", "", "hostnames:", "hostnames: null").Replace(guard))
	g.start()
	g.held(login)
	if p := g.problems(); strings.Contains(p, "no value") {
		t.Errorf("problems:\n%s", p)
	}
}

// TestCopyTakesNothing: an object of the same name in another place, which somebody has copied
// and forgot to rename, is not in force in place of the one that was there first.
func TestCopyTakesNothing(t *testing.T) {
	stolen := strings.Replace(guard, login, open, 1)
	for name, c := range map[string]struct{ file, text string }{
		"in a file before":    {"a-copy.yaml", stolen},
		"in a file behind":    {"z-copy.yaml", stolen},
		"above it":            {"guard.yaml", stolen + "---\n" + guard},
		"misspelt":            {"a-copy.yaml", strings.Replace(stolen, "HTTPRoute", "HTTPRout", 1)},
		"without a separator": {"a-copy.yaml", stolen + strings.Replace(stolen, "guard", "other", 1)},
	} {
		t.Run(name+", while no process runs", func(t *testing.T) {
			g := newGuarded(t)
			g.put("guard.yaml", guard)
			g.start()
			g.stop()
			g.put(c.file, c.text)
			g.start()
			g.held(login)
			g.start()
			g.held(login)
		})
		t.Run(name, func(t *testing.T) {
			g := newGuarded(t)
			g.put("guard.yaml", guard)
			g.start()
			g.edit(c.file, c.text)
			g.held(login)
			if p := g.problems(); !strings.Contains(p, c.file) {
				t.Errorf("the copy is not told: %q", p)
			}
			g.start()
			g.held(login)
			if c.file == "guard.yaml" {
				return
			}
			// An edit of the first one is one, a mistake in it is one, and so is its end.
			g.edit("guard.yaml", strings.Replace(guard, login, "sso.example", 1))
			g.held("sso.example")
			g.edit("guard.yaml", strings.Replace(guard, "filters:", "filter:", 1))
			g.held("sso.example")
			g.start()
			g.held("sso.example")
		})
	}
}
