package file

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// watched is a running source with all that it has said so far.
type watched struct {
	t        *testing.T
	batches  chan source.Batch
	objects  map[string]source.Object
	problems map[string][]source.Problem
	last     source.Batch
}

// watch runs a source over paths, relative to a fresh directory that becomes the
// working directory, and waits for its first batch.
func watch(t *testing.T, setup func(*Source), paths ...string) *watched {
	t.Helper()
	s := newSource(t, Options{Paths: paths})
	s.timing.check = 50 * time.Millisecond
	if setup != nil {
		setup(s)
	}
	w := &watched{
		t: t, batches: make(chan source.Batch),
		objects: map[string]source.Object{}, problems: map[string][]source.Problem{},
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- s.Run(ctx, func(b source.Batch) {
			select {
			case w.batches <- b:
			case <-ctx.Done():
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	w.next()
	return w
}

// next waits for a batch and applies it.
func (w *watched) next() source.Batch {
	w.t.Helper()
	select {
	case b := <-w.batches:
		for _, o := range b.Set {
			w.objects[keyOf(o).String()] = o
		}
		for _, key := range b.Deleted {
			delete(w.objects, key.String())
		}
		for name, problems := range b.Problems {
			if len(problems) == 0 {
				delete(w.problems, name)
			} else {
				w.problems[name] = problems
			}
		}
		w.last = b
		return b
	case <-time.After(30 * time.Second):
		w.t.Fatalf("no batch came; objects %v, problems:\n%s", w.names(), showProblems(w.problems))
		panic("unreachable")
	}
}

func (w *watched) until(what string, reached func() bool) {
	w.t.Helper()
	for !reached() {
		w.next()
	}
}

func (w *watched) names() []string { return slices.Sorted(maps.Keys(w.objects)) }

func (w *watched) value(name string) string {
	o := w.objects["ConfigMap default/"+name]
	if o == nil {
		return "(none)"
	}
	return o.GetLabels()["v"]
}

// untilValue waits for a ConfigMap with the label v.
func (w *watched) untilValue(name, v string) {
	w.t.Helper()
	w.until(name+"="+v, func() bool { return w.value(name) == v })
}

func (w *watched) untilProblem(file, text string) source.Problem {
	w.t.Helper()
	var found source.Problem
	w.until(text, func() bool {
		for _, p := range w.problems[file] {
			if strings.Contains(p.Error(), text) {
				found = p
				return true
			}
		}
		return false
	})
	return found
}

func config(name, v string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  labels: {v: %q}\n", name, v)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestEditInPlace(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "in/a.yaml", config("a", "1"))
	w := watch(t, nil, "in")
	write(t, "in/a.yaml", config("a", "2"))
	w.untilValue("a", "2")
}

// vim with backupcopy=no: the file becomes the backup, a new one takes the name.
func TestEditByBackupAndRename(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "in/a.yaml", config("a", "1"))
	w := watch(t, nil, "in")
	write(t, "in/4913", "")
	must(t, os.Remove("in/4913"))
	must(t, os.Rename("in/a.yaml", "in/a.yaml~"))
	write(t, "in/a.yaml", config("a", "2"))
	must(t, os.Remove("in/a.yaml~"))
	w.next()
	if len(w.last.Deleted) > 0 || w.value("a") != "2" {
		t.Errorf("batch %+v", w.last)
	}
}

// Most other programs: a temporary file is renamed over the old one.
func TestEditByRenameOver(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "in/a.yaml", config("a", "1"))
	write(t, "in/b.yaml", config("b", "1"))
	w := watch(t, nil, "in", "in/b.yaml")
	for _, name := range []string{"a", "b"} {
		write(t, "in/.tmp", config(name, "2"))
		must(t, os.Rename("in/.tmp", "in/"+name+".yaml"))
		w.untilValue(name, "2")
	}
}

func TestExplicitFile(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "conf/manifest", config("a", "1"))
	w := watch(t, nil, "conf/manifest")
	write(t, "conf/manifest", config("a", "2"))
	w.untilValue("a", "2")

	must(t, os.Remove("conf/manifest"))
	if p := w.untilProblem("conf/manifest", "no such file"); p.Reason != source.Unread || !p.Stale {
		t.Errorf("problem %+v", p)
	}
	if w.value("a") != "2" {
		t.Error("the object went away with the file")
	}
	write(t, "conf/manifest", config("a", "3"))
	w.until("heal", func() bool { return w.value("a") == "3" && len(w.problems) == 0 })
}

func TestFilesComeAndGo(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "in/a.yaml", config("a", "1"))
	w := watch(t, nil, "in")
	write(t, "in/b.yml", config("b", "1"))
	w.untilValue("b", "1")
	write(t, "in/x/y/c.json", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","labels":{"v":"1"}}}`)
	w.untilValue("c", "1")
	write(t, "in/x/y/c.json", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","labels":{"v":"2"}}}`)
	w.untilValue("c", "2")
	must(t, os.Rename("in/x", "in/z"))
	write(t, "in/z/y/d.yaml", config("d", "1"))
	w.untilValue("d", "1")
	if w.value("c") != "2" {
		t.Error("an object was lost when its directory was renamed")
	}
	must(t, os.RemoveAll("in/z"))
	w.until("gone", func() bool { return len(w.objects) == 2 })
	must(t, os.Remove("in/b.yml"))
	w.until("gone", func() bool { return len(w.objects) == 1 })
}

// A directory that is in one that was renamed is watched under its new path, whether or not there is another one
// under the former.
func TestDirectoryInARenamedOne(t *testing.T) {
	for name, again := range map[string]bool{"gone": false, "another": true} {
		for _, to := range []string{"in/a", "in/z"} {
			t.Run(name+" "+to, func(t *testing.T) {
				t.Chdir(t.TempDir())
				write(t, "in/x/y/c.yaml", config("c", "1"))
				w := watch(t, nil, "in")
				must(t, os.Rename("in/x", to))
				if again {
					write(t, "in/x/y/e.yaml", config("e", "1"))
				}
				write(t, "in/scanned.yaml", config("scanned", "1"))
				w.untilValue("scanned", "1")
				w.until("all is read", func() bool { return w.value("c") == "1" && (!again || w.value("e") == "1") })
				write(t, to+"/y/d.yaml", config("d", "1"))
				w.untilValue("d", "1")
				if again {
					write(t, "in/x/y/e.yaml", config("e", "2"))
					w.untilValue("e", "2")
				}
			})
		}
	}
}

// A mounted ConfigMap: visible names link through ..data, which is swapped.
func TestDataSymlinkSwap(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "in/..1/a.yaml", config("a", "1"))
	must(t, os.Symlink("..1", "in/..data"))
	must(t, os.Symlink("..data/a.yaml", "in/a.yaml"))
	w := watch(t, nil, "in")
	if w.value("a") != "1" {
		t.Fatalf("objects %v", w.names())
	}
	for i := 2; i < 5; i++ {
		next := fmt.Sprintf("..%d", i)
		write(t, filepath.Join("in", next, "a.yaml"), config("a", fmt.Sprint(i)))
		must(t, os.Symlink(next, "in/..data_tmp"))
		must(t, os.Rename("in/..data_tmp", "in/..data"))
		must(t, os.RemoveAll(fmt.Sprintf("in/..%d", i-1)))
		w.untilValue("a", fmt.Sprint(i))
		if len(w.last.Deleted) > 0 {
			t.Errorf("swap %d deleted %v", i, w.last.Deleted)
		}
	}
}

func TestSymlinks(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "elsewhere/a.yaml", config("a", "1"))
	write(t, "dir/b.yaml", config("b", "1"))
	must(t, os.MkdirAll("in/deep", 0o755))
	must(t, os.Symlink("../elsewhere/a.yaml", "in/a.yaml"))
	must(t, os.Symlink("../dir", "in/linked"))
	must(t, os.Symlink("../../in", "in/deep/loop"))
	must(t, os.Symlink("nowhere.yaml", "in/dangling.yaml"))
	w := watch(t, nil, "in")
	if got := w.names(); len(got) != 2 {
		t.Fatalf("objects %v", got)
	}
	if len(w.problems["in/dangling.yaml"]) != 1 {
		t.Errorf("problems %v", w.problems)
	}
	write(t, "elsewhere/a.yaml", config("a", "2"))
	w.untilValue("a", "2")
	write(t, "dir/b.yaml", config("b", "2"))
	w.untilValue("b", "2")
	write(t, "in/nowhere.yaml", config("c", "1"))
	w.until("link heals", func() bool { return w.value("c") == "1" && len(w.problems) == 0 })
}

func TestDirectoryVanishesAndReturns(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "top/in/a.yaml", config("a", "1"))
	w := watch(t, nil, "top/in")
	must(t, os.RemoveAll("top"))
	if p := w.untilProblem("top/in", "no such file"); !p.Stale {
		t.Errorf("problem %+v", p)
	}
	if w.value("a") != "1" {
		t.Error("the object went away with the directory")
	}
	write(t, "top/in/a.yaml", config("a", "2"))
	w.until("return", func() bool { return w.value("a") == "2" && len(w.problems) == 0 })
	write(t, "top/in/b.yaml", config("b", "1"))
	w.untilValue("b", "1")
}

// Nothing raises an event when a parent's parent is renamed.
func TestParentIsRenamed(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "x/y/in/a.yaml", config("a", "1"))
	w := watch(t, nil, "x/y/in")
	must(t, os.Rename("x", "z"))
	w.untilProblem("x/y/in", "no such file")
	write(t, "x/y/in/a.yaml", config("a", "2"))
	w.untilValue("a", "2")
}

func TestLastValidVersionStays(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "in/a.yaml", config("a", "1")+"---\n"+config("b", "1"))
	w := watch(t, nil, "in")

	write(t, "in/a.yaml", config("a", "1")+"wrong: field\n---\n"+config("b", "2"))
	p := w.untilProblem("in/a.yaml", "wrong")
	if p.Line != 6 || p.Field != "wrong" || p.Key.Name.Name != "a" || !p.Stale {
		t.Errorf("problem %+v", p)
	}
	if w.value("a") != "1" || w.value("b") != "2" {
		t.Errorf("a=%s b=%s", w.value("a"), w.value("b"))
	}

	write(t, "in/a.yaml", config("a", "2")+" bad indent\n---\n"+config("b", "3"))
	p = w.untilProblem("in/a.yaml", "not YAML")
	if p.Line != 6 || len(p.LastValid) != 1 || p.LastValid[0].Name.Name != "a" || !p.Stale || p.Reason != source.Syntax {
		t.Errorf("problem %+v", p)
	}
	if w.value("a") != "1" || w.value("b") != "3" {
		t.Errorf("a=%s b=%s", w.value("a"), w.value("b"))
	}

	write(t, "in/a.yaml", config("a", "4")+"---\n"+config("b", "3"))
	w.until("mended", func() bool { return w.value("a") == "4" && len(w.problems) == 0 })
	if len(w.last.Set) != 1 {
		t.Errorf("sent again: %s", showObjects(w.last.Set))
	}

	write(t, "in/a.yaml", config("b", "3"))
	w.until("removed", func() bool { return len(w.objects) == 1 })
}

// TestMisspeltKind protects what serves from a typing error in the words by which an
// object is known.
func TestMisspeltKind(t *testing.T) {
	t.Chdir(t.TempDir())
	const route = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: r}\nspec: {}\n"
	write(t, "in/a.yaml", route)
	w := watch(t, nil, "in")
	for wrong, says := range map[string]string{
		strings.Replace(route, "HTTPRoute", "HTTPRout", 1): "HTTPRout is not a kind",
		strings.Replace(route, "io/v1", "io/v1beta7", 1):   "v1beta7",
		strings.Replace(route, "k8s.io", "k8s.oi", 1):      "did you mean gateway.networking.k8s.io",
	} {
		write(t, "in/a.yaml", wrong)
		if p := w.untilProblem("in/a.yaml", says); len(w.objects) != 1 {
			t.Errorf("the last valid version is gone; %+v", p)
		}
		write(t, "in/a.yaml", route)
		w.until("mended", func() bool { return len(w.problems) == 0 && len(w.objects) == 1 })
	}
	// A kind that we don't know, of another name, holds nothing back.
	write(t, "in/a.yaml", route+"---\n"+strings.NewReplacer("HTTPRoute", "Mesh", "name: r", "name: other").Replace(route))
	w.untilProblem("in/a.yaml", "Mesh is not a kind")
	write(t, "in/a.yaml", strings.NewReplacer("HTTPRoute", "Mesh", "name: r", "name: other").Replace(route))
	w.until("removed", func() bool { return len(w.objects) == 0 })
}

func TestUnreadableFileKeepsItsObjects(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	t.Chdir(t.TempDir())
	write(t, "in/a.yaml", config("a", "1"))
	w := watch(t, nil, "in")
	must(t, os.Chmod("in/a.yaml", 0))
	if p := w.untilProblem("in/a.yaml", "permission denied"); !p.Stale {
		t.Errorf("problem %+v", p)
	}
	must(t, os.Chmod("in/a.yaml", 0o600))
	w.until("heal", func() bool { return len(w.problems) == 0 })
	if w.value("a") != "1" {
		t.Error("the object is gone")
	}
}

// What is far too large costs nothing: it is not read.
func TestTooLargeFileIsNotRead(t *testing.T) {
	unread := iotest.ErrReader(errors.New("this is read"))
	if _, err := readBounded(unread, maxFileSize+1); !errors.Is(err, errTooLarge) {
		t.Error(err)
	}
}

func TestTooLargeFileKeepsItsObjects(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "in/a.yaml", config("a", "1"))
	w := watch(t, nil, "in")
	must(t, os.Truncate("in/a.yaml", maxFileSize+1))
	if p := w.untilProblem("in/a.yaml", "larger than 64 MiB"); !p.Stale {
		t.Errorf("problem %+v", p)
	}
	write(t, "in/a.yaml", config("a", "2"))
	w.until("heal", func() bool { return w.value("a") == "2" && len(w.problems) == 0 })
}

// Programs that write in place truncate first; an emptied file is only believed
// after a while.
func TestTruncatedFile(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "in/a.yaml", config("a", "1"))
	write(t, "in/b.yaml", config("b", "1"))
	w := watch(t, func(s *Source) { s.timing.emptied = time.Hour }, "in")
	write(t, "in/a.yaml", "")
	write(t, "in/b.yaml", config("b", "2"))
	w.untilValue("b", "2")
	if w.value("a") != "1" {
		t.Error("the object went away with the first sight of an empty file")
	}
	write(t, "in/a.yaml", config("a", "2"))
	w.untilValue("a", "2")
}

func TestEmptiedFile(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "in/a.yaml", config("a", "1"))
	w := watch(t, func(s *Source) { s.timing.emptied = 20 * time.Millisecond }, "in")
	write(t, "in/a.yaml", "")
	w.until("given up", func() bool { return w.value("a") == "(none)" })
}

func TestDuplicates(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "in/a.yaml", config("x", "1"))
	w := watch(t, nil, "in")
	write(t, "in/b.yaml", config("x", "2"))
	if p := w.untilProblem("in/b.yaml", "defined first in in/a.yaml:1"); p.Reason != source.Duplicate {
		t.Errorf("problem %+v", p)
	}
	must(t, os.Remove("in/a.yaml"))
	w.untilValue("x", "2")
	if len(w.problems) != 0 || len(w.last.Deleted) != 0 {
		t.Errorf("batch %+v", w.last)
	}
	if got := w.objects["ConfigMap default/x"].GetGeneration(); got != 1 {
		t.Errorf("generation %d: only labels changed", got)
	}
	// What comes later takes nothing from it, though its name is before.
	write(t, "in/a.yaml", config("x", "3")+"data: {k: v}\n")
	w.untilProblem("in/a.yaml", "defined first in in/b.yaml:1")
	if w.value("x") != "2" {
		t.Errorf("x=%s is in force", w.value("x"))
	}
	must(t, os.Remove("in/b.yaml"))
	w.untilValue("x", "3")
	if got := w.objects["ConfigMap default/x"].GetGeneration(); got != 2 {
		t.Errorf("generation %d, want 2", got)
	}
}

func TestObjectMovesBetweenFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "in/a.yaml", config("x", "1"))
	w := watch(t, nil, "in")
	must(t, os.Rename("in/a.yaml", "in/b.yaml"))
	write(t, "in/c.yaml", config("c", "1"))
	w.untilValue("c", "1")
	if len(w.last.Set) != 1 || len(w.last.Deleted) != 0 {
		t.Errorf("batch %+v", w.last)
	}
}

func TestGenerationFollowsTheContent(t *testing.T) {
	t.Chdir(t.TempDir())
	text := func(label, port string) string {
		return "apiVersion: v1\nkind: Service\nmetadata: {name: s, generation: 99, labels: {v: " + label + "}}\nspec: {ports: [{port: " + port + "}]}\n"
	}
	write(t, "in/a.yaml", text("a", "80"))
	w := watch(t, nil, "in")
	steps := []struct {
		text string
		want int64
	}{
		{text("b", "80"), 1},
		{text("b", "81"), 2},
		{text("c", "81") + "# a comment\n", 2},
		{text("c", "82"), 3},
	}
	for _, step := range steps {
		was := w.objects["Service default/s"]
		write(t, "in/a.yaml", step.text)
		w.until("change", func() bool { return w.objects["Service default/s"] != was })
		o := w.objects["Service default/s"]
		if o.GetGeneration() != step.want || o.GetResourceVersion() == was.GetResourceVersion() {
			t.Errorf("after %q: generation %d, want %d; resourceVersion %s", step.text, o.GetGeneration(), step.want, o.GetResourceVersion())
		}
	}
}

// What didn't change isn't sent again, wherever it moved in the text.
func TestUnchangedIsNotSent(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "in/a.yaml", config("a", "1")+"---\n"+config("b", "1")+"---\n"+config("c", "1")+"oops: 1\n")
	w := watch(t, nil, "in")
	write(t, "in/a.yaml", "# a comment\n---\n"+config("b", "2")+"---\n"+config("a", "1")+"# more\n---\n"+config("c", "1")+"oops: 1\n")
	w.untilValue("b", "2")
	if len(w.last.Set) != 1 || len(w.last.Deleted) != 0 {
		t.Errorf("set %s, deleted %v", showObjects(w.last.Set), w.last.Deleted)
	}
	if p := w.problems["in/a.yaml"]; len(p) != 1 || p[0].Line != 21 {
		t.Errorf("the problem did not move with its text: %+v", p)
	}
}

func TestPollingWhereWatchingFails(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "in/a.yaml", config("a", "1"))
	w := watch(t, func(s *Source) {
		s.notify = func() (notifier, error) { return nil, fmt.Errorf("inotify: %w", syscall.EMFILE) }
		s.timing.poll = 20 * time.Millisecond
	}, "in")
	write(t, "in/a.yaml", config("a", "2"))
	w.untilValue("a", "2")
}

func TestManyWritesBecomeFewBatches(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, os.MkdirAll("in", 0o755))
	w := watch(t, nil, "in")
	for i := range 200 {
		write(t, fmt.Sprintf("in/%d.yaml", i), config(fmt.Sprintf("c%d", i), "1"))
	}
	batches := 0
	w.until("all", func() bool { batches++; return len(w.objects) == 200 })
	if batches > 20 {
		t.Errorf("%d batches for one burst", batches)
	}
}

func TestStandardInput(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "in/a.yaml", config("a", "1"))
	s := newSource(t, Options{Paths: []string{"-", "in"}, Stdin: strings.NewReader(config("a", "0") + "oops: 1\n---\n" + config("b", "0"))})
	for range 2 {
		batch, err := s.Load(t.Context())
		must(t, err)
		if len(batch.Set) != 2 || len(batch.Problems["-"]) != 1 || batch.Problems["-"][0].Line != 6 {
			t.Errorf("got %s %s", showObjects(batch.Set), showProblems(batch.Problems))
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, opts := range []Options{{}, {Paths: []string{""}}, {Paths: []string{"-"}}} {
		if _, err := New(opts); err == nil {
			t.Errorf("New(%+v) passed", opts)
		}
	}
}

func TestEndedContext(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "in/a.yaml", config("a", "1"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newSource(t, Options{Paths: []string{"in"}}).Load(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Load: %v", err)
	}
}

// TestHeldObjectsAreNamed protects those who look at an object: that its file can't be
// understood, so that it is not what is written any more, is known of each one.
func TestHeldObjectsAreNamed(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "in/a.yaml", config("a", "1")+"---\n"+config("b", "1"))
	w := watch(t, nil, "in")
	held := func(file string) string {
		var names []string
		for _, p := range w.problems[file] {
			for k := range p.Outdated {
				names = append(names, k.String())
			}
		}
		slices.Sort(names)
		return strings.Join(names, ", ")
	}

	write(t, "in/a.yaml", config("a", "2")+" bad indent\n"+config("b", "2"))
	if p := w.untilProblem("in/a.yaml", "not YAML"); held(p.File) != "ConfigMap default/a, ConfigMap default/b" {
		t.Errorf("problem %+v", p)
	}
	// Of another file nothing is held.
	write(t, "in/b.yaml", ": :\n bad")
	if p := w.untilProblem("in/b.yaml", "not YAML"); held(p.File) != "" {
		t.Errorf("problem %+v", p)
	}
}

// TestFirstStart protects from serving a part of what is written without anybody knowing: with
// nothing kept of an earlier process, mistakes end the first start, and all of them are told.
func TestFirstStart(t *testing.T) {
	t.Chdir(t.TempDir())
	state := t.TempDir()
	write(t, "in/a.yaml", config("a", "1")+"oops: 1\n---\n"+config("b", "1"))
	write(t, "in/b.yaml", noYAML)
	run := func(strict bool) (batch source.Batch, err error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := newSource(t, Options{Paths: []string{"in", "later"}, StateDir: state, Strict: strict})
		err = s.Run(ctx, func(b source.Batch) { batch = b; cancel() })
		return batch, err
	}
	for range 2 { // it stays the first one
		var mistakes source.MistakesError
		if _, err := run(true); !errors.As(err, &mistakes) || len(mistakes) != 2 || mistakes[0].File != "in/a.yaml" || mistakes[1].File != "in/b.yaml" {
			t.Fatalf("%v", err)
		}
	}
	if batch, err := run(false); err != nil || len(batch.Set) != 1 {
		t.Errorf("lenient: %s, %v", showObjects(batch.Set), err)
	}
	if batch, err := run(true); err != nil || len(batch.Set) != 1 {
		t.Errorf("the next start: %s, %v", showObjects(batch.Set), err)
	}
	must(t, os.RemoveAll(state))
	must(t, os.Mkdir(state, 0o700))
	must(t, os.Remove("in/b.yaml"))
	write(t, "in/a.yaml", config("a", "1"))
	if batch, err := run(true); err != nil || len(batch.Set) != 1 {
		t.Errorf("without mistakes: %s, %v", showObjects(batch.Set), err)
	}
}
