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

// edits of the guard that misspell what it is.
func misspelt() map[string]string {
	out := map[string]string{}
	for _, c := range [][2]string{
		{"kind: HTTPRoute", "kind: HTTPRout"},
		{"kind: HTTPRoute", "kind: HttpRoute"},
		{"kind: HTTPRoute", "kind: Route"},
		{"kind: HTTPRoute", "kind:"},
		{"kind: HTTPRoute", "kind: [HTTPRoute]"},
		{"kind: HTTPRoute", "kidn: HTTPRoute"},
		{"kind: HTTPRoute\n", ""},
		{"apiVersion: gateway", "apiVerson: gateway"},
		{"apiVersion: gateway", "apiversion: gateway"},
		{"apiVersion: gateway.networking.k8s.io/v1\n", ""},
		{"networking.k8s.io", "networking.k8s.oi"},
		{"networking.k8s.io", "networkng.k8s.io"},
		{"gateway.networking.k8s.io/v1", "networking.k8s.io/v1"},
		{"gateway.networking.k8s.io/v1", "gateway.networking.k8s.io"},
		{"gateway.networking.k8s.io/v1", "v1"},
		{"k8s.io/v1", "k8s.io/v11"},
		{"k8s.io/v1", "k8s.io/v2"},
		{"k8s.io/v1\nkind: HTTPRoute", "k8s.oi/v1\nkind: HTTPRout"},
		{"metadata:", "metdata:"},
		{"metadata:", "meta:"},
		{"metadata:", "Metadata:"},
		{"  name: guard", "  nme: guard"},
		{"  name: guard\n", ""},
		{"  name: guard", "  name:"},
		{"  name: guard", "  name: 7"},
		{"  name: guard", "  name: {guard: }"},
		{"  name: guard", "  name: Guard_1"},
		{"  name: guard", "  name: guard,"},
		{"  name: guard\n  namespace: infra", "name: guard\nnamespace: infra"},
		{"  name: guard\n  namespace: infra", "  - name: guard\n  - namespace: infra"},
		{"  name: guard\n  namespace: infra", "  name: guard\nnamespace: infra"},
		{"  namespace: infra", "  namespce: infra"},
		{"  namespace: infra", "  namespace: Infra"},
		{"  name: guard\n  namespace: infra\nspec:\n  parentRefs:", "  namespce: infra\nspce:\n  parentRef:"},
		{"kind: Gateway", "kind: Gatway"},
		{"kind: Gateway", "kind: gateway"},
		{"kind: Gateway", "knd: Gateway"},
		{"kind: Gateway", "group: gateway.networking.k8s.oi"},
		{"kind: Gateway", "group: \"\""},
		{"  - name: web", "  - nme: web"},
		{"  - name: web\n    kind: Gateway", "    name: web\n    kind: Gateway"},
		{"  - name: web\n    kind: Gateway", "  - web"},
		{"parentRefs:", "parentRef:"},
		{"spec:\n", ""},
		{"spec:", "sepc:"},
		{"  rules:", "  rulse:"},
		{"  rules:", "rules:"},
		{"  hostnames:\n  - site.example", "  hostnames: site.example"},
		{"  hostnames:\n  - site.example", "  hostname: site.example"},
		{"  hostnames:\n", "    hostnames:\n"},
	} {
		text := strings.Replace(guard, c[0], c[1], 1)
		if text == guard {
			panic(c[0])
		}
		out[c[0]+" → "+c[1]] = text
	}
	return out
}

// TestMisspeltIdentity: whatever one edit misspells of what names a guard, or of what it is
// attached to, what it guards is never served by a wider route.
func TestMisspeltIdentity(t *testing.T) {
	for name, text := range misspelt() {
		t.Run(name, func(t *testing.T) {
			g := newGuarded(t)
			g.put("guard.yaml", text)
			g.start()
			g.held("500")
			if got := g.answer("site.example", "/"); got != open {
				t.Errorf("/ answers %s", got)
			}
			if g.problems() == "" {
				t.Error("nothing is told")
			}
			g.start() // again
			g.held("500")
			g.edit("guard.yaml", guard)
			g.held(login)
			g.edit("guard.yaml", text)
			g.held(login)
			g.start()
			g.held(login)
			g.edit("guard.yaml", guard)
			if p := g.problems(); p != "" {
				t.Error(p)
			}
			// The name goes in the same edit.
			g.edit("guard.yaml", strings.Replace(text, "guard", "gard", 1))
			g.held(login)
			g.start()
			g.held(login)
			g.remove("guard.yaml")
			g.held(open)
		})
	}
}

// TestHalfWritten: what has lost its value, or its place, is not as if it had never been there.
func TestHalfWritten(t *testing.T) {
	for _, c := range [][2]string{
		{"    filters:\n    - type: RequestRedirect\n      requestRedirect: {hostname: login.example}", "    filters:"},
		{"  - site.example", "  - - site.example"},
		{"    filters:\n    -", "    filters:\n    backendRefs:\n    -"},
		{"  rules:\n", "  rules:\n  hostname:\n"},
		{"        value: /admin", "        #value: /admin"},
		{"    - path:\n        value: /admin", "    - path:"},
		{"    - path:\n        value: /admin", "    -"},
		{"    - path:\n        value: /admin", "    - path:\n      value: /admin"},
		{"    - path:\n        value: /admin", "    - value: /admin"},
		{"    - path:\n        value: /admin", "      path:\n        value: /admin"},
		{"    - path:\n        value: /admin", "    - path: /admin"},
		{"    - path:\n        value: /admin", "    - /admin"},
		{"  - matches:\n    - path:", "  - path:"},
		{"  - matches:", "    matches:"},
		{"      requestRedirect: {", "    - requestRedirect: {"},
		{"    - type: RequestRedirect", "      type: RequestRedirect"},
		{"    - type: RequestRedirect", "    - typ: RequestRedirect"},
	} {
		t.Run(c[0]+" → "+c[1], func(t *testing.T) {
			text := strings.Replace(guard, c[0], c[1], 1)
			if text == guard {
				t.Fatal("nothing is edited")
			}
			g := newGuarded(t)
			g.put("guard.yaml", text)
			g.start()
			g.held("500")
			g.start()
			g.held("500")
			g.edit("guard.yaml", guard)
			g.held(login)
			g.edit("guard.yaml", text)
			g.held(login)
			g.start()
			g.held(login)
			g.edit("guard.yaml", strings.Replace(text, "guard", "gard", 1))
			if got := g.answer("site.example", "/admin/users"); got == open {
				g.Errorf("/admin is open; problems:\n%s", g.problems())
			}
		})
	}
}

// TestBeginning: of a file only the beginning has been written yet, which may well be valid: a
// route that goes nowhere, a policy that lets everybody pass.
func TestBeginning(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		closed func(*guarded)
	}{
		"route": {guard, func(g *guarded) {
			if g.answer("site.example", "/admin/users") == open {
				g.Errorf("/admin is open; problems:\n%s", g.problems())
			}
		}},
		"policy": {guardPolicy, (*guarded).closed},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuarded(t)
			g.put("guard.yaml", c.text)
			g.start()
			for n := range c.text {
				if n == 0 {
					continue // the guard is deleted
				}
				g.edit("guard.yaml", c.text[:n])
				c.closed(g)
				if c.text[n-1] == '\n' {
					g.start()
					c.closed(g)
				}
				if t.Failed() {
					t.Fatalf("after\n%s", c.text[:n])
				}
				g.edit("guard.yaml", c.text)
			}
		})
	}
}

// TestBeginningOfRenamed: the route was renamed, and is half-written after a mistake.
func TestBeginningOfRenamed(t *testing.T) {
	g := newGuarded(t)
	g.put("guard.yaml", strings.Replace(guard, "name: guard", "name: guards", 1))
	g.start()
	g.held(login)
	g.edit("guard.yaml", strings.Replace(guard, "filters:", "filter:", 1))
	beginning, _, _ := strings.Cut(guard, "  rules:")
	g.edit("guard.yaml", beginning)
	if g.answer("site.example", "/admin/users") == open {
		t.Errorf("/admin is open; problems:\n%s", g.problems())
	}
}

// TestEmptyNamespace: a namespace that is half-written doesn't move a guard to another one.
func TestEmptyNamespace(t *testing.T) {
	g := newGuarded(t)
	g.put("guard.yaml", guard)
	g.start()
	g.edit("guard.yaml", strings.Replace(guard, "namespace: infra", "namespace:", 1))
	g.held(login)
	g.start()
	g.held(login)
	g.remove("guard.yaml")
	g.held(open)
	g.edit("guard.yaml", strings.Replace(guard, "namespace: infra", "namespace:", 1))
	if p := g.problems(); !strings.Contains(p, "of spec.parentRefs[0] nothing can be read: until it can be read, what it was to guard there may be open") {
		t.Errorf("problems:\n%s", p)
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

// TestNoYAML: text that can't be parsed guards what it seems to say.
func TestNoYAML(t *testing.T) {
	other := strings.NewReplacer("guard", "other", "/admin", "/other").Replace(guard)
	for _, c := range [][2]string{
		{"  hostnames:\n  - site.example", "hostnames:\n- site.example"},
		{"  parentRefs:\n", "parentRefs:\n"},
		{"  rules:\n  - matches:", "  matches:"},
		{"  hostnames:\n", "   hostnames:\n"},
		{"apiVersion:", " apiVersion:"},
		{"apiVersion:", "- apiVersion:"},
		{"metadata:", "- metadata:"},
		{"metadata:", "   metadata:"},
		{"    kind: Gateway", "kind: Gateway"},
		{"    kind: Gateway", "    kind Gateway"},
		{"    kind: Gateway", "       kind: Gateway"},
		{"- name: web", "- name web"},
		{"  parentRefs:\n", ""},
		{"  hostnames:\n", "  hostnames\n"},
		{"  rules:\n", "  rules\n"},
		{"    - path:", "    - path"},
		{"    - path:", "   - path:"},
		{"        value: /admin", "\t\tvalue: /admin"},
		{"        value: /admin", "        value: \"/admin"},
		{"        value: /admin", "        value: /admin\n        value2"},
		{"        value: /admin", "        value: /admin: no"},
		{"        value: /admin", "       value: /admin\n        type: PathPrefix"},
		{"        value: /admin", "        value:/admin\n        type: PathPrefix"},
		{"  - site.example", "  - site.example\n  - *.site.example"},
		{"metadata:\n", ""},
		{"  name: guard\n", " name: guard\n"},
		{"{hostname: login.example}", "{hostname: login.example"},
		{"{hostname: login.example}", "{hostname: login.example}}"},
		{"    filters:", "   filters:"},
		{"    filters:", "     filters:"},
		{guard, guard + "--\n" + other},
		{guard, guard + "----\n" + other},
		{guard, guard + " ---\n" + other},
		{guard, guard + "<<<<<<< HEAD\n"},
		{guard, guard + other + "     x"},
	} {
		t.Run(c[0]+" → "+c[1], func(t *testing.T) {
			text := strings.Replace(guard, c[0], c[1], 1)
			g := newGuarded(t)
			g.put("guard.yaml", text)
			g.start()
			g.held("500")
			g.start()
			g.held("500")
			if strings.Contains(text, "/other") && g.answer("site.example", "/other") != "500" {
				g.Errorf("/other is open; problems:\n%s", g.problems())
			}
			if p := g.problems(); !strings.Contains(p, "not YAML") || strings.Count(p, "\n") != strings.Count(text, "HTTPRoute")-1 {
				g.Errorf("problems:\n%s", p)
			}
			g.edit("guard.yaml", guard)
			g.held(login)
			g.edit("guard.yaml", text)
			g.held(login)
			g.start()
			g.held(login)
			g.edit("guard.yaml", strings.Replace(text, "name: guard", "name: gard", 1))
			if got := g.answer("site.example", "/admin/users"); got == open {
				g.Errorf("/admin is open; problems:\n%s", g.problems())
			}
		})
	}
}

// TestMissingSeparator: where the line between two objects is missing, neither is lost, and the
// line is told.
func TestMissingSeparator(t *testing.T) {
	other := strings.NewReplacer("guard", "other", "/admin", "/other").Replace(guard)
	both := func(g *guarded, want string) {
		g.Helper()
		g.held(want)
		if got := g.answer("site.example", "/other"); got != want {
			g.Errorf("/other answers %s, want %s; problems:\n%s", got, want, g.problems())
		}
		for _, told := range []string{":19: HTTPRoute infra/guard: another object begins here", ":19: HTTPRoute infra/other: --- is missing"} {
			if p := g.problems(); strings.Count(p, told) != 1 || strings.Count(p, "\n") != 1 {
				g.Errorf("%q is not all that is told:\n%s", told, p)
			}
		}
	}
	for name, text := range map[string]string{
		"":          guard + other,
		"kind last": guard + strings.Replace(strings.Replace(other, "kind: HTTPRoute\n", "", 1), "spec:", "kind: HTTPRoute\nspec:", 1),
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuarded(t)
			g.put("guard.yaml", text)
			g.start()
			both(g, "500")
			g.edit("guard.yaml", guard+"---\n"+other)
			g.held(login)
			g.edit("guard.yaml", text)
			both(g, login)
			g.start()
			both(g, login)
		})
	}
	t.Run("in a List", func(t *testing.T) {
		g := newGuarded(t)
		indented := "  " + strings.ReplaceAll(strings.TrimSpace(guard+other), "\n", "\n  ") + "\n"
		g.put("guard.yaml", "apiVersion: v1\nkind: List\nitems:\n-"+indented[1:])
		g.start()
		g.held("500")
		if p := g.problems(); !strings.Contains(p, ":22: HTTPRoute infra/other: - is missing before this object") {
			t.Error(p)
		}
	})
}

// TestCopyTakesNothing: an object of the same name in another place, which somebody has copied
// and forgot to rename, is not in force in place of the one that was there first.
func TestCopyTakesNothing(t *testing.T) {
	stolen := strings.Replace(guard, login, open, 1)
	for name, c := range map[string]struct{ file, text string }{
		"in a file before":      {"a-copy.yaml", stolen},
		"in a file behind":      {"z-copy.yaml", stolen},
		"above it":              {"guard.yaml", stolen + "---\n" + guard},
		"misspelt":              {"a-copy.yaml", strings.Replace(stolen, "HTTPRoute", "HTTPRout", 1)},
		"another one, misspelt": {"a-copy.yaml", strings.Replace(stolen, "name: guard", "nme: guard", 1)},
		"without a separator":   {"a-copy.yaml", stolen + strings.Replace(stolen, "guard", "other", 1)},
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
