//go:build linux

package file

import (
	"os"
	"testing"
	"time"
)

// patient waits for ever before it reads what is not complete.
func patient(s *Source) { s.timing.settle, s.timing.maxSettle = time.Hour, time.Hour }

// renamed writes a file elsewhere and renames it into place.
func renamed(t *testing.T, name, text string) {
	t.Helper()
	write(t, "staging/file", text)
	must(t, os.Rename("staging/file", name))
}

// unread checks that nothing is read for now.
func (w *watched) unread(when string) {
	w.t.Helper()
	select {
	case b := <-w.batches:
		w.t.Errorf("%s files are read: %+v", when, b)
	case <-time.After(50 * time.Millisecond):
	}
}

// A file that is renamed into place, or closed after writing, is read without a wait.
func TestCompleteFilesAreReadAtOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, os.Mkdir("d", 0o750))
	w := watch(t, patient, "d")

	renamed(t, "d/a.yaml", config("a", "1"))
	w.untilValue("a", "1")
	write(t, "d/b.yaml", config("b", "1"))
	w.untilValue("b", "1")
	renamed(t, "d/a.yaml", config("a", "2"))
	w.untilValue("a", "2")
	write(t, "d/a.yaml.tmp", config("a", "3")) // beside it, as editors do
	must(t, os.Rename("d/a.yaml.tmp", "d/a.yaml"))
	w.untilValue("a", "3")
}

// A file that is named, and one behind the link that Kubernetes swaps in mounted volumes.
func TestCompleteLinksAreReadAtOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "volume/one/a.yaml", config("a", "1"))
	write(t, "volume/two/a.yaml", config("a", "2"))
	must(t, os.Symlink("one", "volume/..data"))
	must(t, os.Symlink("..data/a.yaml", "volume/a.yaml"))
	write(t, "named.yaml", config("b", "1"))
	w := watch(t, patient, "volume", "named.yaml")
	w.untilValue("a", "1")

	must(t, os.Symlink("two", "volume/..data_tmp"))
	must(t, os.Rename("volume/..data_tmp", "volume/..data"))
	w.untilValue("a", "2")
	renamed(t, "named.yaml", config("b", "2"))
	w.untilValue("b", "2")
}

// What is being written is not read before it is closed, whatever is complete beside it.
func TestHalfWrittenFilesAreNotRead(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, os.Mkdir("d", 0o750))
	w := watch(t, patient, "d")
	f, err := os.Create("d/a.yaml")
	must(t, err)
	_, err = f.WriteString(config("a", "half") + "---\n")
	must(t, err)
	write(t, "d/b.yaml", config("b", "1"))
	w.unread("while one is being written")
	_, err = f.WriteString(config("c", "1"))
	must(t, err)
	must(t, f.Close())
	w.untilValue("c", "1")
	if w.value("a") != "half" || w.value("b") != "1" {
		t.Errorf("not all that is complete was read: %v", w.names())
	}
}

// A removal may be half of a move: it waits for what comes after it, and what does waits with it.
func TestRemovalsWait(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "d/a.yaml", config("a", "1"))
	w := watch(t, patient, "d")
	must(t, os.Remove("d/a.yaml"))
	w.unread("after a removal")
	write(t, "d/b.yaml", config("a", "2"))
	w.unread("while a removal is half of something")
	write(t, "d/a.yaml", config("c", "1"))
	if b := w.next(); len(b.Deleted) > 0 || w.value("a") != "2" || w.value("c") != "1" {
		t.Errorf("an object that was moved is gone for a while: %+v", b)
	}
}
