package proxy

import (
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Deleting the directory under a running Envoy costs nothing: it serves on, no
// second one is started beside it, and should it die, it comes back and finds
// its control plane.
func TestDirectoryDeleted(t *testing.T) {
	cfg := testConfig(shortDir(t))
	cfg.XDSSocket = filepath.Join(cfg.Dir, "xds.sock")
	var ads adsServer
	ads.serveIn(t, cfg.Dir, cfg.XDSSocket)
	cfg.Prepare = func() error {
		if _, err := os.Stat(cfg.XDSSocket); err != nil {
			ads.serveIn(t, cfg.Dir, cfg.XDSSocket)
		}
		return nil
	}
	var mu sync.Mutex
	var lines []Line
	cfg.Output = func(l Line) { mu.Lock(); lines = append(lines, l); mu.Unlock() }
	r := run(t, cfg)
	first := r.until("live", live)

	if err := os.RemoveAll(cfg.Dir); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the record is back", func() bool { record, err := readRecord(cfg.Dir); return err == nil && record != nil })
	if p, _ := New(cfg).leftover(); p == nil || p.pid != first.PID {
		t.Errorf("the next run would find %+v", p)
	}
	if err := New(cfg).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "another Gatehouse") {
		t.Errorf("a second supervisor: %v", err)
	}
	if word, err := r.Admin(t.Context(), http.MethodGet, "/ready"); runtime.GOOS == "linux" && err != nil {
		t.Errorf("its admin interface can't be reached: %v: %s", err, word)
	}
	if !alive(first.PID) {
		t.Error("Envoy is gone")
	}

	if err := os.RemoveAll(cfg.Dir); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	lines = nil
	mu.Unlock()
	kill(t, first.PID)
	r.until("live again", func(s State) bool { return s.Live && s.PID != first.PID })
	waitFor(t, "its log is followed", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.ContainsFunc(lines, func(l Line) bool { return l.Logger == "main" })
	})
}

// What is right already is not written again, so that a full disk does not keep
// an Envoy down that has all it needs.
func TestWriteFileLeavesTheSame(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write := func(content string) os.FileInfo {
		t.Helper()
		if err := writeFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	first := write("one")
	if !os.SameFile(first, write("one")) {
		t.Error("the same content was written again")
	}
	if os.SameFile(first, write("two")) {
		t.Error("a file was not replaced as a whole")
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := write("two").Mode(); got != 0o600 {
		t.Errorf("mode %v", got)
	}
}
