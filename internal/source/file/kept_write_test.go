package file

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/file/journal"
)

// inode says whether the journal has been written anew.
func (l *life) inode() uint64 {
	l.t.Helper()
	info, err := os.Stat(filepath.Join(l.dir, "kept"))
	if err != nil {
		l.t.Fatal(err)
	}
	return stampOf(info).inode
}

// Nobody waits for the journal: it is written when the batch has been handed over.
func TestKeptBehindTheBatch(t *testing.T) {
	t.Chdir(t.TempDir())
	dir := t.TempDir()
	write(t, "in/a.yaml", thing("first", "1"))
	s := newSource(t, Options{Paths: []string{"in"}, StateDir: dir})
	kept := func(word string) bool {
		text, err := os.ReadFile(filepath.Join(dir, "kept"))
		if err != nil {
			t.Error(err)
		}
		return bytes.Contains(text, []byte(word))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	batches := 0
	if err := s.Run(ctx, func(source.Batch) {
		switch batches++; batches {
		case 1:
			if kept("first") {
				t.Error("the first batch waits for the journal")
			}
			write(t, "in/b.yaml", thing("second", "1"))
		case 2:
			if !kept("first") || kept("second") {
				t.Error("the journal is not written between the batches")
			}
			cancel()
		}
	}); err != nil {
		t.Error(err)
	}
	if batches != 2 {
		t.Errorf("%d batches, want 2", batches)
	}
	if !kept("second") {
		t.Error("the last batch is not in the journal")
	}
}

// Objects with several definitions are written down when they change, and not with every
// change of others.
func TestKeptDuplicates(t *testing.T) {
	l := newLife(t)
	write(t, "in/a.yaml", thing("twice", "1"))
	write(t, "in/b.yaml", thing("twice", "2"))
	write(t, "in/c.yaml", thing("c", "1"))
	l.start()
	end := l.kept.journal.End()
	write(t, "in/c.yaml", thing("c", "2"))
	l.scan()
	once := l.kept.journal.End() - end
	if once <= 0 {
		t.Fatal("a change is not written down")
	}
	write(t, "in/c.yaml", "\n"+thing("c", "2")) // the same in other words
	l.scan()
	if grown := l.kept.journal.End() - end - once; grown != 0 {
		t.Errorf("%d bytes are written for no change", grown)
	}
	text, err := os.ReadFile(filepath.Join(l.dir, "kept"))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte(`"name":"twice"`)); n != 2 {
		t.Errorf("an object with two definitions is written %d times", n)
	}
	if err := os.Remove("in/a.yaml"); err != nil {
		t.Fatal(err)
	}
	l.scan()
	write(t, "in/b.yaml", broken("twice"))
	l.start()
	l.holds("after the first definition went", "c=2", "twice=2")
}

// A Secret that changes costs its own size, and not that of everything.
func TestKeptSecretAlone(t *testing.T) {
	l := newLife(t)
	write(t, "in/a.yaml", thing("a", "1"))
	write(t, "in/secret.yaml", "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {key: one}}\n")
	l.start()
	inode := l.inode()
	write(t, "in/secret.yaml", "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {key: two}}\n")
	l.scan()
	if l.inode() != inode {
		t.Error("all is written anew")
	}
	write(t, "in/a.yaml", broken("a"))
	write(t, "in/secret.yaml", noYAML)
	l.start()
	l.holds("in the next process", "Secret default/s", "a=1")
}

// fullDisk makes the journal unable to grow or to be written anew, until the function that it
// returns is called. It makes the journal so large before that all other files stay smaller.
func (l *life) fullDisk() (room func()) {
	l.t.Helper()
	large := journal.Record{ID: journal.ID{File: "/elsewhere"}, Object: make([]byte, 8<<20)}
	if err := l.kept.journal.Append(slices.Values([]journal.Record{large})); err != nil {
		l.t.Fatal(err)
	}
	write(l.t, filepath.Join(l.dir, "kept.new", "in the way"), "")
	signal.Ignore(syscall.SIGXFSZ)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		l.t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: uint64(l.kept.journal.End()), Max: before.Max}); err != nil {
		l.t.Fatal(err)
	}
	room = func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
			l.t.Error(err)
		}
		if err := os.RemoveAll(filepath.Join(l.dir, "kept.new")); err != nil {
			l.t.Error(err)
		}
	}
	l.t.Cleanup(room)
	return room
}

// A version that has been replaced does not come back, also where the new one can't be written
// down; and that is not tried with every change.
func TestKeptFullDisk(t *testing.T) {
	l := newLife(t)
	write(t, "in/a.yaml", thing("a", "1"))
	write(t, "in/b.yaml", thing("b", "1"))
	l.start()
	room := l.fullDisk()
	write(t, "in/a.yaml", thing("a", "2"))
	l.scan()
	l.holds("edited", "a=2", "b=1")
	write(t, "in/a.yaml", broken("a"))
	l.start()
	l.holds("broken, in the next process", "b=1")

	write(t, "in/a.yaml", thing("a", "3"))
	l.scan()
	if !l.kept.lacking || l.kept.wait != firstWait {
		t.Errorf("it is tried again after %s, lacking: %t", l.kept.wait, l.kept.lacking)
	}
	l.save()
	if l.kept.wait != firstWait {
		t.Error("it is tried again at once")
	}
	l.kept.retry = time.Time{}
	l.save()
	if l.kept.wait != 2*firstWait {
		t.Errorf("after another failure, it is tried again after %s", l.kept.wait)
	}
	room()
	l.kept.retry = time.Time{}
	l.save()
	if l.kept.lacking || l.kept.wait != 0 {
		t.Error("with room, it is not written down")
	}
	write(t, "in/a.yaml", broken("a"))
	l.start()
	l.holds("broken, when there was room", "a=3", "b=1")
}

// A journal that is damaged is told of, and costs no start.
func TestDamagedJournal(t *testing.T) {
	const guard = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: guard}\nspec:\n  parentRefs: [{name: gw}]\n  hostnames: [a.example]\n"
	for name, damage := range map[string]func(text []byte) []byte{
		"half":   func(text []byte) []byte { return text[:len(text)/2] },
		"zeros":  func(text []byte) []byte { return make([]byte, len(text)) },
		"a bit":  func(text []byte) []byte { text[len(text)/2] ^= 1; return text },
		"random": func([]byte) []byte { return bytes.Repeat([]byte("x\xff\n"), 1000) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			write(t, "in/a.yaml", guard)
			l.start()
			l.kill()
			path := filepath.Join(l.dir, journal.Name)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, damage(text), 0o600); err != nil {
				t.Fatal(err)
			}
			var told bytes.Buffer
			k := openKeeper(l.dir, slog.New(slog.NewTextHandler(&told, nil)))
			if k == nil {
				t.Fatal("nothing is kept")
			}
			k.close()
			if !bytes.Contains(told.Bytes(), []byte("can't be read and is left out")) {
				t.Errorf("told is %q", told.String())
			}
			l.start()
			if l.held["HTTPRoute default/guard"] == nil {
				t.Error("the guard isn't in force")
			}
		})
	}
}

// Of a large first scan a portion is written at a time, and a change in between is neither lost nor delayed.
func TestKeptInPortions(t *testing.T) {
	l := newLife(t)
	const objects = 2*portion + 10
	var text strings.Builder
	for i := range objects {
		text.WriteString(thing(fmt.Sprintf("n%d", i), "1") + "---\n")
	}
	write(t, "in/many.yaml", text.String())
	write(t, "in/one.yaml", thing("one", "1"))
	l.start()
	if !l.unsaved() {
		t.Fatal("all is written at once")
	}
	write(t, "in/one.yaml", thing("one", "2"))
	l.scan()
	inode := l.inode()
	for rounds := 0; l.unsaved(); rounds++ {
		if rounds > objects/portion {
			t.Fatal("the portions have no end")
		}
		l.save()
	}
	if l.save(); l.inode() != inode || l.kept.journal.Wasteful() {
		t.Error("what the journal was filled with is written again")
	}
	write(t, "in/many.yaml", noYAML)
	write(t, "in/one.yaml", broken("one"))
	l.start()
	if n := len(l.held); n != objects+1 {
		t.Errorf("%d objects are in force in the next process, want %d", n, objects+1)
	}
	if got := l.held["ConfigMap default/one"]; got == nil || got.GetLabels()["value"] != "2" {
		t.Errorf("of the object that changed in between %v is in force", got)
	}
}
