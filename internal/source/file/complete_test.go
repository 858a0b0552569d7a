//go:build linux

package file

import (
	"os"
	"testing"
	"time"
)

// patient waits for ever before it reads what is not complete.
func patient(s *Source) { s.timing.settle, s.timing.maxSettle = time.Hour, time.Hour }

// A file that is renamed into place, or closed after writing, is read without a wait.
func TestCompleteFilesAreReadAtOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, os.Mkdir("d", 0o750))
	must(t, os.Mkdir("staging", 0o750))
	w := watch(t, patient, "d")

	must(t, os.WriteFile("staging/a.yaml", []byte(config("a", "1")), 0o600))
	must(t, os.Rename("staging/a.yaml", "d/a.yaml"))
	w.untilValue("a", "1")
	must(t, os.WriteFile("d/b.yaml", []byte(config("b", "1")), 0o600))
	w.untilValue("b", "1")
	must(t, os.WriteFile("staging/a.yaml", []byte(config("a", "2")), 0o600))
	must(t, os.Rename("staging/a.yaml", "d/a.yaml"))
	w.untilValue("a", "2")
}

// A file that is named, and one behind the link that Kubernetes swaps in mounted volumes.
func TestCompleteLinksAreReadAtOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, os.MkdirAll("volume/one", 0o750))
	must(t, os.MkdirAll("volume/two", 0o750))
	must(t, os.WriteFile("volume/one/a.yaml", []byte(config("a", "1")), 0o600))
	must(t, os.WriteFile("volume/two/a.yaml", []byte(config("a", "2")), 0o600))
	must(t, os.Symlink("one", "volume/..data"))
	must(t, os.Symlink("..data/a.yaml", "volume/a.yaml"))
	must(t, os.WriteFile("named.yaml", []byte(config("b", "1")), 0o600))
	w := watch(t, patient, "volume", "named.yaml")
	w.untilValue("a", "1")

	must(t, os.Symlink("two", "volume/..data_tmp"))
	must(t, os.Rename("volume/..data_tmp", "volume/..data"))
	w.untilValue("a", "2")
	must(t, os.WriteFile("new.yaml", []byte(config("b", "2")), 0o600))
	must(t, os.Rename("new.yaml", "named.yaml"))
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
	must(t, os.WriteFile("d/b.yaml", []byte(config("b", "1")), 0o600))
	select {
	case b := <-w.batches:
		t.Errorf("read while a file is being written: %v", b.Set)
	case <-time.After(50 * time.Millisecond):
	}
	_, err = f.WriteString(config("c", "1"))
	must(t, err)
	must(t, f.Close())
	w.untilValue("c", "1")
	if w.value("a") != "half" || w.value("b") != "1" {
		t.Errorf("not all that is complete was read: %v", w.names())
	}
}

// A removal may be half of a move: it waits for what comes after it.
func TestRemovalsWait(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, os.Mkdir("d", 0o750))
	must(t, os.WriteFile("d/a.yaml", []byte(config("a", "1")), 0o600))
	w := watch(t, func(s *Source) { s.timing.settle, s.timing.maxSettle = 300*time.Millisecond, time.Hour }, "d")
	must(t, os.Remove("d/a.yaml"))
	time.Sleep(50 * time.Millisecond) // whoever moves it is slow
	must(t, os.WriteFile("d/b.yaml", []byte(config("a", "2")), 0o600))
	if b := w.next(); len(b.Deleted) > 0 || w.value("a") != "2" {
		t.Errorf("an object that was moved is gone for a while: %+v", b)
	}
}
