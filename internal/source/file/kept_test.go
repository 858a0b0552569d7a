package file

import (
	"bytes"
	"encoding/base64"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/file/journal"
)

// life is what one process after another knows of directory "in", with a state directory
// that outlives each.
type life struct {
	t    *testing.T
	opts Options
	dir  string
	*state
	held map[string]source.Object // what consumers hold, by key
}

func newLife(t *testing.T) *life {
	t.Helper()
	t.Chdir(t.TempDir())
	l := &life{t: t, opts: Options{Paths: []string{"in"}}, dir: t.TempDir()}
	if err := os.Mkdir("in", 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.kill() })
	return l
}

// kill ends the process as a crash would.
func (l *life) kill() {
	if l.state != nil {
		l.kept.close()
		l.state = nil
	}
}

// start begins the next process and reads everything.
func (l *life) start() []string {
	l.t.Helper()
	l.kill()
	l.state = newState(newSource(l.t, l.opts))
	k := openKeeper(l.dir, slog.New(slog.NewTextHandler(testLog{l.t}, nil)))
	if k == nil {
		l.t.Fatal("nothing is kept")
	}
	l.keep(k)
	l.held = map[string]source.Object{}
	return l.scan()
}

type testLog struct{ t *testing.T }

func (l testLog) Write(text []byte) (int, error) {
	l.t.Log(string(bytes.TrimSpace(text)))
	return len(text), nil
}

// scan looks at the files again, and returns all problems there are.
func (l *life) scan() []string {
	l.t.Helper()
	batch, err := l.scanAll(l.t.Context(), nil)
	if err != nil {
		l.t.Fatal(err)
	}
	l.save()
	for _, o := range batch.Set {
		l.held[source.KeyOf(o).String()] = o
	}
	for _, key := range batch.Deleted {
		delete(l.held, key.String())
	}
	var problems []string
	for _, list := range l.reported {
		for _, p := range list {
			text := p.Error()
			if p.Stale {
				text += " (stale)"
			}
			problems = append(problems, text)
		}
	}
	slices.Sort(problems)
	return problems
}

// holds checks which objects are in force: their names, with a value that config has.
func (l *life) holds(what string, want ...string) {
	l.t.Helper()
	var got []string
	for key, o := range l.held {
		if value := o.GetLabels()["value"]; value != "" {
			key += "=" + value
		}
		got = append(got, strings.TrimPrefix(key, "ConfigMap default/"))
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		l.t.Errorf("%s: %q are in force, want %q", what, got, want)
	}
}

// thing is a ConfigMap of a version.
func thing(name, version string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", labels: {value: \"" + version + "\"}}\n"
}

// broken is the same with a mistake in it.
func broken(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", labels: {value: broken}}\ndata: [1]\n"
}

const noYAML = "apiVersion: v1\nkind: {"

// What was in force when a process ended is in force in the next one, whatever became of
// the text; what was deleted meanwhile, or before, is gone for good.
func TestKept(t *testing.T) {
	for name, c := range map[string]struct {
		before, after map[string]string
		remove        []string
		want          []string
		stale         int
	}{
		"nothing changes":      {before: map[string]string{"a": thing("a", "1")}, want: []string{"a=1"}},
		"an object is broken":  {before: map[string]string{"a": thing("a", "1")}, after: map[string]string{"a": broken("a")}, want: []string{"a=1"}, stale: 1},
		"no YAML":              {before: map[string]string{"a": thing("a", "1")}, after: map[string]string{"a": noYAML}, want: []string{"a=1"}, stale: 1},
		"one document of two":  {before: map[string]string{"a": thing("a", "1") + "---\n" + thing("b", "1")}, after: map[string]string{"a": noYAML + "\n---\n" + thing("b", "2")}, want: []string{"a=1", "b=2"}, stale: 1},
		"removed from a file":  {before: map[string]string{"a": thing("a", "1") + "---\n" + thing("b", "1")}, after: map[string]string{"a": thing("a", "1")}, want: []string{"a=1"}},
		"an emptied file":      {before: map[string]string{"a": thing("a", "1"), "b": thing("b", "1")}, after: map[string]string{"a": ""}, want: []string{"b=1"}},
		"a deleted file":       {before: map[string]string{"a": thing("a", "1"), "b": thing("b", "1")}, remove: []string{"a"}, want: []string{"b=1"}},
		"moved and broken":     {before: map[string]string{"a": thing("a", "1")}, remove: []string{"a"}, after: map[string]string{"b": broken("a")}, want: []string{"a=1"}, stale: 1},
		"another one's broken": {before: map[string]string{"a": thing("a", "1")}, after: map[string]string{"a": thing("a", "1"), "b": broken("a")}, want: []string{"a=1"}},
		"edited and broken":    {before: map[string]string{"a": thing("a", "1"), "b": thing("b", "1")}, after: map[string]string{"a": thing("a", "2"), "b": broken("b")}, want: []string{"a=2", "b=1"}, stale: 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			put := func(files map[string]string) {
				for name, text := range files {
					write(t, "in/"+name+".yaml", text)
				}
			}
			put(c.before)
			l.start()
			l.kill()
			put(c.after)
			for _, name := range c.remove {
				if err := os.Remove("in/" + name + ".yaml"); err != nil {
					t.Fatal(err)
				}
			}
			// A third process finds what the second one has found.
			for _, what := range []string{"second process", "third process"} {
				stale := 0
				for _, p := range l.start() {
					if strings.HasSuffix(p, "(stale)") {
						stale++
					}
				}
				l.holds(what, c.want...)
				if stale != c.stale {
					t.Errorf("%s: %d problems say that an earlier version is in force, want %d: %q", what, stale, c.stale, l.reported)
				}
			}
			// What is gone does not come back with a mistake.
			for _, name := range c.remove {
				write(t, "in/"+name+".yaml", noYAML)
			}
			l.start()
			l.holds("after a mistake", c.want...)
		})
	}
}

// What is broken while a process runs is kept as well, through any number of processes, and
// so is what is deleted.
func TestKeptWhileRunning(t *testing.T) {
	l := newLife(t)
	write(t, "in/a.yaml", thing("a", "1")+"---\n"+thing("gone", "1"))
	l.start()
	write(t, "in/a.yaml", thing("a", "2"))
	l.scan()
	write(t, "in/a.yaml", broken("a"))
	l.scan()
	l.holds("first process", "a=2")
	write(t, "in/b.yaml", broken("gone"))
	l.start()
	l.holds("second process", "a=2")
	write(t, "in/a.yaml", noYAML)
	l.scan()
	l.start()
	l.holds("third process", "a=2")
	write(t, "in/a.yaml", thing("a", "3"))
	l.start()
	l.holds("fourth process", "a=3")
}

// A directory or a file that can't be read says nothing about what is in it.
func TestKeptUnread(t *testing.T) {
	l := newLife(t)
	write(t, "in/a.yaml", thing("a", "1"))
	l.start()
	if err := os.Rename("in", "elsewhere"); err != nil {
		t.Fatal(err)
	}
	if p := l.start(); len(p) != 1 || !strings.HasSuffix(p[0], "(stale)") {
		t.Errorf("problems are %q", p)
	}
	l.holds("without the directory", "a=1")
	if err := os.Mkdir("in", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("in/sub", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/nowhere/at/all", "in/a.yaml"); err != nil {
		t.Fatal(err)
	}
	l.start()
	l.holds("with a link that leads nowhere", "a=1")
	if err := os.Remove("in/a.yaml"); err != nil {
		t.Fatal(err)
	}
	l.start()
	l.holds("without the file")
	write(t, "in/a.yaml", broken("a"))
	l.start()
	l.holds("broken and new")
}

// What needs a channel that the process doesn't read is not in force, and comes back with it.
func TestKeptOfAnotherChannel(t *testing.T) {
	const route = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: guard}
spec:
  parentRefs: [{name: gw}]
  rules:
  - filters: [{type: ExternalAuth, externalAuth: {protocol: HTTP, http: {}, backendRef: {name: auth, port: 80}}}]
`
	l := newLife(t)
	write(t, "in/a.yaml", route)
	for _, experimental := range []bool{true, false, true} {
		l.opts.Experimental = experimental
		p := strings.Join(l.start(), "\n")
		if experimental {
			l.holds("with the channel", "HTTPRoute default/guard")
		} else if l.holds("without"); !strings.Contains(p, "--experimental") || strings.Contains(p, "stale") {
			t.Errorf("problems are %s", p)
		}
	}
}

// closedPolicy is a policy with a mistake, of which the targets can be read.
const closedPolicy = `apiVersion: gatehouse.dev/v1alpha1
kind: AuthPolicy
metadata: {name: guard, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]
  authentication: {a: {basic: {secretRef: {name: users}}}}
`

// A policy that guards and never was valid is in force without rules, through restarts, until it is
// valid or gone.
func TestKeptStandIn(t *testing.T) {
	l := newLife(t)
	write(t, "in/a.yaml", strings.Replace(closedPolicy, "basic", "basc", 1))
	stands := func(what string, rules int) {
		t.Helper()
		p, ok := l.held["AuthPolicy default/guard"].(*v1alpha1.AuthPolicy)
		if !ok || len(p.Spec.TargetRefs) != 1 || p.Spec.TargetRefs[0].Name != "gw" || len(p.Spec.Authentication) != rules || p.CreationTimestamp.Year() != 2026 {
			t.Errorf("%s: %+v is in force", what, p)
		}
	}
	if p := l.start(); len(p) != 1 || !strings.Contains(p[0], "basc: unknown field: did you mean basic? Until it is valid, nobody passes where it is for") {
		t.Errorf("problems are %q", p)
	}
	stands("never valid", 0)
	write(t, "in/a.yaml", noYAML)
	l.scan()
	stands("and then no YAML", 0)
	l.start()
	stands("in another process", 0)
	write(t, "in/a.yaml", closedPolicy)
	if p := l.scan(); len(p) > 0 {
		t.Error(p)
	}
	stands("valid", 1)
	write(t, "in/a.yaml", strings.Replace(closedPolicy, "basic", "basc", 1))
	l.scan()
	stands("broken", 1)
	l.start()
	stands("broken, in another process", 1)
	write(t, "in/a.yaml", thing("a", "1"))
	l.scan()
	l.holds("gone", "a=1")
}

// TestKeptSecrets protects keys that have been replaced or removed: nothing of them stays
// in the state directory, also if that happened while no process ran.
func TestKeptSecrets(t *testing.T) {
	l := newLife(t)
	secret := func(word string) {
		t.Helper()
		write(t, "in/secret.yaml", "{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {key: "+word+"}}\n")
	}
	kept := func(when, word string, want bool) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(l.dir, "kept"))
		if err != nil {
			t.Fatal(err)
		}
		encoded := base64.StdEncoding.EncodeToString([]byte(word))
		if got := bytes.Contains(text, []byte(word)) || bytes.Contains(text, []byte(encoded)); got != want {
			t.Errorf("%s, %q is kept: %t", when, word, got)
		}
	}
	secret("first-word")
	l.start()
	kept("at first", "first-word", true)
	secret("second-word")
	l.scan()
	kept("replaced", "first-word", false)
	kept("replaced", "second-word", true)
	l.kill()
	secret("third-word")
	l.start()
	kept("replaced between two processes", "second-word", false)
	l.kill()
	if err := os.Remove("in/secret.yaml"); err != nil {
		t.Fatal(err)
	}
	l.start()
	kept("removed", "third-word", false)
}

// What a process was killed before it had erased it, the next one doesn't leave either.
func TestKeptSecretsAfterKill(t *testing.T) {
	for _, now := range []string{"replaced", "removed"} {
		t.Run(now, func(t *testing.T) {
			l := newLife(t)
			write(t, "in/secret.yaml", "{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {key: a}}\n")
			l.start()
			l.kill()
			j, records, _, err := journal.Open(l.dir)
			if err != nil || len(records) != 1 {
				t.Fatalf("%d records, %v", len(records), err)
			}
			old, last := records[0], records[0]
			old.Object = []byte(`{"data":{"key":"first-word"}}`)
			last.Forgotten = now == "removed"
			if err := errors.Join(j.Append(slices.Values([]journal.Record{old, last})), j.Close()); err != nil {
				t.Fatal(err)
			}
			l.start()
			if text, err := os.ReadFile(filepath.Join(l.dir, "kept")); err != nil || bytes.Contains(text, []byte("first-word")) {
				t.Errorf("something of it is left: %v", err)
			}
		})
	}
}
