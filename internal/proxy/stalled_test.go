package proxy

import (
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// replacedWithin is what docs/architecture/agent.md promises.
const replacedWithin = 20 * time.Second

// An Envoy that stands still without being dead is seen to, and replaced in the
// documented time. One that goes on before is kept.
func TestEnvoyStandsStill(t *testing.T) {
	slow.Skip(t)
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells what a thread has used")
	}
	t.Parallel()
	cfg := testConfig(shortDir(t))
	new(adsServer).serve(t, cfg.XDSSocket)
	r := run(t, cfg)
	first := r.until("live", live)

	stall(t, first.PID)
	r.until("stalled", func(s State) bool { return s.Phase == PhaseStalled && !s.Live && s.PID == first.PID })
	if err := syscall.Kill(first.PID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "going on", func() bool { s := r.Snapshot(); return s.Live && s.PID == first.PID })

	stopped := time.Now()
	stall(t, first.PID)
	next := r.until("replaced", func(s State) bool { return s.Live && s.PID != first.PID })
	if took := time.Since(stopped); took > replacedWithin {
		t.Errorf("replaced after %s", took)
	} else {
		t.Logf("replaced after %s", took)
	}
	if next.Restarts != 1 || next.LastExit == nil || next.LastExit.String() != "stood still and was ended" {
		t.Errorf("%+v %+v", next, next.LastExit)
	}
}

// stall stops a process as Ctrl-Z does.
func stall(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
}

// An Envoy that works on something for longer than one may stand still is left alone,
// although it answers nothing.
func TestBusyEnvoyIsNotReplaced(t *testing.T) {
	slow.Skip(t)
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells what a thread has used")
	}
	t.Parallel()
	dir := shortDir(t)
	cfg := testConfig(dir)
	// It works, and serves no admin interface.
	cfg.Binary.Path = filepath.Join(dir, "envoy")
	script(t, cfg.Binary.Path, "while :; do :; done")
	r := run(t, cfg)
	first := r.until("started", func(s State) bool { return s.PID != 0 })
	waitFor(t, "working for longer than that", func() bool { return time.Since(first.Since) > stillLimit*3/2 })
	if s := r.Snapshot(); s.PID != first.PID || s.Phase != PhaseStarting {
		t.Errorf("%+v, want pid %d starting", s, first.PID)
	}
}
